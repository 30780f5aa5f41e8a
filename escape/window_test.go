package escape

import (
	"testing"

	"gswitch/frame"
	"gswitch/wire"
)

// A flow whose tokens come to nothing gets them ever more rarely, one that
// gets a frame at once again.
func TestBackoff(t *testing.T) {
	n1, _, _ := chain(4)
	now, period := frame.Time(0), n1.cfg.Reclaim
	rests := map[frame.Time]int{}
	for i := range 200 {
		if _, ok := n1.Offer(now, yes); !ok {
			t.Fatalf("no token at %d", now)
		}
		now += period
		n1.Reclaim(now)
		most := period << min(i, maxBackoff)
		rest := period
		for ; ; rest += period {
			if _, ok := n1.Offer(now+rest-1, yes); ok || rest > most {
				t.Fatalf("attempt %d: a token before %d ns are over: %v, most %d", i, rest, ok, most)
			}
			if n1.table.flows[0].rest == now+rest {
				break
			}
		}
		rests[rest]++
		now += rest
	}
	if len(rests) < 24 { // of 32: 200 draws leave out less than one on average
		t.Fatalf("%d different rests: %v", len(rests), rests)
	}
	n1.Offer(now, yes)
	n1.Arrive(now, 7, flowA)
	n1.Leave(false)
	if _, ok := n1.Offer(now, yes); !ok {
		t.Fatal("a flow that got its frame has to wait")
	}
}

// As printed a flow gets one token in a round and no flow waits; as many flows are
// known as there are places; and of the tokens that came to nothing one comes
// back in an interval, if nothing else happens in it.
func TestPrinted(t *testing.T) {
	cfg := config(4, 4)
	cfg.Flows, cfg.Printed = 256, true
	e := NewEgress(cfg)
	for i := range uint32(9) {
		e.Note(i, wire.FlowID{Addrs: uint64(i)}, 1, 3)
	}
	if e.Flows() != 4 {
		t.Fatalf("%d flows are known with 4 places", e.Flows())
	}
	for i := uint32(6); i < 9; i++ {
		e.Retire(i, wire.FlowID{Addrs: uint64(i)})
	}
	now := frame.Time(0)
	for round := 1; round <= 4; round++ {
		if n := e.offer(now); n != 1 || e.Free() != 4-round {
			t.Fatalf("round %d: %d tokens, %d places free", round, n, e.Free())
		}
		now += frame.Microsecond
	}
	if n := e.offer(now); n != 0 {
		t.Fatalf("%d tokens without a place", n)
	}
	now = e.Due()
	e.Reclaim(now)
	if e.Free() != 0 {
		t.Fatalf("%d places free after an interval in which tokens left", e.Free())
	}
	for free := 1; free <= 4; free++ {
		now += cfg.Reclaim
		if e.Reclaim(now - 1); e.Free() != free-1 {
			t.Fatalf("%d places free before the interval is over", e.Free())
		}
		if e.Reclaim(now); e.Free() != free {
			t.Fatalf("%d places free, want %d", e.Free(), free)
		}
	}
	if e.Due() != frame.Never || e.Counts().Reclaimed != 4 {
		t.Errorf("due at %d, %d reclaimed", e.Due(), e.Counts().Reclaimed)
	}
}

// offer makes all tokens that may be, and counts them.
func (e *Egress) offer(now frame.Time) (n int) {
	for _, ok := e.Offer(now, yes); ok; _, ok = e.Offer(now, yes) {
		n++
	}
	return n
}

// One token of a flow is out at once when all came to nothing twice in a row, and
// one more for each frame that comes. Some that come to nothing change nothing.
func TestWindow(t *testing.T) {
	e := NewEgress(config(100, 64))
	e.Note(7, flowA, 1, 3)
	now := frame.Time(0)
	miss := func() {
		now += 100 * e.cfg.Reclaim
		e.Reclaim(now)
		now += 100 * e.cfg.Reclaim
	}
	for _, want := range []int{64, 64, 1, 1} {
		if got := e.offer(now); got != want {
			t.Fatalf("%d tokens, want %d", got, want)
		}
		miss()
	}
	for want := 1; want <= 64; want *= 2 {
		if got := e.offer(now); got != want {
			t.Fatalf("%d tokens, want %d", got, want)
		}
		for range want {
			e.Arrive(now, 7, flowA)
			e.Leave(false)
		}
	}
	e.offer(now)
	e.Arrive(now, 7, flowA)
	miss()
	if got := e.offer(now); got != 64 {
		t.Fatalf("%d tokens after most came to nothing, want 64", got)
	}
}

// A frame that waits at the switch whose token it was keeps no place from tokens
// of others, but there are no more of them than places.
func TestParked(t *testing.T) {
	e := NewEgress(config(2, 2))
	e.Note(7, flowA, 1, 3)
	for range 2 {
		e.Offer(0, yes)
	}
	for range 2 {
		if !e.Arrive(0, 7, flowA) || !e.Park() {
			t.Fatal("not parked")
		}
	}
	e.want(t, "with two that are parked", 2)
	if _, ok := e.Offer(0, yes); ok {
		t.Fatal("a token for one more to be parked")
	}
	if e.Borrow() {
		t.Fatal("a place lent to one more to be parked")
	}
	if _, ok := e.Pass(0, 7, flowA, 1, yes); !ok {
		t.Fatal("a token of another switch is kept from a place by what waits")
	}
	if !e.Arrive(0, 7, flowA) || e.Park() || e.Taken() != 1 || e.Parked() != 2 {
		t.Fatal("more frames are parked than there are places")
	}
	e.Leave(false)
	e.Leave(true)
	if _, ok := e.Offer(0, yes); !ok || e.Parked() != 1 {
		t.Fatal("no token where there is room again")
	}
}

// A flow that a neighbour asks tokens for gets them, here for the first time,
// and where it had left.
func TestRequest(t *testing.T) {
	e := NewEgress(config(2, 2))
	e.Request(7, flowA, 1, 3)
	if tok, ok := e.Offer(0, yes); !ok || tok.In != 1 || tok.Flow != flowA {
		t.Fatal(tok, ok)
	}
	e.Retire(7, flowA)
	e.Request(7, flowA, 2, 3)
	if tok, ok := e.Offer(0, yes); !ok || tok.In != 2 {
		t.Fatal(tok, ok)
	}
	if e.Ask(); e.Counts().Requests != 2 || e.Counts().Asked != 1 {
		t.Fatalf("%+v", e.Counts())
	}
}
