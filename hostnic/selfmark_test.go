package hostnic

import (
	"testing"

	"gswitch/frame"
	"gswitch/transport"
	"gswitch/wire"
)

// What waits for the host's own link counts with all that goes before it: 60 KB
// of class 7 are not congestion for class 7, and are for class 0, which has
// 40 KB itself.
func TestSourceMarks(t *testing.T) {
	p := newPair(t, func(_ int, c *Config) {
		c.PFC, c.PFCClasses, c.MarkAbove = true, 0xff, 65536
	})
	type seen struct{ marked, plain int }
	var sent [8]seen
	p.seen = func(from int, m *frame.Meta, b []byte) {
		if from != 0 {
			return
		}
		switch b[15] & 3 {
		case 3:
			sent[m.Class].marked++
		case 2:
			sent[m.Class].plain++
		}
	}
	p.pauseClass(1<<7, 0xffff)
	for _, c := range []struct {
		class uint8
		bytes uint64
	}{{7, 56_000}, {0, 38_000}} { // frames of 1058
		qa, _ := p.connect(func(q *QPConfig) { q.Class, q.Transport.RTOHigh = c.class, 0 })
		must(t, p.a.SendMessage(0, qa, c.bytes, 0))
	}
	p.run(100 * frame.Microsecond)
	// 59248 bytes of class 7 stand still: the frames of class 0 see more than
	// 65536 as long as 6 of them are left.
	if sent[7] != (seen{}) || sent[0] != (seen{marked: 33, plain: 5}) {
		t.Fatalf("class 7: %+v, class 0: %+v", sent[7], sent[0])
	}
	p.pauseClass(1<<7, 0)
	p.run(200 * frame.Microsecond)
	if sent[7] != (seen{plain: 56}) {
		t.Fatalf("class 7: %+v", sent[7])
	}
	if p.a.Counts().SelfMarked != 33 || p.b.Counts().CEMarked != 33 || p.b.Counts().BECNs != 33 {
		t.Errorf("%d marked, %d arrived, %d echoed", p.a.Counts().SelfMarked, p.b.Counts().CEMarked, p.b.Counts().BECNs)
	}
	for c := range p.a.classes {
		if w := p.a.classes[c].waits; w != 0 {
			t.Errorf("%d bytes wait in class %d when all is sent", w, c)
		}
	}
	p.drained()
}

// What opens a TCP connection is not ECN-capable and goes out unmarked, however
// much waits (RFC 3168, section 6.1.1); the data of the flow beside it is
// marked.
func TestSourceMarksNoOpening(t *testing.T) {
	p := newPair(t, func(_ int, c *Config) { c.MarkAbove = 65536 })
	data, _ := p.connect(func(q *QPConfig) { q.Transport.RTOHigh = 0 })
	syn, _ := p.connect(func(q *QPConfig) { q.Transport.RTOHigh, q.NoECN = 0, true })
	var ecn [4]int
	opened, behind := 0, 0 // the opening, and marked frames that left behind it
	p.seen = func(from int, m *frame.Meta, b []byte) {
		if from != 0 {
			return
		}
		e := b[15] & 3
		ecn[e]++
		switch {
		case m.Wire < 500:
			opened++
		case opened > 0 && e == wire.CE:
			behind++
		}
	}
	must(t, p.a.SendMessage(0, data, 200_000, 0))
	must(t, p.a.SendMessage(0, syn, 1, 0))
	p.run(200 * frame.Microsecond)
	if opened != 1 || behind == 0 || ecn[0] != 1 || ecn[2] == 0 {
		t.Errorf("%d openings, %d marked frames behind, all by their ECN field: %v", opened, behind, ecn)
	}
	if p.a.Counts().SelfMarked != uint64(ecn[3]) || p.b.Counts().CEMarked != uint64(ecn[3]) {
		t.Errorf("%d are counted as marked, %d arrived so, of %d", p.a.Counts().SelfMarked, p.b.Counts().CEMarked, ecn[3])
	}
	p.drained()
}

// A window that is cut by the first mark of a round trip is not cut by the
// next ones, and only what windows let go counts as waiting.
func TestSourceMarksCutOnce(t *testing.T) {
	p := newPair(t, func(_ int, c *Config) { c.MarkAbove = 65536 })
	qa, _ := p.connect(func(q *QPConfig) {
		q.Transport = transport.Config{Recovery: transport.NewReno, RTOLow: frame.Millisecond, RTOHigh: frame.Millisecond}
		q.CC = factory(t, "newreno", map[string]string{"initial": "100kB", "ecn": "true"})
	})
	must(t, p.a.SendMessage(0, qa, 10_000_000, 0))
	first := 0.0
	p.seen = func(int, *frame.Meta, []byte) {
		if v, err := p.a.QP(qa); err == nil && first == 0 && v.Window < 90_000 {
			first = v.Window
		}
	}
	p.run(20 * frame.Microsecond)
	v, err := p.a.QP(qa)
	must(t, err)
	if first != 50_000 || v.Window < 50_000 || v.Stats.CEs < 20 {
		t.Errorf("the window fell to %g and is %g after %d marks", first, v.Window, v.Stats.CEs)
	}
	p.run(5 * frame.Millisecond)
	p.drained()
}

// A pause counts as quenching once, when it has lasted too long, however often
// it is renewed.
func TestQuench(t *testing.T) {
	p := newPair(t, func(_ int, c *Config) {
		c.PFC, c.PFCClasses, c.QuenchAfter = true, 0xff, 10*frame.Microsecond
	})
	want := func(quenches uint64, now uint8) {
		t.Helper()
		if p.a.Counts().Quenches != quenches || p.a.Quenched() != now {
			t.Errorf("at %v: %d times, now %08b; want %d, %08b", p.now.Duration(), p.a.Counts().Quenches, p.a.Quenched(), quenches, now)
		}
	}
	p.pauseClass(1<<3, 1000) // 5.1 us
	p.run(40 * frame.Microsecond)
	want(0, 0)
	p.pauseClass(1<<3, 0xffff)
	p.run(45 * frame.Microsecond)
	p.pauseClass(1<<5, 1500) // 7.7 us
	p.run(50*frame.Microsecond - 1)
	want(0, 0)
	p.run(50 * frame.Microsecond)
	want(1, 1<<3)
	p.pauseClass(1<<3, 0xffff)
	p.run(100 * frame.Microsecond)
	want(1, 1<<3)
	p.pauseClass(1<<3, 0)
	want(1, 0)
	p.run(frame.Millisecond)
	want(1, 0)
}

// Frames that overtake each other by up to 3 ms: without fast retransmit
// nothing is sent twice and the window never falls; with it both happen.
func TestReorderingWithoutFastRetransmit(t *testing.T) {
	for _, off := range []bool{true, false} {
		p := newPair(t, func(_ int, c *Config) { c.Rate, c.Payload = 1e9, 1460 })
		r := frame.NewRand(7)
		p.jitter = func() frame.Time { return frame.Time(r.Uint32n(4)) * frame.Millisecond } // four paths
		qa, _ := p.connect(func(q *QPConfig) {
			q.Transport = transport.Config{Recovery: transport.NewReno, RTOLow: 200 * frame.Millisecond, RTOHigh: 200 * frame.Millisecond, NoFastRetransmit: off}
			q.CC = factory(t, "newreno", map[string]string{"initial": "2920B"})
		})
		must(t, p.a.SendMessage(0, qa, 200_000, 0))
		falls, last := 0, 0.0
		p.seen = func(int, *frame.Meta, []byte) {
			if v, err := p.a.QP(qa); err == nil {
				if v.Window < last {
					falls++
				}
				last = v.Window
			}
		}
		p.run(frame.Second)
		c := take(p.a)
		if len(c) != 1 || p.b.Counts().MessagesReceived != 1 {
			t.Fatalf("%d completions", len(c))
		}
		naks := p.a.Counts().NaksReceived
		if naks < 10 {
			t.Errorf("only %d frames out of order: the test tests nothing", naks)
		}
		if again := p.a.Counts().Retransmissions; off != (again == 0) || off != (falls == 0) || p.a.Counts().Timeouts != 0 {
			t.Errorf("fast retransmit off %v: %d frames sent again, the window fell %d times, %d timeouts", off, again, falls, p.a.Counts().Timeouts)
		}
		p.drained()
	}
}

// Marks and quenching that are switched on while messages are under way count
// what waits and is paused from then on, and leave nothing when they go.
func TestSourceMarksAreReconfigured(t *testing.T) {
	p := newPairOn(t, newRig(t, 1024, 2048), func(_ int, c *Config) { c.Virtual, c.PFC, c.PFCClasses = false, true, 0xff })
	qa, _ := p.connect(nil)
	must(t, p.a.SendMessage(0, qa, 1_000_000, 1))
	p.run(10 * frame.Microsecond)
	set := func(mark uint32, after frame.Time) {
		t.Helper()
		c := p.a.Config()
		c.MarkAbove, c.QuenchAfter = mark, after
		must(t, p.a.Reconfigure(p.now, &c))
	}
	p.pauseClass(0xff, 0xffff) // for 335 us
	set(65536, 50*frame.Microsecond)
	p.run(p.now + 49*frame.Microsecond)
	if p.a.Counts().Quenches != 0 || p.a.Counts().SelfMarked != 0 {
		t.Errorf("%+v", p.a.Counts())
	}
	p.run(p.now + 2*frame.Microsecond)
	if p.a.Counts().Quenches != 8 || p.a.Quenched() != 0xff {
		t.Errorf("%d quenches, now %b", p.a.Counts().Quenches, p.a.Quenched())
	}
	set(65536, 0)
	if p.a.Quenched() != 0 {
		t.Error("something is quenched that nobody watches")
	}
	p.pauseClass(0xff, 0)
	p.run(p.now + 10*frame.Microsecond)
	marked := p.a.Counts().SelfMarked
	if marked == 0 {
		t.Error("nothing is marked")
	}
	set(0, 0)
	for c := range p.a.classes {
		if w := p.a.classes[c].waits; w != 0 {
			t.Errorf("%d bytes wait in class %d", w, c)
		}
	}
	p.run(p.now + 20*frame.Millisecond)
	if p.a.Counts().SelfMarked != marked {
		t.Error("frames are marked still")
	}
	p.drained()
}
