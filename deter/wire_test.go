package deter

import (
	"math/rand/v2"
	"net/netip"
	"testing"

	"gswitch/frame"
	"gswitch/tcp"
	"gswitch/tcp/stack"
	"gswitch/wire"
)

const (
	us = frame.Microsecond
	ms = frame.Millisecond
)

// wires are two hosts and a link of 1 Gb/s that does to packets what fate says.
type wires struct {
	t      testing.TB
	pool   *frame.Pool
	stacks [2]*stack.Stack
	ends   [2]uint32
	recs   [2]*Recorder
	cfg    tcp.Config
	now    frame.Time
	delay  frame.Time
	free   [2]frame.Time
	count  [2]int
	fate   func(from, k int) fate
	way    []flight
	done   [2]int
	parser *wire.Parser
	// Packets as they left, to be compared with those of a replay.
	left []departure
}

type fate struct {
	lose bool
	late frame.Time
	ce   bool
}

type flight struct {
	at frame.Time
	to int
	r  frame.Ref
}

type departure struct {
	end int
	at  frame.Time
	seg tcp.Segment
}

func config() tcp.Config {
	c := tcp.Default()
	c.Lengths, c.Nagle, c.MSS = true, false, 1460
	return c
}

// both is a tap that also keeps what left.
type both struct {
	*Recorder
	w   *wires
	end int
}

func (b both) Next(now frame.Time, s *tcp.Segment) {
	b.Recorder.Next(now, s)
	if s != nil {
		b.w.left = append(b.w.left, departure{b.end, now, *s})
	}
}

func newWires(t testing.TB, cfg tcp.Config, alone bool) *wires {
	return connect(t, cfg, alone, 0, func(w *wires, end int) stack.Tap { return both{w.recs[end], w, end} })
}

// newSlow is newWires with an application that reads at a rate.
func newSlow(t testing.TB, cfg tcp.Config, rate uint64) *wires {
	return connect(t, cfg, false, rate, func(w *wires, end int) stack.Tap { return both{w.recs[end], w, end} })
}

func connect(t testing.TB, cfg tcp.Config, alone bool, rate uint64, tap func(w *wires, end int) stack.Tap) *wires {
	a, err := frame.NewArena(make([]byte, 4096*2048), 2048, 0)
	if err != nil {
		t.Fatal(err)
	}
	w := &wires{t: t, pool: frame.NewPool(a), delay: 50 * us, cfg: cfg, parser: wire.NewParser(wire.NewHasher(1, false))}
	addr := [2]netip.Addr{netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")}
	for i := range w.stacks {
		if w.stacks[i], err = stack.New(stack.Config{Name: "h", Addr: addr[i], Virtual: true}, w.pool); err != nil {
			t.Fatal(err)
		}
		w.recs[i] = NewRecorder(Header{Name: "test", Alone: alone}, 64<<20, new(Zipper))
	}
	for i := 1; i >= 0; i-- {
		o := stack.Options{TCP: cfg, Remote: addr[1-i], LocalPort: uint16(40000 + i), RemotePort: uint16(40001 - i), ISS: 0xfffffff0, ReadRate: rate * uint64(i), Tap: tap(w, i)}
		open := w.stacks[i].Listen
		if i == 0 {
			open = w.stacks[i].Dial
		}
		if w.ends[i], err = open(0, &o); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

func (w *wires) post(n int) {
	w.stacks[1].Expect(w.ends[1], uint64(n))
	if err := w.stacks[0].Send(w.now, w.ends[0], uint64(n), 1); err != nil {
		w.t.Fatal(err)
	}
}

func (w *wires) close() {
	for i := range w.stacks {
		w.stacks[i].Close(w.now, w.ends[i])
	}
}

// run goes on until an instant. A link takes a frame when it is free, as NICs do.
func (w *wires) run(until frame.Time) {
	var buf [16]stack.Completion
	for steps := 0; ; steps++ {
		if steps > 20_000_000 {
			w.t.Fatal("does not end")
		}
		next := frame.Never
		for i, s := range w.stacks {
			for s.Ready() != 0 && w.free[i] <= w.now {
				if r := s.Next(w.now, 0xff); r != frame.Nil {
					w.send(i, r)
				}
			}
			if s.Ready() != 0 {
				next = min(next, w.free[i])
			}
			w.done[i] += s.TakeCompletions(buf[:])
			next = min(next, s.Due())
		}
		for i := range w.way {
			next = min(next, w.way[i].at)
		}
		if next > until {
			w.now = until
			return
		}
		w.now = max(w.now, next)
		for i := 0; i < len(w.way); i++ {
			if f := w.way[i]; f.at <= w.now {
				w.way = append(w.way[:i], w.way[i+1:]...)
				i--
				w.parser.Parse(w.pool.Arena, []frame.Ref{f.r})
				w.stacks[f.to].Receive(w.now, f.r)
			}
		}
		for _, s := range w.stacks {
			if s.Due() <= w.now {
				s.Advance(w.now)
			}
		}
	}
}

func (w *wires) send(from int, r frame.Ref) {
	m := w.pool.Arena.Meta(r)
	span := frame.Time(m.Wire+24) * 8
	w.free[from] = w.now + span
	k := w.count[from]
	w.count[from]++
	var f fate
	if w.fate != nil {
		f = w.fate(from, k)
	}
	if f.lose {
		w.pool.Free(r)
		return
	}
	if f.ce {
		if b := w.pool.Arena.Bytes(r); b[15]&3 == 2 {
			b[15] |= 3
		}
	}
	w.way = append(w.way, flight{w.now + span + w.delay + f.late, 1 - from, r})
}

func (w *wires) logs() []*Log { return []*Log{w.recs[0].Log(), w.recs[1].Log()} }

// impaired loses, delays and marks packets at random.
func impaired(seed uint64, lose, late, mark float64) func(from, k int) fate {
	r := rand.New(rand.NewPCG(seed, 1))
	return func(from, k int) (f fate) {
		f.lose = r.Float64() < lose
		if r.Float64() < late {
			f.late = frame.Time(r.IntN(int(300 * us)))
		}
		f.ce = from == 0 && r.Float64() < mark
		return f
	}
}
