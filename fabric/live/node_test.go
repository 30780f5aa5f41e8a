package live

import (
	"slices"
	"testing"

	"gswitch/dataplane"
	"gswitch/frame"
)

// taker remembers the order of what it takes.
type taker struct {
	listener
	keep bool
	took []frame.Ref
}

func (k *taker) Receive(_ frame.Time, _ uint16, v []frame.Ref) {
	if k.keep {
		k.took = append(k.took, v...)
	}
}

// A slow node that is offered more than it takes, for ever, says so before
// there is no room, keeps the order, and needs no memory.
func TestBacklogIsBounded(t *testing.T) {
	k := &taker{keep: true}
	n := &node{Stepper: k, slow: newBacklog(100, 1000)}
	size := len(n.slow.wait)
	var v [dataplane.MaxVector]frame.Ref
	next, now := frame.Ref(0), frame.Time(0)
	loop := func() {
		now += 100
		for !n.Full() {
			for i := range v {
				v[i] = next
				next++
			}
			n.Receive(now, 0, v[:])
		}
		n.Advance(now)
	}
	for range 3 * size {
		loop()
	}
	if len(n.slow.wait) != size || n.slow.n > size || n.slow.n < size-2*len(v) {
		t.Errorf("%d frames wait in %d, it was %d", n.slow.n, len(n.slow.wait), size)
	}
	if len(k.took) < 2*size || !slices.IsSorted(k.took) || k.took[0] != 0 || int(k.took[len(k.took)-1]) != len(k.took)-1 {
		t.Errorf("it took %d frames, not one after the other", len(k.took))
	}
	k.keep = false
	if a := testing.AllocsPerRun(1000, loop); a != 0 {
		t.Errorf("%v allocations per loop", a)
	}
	n.slow.gap = 0
	for n.slow != nil {
		now += 100
		n.Advance(now)
	}
	if n.Full() {
		t.Error("it is full after it was slow")
	}
}

func TestBacklogLeavesTheArena(t *testing.T) {
	for chunks, want := range map[int]int{0: 2 * dataplane.MaxVector, 2000: 500, 1 << 20: maxBacklog} {
		if got := len(newBacklog(1, chunks).wait); got != want {
			t.Errorf("%d chunks: room for %d, want %d", chunks, got, want)
		}
	}
}

// keeper holds frames outside of its ports' queues.
type keeper struct {
	taker
	pool *frame.Pool
}

func (k *keeper) Flush(frame.Time) {
	for _, r := range k.took {
		k.pool.Free(r)
	}
}

// What waits for a node goes back when it leaves, and what the node itself has.
func TestFlush(t *testing.T) {
	pool := frame.NewPool(frame.MustArena(16, 2048, frame.DefaultHeadroom))
	all := pool.Available()
	k := &keeper{pool: pool}
	n := &node{Stepper: k, pool: pool, slow: newBacklog(100, 1000)}
	for range 3 {
		k.took = append(k.took, pool.New(make([]byte, 60)))
		n.slow.push(waiting{pool.New(make([]byte, 60)), 0})
	}
	n.Flush(0)
	if got := pool.Available(); got != all {
		t.Errorf("%d of %d frames came back", got, all)
	}
}
