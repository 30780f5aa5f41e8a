package collect

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"gswitch/frame"
	"gswitch/telemetry"
	"gswitch/telemetry/flowradar"
)

const slotLength = 10 * time.Millisecond

// counting is a switch of a daemon of its own that counts flows.
type counting struct {
	hello telemetry.Hello
	now   *flowradar.Report
	next  uint64
	kept  []byte
}

func newCounting(name string, boot time.Time, p flowradar.Params) *counting {
	return &counting{hello: telemetry.Hello{Version: 1, Name: name, Boot: uint64(boot.UnixNano()), Nodes: []telemetry.Node{{ID: 1, Name: name, Workers: 1}}},
		now: &flowradar.Report{Node: 1, Slots: 1, Encoded: flowradar.New(p)}}
}

// count counts packets of a flow at an instant of the wall clock.
func (c *counting) count(at time.Time, k flowradar.Key, packets int, in, out uint16) {
	c.advance(at)
	c.now.Packets += uint64(packets)
	c.now.Encoded.Update(k, flowradar.Traffic{Packets: uint32(packets), Bytes: 100, In: in, Out: out})
}

// advance ends slots whose time is over.
func (c *counting) advance(at time.Time) {
	long := frame.Time(slotLength)
	now := frame.Time(at.UnixNano()) - frame.Time(c.hello.Boot)
	if c.now.Slot == 0 {
		c.now.Slot = uint64(now / long)
		c.now.From = now / long * long
	}
	for c.now.To = frame.Time(c.now.Slot+1) * long; c.now.To <= now; c.now.To += long {
		c.next++
		rep := telemetry.Report{Kind: flowKind, Node: 1, Boot: c.hello.Boot, Sequence: c.next, Body: c.now.Append(nil)}
		c.kept = rep.Append(c.kept)
		c.now.Reset()
		c.now.Slots = 1
		c.now.Slot++
		c.now.From = c.now.To
	}
}

func (c *counting) message(t testing.TB, at time.Time) []stored {
	if len(c.kept) == 0 {
		return nil
	}
	data, err := encode(&c.hello, c.kept)
	if err != nil {
		t.Fatal(err)
	}
	c.kept = nil
	return []stored{{at, data}}
}

func flowTo(port int) flowradar.Key {
	return flowradar.Key{Addrs: 0x0a000001_0a000002, Rest: uint64(1000)<<24 | uint64(port)<<8 | 17}
}

// counted is what the stream gets of s1 and s2 for as long: packets go from a host
// behind s1 to one behind s2, and take 1 ms. Of port 1 seven of a burst are
// lost on the link; of port 2 bursts come whole; of port 3 all are lost there from
// half a second on; port 4 has no route at s2 from then on; port 5 loops from
// then on. The clocks of the daemons began at instants that differ by apart.
func counted(t testing.TB, long, apart time.Duration, small bool) (v []stored) {
	p := flowradar.Fixed(64, flowradar.Alone, 1)
	q := p
	q.Seed = 2
	if small {
		q.Cells = 8
	}
	a, b := newCounting("s1", start.Add(-time.Hour), p), newCounting("s2", start.Add(-2*time.Hour+apart), q)
	const host, link = 0, 1
	lost := 0
	for at := time.Duration(0); at < long; at += time.Millisecond {
		now, later := start.Add(at), start.Add(at+time.Millisecond)
		broken := at >= 500*time.Millisecond
		send := func(port, gone int) {
			a.count(now, flowTo(port), 2, host, link)
			if gone < 2 {
				b.count(later, flowTo(port), 2-gone, link, host)
			}
		}
		if at > 200*time.Millisecond && at < 295*time.Millisecond {
			gone := 0
			if at%(13*time.Millisecond) == 0 && lost < 7 {
				gone = 1
				lost++
			}
			send(1, gone)
		}
		if at/(37*time.Millisecond)%2 == 0 || at%(250*time.Millisecond) == 0 {
			send(2, 0)
		}
		if broken {
			send(3, 2)
			a.count(now, flowTo(4), 2, host, link)
			b.count(later, flowTo(4), 2, link, flowradar.NoPort)
			a.count(now, flowTo(5), 2, host, link)
			for range 20 {
				b.count(later, flowTo(5), 2, link, link)
				a.count(later, flowTo(5), 2, link, link)
			}
		} else {
			for port := 3; port <= 5; port++ {
				send(port, 0)
			}
		}
		a.advance(later)
		b.advance(later)
		if at%(50*time.Millisecond) == 0 {
			v = append(v, a.message(t, now)...)
			v = append(v, b.message(t, now)...)
		}
	}
	for i := range 60 { // time goes on
		data, err := encode(&telemetry.Hello{Version: 1, Name: tick, Boot: 1}, nil)
		if err != nil {
			t.Fatal(err)
		}
		v = append(v, stored{start.Add(long + time.Duration(i+1)*idleWait), data})
	}
	return v
}

// What happens to flows is reported once, with its place, whenever the daemons began.
func TestFlows(t *testing.T) {
	for _, apart := range []time.Duration{0, 1, 3, 5, 7, 9} {
		a, events := NewAnalysis(line(t)), map[string]Event{}
		analyse(t, a, counted(t, 1500*time.Millisecond, apart*time.Millisecond, false), events)
		got := map[string]int{}
		for _, e := range events {
			packets := e.Packets
			if e.What != "loss" {
				packets = 0
				if e.Packets < 3 {
					t.Errorf("%v", &e)
				}
				if d := e.At.Sub(start); d < 480*time.Millisecond || d > 560*time.Millisecond || e.Until.Sub(e.At) > 80*time.Millisecond {
					t.Errorf("%d ms apart, %v after the beginning: %v", apart, d, &e)
				}
			}
			got[fmt.Sprint(e.DstPort, " ", e.What, " ", e.Where, " ", packets, e.Path)]++
		}
		want := map[string]int{"1 loss s1>s2 7": 1, "3 blackhole s1>s2 0": 1, "4 blackhole s2 0": 1, "5 loop s1 0s1 s2": 1}
		if !maps.Equal(got, want) {
			t.Errorf("%d ms apart: %v, want %v", apart, got, want)
		}
		s := a.Stats()
		if s[Stat{flowSlots, "whole"}] < 290 || s[Stat{flowSlots, "crowded"}] > 0 || s[Stat{flowSlots, "unknown"}] > 4 {
			t.Errorf("%v", s)
		}
		for k, n := range s {
			if k.Family == reportProblems && n > 0 {
				t.Errorf("%d reports are %s", n, k.Label)
			}
		}
	}
}

// Tables that are too small for their flows are decoded with those of the neighbour,
// and not without.
func TestFlowsHelp(t *testing.T) {
	v := counted(t, 400*time.Millisecond, 0, true)
	for _, both := range []bool{true, false} {
		a := NewAnalysis(line(t))
		for _, s := range v {
			m, err := decode(s.data)
			if err != nil {
				t.Fatal(err)
			}
			if both || m.Name != "s1" {
				a.Add(s.at, m)
			}
		}
		if n := a.Stats()[Stat{flowSlots, "crowded"}]; (n == 0) != both {
			t.Errorf("with both switches %v: %d slots of which not all flows are known", both, n)
		}
	}
}

// A collector that takes the lane over finds what the one before would have found.
func TestFlowsTakenOver(t *testing.T) {
	v := counted(t, 100*time.Second, 4*time.Millisecond, false)
	n := line(t)
	names := func(events []Event) (v []string) {
		for _, e := range events {
			v = append(v, fmt.Sprint(e))
		}
		return v
	}
	var whole [][]string
	a, all := NewAnalysis(n), 0
	for _, s := range v {
		m, err := decode(s.data)
		if err != nil {
			t.Fatal(err)
		}
		whole = append(whole, names(a.Add(s.at, m)))
		all += len(whole[len(whole)-1])
	}
	for _, cut := range []int{len(v) * 65 / 100, len(v) * 78 / 100} {
		b, later := NewAnalysis(n), 0
		for i, s := range v {
			if s.at.Before(v[cut].at.Add(-Memory)) {
				continue
			}
			m, err := decode(s.data)
			if err != nil {
				t.Fatal(err)
			}
			got := names(b.Add(s.at, m))
			if i <= cut {
				continue
			}
			later += len(got)
			if !slices.Equal(got, whole[i]) {
				t.Fatalf("message %d: %q, by the one before %q", i, got, whole[i])
			}
		}
		if later == 0 || later == all {
			t.Errorf("%d of %d events after message %d", later, all, cut)
		}
	}
}

// Reports that say nothing are counted.
func TestFlowProblems(t *testing.T) {
	hello := telemetry.Hello{Version: 1, Name: "x", Boot: uint64(start.UnixNano()), Nodes: []telemetry.Node{{ID: 1, Name: "s1", Workers: 1}, {ID: 2, Name: "elsewhere", Workers: 1}, {ID: 3, Name: "h1", Workers: 1}}}
	body := func(slot, to frame.Time) []byte {
		r := &flowradar.Report{Slot: uint64(slot), From: slot * 10 * frame.Millisecond, To: to, Slots: 1, Exact: flowradar.NewExact(1)}
		return r.Append(nil)
	}
	good := body(1, 20*frame.Millisecond)
	for what, x := range map[string]struct {
		node uint16
		body []byte
	}{
		"bad":       {1, good[:10]},
		"different": {1, body(1, 20*frame.Millisecond-1)},
		"foreign":   {2, good},
		"ahead":     {1, body(6000, 60010*frame.Millisecond)},
		"":          {1, good},
	} {
		a := NewAnalysis(line(t))
		a.Add(start, &message{Hello: hello, reports: []telemetry.Report{{Kind: flowKind, Node: x.node, Boot: hello.Boot, Sequence: 1, Body: x.body}}})
		for _, label := range []string{"bad", "different", "foreign", "ahead"} {
			if n := a.Stats()[Stat{reportProblems, label}]; (n == 1) != (label == what) {
				t.Errorf("%q: %d reports are %s", what, n, label)
			}
		}
	}
	a := NewAnalysis(line(t))
	a.Add(start, &message{Hello: hello, reports: []telemetry.Report{{Kind: flowKind, Node: 3, Boot: hello.Boot, Sequence: 1, Body: good}}})
	if a.Stats()[Stat{reportProblems, "foreign"}] != 1 {
		t.Error("a host's report is no problem")
	}
	for i, at := range []time.Duration{0, 3 * time.Second, 20 * time.Second} {
		a.Add(start.Add(at), &message{Hello: hello, reports: []telemetry.Report{{Kind: flowKind, Node: 1, Boot: hello.Boot, Sequence: uint64(i + 2), Body: good}}})
	}
	if n := a.Stats()[Stat{reportProblems, "late"}]; n != 1 {
		t.Errorf("%d reports are late", n)
	}
}
