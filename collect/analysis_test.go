package collect

import (
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"gswitch/fabric"
	"gswitch/fabric/traces"
	"gswitch/frame"
	"gswitch/mirror"
	"gswitch/telemetry"
	"gswitch/telemetry/lossradar"
	"gswitch/wire"
)

// line is two hosts and two switches: port 1 of each leads to the other.
func line(t testing.TB) *Network { return lineOf(t, "l2") }

// lineOf is line in a mode: in l3 switches route, and have addresses.
func lineOf(t testing.TB, mode string) *Network {
	t.Helper()
	file := filepath.Join(t.TempDir(), "line.yaml")
	if err := os.WriteFile(file, []byte("version: 1\nname: line\nmode: "+mode+"\nhosts: [h1, h2]\nswitches: [s1, s2]\nlinks: [{a: h1, b: s1}, {a: h2, b: s2}, {a: s1, b: s2, rate: 10Gbps}]\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	top, err := fabric.Load(file, fabric.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	n, err := NewNetwork(top)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

var start = time.Unix(1_700_000_000, 0)

// stored is a message in the stream.
type stored struct {
	at   time.Time
	data []byte
}

// exporterOf is a switch with meters at its port 1.
type exporterOf struct {
	hello telemetry.Hello
	out   *telemetry.Outbox[lossradar.Report]
	up    *lossradar.Upstream
	down  *lossradar.Downstream
	next  uint64
	kept  []byte
}

const period = 10 * frame.Millisecond

func newExporter(name string, id uint16, boot time.Time) *exporterOf {
	x := &exporterOf{hello: telemetry.Hello{Version: 1, Name: name, Boot: uint64(boot.UnixNano()), Nodes: []telemetry.Node{{ID: id, Name: name, Workers: 1}}}}
	var v []*lossradar.Report
	for range 40 {
		v = append(v, &lossradar.Report{Digest: lossradar.NewDigest(lossradar.DefaultShape())})
	}
	x.out = telemetry.NewOutbox(v...)
	timing := lossradar.Timing{Period: period, Timeout: 2 * frame.Millisecond}
	m := lossradar.Meter{Node: id, Port: 1}
	x.up = lossradar.NewUpstream(m, timing, x.out, 0)
	x.down = lossradar.NewDownstream(m, timing, x.out)
	return x
}

// take gathers reports.
func (x *exporterOf) take() {
	for r := x.out.Take(); r != nil; r = x.out.Take() {
		x.next++
		rep := telemetry.Report{Kind: lossKind, Node: x.hello.Nodes[0].ID, Boot: x.hello.Boot, Sequence: x.next, Body: r.Append(nil)}
		x.kept = rep.Append(x.kept)
		r.Reset()
		x.out.Return(r)
	}
}

// message is what was gathered, nil if there is nothing.
func (x *exporterOf) message(t testing.TB) []byte {
	if len(x.kept) == 0 {
		return nil
	}
	b, err := encode(&x.hello, x.kept)
	if err != nil {
		t.Fatal(err)
	}
	x.kept = nil
	return b
}

// metered is what the stream gets of a link from s1 to s2 that loses one packet of
// 20, in two spells of traffic, and how many these are. Between from and to nothing
// reaches the stream; it comes afterwards.
func metered(t testing.TB, from, to time.Duration) (v []stored, lost int) {
	// Batches lie across the intervals of the wall clock.
	a, b := newExporter("s1", 1, start.Add(3*time.Millisecond)), newExporter("s2", 1, start.Add(-time.Hour))
	for ms := range 3000 {
		now := frame.Time(ms) * frame.Millisecond
		late := now + frame.Time(time.Hour) // the clock of s2 began an hour before
		for _, u := range []struct {
			x  *exporterOf
			at frame.Time
		}{{a, now}, {b, late}} {
			u.x.up.Advance(u.at)
			u.x.down.Advance(u.at)
		}
		if ms < 800 || ms > 1500 && ms < 2000 {
			for i := range 3 {
				n := 3*ms + i
				s := lossradar.Fields{Src: 0x0a000001, Dst: 0x0a000002, SrcPort: 1, DstPort: 2, ID: uint16(n), Proto: wire.ProtoUDP}.Pack()
				tag := a.up.Tag(now)
				s = s.At(tag.Stamp)
				a.up.Insert(s)
				if n%20 == 7 {
					lost++
				} else {
					b.down.Insert(late, tag.Batch, s)
				}
			}
		}
		a.take()
		b.take()
		at := time.Duration(ms) * time.Millisecond
		if ms%5 == 0 && (at < from || at >= to) {
			for _, x := range []*exporterOf{a, b} {
				if data := x.message(t); data != nil {
					v = append(v, stored{start.Add(at), data})
				}
			}
		}
	}
	// Time goes on, as who analyses a lane sees to.
	for i := range 100 {
		data, err := encode(&telemetry.Hello{Version: 1, Name: tick, Boot: 1}, nil)
		if err != nil {
			t.Fatal(err)
		}
		v = append(v, stored{start.Add(3*time.Second + time.Duration(i+1)*idleWait), data})
	}
	return v, lost
}

// analyse gives messages to an analysis.
func analyse(t testing.TB, a *Analysis, v []stored, events map[string]Event) {
	t.Helper()
	for _, s := range v {
		m, err := decode(s.data)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range a.Add(s.at, m) {
			if _, twice := events[e.ID]; twice {
				t.Errorf("twice: %v", e)
			}
			events[e.ID] = e
		}
	}
}

func lossesOf(events map[string]Event) (n uint64) {
	for _, e := range events {
		if e.Kind == Loss {
			n += e.Packets
		}
	}
	return n
}

// Each loss is named once, on its link: with clocks that began at other times, and
// with reports that come late since they were not collected.
func TestLosses(t *testing.T) {
	for _, late := range []time.Duration{0, 300 * time.Millisecond, 2 * time.Second} {
		v, lost := metered(t, 500*time.Millisecond, 500*time.Millisecond+late)
		a, events := NewAnalysis(line(t)), map[string]Event{}
		analyse(t, a, v, events)
		s := a.Stats()
		// Of the last four batches the exporters end before the wait for late digests.
		if n := lossesOf(events); int(n) != lost || s[Stat{linkLost, "s1>s2"}] != uint64(lost) || s[Stat{linkUnknown, "s1>s2"}] != 4 || s[Stat{linkSent, "s1>s2"}] != 3*1299 {
			t.Errorf("late by %v: %d losses are named, of %d; %v", late, n, lost, s)
		}
		for _, e := range events {
			if e.Kind == Lossy && e.Where == "s1>s2" {
				continue
			}
			if e.Where != "s1>s2" || e.What != "random" || e.Src != netip.MustParseAddr("10.0.0.1") || e.At.Before(start) || e.Until.After(start.Add(2*time.Second)) {
				t.Errorf("%v", e)
			}
		}
		for k, n := range s {
			if k.Family == reportProblems && n > 0 {
				t.Errorf("%d reports are %s", n, k.Label)
			}
		}
	}
}

// A switch whose reports come after its neighbour's were judged without them: nothing is
// known of the batches between, and none of them is taken for lost. Of 300 packets of an
// interval 15 are.
func TestOneEndStalls(t *testing.T) {
	v, _ := metered(t, 0, 0)
	// s2 sends nothing for too long while packets pass, s1 for a little less.
	stall := map[string][2]time.Duration{"s2": {700 * time.Millisecond, reportTimeout + 400*time.Millisecond}, "s1": {1700 * time.Millisecond, reportTimeout - 500*time.Millisecond}}
	for i := range v {
		m, err := decode(v[i].data)
		if err != nil {
			t.Fatal(err)
		}
		if s, ok := stall[m.Name]; ok && v[i].at.Sub(start) >= s[0] {
			v[i].at = v[i].at.Add(s[1])
		}
	}
	slices.SortStableFunc(v, func(a, b stored) int { return a.at.Compare(b.at) })
	a, events := NewAnalysis(line(t)), map[string]Event{}
	analyse(t, a, v, events)
	if n := a.Stats()[Stat{reportProblems, "late"}]; n == 0 || lossesOf(events) == 0 {
		t.Fatalf("%d reports are late, %d losses are named", n, lossesOf(events))
	}
	for _, e := range events {
		if e.Kind == Lossy && e.Packets > 2 {
			t.Errorf("of 30 packets of a batch at most 2 are lost: %v", e)
		}
		if e.Packets > 16 || e.What == "blackhole" || e.What == "congestion" {
			t.Errorf("%v", e)
		}
	}
}

// The collector was away for an hour, before anything came or in the middle. The ends of a
// link find it again one after the other, and one of them has reported all that it had when the
// other one comes: every loss is named all the same.
func TestBacklogOfOneEndFirst(t *testing.T) {
	for _, cut := range []time.Duration{0, 600 * time.Millisecond} {
		v, lost := metered(t, 0, 0)
		for i := range v {
			m, err := decode(v[i].data)
			if err != nil {
				t.Fatal(err)
			}
			if v[i].at.Sub(start) < cut {
				continue
			}
			v[i].at = start.Add(time.Hour + v[i].at.Sub(start)/100)
			if m.Name == "s2" {
				v[i].at = v[i].at.Add(8 * time.Second)
			} else if m.Name == tick {
				v[i].at = start.Add(time.Hour + v[i].at.Sub(start.Add(time.Hour))*100)
			}
		}
		slices.SortStableFunc(v, func(a, b stored) int { return a.at.Compare(b.at) })
		a, events := NewAnalysis(line(t)), map[string]Event{}
		analyse(t, a, v, events)
		if n := lossesOf(events); int(n) != lost || a.Stats()[Stat{reportProblems, "late"}] > 0 {
			t.Errorf("away from %v on: %d losses are named, of %d; %v", cut, n, lost, a.Stats())
		}
	}
}

// Wherever an analysis ends, the one that reads a little of the stream again and goes
// on finds what is missing, and nothing else.
func TestTakingOver(t *testing.T) {
	v, lost := metered(t, 500*time.Millisecond, 800*time.Millisecond)
	n := line(t)
	whole := map[string]Event{}
	analyse(t, NewAnalysis(n), v, whole)
	for cut := 0; cut < len(v); cut += 37 {
		events := map[string]Event{}
		analyse(t, NewAnalysis(n), v[:cut], events)
		again := map[string]Event{}
		a := NewAnalysis(n)
		for _, s := range v {
			if cut > 0 && s.at.Before(v[cut-1].at.Add(-Memory)) {
				continue
			}
			analyse(t, a, []stored{s}, again)
		}
		for id, e := range events {
			if o, found := again[id]; !found || o != e {
				t.Fatalf("after %d messages %v is %v the second time", cut, e, o)
			}
		}
		if got := lossesOf(again); int(got) != lost || len(again) != len(whole) {
			t.Fatalf("after %d messages: %d losses of %d", cut, got, lost)
		}
	}
}

// The clock of the stream is set a year forward, and back: a switch that sends nothing
// from then on times out after as long as ever, not after a year.
func TestClockOfTheStreamIsSet(t *testing.T) {
	a := NewAnalysis(line(t))
	x := newExporter("s1", 1, start)
	sent := frame.Time(0)
	receive := func(at time.Time) {
		sent += 10 * period
		for b := x.message(t); b == nil; b = x.message(t) {
			x.up.Insert(lossradar.Signature{})
			sent += period
			x.up.Advance(sent)
			x.take()
			if b = x.message(t); b != nil {
				m, err := decode(b)
				if err != nil {
					t.Fatal(err)
				}
				a.Add(at, m)
				return
			}
		}
	}
	year := 365 * 24 * time.Hour
	for _, at := range []time.Time{start, start.Add(year), start.Add(time.Second)} {
		if receive(at); a.nodes["s1"] == nil || !a.nodes["s1"].lastSeen.Equal(at) || !a.now.Equal(at) {
			t.Fatalf("seen at %v, it is %v: %+v", at, a.now, a.nodes["s1"])
		}
	}
	tick := &message{Hello: telemetry.Hello{Name: tick}}
	if a.Add(start.Add(time.Second+Memory/3), tick); a.nodes["s1"] == nil {
		t.Error("it is forgotten at once")
	}
	if a.Add(start.Add(time.Second+Memory), tick); a.nodes["s1"] != nil {
		t.Error("it is waited for without end")
	}
}

// Any host can send packets that are marked, dropped or loop, and pauses: of each there are so many
// events in a second of the lane's time, whatever there is of the others, and the rest is counted.
func TestEventsOfCopiesAreBounded(t *testing.T) {
	n := lineOf(t, "l3")
	a := NewAnalysis(n)
	at := func(name string) netip.Addr {
		i, _ := n.plan.Topology.Lookup(name)
		return n.plan.Nodes[i].Loopback[0]
	}
	key := mirror.Key{Proto: 17, Src: [4]byte{10, 0, 0, 1}, Dst: [4]byte{10, 0, 1, 2}}
	s1, s2 := mirror.Hop{Switch: at("s1"), TTL: 64}, mirror.Hop{Switch: at("s2"), TTL: 63}
	kinds := map[string]func(){
		"trace delivered": func() {
			a.book.Done = append(a.book.Done, &mirror.Trace{Key: key, Debug: true, Hops: []mirror.Hop{s1, s2}})
		},
		"trace dropped": func() {
			a.book.Done = append(a.book.Done, &mirror.Trace{Key: key, Dropped: []mirror.Hop{{Switch: s1.Switch, TTL: 64, Reason: frame.NoRoute}}})
		},
		"trace lost": func() {
			a.book.Done = append(a.book.Done, &mirror.Trace{Key: key, Hops: []mirror.Hop{s1}, Lost: true})
		},
		"trace looped": func() {
			a.book.Done = append(a.book.Done, &mirror.Trace{Key: key, Hops: []mirror.Hop{s1}, Loop: []netip.Addr{s1.Switch}})
		},
		"pause pause":  func() { a.book.Pauses = append(a.book.Pauses, traces.Pause{Switch: "s1", Classes: 8}) },
		"pause resume": func() { a.book.Pauses = append(a.book.Pauses, traces.Pause{Switch: "s1", Resumed: 8}) },
	}
	made := map[string]int{}
	for i, want := range []int{mostOfCopies, 500, mostOfCopies} {
		a.now, a.out = start.Add([]time.Duration{0, 500 * time.Millisecond, time.Hour}[i]), nil
		for kind, add := range kinds {
			for range 3000 {
				add()
			}
			if kind == "trace delivered" { // of packets without a mark there are none
				a.book.Done = append(a.book.Done, &mirror.Trace{Key: key, Hops: []mirror.Hop{s1, s2}})
			}
		}
		a.judgeTraces()
		got := map[string]int{}
		for _, e := range a.out {
			got[e.Kind+" "+e.What]++
			made[e.Kind+" "+e.What]++
		}
		for kind := range kinds {
			if got[kind] != want {
				t.Errorf("%s: %d events of 3000, want %d", kind, got[kind], want)
			}
		}
	}
	for kind := range kinds {
		if left := a.Stats()[Stat{eventsLeftOut, kind}]; made[kind]+int(left) != 9000 {
			t.Errorf("%s: %d events and %d without one are not 9000", kind, made[kind], left)
		}
	}
}
