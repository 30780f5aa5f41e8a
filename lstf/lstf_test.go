package lstf

import (
	"fmt"
	"testing"

	"gswitch/frame"
	"gswitch/wire"
	wt "gswitch/wire/wiretest"
)

const us, ms = frame.Microsecond, frame.Millisecond

func packet(hash uint32, bytes uint32) *frame.Meta { return &frame.Meta{Hash: hash, Wire: bytes} }

func writer(t *testing.T, p Policy) *Writer {
	t.Helper()
	if err := p.Validate(); err != nil {
		t.Fatal(err)
	}
	w := &Writer{}
	w.Configure(p)
	return w
}

// 1500 bytes at 50 Mb/s are 0.24 ms, at 1 Gb/s 12 us.
func TestFair(t *testing.T) {
	for _, c := range []struct {
		rate     uint64
		at, want []frame.Time
	}{
		{50e6, []frame.Time{0, 0, 0, 100 * us, 1000 * us, 1000 * us, 5000 * us}, []frame.Time{0, 240 * us, 480 * us, 620 * us, 0, 240 * us, 0}},
		{1e9, []frame.Time{0, 12 * us, 24 * us, 30 * us}, []frame.Time{0, 0, 0, 6 * us}},
	} {
		w := writer(t, Policy{Kind: Fair, Rate: c.rate})
		for i, at := range c.at {
			if got := w.Slack(frame.Second+at, packet(7, 1500), nil); got != int64(c.want[i]) {
				t.Errorf("%d bit/s: packet %d at %v has %d ns, want %d", c.rate, i, at.Duration(), got, c.want[i])
			}
			// A flow beside it is its own.
			if got := w.Slack(frame.Second+at, packet(uint32(100+i), 1500), nil); got != 0 {
				t.Errorf("another flow begins with %d ns", got)
			}
		}
	}
}

// Flows that are ahead of their rate are not forgotten for others: those share a
// place, and are counted.
func TestFairForgetsOnlyWhatHasNoSlack(t *testing.T) {
	w := writer(t, Policy{Kind: Fair, Rate: 1e6})
	now := frame.Second
	hash := func(i uint32) uint32 { return 5 + i*flows } // one place
	for i := range uint32(2) {
		for range 3 {
			w.Slack(now, packet(hash(i), 1000), nil)
		}
	}
	w.Slack(now, packet(hash(2), 1000), nil)
	if w.Full() != 1 {
		t.Errorf("%d packets were crowded, want 1", w.Full())
	}
	if got := w.Slack(now, packet(hash(1), 1000), nil); got != int64(24*ms) {
		t.Errorf("the second flow has %d ns, want 24 ms", got)
	}
	now += 100 * ms
	if got := w.Slack(now, packet(hash(2), 1000), nil); got != 0 || w.Full() != 1 {
		t.Errorf("with places free again: %d ns, %d crowded", got, w.Full())
	}
}

// Rates by class are weights: after as many bytes a flow of a fifth of the rate is five
// times as far ahead.
func TestRatesByClass(t *testing.T) {
	w := writer(t, Policy{Kind: Fair, Rate: 50e6, Rates: [8]uint64{3: 10e6}})
	for class, want := range map[uint8]int64{0: 240_000, 3: 1_200_000} {
		m := packet(uint32(class)+5, 1500)
		m.Class = class
		if a, b := w.Slack(0, m, nil), w.Slack(0, m, nil); a != 0 || b != want {
			t.Errorf("class %d: %d and %d ns, want 0 and %d", class, a, b, want)
		}
	}
	if p := (Policy{Kind: Fair, Rates: [8]uint64{1: 1e6}}); p.Validate() == nil {
		t.Error("a class has no rate")
	}
}

func roce(op uint8, psn, length uint32, payload int) ([]byte, frame.Meta) {
	l := []wt.Layer{wt.Eth(wt.MAC(2), wt.MAC(1)), wt.IPv4("10.0.0.1", "10.0.0.2"), wt.UDP(49152, wire.RoCEv2Port), wt.BTH(op, 7, psn)}
	if op == wire.RCWriteFirst || op == wire.RCWriteOnly {
		l = append(l, wt.Header(&wire.RETHFields{Length: length}))
	}
	b := wt.Frame(append(l, wt.Zeros(payload), wt.Zeros(wire.ICRCLen))...)
	m, _ := wt.Parse(b)
	return b, m
}

// An RDMA write reports how many bytes it is: each packet of 3 MB in packets of
// 1460 has 2055 s, or 1 s less with each, also when it is sent again, and where
// sequence numbers begin anew.
func TestSizeAndRemaining(t *testing.T) {
	const s = int64(frame.Second)
	sent := []struct {
		op              uint8
		psn, length     uint32
		payload         int
		size, remaining int64
	}{
		{wire.RCWriteFirst, 1<<24 - 2, 3_000_000, 1460, 2055, 2055},
		{wire.RCWriteMiddle, 1<<24 - 1, 0, 1460, 2055, 2054},
		{wire.RCWriteMiddle, 0, 0, 1460, 2055, 2053},
		{wire.RCWriteMiddle, 1<<24 - 1, 0, 1460, 2055, 2054},        // again
		{wire.RCWriteFirst, 1<<24 - 2, 3_000_000, 1460, 2055, 2055}, // again
		{wire.RCWriteMiddle, 1, 0, 1460, 2055, 2052},                // goes on
		{wire.RCWriteMiddle, 1<<24 - 3, 0, 1460, 2055, 0},           // of a message before
		{wire.RCWriteOnly, 2053, 100, 100, 1, 1},
		{wire.RCSendFirst, 2054, 0, 1460, 0, 0},
		{wire.RCSendMiddle, 2055, 0, 1460, 0, 0},
	}
	for _, kind := range []Kind{Size, Remaining} {
		w := writer(t, Policy{Kind: kind, Of: frame.Second})
		for i, c := range sent {
			b, m := roce(c.op, c.psn, c.length, c.payload)
			want := c.size * s
			if kind == Remaining {
				want = c.remaining * s
			}
			if got := w.Slack(frame.Time(i), &m, b); got != want {
				t.Errorf("kind %d: packet %d (%d) has %d s, want %d", kind, i, c.psn, got/s, want/s)
			}
		}
	}
}

func TestDeadlineClassAndConstant(t *testing.T) {
	send, sm := roce(wire.RCSendFirst, 99, 0, 1000)
	middle, mm := roce(wire.RCSendMiddle, 99, 0, 1000)
	w := writer(t, Policy{Kind: Deadline, Of: 10 * ms})
	for i, c := range []struct {
		at   frame.Time
		m    *frame.Meta
		b    []byte
		want frame.Time
	}{{0, &sm, send, 10 * ms}, {4 * ms, &mm, middle, 6 * ms}, {12 * ms, &mm, middle, -2 * ms}, {12 * ms, &sm, send, 10 * ms}} {
		if got := w.Slack(frame.Second+c.at, c.m, c.b); got != int64(c.want) {
			t.Errorf("packet %d has %d ns to its deadline, want %d", i, got, c.want)
		}
	}
	w = writer(t, Policy{Kind: Class, Of: ms})
	if a, b := w.Slack(0, &frame.Meta{Class: 7}, nil), w.Slack(0, &frame.Meta{Class: 5}, nil); a != 0 || b != int64(2*ms) {
		t.Errorf("classes 7 and 5 have %d and %d ns", a, b)
	}
	w = writer(t, Policy{Kind: Constant, Of: ms})
	if got := w.Slack(5, &frame.Meta{}, nil); got != int64(ms) {
		t.Errorf("constant: %d ns", got)
	}
	for _, p := range []Policy{{Kind: Fair}, {Kind: Replay}, {Kind: Size}, {Kind: Class}, {Of: -1}, {Of: maxSlack}} {
		if p.Validate() == nil {
			t.Errorf("%+v is taken", p)
		}
	}
}

// Packets differ by queue pair, sequence number and ports; a schedule has them all.
func TestSchedule(t *testing.T) {
	var s Schedule
	if _, _, ok := s.Wait(1); ok {
		t.Error("an empty schedule has a packet")
	}
	keys := map[uint64]int64{}
	for i := range 5000 {
		b := wt.Frame(wt.Eth(wt.MAC(2), wt.MAC(1)), wt.IPv4("10.0.0.1", "10.0.0.2"), wt.UDP(49152, wire.RoCEv2Port), wt.BTH(wire.RCSendMiddle, uint32(i%3), uint32(i)), wt.Zeros(100))
		m, _ := wt.Parse(b)
		keys[Key(&m, b)] = int64(i) - 100
		s.Record(Key(&m, b), int64(i)-100, frame.Time(2*i))
	}
	if len(keys) != 5000 || s.Len() != 5000 {
		t.Fatalf("%d keys, %d in the schedule, of 5000 packets", len(keys), s.Len())
	}
	for key, ns := range keys {
		if got, left, ok := s.Wait(key); !ok || got != ns || left != frame.Time(2*(ns+100)) {
			t.Fatalf("%d, %v, want %d", got, ok, ns)
		}
	}
	b := wt.Frame(wt.Eth(wt.MAC(2), wt.MAC(1)), wt.IPv4("10.0.0.1", "10.0.0.2"), wt.UDP(49152, wire.RoCEv2Port), wt.BTH(wire.RCSendMiddle, 1, 4000), wt.Zeros(100))
	m, _ := wt.Parse(b)
	if wait, exit := writer(t, Policy{Kind: Replay, Schedule: &s}), writer(t, Policy{Kind: Exit, Schedule: &s}); wait.Slack(0, &m, b) != 3900 || exit.Slack(0, &m, b) != 8000 {
		t.Errorf("packet 4000 has %d and leaves at %d, want 3900 and 8000", wait.Slack(0, &m, b), exit.Slack(0, &m, b))
	}
	w := writer(t, Policy{Kind: Replay, Of: ms, Schedule: &s})
	if got := w.Slack(0, &frame.Meta{}, nil); got != int64(ms) {
		t.Errorf("a packet that is not in the schedule has %d ns", got)
	}
}

// drops runs CoDel over packets that come each millisecond with a wait of 10 ms,
// but for what change does.
func drops(change func(at int) (wait frame.Time, sends bool)) string {
	j := Judge{}
	j.Configure(Edge{Target: 5 * ms, Interval: 100 * ms, Refresh: 20 * ms})
	var v []int
	for at := range 500 {
		if wait, sends := change(at); sends && j.Verdict(frame.Second+frame.Time(at)*ms, wait, 1, false) == Drop {
			v = append(v, at)
		}
	}
	return fmt.Sprint(v)
}

// The control law of RFC 8289 on waits of whole ways, by hand.
func TestEdgeCoDel(t *testing.T) {
	for _, c := range []struct {
		name, want string
		change     func(at int) (frame.Time, bool)
	}{
		{"a standing wait", "[100 200 271 329 379 424 464]", func(int) (frame.Time, bool) { return 10 * ms, true }},
		{"one short wait", "[100 251 351 422 480]", func(at int) (frame.Time, bool) {
			if at == 150 {
				return 4 * ms, true
			}
			return 10 * ms, true
		}},
		{"a rest of 22 ms", "[100 271 371 442]", func(at int) (frame.Time, bool) { return 10 * ms, at < 150 || at > 170 }},
		{"a rest of 20 ms", "[100 269 369 440 498]", func(at int) (frame.Time, bool) { return 10 * ms, at < 150 || at > 168 }},
		{"a rest of 19 ms", "[100 200 271 329 379 424 464]", func(at int) (frame.Time, bool) { return 10 * ms, at < 150 || at > 167 }},
	} {
		if got := drops(c.change); got != c.want {
			t.Errorf("%s: drops at %s ms, want %s", c.name, got, c.want)
		}
	}
}

// K of 15 packets of 1500 bytes at 10 Gb/s is 18 us.
func TestEdgeMarks(t *testing.T) {
	j := Judge{}
	j.Configure(Edge{MarkAbove: 18 * us})
	for used, want := range map[frame.Time]Verdict{18 * us: Pass, 18*us + 1: Mark} {
		if got := j.Verdict(frame.Second, used, 1, true); got != want {
			t.Errorf("a wait of %v: verdict %d, want %d", used.Duration(), got, want)
		}
	}
	if j.Verdict(frame.Second, frame.Second, 1, false) != Pass {
		t.Error("what cannot be marked is")
	}
	j.Configure(Edge{Target: ms, Interval: 10 * ms, Refresh: 2 * ms, ECN: true})
	var got [3]int
	for at := range frame.Time(100) {
		got[j.Verdict(frame.Second+at*ms, 5*ms, 9, true)]++
	}
	if got[Mark] == 0 || got[Drop] != 0 {
		t.Errorf("CoDel with ECN: passes, marks, drops: %d", got)
	}
	for _, e := range []Edge{{Target: ms}, {Target: ms, Interval: ms, Refresh: ms}, {MarkAbove: -1}} {
		if e.Validate() == nil {
			t.Errorf("%+v is taken", e)
		}
	}
}
