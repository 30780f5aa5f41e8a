package dataplane

import (
	"fmt"
	"testing"
	"time"

	"gswitch/frame"
)

func pause() { time.Sleep(200 * time.Microsecond) }

// chain builds tester - bridge - bridge - tester over wires, the nodes spread
// over the workers, and sends n frames from left to right.
func chain(t testing.TB, e *Engine, workers [4]int, n uint64) (left, right *tester) {
	left = &tester{pool: e.Worker(workers[0]).Pool(), size: 60, toSend: n}
	right = &tester{pool: e.Worker(workers[3]).Pool()}
	b1, b2 := newBridge(e.Worker(workers[1])), newBridge(e.Worker(workers[2]))
	mustNode(t, e, workers[0], left)
	mustNode(t, e, workers[1], b1)
	mustNode(t, e, workers[2], b2)
	mustNode(t, e, workers[3], right)
	// From the right, so that the path is there when the first frame leaves.
	mustPort(t, e, workers[3], right, 0, PortSpec{Kind: Wire, Wire: "c"})
	mustPort(t, e, workers[2], b2, 1, PortSpec{Kind: Wire, Wire: "c"})
	mustPort(t, e, workers[2], b2, 0, PortSpec{Kind: Wire, Wire: "b"})
	mustPort(t, e, workers[1], b1, 1, PortSpec{Kind: Wire, Wire: "b"})
	mustPort(t, e, workers[1], b1, 0, PortSpec{Kind: Wire, Wire: "a"})
	mustPort(t, e, workers[0], left, 0, PortSpec{Kind: Wire, Wire: "a"})
	return left, right
}

func TestWiresDeliverEverythingInOrder(t *testing.T) {
	for _, poll := range []PollMode{Adaptive, Spin, Sleep} {
		for _, workers := range [][4]int{{0, 0, 0, 0}, {0, 1, 0, 1}} {
			t.Run(fmt.Sprintf("%s/%v", poll, workers), func(t *testing.T) {
				e := mustEngine(t, Config{Workers: []WorkerConfig{{Poll: poll}, {Poll: poll}}})
				const n = 20000
				left, right := chain(t, e, workers, n)
				if err := e.Start(); err != nil {
					t.Fatal(err)
				}
				await(t, e.Worker(workers[3]), func() bool { return right.received == n })
				if right.disorder != 0 {
					t.Errorf("%d frames out of order", right.disorder)
				}
				await(t, e.Worker(workers[0]), func() bool { return left.sent == n })
			})
		}
	}
}

// A worker receives what was there when it looked, before it read the clock,
// and the rest in the next loop.
func TestReceivesWhatWasNoted(t *testing.T) {
	e := mustEngine(t, Config{Chunks: 1024, Workers: []WorkerConfig{{}, {}}})
	w := e.Worker(1)
	left, right := &tester{pool: e.Worker(0).Pool(), size: 60}, &tester{pool: w.Pool()}
	mustNode(t, e, 0, left)
	mustNode(t, e, 1, right)
	mustPort(t, e, 0, left, 0, PortSpec{Kind: Wire, Wire: "n"})
	mustPort(t, e, 1, right, 0, PortSpec{Kind: Wire, Wire: "n"})
	send := func(n uint64) {
		left.toSend += n
		e.Worker(0).step(e.Now())
	}
	for i, k := range []struct{ before, after, want uint64 }{{3, 2, 3}, {0, 4, 5}, {1, 0, 10}, {0, 0, 10}} {
		send(k.before)
		w.note()
		now := e.Now()
		send(k.after)
		if w.step(now); uint64(right.received) != k.want {
			t.Errorf("loop %d: %d frames in all, want %d", i, right.received, k.want)
		}
	}
}

// A wire end that is removed takes the other one down, loses no chunk, and
// the wire works again when an end returns.
func TestWireEndLeavesAndReturns(t *testing.T) {
	e := mustEngine(t, Config{Workers: []WorkerConfig{{Poll: Sleep}, {Poll: Sleep}}})
	left := &tester{pool: e.Worker(0).Pool(), size: 60, toSend: 1 << 62}
	right := &tester{pool: e.Worker(1).Pool()}
	mustNode(t, e, 0, left)
	mustNode(t, e, 1, right)
	a := mustPort(t, e, 0, left, 0, PortSpec{Kind: Wire, Wire: "x", Name: "left"})
	if s := e.Stats().Ports[0]; s.Up || s.State == "up" {
		t.Errorf("a wire with one end is %q", s.State)
	}
	b := mustPort(t, e, 1, right, 0, PortSpec{Kind: Wire, Wire: "x", Name: "right"})
	if _, err := e.AddPort(1, right, 1, PortSpec{Kind: Wire, Wire: "x"}); err == nil {
		t.Error("a third end was accepted")
	}
	if err := e.Start(); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		before := uint64(0)
		e.Worker(1).Do(func(frame.Time) { before = right.received })
		await(t, e.Worker(1), func() bool { return right.received > before+1000 })
		if err := e.RemovePort(b); err != nil {
			t.Fatal(err)
		}
		st := e.Stats()
		if len(st.Ports) != 1 || st.Ports[0].Up {
			t.Errorf("after removal: %+v", st.Ports)
		}
		if st.FreeChunks != st.Chunks {
			t.Errorf("%d chunks are missing while nothing flows", st.Chunks-st.FreeChunks)
		}
		b = mustPort(t, e, 1, right, 0, PortSpec{Kind: Wire, Wire: "x", Name: "right"})
	}
	_ = a
}
