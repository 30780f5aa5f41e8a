package clocksync

import (
	"math/rand/v2"
	"testing"

	"gswitch/frame"
	"gswitch/wire"
)

// wired is two clocks, a root and its child, whose messages take 500 ns.
type wired struct {
	t    *testing.T
	now  frame.Time
	root *Instance
	leaf *Instance
	out  []flying
	// lie changes what goes to the leaf.
	lie func(f *Packet)
}

type flying struct {
	at    frame.Time
	to    *Instance
	frame []byte
}

const wireDelay = 500 * frame.Nanosecond

func newWired(t *testing.T) *wired {
	w := &wired{t: t}
	w.root, w.leaf = NewInstance(wire.MAC{2, 1}, w.from(&w.leaf, &w.root)), NewInstance(wire.MAC{2, 2}, w.from(&w.root, &w.leaf))
	c := Config{Epoch: 1, Accept: NoPort, Backup: NoPort, Interval: DefaultInterval, Timeout1: DefaultTimeout1, EpsBackup: 10}
	a, b := c, c
	a.Root = true
	a.Transmit.Add(0)
	b.Accept, b.EpsBase = 0, EpsHop
	for n, c := range map[*Instance]Config{w.root: a, w.leaf: b} {
		if err := n.Configure(0, Options{Config: c, Domain: DefaultDomain}); err != nil {
			t.Fatal(err)
		}
		n.Use(0, 0, true)
	}
	return w
}

// from sends to the other end at once, stamped.
func (w *wired) from(to, by **Instance) func(int, *Packet) bool {
	return func(port int, f *Packet) bool {
		b := make([]byte, MaxPacket)
		b = b[:f.Encode(b)]
		(*by).Departs(w.local(*by), port, b)
		if w.lie != nil && *to == w.leaf {
			var x Packet
			if _, ok := x.Decode(b); ok {
				w.lie(&x)
				x.Encode(b)
			}
		}
		w.out = append(w.out, flying{w.now + wireDelay, *to, b})
		return true
	}
}

// local is a node's own time: the leaf is fast by 100 ppm and a second ahead.
func (w *wired) local(n *Instance) frame.Time {
	if n == w.leaf {
		return w.now + w.now/10_000 + frame.Second
	}
	return w.now
}

// run goes on in steps of 100 ns and returns the largest error of the leaf, and
// how often it was beyond its bound.
func (w *wired) run(until frame.Time) (worst frame.Time, broken int) {
	for ; w.now < until; w.now += 100 {
		for len(w.out) > 0 && w.out[0].at <= w.now {
			x := w.out[0]
			w.out = w.out[1:]
			l := w.local(x.to)
			x.to.Receive(l, l, 0, true, 0, x.frame)
		}
		w.root.Advance(w.local(w.root))
		w.leaf.Advance(w.local(w.leaf))
		l := w.local(w.leaf)
		if eps := w.leaf.Uncertainty(l); eps != Forever {
			err := max(w.leaf.At(l)-w.root.At(w.now), w.root.At(w.now)-w.leaf.At(l))
			worst = max(worst, err)
			if err > eps {
				broken++
			}
		}
	}
	return worst, broken
}

func TestInstancesAgree(t *testing.T) {
	w := newWired(t)
	worst, broken := w.run(10 * frame.Millisecond)
	if d, ok := w.leaf.Delay(0).Value(); !ok || d < wireDelay-100 || d > wireDelay+100 {
		t.Errorf("a delay of %d ns", d)
	}
	if w.leaf.State() != Primary || broken != 0 || worst > 120 || w.leaf.Counts.Valid < 100 {
		t.Errorf("%v after %d messages, %d ns wrong, %d times beyond the bound", w.leaf.State(), w.leaf.Counts.Valid, worst, broken)
	}
	if m := w.leaf.Messages; m != (MessageCounts{Requests: m.Requests}) || m.Requests < 8 {
		t.Errorf("%+v", m)
	}
}

// A neighbour that is not the parent moves no clock, whatever it sends: unrequested messages,
// old ones again, answers to requests of others, and many of them.
func TestForeignMessagesMoveNoClock(t *testing.T) {
	w := newWired(t)
	var kept [][]byte
	w.run(2 * frame.Millisecond)
	r := rand.New(rand.NewPCG(1, 18))
	before := w.leaf.Counts.Valid
	for range 2000 {
		w.run(w.now + frame.Microsecond)
		for _, x := range w.out {
			kept = append(kept, x.frame)
		}
		f := Packet{PTPFields: wire.PTPFields{Src: wire.MAC{2, 9}, Type: []wire.PTPType{wire.PTPSync, wire.PTPPdelayReq, wire.PTPPdelayResp, wire.PTPAnnounce, wire.PTPFollowUp}[r.IntN(5)],
			Domain: DefaultDomain, Clock: r.Uint64(), Port: 1, Sequence: uint16(r.IntN(30)), Correction: r.Int64(), RequestClock: w.leaf.Identity(), RequestPort: 1,
			Time: wire.PTPTime{Seconds: r.Uint64N(1 << 34)}}, HasSundial: true, Sundial: Fields{Epoch: uint32(r.IntN(3)), Root: w.root.Identity(), Depth: uint8(r.IntN(256)), Late: r.Uint32()}}
		b := make([]byte, 128)
		b = b[:f.Encode(b)]
		if len(kept) > 0 && r.IntN(2) == 0 {
			b = kept[r.IntN(len(kept))]
		}
		l := w.local(w.leaf)
		w.leaf.Receive(l, l, 0, true, 1+r.IntN(255), b) // by another port
		if f.Type == wire.PTPPdelayResp {
			w.leaf.Receive(l, l, 0, true, 0, b) // and by this one: nothing waits for it
		}
	}
	worst, broken := w.run(w.now + 2*frame.Millisecond)
	if broken != 0 || worst > 120 || w.leaf.State() != Primary || w.leaf.Counts.FlipInvalid != 0 || w.leaf.Counts.Valid < before+40 {
		t.Errorf("%v, %d ns wrong, %d times beyond the bound, %+v", w.leaf.State(), worst, broken, w.leaf.Counts)
	}
	if w.leaf.Messages.Unanswered == 0 || w.leaf.Messages.Strays == 0 {
		t.Errorf("%+v", w.leaf.Messages)
	}
}

// A parent that sends the time of another hour is not followed, nor is one that
// admits to know nothing.
func TestLiesAreNotFollowed(t *testing.T) {
	for name, lie := range map[string]func(f *Packet){
		"time":      func(f *Packet) { f.Time.Seconds += 3600 },
		"no bound":  func(f *Packet) { f.Sundial.Uncertainty, f.Time.Seconds = boundless, 99 },
		"too late":  func(f *Packet) { f.Sundial.Late, f.Time.Seconds = boundless, 99 },
		"far away":  func(f *Packet) { f.Sundial.Depth, f.Time.Seconds = 255, 99 },
		"nothing":   func(f *Packet) { f.HasSundial = false },
		"no domain": func(f *Packet) { f.Domain, f.Time.Seconds = 1, 99 },
	} {
		w := newWired(t)
		w.run(2 * frame.Millisecond)
		w.lie = func(f *Packet) {
			if f.Type == wire.PTPSync {
				lie(f)
			}
		}
		before := w.leaf.Counts.Valid
		if _, broken := w.run(w.now + 10*frame.Millisecond); broken != 0 || w.leaf.Counts.Valid > before+1 || w.leaf.Counts.FlipTimeout+w.leaf.Counts.FlipInvalid != 1 {
			t.Errorf("%s: beyond the bound %d times, %+v", name, broken, w.leaf.Counts)
		}
	}
}

// What a message waited counts, and so does a stamp that is known to be late.
func TestLatenessIsPartOfTheBound(t *testing.T) {
	w := newWired(t)
	w.run(2060 * frame.Microsecond) // long behind the last message
	f := &w.leaf.in
	l := w.local(w.leaf)
	w.leaf.base = 1000 // less certain than any message below
	w.root.fill(w.now-wireDelay, 0, wire.PTPSync)
	b := make([]byte, 128)
	b = b[:w.root.out.Encode(b)]
	w.leaf.opt.Unstamped = Forever
	before := w.leaf.Counts.Valid
	if w.leaf.Receive(l, l, 0, false, 0, b); w.leaf.Counts.Valid != before || w.leaf.Messages.Unstamped != 1 {
		t.Errorf("a message of which nobody knows when it came was taken: %+v", w.leaf.Messages)
	}
	w.leaf.opt.Unstamped = 700
	w.leaf.Receive(l, l, 0, false, 0, b)
	if _, ok := f.Decode(b); !ok || w.leaf.Uncertainty(l) != EpsHop+700 {
		t.Errorf("a bound of %d ns", w.leaf.Uncertainty(l))
	}
	if m := w.leaf.Out(l + 100*frame.Microsecond); m.Late != 700+20 {
		t.Errorf("the next message is said to be late by %d ns", m.Late)
	}
}

// A parent that floods its child moves the clock by no more than the bound, once in
// half an interval, and does not flood those below. Most of its messages are not read.
func TestFloodEnds(t *testing.T) {
	w := newWired(t)
	o := w.leaf.Options()
	o.Transmit.Add(1)
	if err := w.leaf.Configure(0, o); err != nil {
		t.Fatal(err)
	}
	w.run(2 * frame.Millisecond)
	if w.leaf.Messages.Unsent+w.leaf.Messages.Excess+w.leaf.Counts.Early != 0 || w.leaf.Counts.Valid < 15 {
		t.Errorf("of a root: %+v, %+v", w.leaf.Counts, w.leaf.Messages)
	}
	sent, valid := len(w.out), w.leaf.Counts.Valid
	delay, _ := w.leaf.Delay(0).Value()
	const floods = 2000
	for i := range floods {
		w.now += 100
		l := w.local(w.leaf)
		// As far ahead as its bound allows, and each time by a later plan.
		f := Packet{PTPFields: wire.PTPFields{Type: wire.PTPSync, Domain: DefaultDomain}, HasSundial: true, Sundial: Fields{Epoch: 1 + uint32(i), Root: w.root.Identity()}}
		ahead := w.leaf.At(l) - delay + w.leaf.Uncertainty(l)
		f.Time = wire.PTPTime{Seconds: uint64(ahead / frame.Second), Nanoseconds: uint32(ahead % frame.Second)}
		b := make([]byte, MaxPacket)
		w.leaf.Receive(l, l, 0, true, 0, b[:f.Encode(b)])
	}
	// 200 us are five halves of an interval; 100 ppm of them are the oscillator's.
	moved := w.leaf.At(w.local(w.leaf)) - w.root.At(w.now)
	if n := frame.Time(w.leaf.Counts.Valid - valid); n < 1 || n > 5 || len(w.out)-sent != int(n) || moved > n*(EpsHop+19)+40 {
		t.Errorf("%d of %d messages were taken, %d passed on, and the clock is %d ns ahead", n, floods, len(w.out)-sent, moved)
	}
	if w.leaf.Counts.Early == 0 || w.leaf.Messages.Excess < floods-4*mostMessages {
		t.Errorf("%d early, %d not read", w.leaf.Counts.Early, w.leaf.Messages.Excess)
	}
}

// What comes by one port costs the others nothing, though it comes before them each
// time.
func TestFloodOfAnotherPort(t *testing.T) {
	w := newWired(t)
	w.run(frame.Millisecond)
	valid := w.leaf.Counts.Valid
	for range 2000 {
		w.run(w.now + frame.Microsecond/2)
		for range mostMessages + 1 {
			l := w.local(w.leaf)
			w.leaf.Receive(l, l, 0, true, 3, make([]byte, 64))
		}
	}
	if n := w.leaf.Counts.Valid - valid; n < 10 || w.leaf.Messages.Excess < 60_000 || w.leaf.Messages.Malformed < 10*mostMessages {
		t.Errorf("%d messages of the parent, %+v", n, w.leaf.Messages)
	}
}

// A parent that was followed moves the clock not beyond its bound by messages of
// before, nor by what it says of the delay of the link or of its own lateness.
func TestParentIsHeldToTheBound(t *testing.T) {
	var old []Packet
	syncs := 0
	for _, c := range []struct {
		name  string
		lie   func(f *Packet)
		after func(n *Instance) bool // what is to be seen of it
	}{
		{"replays", func(f *Packet) {
			if f.Type == wire.PTPSync {
				if old = append(old, *f); len(old) > 5 {
					*f = old[len(old)-5]
				}
			}
		}, func(n *Instance) bool { return n.Counts.FlipInvalid == 1 }},
		{"took longer", func(f *Packet) {
			if f.Type == wire.PTPPdelayResp {
				f.Correction += 900 << 16
			}
		}, func(n *Instance) bool {
			d, _ := n.Delay(0).Value()
			return d < 60 && n.Delay(0).Moved() > 440 && n.Counts.FlipInvalid == 0 && n.State() == Primary
		}},
		{"took less than nothing", func(f *Packet) {
			if f.Type == wire.PTPPdelayResp {
				f.Correction -= 900 << 16
			}
		}, func(n *Instance) bool { return n.Messages.Strays > 10 && n.State() == Primary }},
		{"late, and then not", func(f *Packet) {
			if f.Type != wire.PTPSync {
				return
			}
			if syncs++; syncs == 1 {
				f.Sundial.Late = 500_000
			} else {
				f.Correction += 400_000 << 16
			}
		}, func(n *Instance) bool { return n.Counts.FlipInvalid == 1 }},
	} {
		w := newWired(t)
		o := w.leaf.Options()
		o.DelayEvery = 200 * frame.Microsecond
		if err := w.leaf.Configure(0, o); err != nil {
			t.Fatal(err)
		}
		w.run(3 * frame.Millisecond)
		w.lie = c.lie
		if worst, broken := w.run(w.now + 10*frame.Millisecond); broken != 0 || !c.after(w.leaf) {
			t.Errorf("%s: beyond the bound %d times, wrong by %d ns at worst: %v, %+v, %+v", c.name, broken, worst, w.leaf.State(), w.leaf.Counts, w.leaf.Messages)
		}
	}
}

func FuzzInstance(f *testing.F) {
	x := Packet{PTPFields: wire.PTPFields{Type: wire.PTPSync, Domain: DefaultDomain}, HasSundial: true, Sundial: Fields{Epoch: 1, Root: 5}}
	x.RequestClock, x.RequestPort, x.Sequence = Identity(wire.MAC{2, 2}), 1, 1
	for _, x.Type = range []wire.PTPType{wire.PTPSync, wire.PTPPdelayReq, wire.PTPPdelayResp, wire.PTPAnnounce} {
		b := make([]byte, 128)
		f.Add(b[:x.Encode(b)], uint16(0), int64(0))
	}
	f.Fuzz(func(t *testing.T, b []byte, port uint16, late int64) {
		for _, measured := range []bool{false, true} {
			w := newWired(t)
			if measured {
				for _, n := range []*Instance{w.root, w.leaf} {
					o := n.Options()
					o.Measured, o.Answers, o.EpsBase, o.EpsBackup = true, true, 0, 0
					if err := n.Configure(0, o); err != nil {
						t.Fatal(err)
					}
				}
			}
			w.run(300 * frame.Microsecond)
			if w.leaf.State() != Primary {
				t.Fatalf("measured %t: %v", measured, w.leaf.State())
			}
			sent := len(w.out)
			l := w.local(w.leaf)
			w.leaf.opt.Unstamped = frame.Time(late & 0xffff)
			w.leaf.Receive(l, l, 0, false, int(port), b)
			if len(w.out) > sent+1 {
				t.Errorf("%d messages for one", len(w.out)-sent)
			}
			w.leaf.Advance(l + frame.Second)
			w.leaf.Due()
		}
	})
}
