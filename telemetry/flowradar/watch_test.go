package flowradar

import (
	"fmt"
	"testing"

	"gswitch/frame"
)

// A line of three switches: port 0 leads to the left, port 1 to the right; hosts are
// at both ends. A fourth hangs below the second, at port 2.
var line = [][]End{
	{{Switch: -1}, {1, 0}},
	{{0, 1}, {2, 0}, {3, 0}},
	{{1, 1}, {Switch: -1}},
	{{1, 2}, {Switch: -1}},
}

var one = Key{Addrs: 0x0a000001_0a000002, Rest: 17}

func rec(packets uint32, in, out uint16) Record {
	return Record{Key: one, Traffic: Traffic{Packets: packets, In: in, Out: out}, Exact: true}
}

// slots feeds a watcher slots of 10 ms; each is the records of every switch.
func slots(w *Watcher, unknown func(slot, sw int) bool, v ...[4][]Record) (out []string) {
	for n, recs := range v {
		s := &Slot{Number: uint64(n), From: frame.Time(n) * 10 * frame.Millisecond}
		for i, r := range recs {
			s.Switches = append(s.Switches, SwitchSlot{Known: unknown == nil || !unknown(n, i), Complete: true, Records: r})
		}
		for _, f := range w.Note(s.From+11*frame.Millisecond, s) {
			out = append(out, fmt.Sprintf("%d: %v at %d port %d, %d", n, f.Kind, f.Switch, f.Port, f.Packets))
		}
	}
	return out
}

func along(a, b, c uint32) (v [4][]Record) {
	for i, n := range []uint32{a, b, c} {
		if n > 0 {
			v[i] = []Record{rec(n, 0, 1)}
		}
	}
	return v
}

// Losses are reported for each burst when it is over, at the link where they were:
// packets that were only under way at the end of a slot are none, and of slots whose
// reports did not come nothing is said.
func TestLossMap(t *testing.T) {
	w := NewWatcher(line)
	check := func(what string, got []string, want ...string) {
		t.Helper()
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
	none := along(0, 0, 0)
	check("two of a burst", slots(w, nil, along(10, 9, 9), along(8, 7, 7), along(0, 0, 0)), "2: loss at 0 port 1, 2")
	check("under way", slots(w, nil, along(10, 9, 8), along(8, 9, 10), none))
	check("another link", slots(w, nil, along(10, 10, 7), none, none), "1: loss at 1 port 1, 3")
	check("a report is missing", slots(w, func(n, sw int) bool { return n == 1 && sw == 1 }, along(10, 10, 10), along(5, 0, 5), along(5, 5, 5), none, none))
	guessed := along(10, 10, 10)
	guessed[1][0].Exact, guessed[1][0].Traffic = false, Traffic{Packets: 10, In: NoPort, Out: NoPort}
	check("without counters", slots(w, nil, guessed, none, none))
	guessed[1][0].Exact = true // by the equations
	check("without ports", slots(w, nil, guessed, none, none))
	late := along(0, 10, 10)
	late[1][0].Traffic = Traffic{Packets: 10, In: NoPort, Out: NoPort}
	check("without ports, a slot later", slots(w, nil, along(10, 0, 0), late, none, none))
	drops := along(10, 10, 10)
	drops[1][0] = rec(6, 0, 1)
	drops[1] = append(drops[1], rec(4, 0, NoPort))
	drops[2][0] = rec(6, 0, 1)
	check("in tables", slots(w, nil, drops, none), "1: loss at 1 port 2047, 4")
}

// A flow all of whose packets are lost behind a switch is named within two slots, once,
// and again after it has been well; a few lost at random are no blackhole.
func TestBlackholeWatch(t *testing.T) {
	w := NewWatcher(line)
	got := slots(w, nil, along(10, 10, 10), along(10, 10, 0), along(10, 10, 0), along(10, 10, 0), along(10, 10, 10), along(10, 10, 0), along(0, 0, 0))
	want := "[2: blackhole at 1 port 1, 20 5: blackhole"
	if len(got) < 2 || got[0] != "2: blackhole at 1 port 1, 20" || got[1] != "6: blackhole at 1 port 1, 10" && got[1] != "6: loss at 1 port 1, 40" {
		t.Errorf("%q, want %s ...", got, want)
	}
	tables := along(10, 0, 0)
	tables[1] = []Record{rec(10, 0, NoPort)}
	if got := slots(NewWatcher(line), nil, along(10, 10, 10), tables); len(got) != 1 || got[0] != "1: blackhole at 1 port 2047, 10" {
		t.Errorf("in tables: %q", got)
	}
	if got := slots(NewWatcher(line), nil, along(2, 2, 0), along(0, 0, 0), along(0, 0, 0)); len(got) != 1 || got[0] != "1: loss at 1 port 1, 2" {
		t.Errorf("two packets: %q", got)
	}
	// What was under way when the slot ended is not lost.
	if got := slots(NewWatcher(line), nil, along(5, 5, 0), along(0, 0, 5), along(0, 0, 0)); len(got) != 0 {
		t.Errorf("under way: %q", got)
	}
}

// A flow whose first packet of a slot is one that circulated until its time to live was
// over did not vanish: an encoded table has the ports of that packet for all of them. The
// loop is the same one when it shows again.
func TestLoopExpires(t *testing.T) {
	around := func(entered, inside uint32, out uint16) (v [4][]Record) {
		if entered > 0 {
			v[0] = []Record{rec(entered, 0, 1)}
		}
		v[1], v[2] = []Record{rec(inside, 0, 1)}, []Record{rec(inside, 0, out)}
		return v
	}
	for what, x := range map[string]struct {
		v    [][4][]Record
		want string
	}{
		"in the middle":     {[][4][]Record{around(2, 62, 0), around(2, 42, NoPort), around(2, 32, NoPort), around(2, 33, NoPort), around(2, 32, 0)}, "[0: loop at 1 port 2047, 62]"},
		"nothing more came": {[][4][]Record{around(2, 62, 0), around(2, 42, NoPort), around(0, 32, NoPort), around(0, 32, NoPort)}, "[0: loop at 1 port 2047, 62]"},
		"first":             {[][4][]Record{around(2, 32, NoPort)}, "[]"},
		"no loop":           {[][4][]Record{around(32, 32, NoPort)}, "[0: blackhole at 2 port 2047, 32]"},
		"from elsewhere":    {[][4][]Record{around(0, 32, NoPort)}, "[0: blackhole at 2 port 2047, 32]"},
	} {
		if got := fmt.Sprint(slots(NewWatcher(line), nil, x.v...)); got != x.want {
			t.Errorf("%s: %s, want %s", what, got, x.want)
		}
	}
}

// Where slots of switches begin at other times, packets may be counted in an earlier or
// a later slot behind a link: they are not lost. What is lost is known later.
func TestLooseWatch(t *testing.T) {
	none := along(0, 0, 0)
	for what, x := range map[string]struct {
		v    [][4][]Record
		want string
	}{
		"earlier":          {[][4][]Record{none, none, none, along(0, 10, 10), along(10, 0, 0), none, none, none, none}, "[]"},
		"much later":       {[][4][]Record{none, none, none, along(10, 0, 0), none, along(0, 10, 10), none, none, none}, "[]"},
		"lost":             {[][4][]Record{none, none, none, along(0, 8, 8), along(10, 0, 0), none, none, none, none}, "[7: loss at 0 port 1, 2]"},
		"gone":             {[][4][]Record{none, none, none, along(10, 10, 0), along(10, 10, 0), along(10, 10, 0), none}, "[6: blackhole at 1 port 1, 30]"},
		"gone after a way": {[][4][]Record{none, none, along(9, 9, 9), along(9, 9, 0), along(9, 9, 0), along(9, 9, 0), along(9, 9, 0), along(9, 9, 0), along(9, 9, 0)}, "[8: blackhole at 1 port 1, 36]"},
		"from before":      {[][4][]Record{along(10, 9, 9), none, none, none, none}, "[]"},
	} {
		if got := fmt.Sprint(slots(NewLooseWatcher(line, 2), nil, x.v...)); got != x.want {
			t.Errorf("%s: %v, want %v", what, got, x.want)
		}
	}
	early := [][4][]Record{none, none, none, along(0, 0, 10), along(10, 10, 0), none, none, none}
	if got := slots(NewLooseWatcher(line, 2), func(n, sw int) bool { return n == 3 && sw == 2 }, early...); len(got) > 0 {
		t.Errorf("counted in a report that did not come: %v", got)
	}
}

// A flow that two switches forward to each other is a loop in the slot in which it
// begins; a route that changes within a slot is none.
func TestLoopWatch(t *testing.T) {
	loop := [4][]Record{{rec(5, 0, 1)}, {rec(5, 0, 1), rec(40, 1, 1)}, {rec(45, 0, 0)}}
	if got := slots(NewWatcher(line), nil, along(5, 5, 5), loop, loop); len(got) == 0 || got[0] != "1: loop at 1 port 2047, 45" {
		t.Errorf("%q", got)
	}
	back := [4][]Record{{rec(9, 0, 1)}, {rec(9, 0, 1), rec(4, 1, 2)}, {rec(5, 0, 1), rec(4, 0, 0)}, {rec(4, 0, 1)}}
	if got := slots(NewWatcher(line), nil, back, along(0, 0, 0)); len(got) != 0 {
		t.Errorf("packets that were sent back once: %q", got)
	}
	change := [4][]Record{{rec(50, 0, 1)}, {rec(20, 0, 1), rec(30, 0, 2)}, {rec(20, 0, 1)}, {rec(30, 0, 1)}}
	if got := slots(NewWatcher(line), nil, along(50, 50, 50), change, along(0, 0, 0)); len(got) != 0 {
		t.Errorf("a route that changed: %q", got)
	}
}
