package dataplane

import (
	"testing"

	"gswitch/fault"
	"gswitch/frame"
)

// owned checks that each chunk is free, below the nodes, or one of the nodes' own.
func owned(t *testing.T, e *Engine, w *Worker, nodes int) (below int) {
	t.Helper()
	seen := map[frame.Ref]bool{}
	w.Elsewhere(func(r frame.Ref) { seen[r] = true })
	if free := w.pool.Available() + e.depot.Free(); free+len(seen)+nodes != e.arena.Chunks() {
		t.Errorf("%d chunks are free, %d below the nodes and %d at them, of %d", free, len(seen), nodes, e.arena.Chunks())
	}
	return len(seen)
}

// Frames that wait on an emulated cable, those that are held back and those on a wire are
// below the nodes.
func TestElsewhere(t *testing.T) {
	x := newFaultyWire(t, PortSpec{Delay: 3 * frame.Microsecond})
	x.fault(t, fault.Config{Reorder: 0.3, ReorderBy: 20 * frame.Microsecond, Duplicate: 0.2}, 1)
	delayed, late, wired := false, false, false
	for range 200 {
		x.left.toSend += 5
		x.run(1, frame.Microsecond)
		owned(t, x.e, x.w, 0)
		l := x.port.line
		delayed, late = delayed || l.delay.head != l.delay.tail, late || l.fault.late.len() > 0
		wired = wired || x.port.wire.rings[0].Len() > 0
	}
	if !delayed || !late || !wired {
		t.Errorf("frames were on the cable %v, held back %v, on the wire %v", delayed, late, wired)
	}
	x.run(100, frame.Microsecond)
	if n := owned(t, x.e, x.w, 0); n != 0 {
		t.Errorf("%d chunks are left below the nodes", n)
	}
}

// What the kernel has is below the nodes: chunks to receive into, what arrived, what is sent.
func TestElsewhereInTheKernel(t *testing.T) {
	l := newLab(t, 2, 1)
	e, b, _ := twoPorts(t, l, Config{}, PortSpec{})
	awaitPort(e, 0, true)
	awaitPort(e, 1, true)
	h0, h1 := l.socket(t, "h0"), l.socket(t, "h1")
	w := e.Worker(0)
	for i := range uint64(100) {
		send(t, h0, i, 200)
		if i%10 != 0 {
			continue
		}
		if err := w.Do(func(frame.Time) {
			if n := owned(t, e, w, b.queue[0].Len()+b.queue[1].Len()); n < 100 {
				t.Errorf("the kernel has %d chunks", n)
			}
		}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range uint64(100) {
		expect(t, h1, i)
	}
}
