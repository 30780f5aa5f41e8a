package crossbar_test

import (
	"testing"

	"gswitch/crossbar"
	"gswitch/frame"
)

func newCrossbar(t *testing.T, egress uint32, latency frame.Time) (*crossbar.Crossbar, *frame.Pool, crossbar.Config) {
	t.Helper()
	c := crossbar.Config{Ingress: 64 << 10, Egress: egress, TotalCap: true, SkipBlocked: true, Rate: 1e9, Latency: latency}
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	pool := frame.NewPool(frame.MustArena(16, 256, 0))
	return crossbar.New(pool.Arena, c), pool, c
}

func arrive(t *testing.T, x *crossbar.Crossbar, pool *frame.Pool, now frame.Time) {
	t.Helper()
	r := pool.Alloc()
	m := pool.Reset(r)
	m.InPort, m.OutPort, m.Wire = 0, 1, 1500
	if x.Arrive(now, []frame.Ref{r}) != 0 {
		t.Fatal("no room")
	}
}

// A configuration with more room lets what waits cross at once, and an engine is
// notified when to look.
func TestMoreRoomLetsCross(t *testing.T) {
	x, pool, c := newCrossbar(t, 1500, 0)
	arrive(t, x, pool, 0)
	arrive(t, x, pool, 0)
	var out [2]frame.Ref
	if k, at := x.Next(20_000, out[:]); k != 1 || at != 12_000 {
		t.Fatalf("the first frame crosses at %v", at)
	}
	if k, _ := x.Next(frame.Second, out[:]); k != 0 || x.Due() != frame.Never {
		t.Fatalf("the second has no room, but crosses, or is due at %v", x.Due())
	}
	c.Egress = 3000
	x.Configure(frame.Second, c)
	if due := x.Due(); due != frame.Second+12_000 {
		t.Errorf("the second is due at %v, want 12 us after there is room", due)
	}
}

// Frames that are not ready to cross are flushed like all others, each once.
func TestFlushOfFramesThatRipen(t *testing.T) {
	x, pool, _ := newCrossbar(t, 64<<10, frame.Millisecond)
	for range 5 {
		arrive(t, x, pool, 0)
	}
	flushed := map[frame.Ref]bool{}
	var out [2]frame.Ref
	for k := x.Flush(out[:]); k > 0; k = x.Flush(out[:]) {
		for _, r := range out[:k] {
			flushed[r] = true
		}
	}
	if v := x.Port(0); len(flushed) != 5 || x.Held() != 0 || v.Ingress != [8]uint32{} {
		t.Errorf("%d of 5 frames are flushed, %d are held: %+v", len(flushed), x.Held(), v)
	}
}
