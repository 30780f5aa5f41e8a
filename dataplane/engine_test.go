package dataplane

import (
	"log/slog"
	"testing"

	"gswitch/frame"
)

// bridge is a node that sends what arrives at one port out of the other: port
// n to n^1. It keeps an eye on what an engine must guarantee.
type bridge struct {
	pool  *frame.Pool
	queue [2]frame.FIFO
	up    [2]bool

	received, sent uint64
	lastNow        frame.Time
	stepped        bool       // the test makes the time, apart from the engine's
	timer          frame.Time // the next instant of a periodic timer
	period         frame.Time // 0: no timer
	fired          uint64

	dropEvery int // drop each such frame, for SourceZero
	dropped   []frame.Ref
	seen      int
}

func newBridge(w *Worker) *bridge {
	b := &bridge{pool: w.Pool(), timer: frame.Never}
	b.queue[0].Init()
	b.queue[1].Init()
	return b
}

func (b *bridge) Receive(now frame.Time, port uint16, v []frame.Ref) {
	b.tick(now)
	b.received += uint64(len(v))
	for _, r := range v {
		b.seen++
		b.pool.Meta(r).InPort = port
		if b.dropEvery > 0 && b.seen%b.dropEvery == 0 {
			b.drop(r)
			continue
		}
		if !b.up[port^1] {
			b.pool.Free(r)
			continue
		}
		b.queue[port^1].Push(b.pool.Arena, r)
	}
}

func (b *bridge) drop(r frame.Ref) {
	b.pool.Meta(r).Reason = frame.SourceZero
	if len(b.dropped) < cap(b.dropped) {
		b.dropped = append(b.dropped, r)
	} else {
		b.pool.Free(r)
	}
}

func (b *bridge) TapDrops(buf []frame.Ref) { b.dropped = buf }

func (b *bridge) TakeDrops() []frame.Ref {
	v := b.dropped
	b.dropped = b.dropped[:0]
	return v
}

func (b *bridge) Transmit(now frame.Time, port uint16, out []frame.Ref) int {
	b.tick(now)
	n := 0
	for n < len(out) {
		r := b.queue[port].Pop(b.pool.Arena)
		if r == frame.Nil {
			break
		}
		out[n] = r
		n++
	}
	b.sent += uint64(n)
	return n
}

func (b *bridge) Advance(now frame.Time) {
	b.tick(now)
	if now >= b.timer {
		b.fired++
		b.timer = now + b.period
	}
}

func (b *bridge) Wake(now frame.Time) frame.Time {
	if b.queue[0].Len() > 0 || b.queue[1].Len() > 0 {
		return now
	}
	return b.timer
}

func (b *bridge) SetLink(now frame.Time, port uint16, up bool) {
	b.tick(now)
	b.up[port] = up
	if !up {
		for r := b.queue[port].Pop(b.pool.Arena); r != frame.Nil; r = b.queue[port].Pop(b.pool.Arena) {
			b.pool.Free(r)
		}
	}
}

func (b *bridge) tick(now frame.Time) {
	if now < b.lastNow && !b.stepped {
		panic("time went backwards")
	}
	b.lastNow = now
}

// tester is a node with port 0 that sends numbered frames and checks that
// those that come back are in order.
type tester struct {
	pool     *frame.Pool
	up       bool
	size     int
	toSend   uint64
	sent     uint64
	received uint64
	disorder uint64
	arrived  []frame.Time // of the first few
}

func (t *tester) Receive(now frame.Time, _ uint16, v []frame.Ref) {
	for _, r := range v {
		b := t.pool.Bytes(r)
		if number(b) != t.received {
			t.disorder++
		}
		t.received++
		if len(t.arrived) < cap(t.arrived) {
			t.arrived = append(t.arrived, now)
		}
		t.pool.Free(r)
	}
}

func (t *tester) Transmit(now frame.Time, _ uint16, out []frame.Ref) int {
	n := 0
	for n < len(out) && t.sent < t.toSend {
		r := t.pool.Alloc()
		if r == frame.Nil {
			break
		}
		m := t.pool.Reset(r)
		m.Len, m.Wire = uint16(t.size), uint32(t.size)
		setNumber(t.pool.Bytes(r), t.sent)
		out[n] = r
		n++
		t.sent++
	}
	return n
}

func (t *tester) Advance(frame.Time) {}
func (t *tester) Wake(now frame.Time) frame.Time {
	if t.up && t.sent < t.toSend {
		return now
	}
	return frame.Never
}
func (t *tester) SetLink(_ frame.Time, _ uint16, up bool) { t.up = up }

// The test frames are Ethernet frames of the local experimental type 0x88b5
// (IEEE 802) with a number behind the header.
func setNumber(b []byte, n uint64) {
	copy(b, "\x02\x00\x00\x00\x00\x02\x02\x00\x00\x00\x00\x01\x88\xb5")
	for i := range 8 {
		b[14+i] = byte(n >> (56 - 8*i))
	}
}

func number(b []byte) (n uint64) {
	if len(b) < 22 {
		return 1<<64 - 1
	}
	for i := range 8 {
		n = n<<8 | uint64(b[14+i])
	}
	return n
}

func mustEngine(t testing.TB, c Config) *Engine {
	t.Helper()
	if c.Chunks == 0 {
		c.Chunks = 4096
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.NewTextHandler(t.Output(), nil))
	}
	e, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Stop(); err != nil {
			t.Error(err)
		}
	})
	return e
}

func mustNode(t testing.TB, e *Engine, worker int, n frame.Node) {
	t.Helper()
	if err := e.AddNode(worker, n); err != nil {
		t.Fatal(err)
	}
}

func mustPort(t testing.TB, e *Engine, worker int, n frame.Node, number uint16, spec PortSpec) *Port {
	t.Helper()
	p, err := e.AddPort(worker, n, number, spec)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// await polls cond on the worker until it holds. What never holds ends with
// the test binary's own timeout.
func await(t testing.TB, w *Worker, cond func() bool) {
	t.Helper()
	for {
		ok := false
		if err := w.Do(func(frame.Time) { ok = cond() }); err != nil {
			t.Fatal(err)
		}
		if ok {
			return
		}
		pause()
	}
}
