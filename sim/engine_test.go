package sim

import (
	"strings"
	"testing"

	"gswitch/fault"
	"gswitch/frame"
)

const us = frame.Microsecond

func TestFrameArrivesAfterSerialisationAndDelay(t *testing.T) {
	n := star(t, netConfig{rate: 100e9, delay: us, seed: 1}, 2)
	n.hosts[0].to = func(uint64) (uint32, uint16) { return hostAddr(0, 1), 7 }
	n.hosts[0].credit, n.hosts[1].keep = 1, true
	n.run(t, 10*us)
	// 1090 B and 24 B of overhead at 100 Gb/s are 89.12 ns, twice, each rounded down where it begins anew.
	if h := n.hosts[1].history; len(h) != 1 || !strings.HasPrefix(h[0], "2178 1090 ") {
		t.Errorf("arrived: %q, want one frame at 2178 ns", h)
	}
	if s := n.e.Stats(); s.FrameHops != 2 || s.Handed != 2 || s.InFlight != 0 {
		t.Errorf("counted %+v", s)
	}
}

// A link that is full carries what its rate says, to the byte: nothing is
// lost to rounding.
func TestRatesAreExactOverManyFrames(t *testing.T) {
	n := star(t, netConfig{rate: 100e9, delay: us, seed: 1}, 2)
	n.hosts[0].to = func(uint64) (uint32, uint16) { return hostAddr(0, 1), 7 }
	n.hosts[0].credit, n.hosts[0].wire = 1<<60, func(uint64) uint32 { return 1024 }
	n.run(t, 1000*us)
	// 1048 bytes take 83.84 ns: 1 ms holds 11927.48 of them.
	if got := n.hosts[0].sent; got != 11928 {
		t.Errorf("%d frames began within a millisecond, want 11928", got)
	}
}

// digestOf runs a loaded network with faults and pauses.
func digestOf(t *testing.T, seed uint64, slice frame.Time) (string, Stats) {
	n := leafSpine(t, netConfig{rate: 100e9, uplink: 100e9, delay: us, seed: seed, lossless: true, buffer: 1 << 20}, 2, 2, 4)
	n.all(seed, 300, 2, 4)
	for id := range n.links {
		if err := n.e.Fault(LinkID(id), Way(id%2), fault.Config{Loss: 0.01, Jitter: 100, Duplicate: 0.01, Reorder: 0.02, ReorderBy: 500}); err != nil {
			t.Fatal(err)
		}
	}
	for n.e.Now() < 300*us {
		n.run(t, n.e.Now()+slice)
	}
	return n.e.Digest(), n.e.Stats()
}

// What is fetched ahead changes nothing.
func TestFetchChangesNothing(t *testing.T) {
	run := func(wide int) (string, Stats) {
		n := leafSpine(t, netConfig{rate: 100e9, uplink: 100e9, delay: us, seed: 1, lossless: true, buffer: 1 << 20}, 2, 2, 4)
		n.e.wide = wide
		n.all(1, 300, 2, 4)
		n.run(t, 300*us)
		return n.e.Digest(), n.e.Stats()
	}
	a, sa := run(0)
	b, sb := run(1 << 20)
	if a != b || sa != sb {
		t.Errorf("with fetching %s and %+v, without %s and %+v", a, sa, b, sb)
	}
}

func TestDigest(t *testing.T) {
	a, sa := digestOf(t, 1, 300*us)
	b, sb := digestOf(t, 1, 7*us)
	c, _ := digestOf(t, 2, 300*us)
	if a != b || sa != sb {
		t.Errorf("the same run gave %s and %s, %+v and %+v", a, b, sa, sb)
	}
	if a == c {
		t.Errorf("two seeds gave the same digest %s", a)
	}
	if sa.FrameHops < 5000 {
		t.Errorf("only %d frame-hops happened", sa.FrameHops)
	}
	// The history of this run, on every machine. It changes with whatever
	// changes behaviour, and then says so.
	const want = "34ba7815f1c21169"
	if a != want {
		t.Errorf("the digest is %s, it was %s", a, want)
	}
}

// The order of two frames, a bit of a header, a nanosecond and a byte of
// length each change a history.
func TestDigestSeesEverything(t *testing.T) {
	b := make([]byte, 80)
	one := digest(0, 100, 64, b)
	seen := map[uint64]string{one: "base"}
	note := func(name string, h uint64) {
		if other, ok := seen[h]; ok {
			t.Errorf("%s and %s have the same digest", name, other)
		}
		seen[h] = name
	}
	note("time", digest(0, 101, 64, b))
	note("length", digest(0, 100, 65, b))
	note("twice", digest(one, 100, 64, b))
	two := append([]byte(nil), b...)
	for _, i := range []int{0, 20, 30, 39, 45, 50, 55} {
		two[i] ^= 1
		note("byte", digest(0, 100, 64, two))
		two[i] ^= 1
	}
	two[30] = 9
	note("a then b", digest(digest(0, 1, 64, b), 2, 64, two))
	note("b then a", digest(digest(0, 1, 64, two), 2, 64, b))
	note("short", digest(0, 100, 64, b[:60]))
	note("cut", digest(0, 100, 64, b[:40]))
}

func TestControlEventsComeFirstAndInOrder(t *testing.T) {
	n := star(t, netConfig{rate: 100e9, delay: us, seed: 1}, 2)
	h := n.hosts[0]
	h.to = func(uint64) (uint32, uint16) { return hostAddr(0, 1), 7 }
	var order []string
	n.e.At(5*us, func(now frame.Time) {
		order = append(order, "a")
		h.credit, h.dirty = 1, true
		n.e.Poke(1)
		n.e.At(now, func(frame.Time) { order = append(order, "c") })
		n.e.At(0, func(now frame.Time) {
			if now != 5*us {
				t.Errorf("what is late is done at %d", now)
			}
		})
	})
	n.e.At(5*us, func(frame.Time) {
		order = append(order, "b")
		if h.sent != 0 {
			t.Error("a frame left before the control events of the instant were done")
		}
	})
	ticks := 0
	n.e.Every(us, 2*us, func(now frame.Time) {
		if now != us+2*us*frame.Time(ticks) {
			t.Errorf("tick %d at %d", ticks, now)
		}
		ticks++
	})
	n.run(t, 9*us)
	if got := strings.Join(order, ""); got != "abc" || ticks != 5 || n.hosts[1].got != 1 {
		t.Errorf("order %q, %d ticks, %d frames", got, ticks, n.hosts[1].got)
	}
}

func TestAfterAndTimers(t *testing.T) {
	e := New(Config{Chunks: 16})
	h := newHost(e.Pool(), 1, 1e9, swMAC(0))
	h.timer, h.every = 100, 250
	calls := 0
	e.AddNode(h, func(now frame.Time) { calls++ })
	if err := e.Run(1000); err != nil {
		t.Fatal(err)
	}
	if h.ticks != 4 || calls < 4 {
		t.Errorf("%d ticks and %d calls after them, want 4", h.ticks, calls)
	}
	if e.Run(999) == nil {
		t.Error("time went back")
	}
}

func TestImpossibleLinksAreReported(t *testing.T) {
	for name, c := range map[string]struct {
		connect func(e *Engine, a, b int)
		want    string
	}{
		"node":     {func(e *Engine, a, b int) { e.Connect(a, 0, 7, 0, Link{}) }, "there is no node 7"},
		"twice":    {func(e *Engine, a, b int) { e.Connect(a, 0, b, 0, Link{}); e.Connect(b, 0, a, 1, Link{}) }, "port 0 of node 1 is connected"},
		"itself":   {func(e *Engine, a, b int) { e.Connect(a, 0, a, 0, Link{}) }, "itself"},
		"negative": {func(e *Engine, a, b int) { e.Connect(a, 0, b, 0, Link{Delay: -1}) }, "negative"},
	} {
		e := New(Config{Chunks: 16})
		a := e.AddNode(newHost(e.Pool(), 1, 1e9, swMAC(0)), nil)
		b := e.AddNode(newHost(e.Pool(), 2, 1e9, swMAC(0)), nil)
		c.connect(e, a, b)
		if err := e.Run(1); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want an error about %q", name, err, c.want)
		}
	}
}

func TestTooFewChunksAreReported(t *testing.T) {
	e := New(Config{Chunks: 5})
	h := newHost(e.Pool(), 1, 100e9, swMAC(0))
	h.credit = 100
	e.AddNode(h, nil)
	e.AddNode(newHost(e.Pool(), 2, 100e9, swMAC(0)), nil)
	e.Connect(0, 0, 1, 0, Link{Delay: 10 * us}) // holds a hundred frames
	if err := e.Run(100 * us); err == nil || !strings.Contains(err.Error(), "5 chunks") {
		t.Errorf("an arena that is too small: %v", err)
	}
}

// stuck is a node that is always due again at once.
type stuck struct{ host }

func (s *stuck) TimerWake(now frame.Time) frame.Time { return now }

// liar is a node that promises a frame and gives none.
type liar struct{ host }

func (l *liar) PortWake(now frame.Time, _ uint16) frame.Time { return now }
func (l *liar) Transmit(frame.Time, uint16, []frame.Ref) int { return 0 }

func TestNodesThatStopTimeAreReported(t *testing.T) {
	e := New(Config{Chunks: 16})
	e.AddNode(&stuck{}, nil)
	if err := e.Run(10); err == nil || !strings.Contains(err.Error(), "node 0") {
		t.Errorf("a node that stops time: %v", err)
	}
	e = New(Config{Chunks: 16})
	e.AddNode(&liar{host{dirty: true}}, nil)
	e.AddNode(newHost(e.Pool(), 2, 1e9, swMAC(0)), nil)
	e.Connect(0, 0, 1, 0, Link{})
	if err := e.Run(10); err == nil || !strings.Contains(err.Error(), "gives none") {
		t.Errorf("a node that promises a frame and gives none: %v", err)
	}
}

func TestSteadyStateAllocatesNothing(t *testing.T) {
	n := leafSpine(t, netConfig{rate: 100e9, uplink: 100e9, delay: us, seed: 1, lossless: true}, 2, 2, 4)
	n.all(1, 1<<60, 2, 4)
	for id := range n.links {
		if err := n.e.Fault(LinkID(id), Forth, fault.Config{Loss: 0.01, Jitter: 100, Duplicate: 0.01, Reorder: 0.02, ReorderBy: 500}); err != nil {
			t.Fatal(err)
		}
	}
	n.e.Every(us, us, func(frame.Time) {})
	n.run(t, 2000*us)
	if got := testing.AllocsPerRun(20, func() { n.run(t, n.e.Now()+50*us) }); got != 0 {
		t.Errorf("50 us of a loaded network allocate %v times, want none", got)
	}
}
