package hostnic

import (
	"testing"

	"github.com/gswitch/gswitch/frame"
)

// A link that may catch up does so after a late caller, not after a time in
// which nobody had anything to send: no frame departs before it was there.
func TestBurstIsNoCredit(t *testing.T) {
	cfg := stackConfig(1, false)
	cfg.Rate, cfg.Burst = 1e9, frame.Millisecond
	n, err := New(&cfg, frame.NewPool(frame.MustArena(256, 2048, 32)))
	must(t, err)
	mac := testMAC(2)
	qpn, err := n.OpenQP(0, &QPConfig{RemoteAddr: stackConfig(2, false).Addr, RemoteMAC: mac})
	must(t, err)
	must(t, n.ConnectQP(0, qpn, 1))
	var out [64]frame.Ref
	send := func(now frame.Time) (k int) {
		k = n.Transmit(now, 0, out[:])
		for _, r := range out[:k] {
			n.pool.Free(r)
		}
		return k
	}
	posted := frame.Second
	must(t, n.SendMessage(posted, qpn, 50_000, 0)) // 50 frames of 8.5 us
	if k := n.Transmit(posted, 0, out[:]); k != 1 {
		t.Fatalf("%d frames at once, although the link had been idle", k)
	} else if at := n.arena.Meta(out[0]).Depart; at != posted {
		t.Errorf("the first frame departs at %v, posted at %v", at, posted)
	} else {
		n.pool.Free(out[0])
	}
	// The caller comes 100 us late: what should have left meanwhile leaves.
	if k := send(posted + 100*frame.Microsecond); k < 10 || k > 13 {
		t.Errorf("%d frames after 100 us, want about 11", k)
	}
	// 5 ms late is more than Burst: what fits into 1 ms, were there so many.
	if k := send(posted + 5*frame.Millisecond); k != 50-1-11 && k != 50-1-10 && k != 50-1-12 {
		t.Errorf("%d frames after 5 ms", k)
	}
}
