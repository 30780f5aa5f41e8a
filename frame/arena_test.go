package frame

import (
	"bytes"
	"strings"
	"testing"
)

func TestArenaRefusesImpossibleShapes(t *testing.T) {
	for _, c := range []struct {
		mem, chunk, headroom int
		want                 string
	}{
		{4096, 1000, 0, "power of two"},
		{4096, 128, 0, "power of two"},
		{5000, 2048, 0, "whole number"},
		{0, 2048, 0, "whole number"},
		{4096, 2048, 2048, "headroom"},
		{4096, 2048, -1, "headroom"},
	} {
		_, err := NewArena(make([]byte, c.mem), c.chunk, c.headroom)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("NewArena(%d bytes, %d, %d): %v, want an error about %q", c.mem, c.chunk, c.headroom, err, c.want)
		}
	}
}

func TestPushAndPullKeepTheBytes(t *testing.T) {
	p := NewPool(MustArena(2, 256, 64))
	r := p.New([]byte("payload"))
	if b := p.Push(r, 64); b == nil || len(b) != 71 {
		t.Fatal("the headroom could not be used")
	}
	if p.Push(r, 1) != nil || p.Meta(r).Len != 71 {
		t.Error("a push beyond the headroom was not refused")
	}
	if b := p.Pull(r, 64); !bytes.Equal(b, []byte("payload")) || p.Meta(r).Wire != 7 {
		t.Errorf("left over: %q", b)
	}
	if p.Pull(r, 8) != nil {
		t.Error("a pull beyond the frame was not refused")
	}
	if p.New(make([]byte, 193)) != Nil {
		t.Error("a frame longer than a chunk was made")
	}
	if p.Available() != 1 {
		t.Error("the refused frame kept its chunk")
	}
}

func TestAddressesNameTheirFrame(t *testing.T) {
	a := MustArena(8, 2048, 256)
	for i := range Ref(8) {
		r := a.Adopt(a.ChunkAddr(i)+300, 100)
		if r != i || a.Addr(r) != uint64(i)*2048+300 || a.RefOf(a.Addr(r)) != i || len(a.Bytes(r)) != 100 {
			t.Errorf("chunk %d became frame %d at %d", i, r, a.Addr(r))
		}
	}
}

// Any sequence of allocations, copies of chains and frees leaves every chunk
// with exactly one owner.
func TestPoolConservesChunks(t *testing.T) {
	const chunks = 64
	a := MustArena(chunks, 256, 64)
	p := NewPool(a)
	rnd := NewRand(1)
	var live []Ref
	held := func() (n int) {
		for _, r := range live {
			for ; r != Nil; r = a.Meta(r).Next {
				n++
			}
		}
		return n
	}
	for range 20_000 {
		switch k := rnd.Uint32n(4); {
		case k == 0 || len(live) == 0:
			if r := p.New([]byte{1}); r != Nil {
				live = append(live, r)
			}
		case k == 1: // chain two
			if len(live) > 1 {
				x, y := live[len(live)-2], live[len(live)-1]
				for a.Meta(x).Next != Nil {
					x = a.Meta(x).Next
				}
				a.Meta(x).Next = y
				live = live[:len(live)-1]
			}
		case k == 2:
			if c := p.Copy(live[rnd.Uint32n(uint32(len(live)))]); c != Nil {
				live = append(live, c)
			}
		default:
			i := rnd.Uint32n(uint32(len(live)))
			p.Free(live[i])
			live[i] = live[len(live)-1]
			live = live[:len(live)-1]
		}
		if p.Available()+held() != chunks {
			t.Fatalf("%d chunks are free and %d held, of %d", p.Available(), held(), chunks)
		}
	}
}

func TestDepotMovesChunksBetweenPools(t *testing.T) {
	a := MustArena(8*depotBatch, 256, 0)
	d := NewDepot(a)
	from, to := d.NewPool(a), d.NewPool(a)
	for range 5 * a.Chunks() { // far more than a pool may hoard
		r := from.Alloc()
		if r == Nil {
			t.Fatal("the depot ran dry although every frame was freed")
		}
		to.FreeChunk(r)
	}
	if to.Available() > 5*depotBatch {
		t.Errorf("a pool keeps %d chunks", to.Available())
	}
	from.Drain()
	to.Drain()
	if d.Free() != a.Chunks() {
		t.Errorf("%d of %d chunks came back", d.Free(), a.Chunks())
	}
}

// Chunks that are taken and given back together have one owner each, fail where
// one by one would, and count as many allocations.
func TestPoolInBulk(t *testing.T) {
	a := MustArena(8*depotBatch, 256, 0)
	d := NewDepot(a)
	p, other := d.NewPool(a), d.NewPool(a)
	rnd := NewRand(1)
	var live []Ref
	owned := make([]bool, a.Chunks())
	script := []Misses{{20, 2}, {300, 1}}
	p.FailAt([]Misses{script[0], script[1]})
	failed := 0
	for range 20_000 {
		out := make([]Ref, 1+rnd.Uint32n(100))
		if rnd.Uint32n(2) == 0 {
			before := p.Asked()
			n := p.AllocAll(out)
			asked := p.Asked() - before
			if n < len(out) {
				failed++
				asked--
			}
			if asked != uint64(n) {
				t.Fatalf("%d of %d chunks, and %d allocations", n, len(out), asked)
			}
			for _, r := range out[:n] {
				if owned[r] {
					t.Fatalf("chunk %d has two owners", r)
				}
				owned[r] = true
			}
			live = append(live, out[:n]...)
			continue
		}
		n := min(len(live), len(out))
		to := p
		if rnd.Uint32n(2) == 0 {
			to = other
		}
		for _, r := range live[:n] {
			owned[r] = false
		}
		to.FreeChunks(live[:n])
		live = live[n:]
		if p.Available() > PoolKeeps || other.Available() > PoolKeeps {
			t.Fatalf("pools keep %d and %d chunks", p.Available(), other.Available())
		}
		if p.Available()+other.Available()+d.Free()+len(live) != a.Chunks() {
			t.Fatalf("%d chunks in pools, %d in the depot, %d live", p.Available()+other.Available(), d.Free(), len(live))
		}
	}
	if failed < 3 || p.Failed() != uint64(failed) {
		t.Errorf("%d calls failed, %d allocations", failed, p.Failed())
	}
}

func TestFIFOKeepsOrder(t *testing.T) {
	a := MustArena(4, 256, 0)
	var q FIFO
	q.Init()
	if q.Pop(a) != Nil || q.Head() != Nil {
		t.Error("an empty queue gave a frame")
	}
	for round := range 3 {
		for r := range Ref(4) {
			q.Push(a, r)
		}
		for r := range Ref(4) {
			if q.Head() != r || q.Pop(a) != r || q.Len() != 3-int(r) {
				t.Fatalf("round %d: frame %d is out of order", round, r)
			}
		}
	}
}

func TestEveryReasonHasAName(t *testing.T) {
	seen := map[string]bool{}
	for r := range NumReasons {
		if n := r.String(); n == "" || seen[n] {
			t.Errorf("reason %d is called %q", r, n)
		} else {
			seen[n] = true
		}
	}
	if NumReasons.String() != "unknown" {
		t.Error("a reason out of range has a name")
	}
}

func TestRandIsSpreadAndRepeats(t *testing.T) {
	a, b := NewRand(5), NewRand(5)
	var bucket [8]int
	for range 80_000 {
		x := a.Uint32n(8)
		if b.Uint32n(8) != x {
			t.Fatal("one seed gave two streams")
		}
		bucket[x]++
	}
	for i, n := range bucket {
		if n < 9600 || n > 10400 {
			t.Errorf("%d of 80000 draws fell into bucket %d of 8", n, i)
		}
	}
	c := NewRand(6)
	if c.Uint64() == firstDraw(5) {
		t.Error("neighbouring seeds begin alike")
	}
}

// firstDraw is the first draw of a seed.
func firstDraw(seed uint64) uint64 { r := NewRand(seed); return r.Uint64() }
