package scheduler_test

import (
	"testing"

	"gswitch/frame"
	"gswitch/scheduler"
)

// What waits is reported in frames and bytes, of all queues; an account that is given
// to a port counts it once, however often it is given.
func TestBacklogIsCountedOnce(t *testing.T) {
	pool := frame.NewPool(frame.MustArena(16, 256, 0))
	p := scheduler.NewPort(pool.Arena, scheduler.PortConfig{Rate: 1e9}, 1)
	for queue, wire := range map[uint8]uint32{0: 100, 3: 1500, 7: 64} {
		r := pool.Alloc()
		m := pool.Reset(r)
		m.Queue, m.Wire = queue, wire
		p.Enqueue(0, r)
	}
	if frames, bytes := p.Backlog(); frames != 3 || bytes != 1664 {
		t.Errorf("%d frames, %d bytes wait, want 3 and 1664", frames, bytes)
	}
	loads := scheduler.NewLoads(nil)
	d := scheduler.NewDrain(loads, 5, []uint64{1000}, false, true)
	for range 2 {
		p.Watch(d)
		if b := loads.Bytes[0][5]; b != 1664 {
			t.Errorf("what queue 0 waits for is %d bytes, want 1664", b)
		}
		if b := loads.Bytes[4][5]; b != 64 {
			t.Errorf("what queue 4 waits for is %d bytes, want 64", b)
		}
	}
}
