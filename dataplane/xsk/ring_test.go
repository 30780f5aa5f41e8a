package xsk

import (
	"math"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"gswitch/frame"
)

func TestRingWrapsAt2To32(t *testing.T) {
	const size = 8
	for _, start := range []uint32{0, 5, math.MaxUint32 - 3, math.MaxUint32} {
		m := newMemoryRing(size, start)
		p, c := m.addrs(size), m.addrs(size)
		next, seen := uint64(0), uint64(0)
		for batch := uint32(1); batch < 200; batch++ {
			n := min(p.room(size), batch%size+1)
			for i := uint32(0); i < n; i++ {
				p.entries[(p.prod+i)&p.mask] = next
				next++
			}
			p.publish(n)
			take := min(c.available(size), batch%5+1)
			for i := uint32(0); i < take; i++ {
				if got := c.entries[(c.cons+i)&c.mask]; got != seen {
					t.Fatalf("start %d: entry %d, want %d", start, got, seen)
				}
				seen++
			}
			c.release(take)
			if full := p.room(size+1) + uint32(next-seen); full != size {
				t.Fatalf("start %d: room and content make %d, want %d", start, full, size)
			}
		}
		if next < 200 || p.prod != start+uint32(next) {
			t.Fatalf("start %d: %d entries, producer %d", start, next, p.prod)
		}
	}
}

func TestRingFullAndEmpty(t *testing.T) {
	const size = 4
	m := newMemoryRing(size, math.MaxUint32-1)
	p, c := m.addrs(size), m.addrs(size)
	if n := c.available(1); n != 0 {
		t.Fatalf("empty ring has %d entries", n)
	}
	if n := p.room(size); n != size {
		t.Fatalf("empty ring has room for %d", n)
	}
	p.publish(size)
	if n := p.room(1); n != 0 {
		t.Fatalf("full ring has room for %d", n)
	}
	if n := c.available(1); n != size {
		t.Fatalf("full ring has %d entries", n)
	}
	c.release(size)
	if n := p.room(1); n != size {
		t.Fatalf("emptied ring has room for %d", n)
	}
}

// The shared index is read only when the cached one does not suffice, and
// written once per batch.
func TestRingCachesIndices(t *testing.T) {
	const size = 8
	m := newMemoryRing(size, 0)
	p, c := m.addrs(size), m.addrs(size)
	p.publish(4)
	if n := c.available(1); n != 4 {
		t.Fatalf("available %d, want 4", n)
	}
	p.publish(2)
	if n := c.available(4); n != 4 {
		t.Fatalf("available %d although the cache sufficed, want 4", n)
	}
	if n := c.available(5); n != 6 {
		t.Fatalf("available %d, want 6", n)
	}
	c.cons += 3
	if got := atomic.LoadUint32(c.consumer); got != 0 {
		t.Fatalf("consumer published %d before release", got)
	}
	c.release(0)
	if got := atomic.LoadUint32(c.consumer); got != 3 {
		t.Fatalf("consumer published %d, want 3", got)
	}
}

// Random interleavings of both sides never lose, double or reorder a chunk.
func TestSocketConservesChunks(t *testing.T) {
	const chunks, size = 200, 32
	for seed := uint64(1); seed <= 20; seed++ {
		rnd := frame.NewRand(seed)
		a := frame.MustArena(chunks, 2048, 256)
		p := frame.NewPool(a)
		s, k := InMemory(chunks, size, math.MaxUint32-40)
		var mine []frame.Ref
		out := make([]frame.Ref, 16)
		for step := 0; step < 5000; step++ {
			switch rnd.Uint32n(8) {
			case 0:
				s.Fill(p)
			case 1:
				k.Deliver(1+rnd.Uint32n(20), 60, 0)
			case 2:
				k.Deliver(1+rnd.Uint32n(6), 1792, unix.XDP_PKT_CONTD)
			case 3, 4:
				n := s.Receive(a, out[:1+rnd.Uint32n(16)])
				mine = append(mine, out[:n]...)
			case 5:
				n := s.Transmit(a, mine)
				mine = mine[:copy(mine, mine[n:])]
			case 6:
				k.Send(1 + rnd.Uint32n(20))
			case 7:
				s.Complete(p)
			}
			own := 0
			for _, r := range mine {
				for ; r != frame.Nil; r = a.Meta(r).Next {
					own++
				}
			}
			if total := p.Available() + s.Held() + own; total != chunks {
				t.Fatalf("seed %d step %d: pool %d + socket %d + mine %d = %d chunks, want %d", seed, step, p.Available(), s.Held(), own, total, chunks)
			}
		}
		s.closed = true
		s.Reclaim(p)
		for _, r := range mine {
			p.Free(r)
		}
		wantWholePool(t, p, chunks)
	}
}

// wantWholePool checks that every chunk is in the pool exactly once.
func wantWholePool(t testing.TB, p *frame.Pool, chunks int) {
	t.Helper()
	if p.Available() != chunks {
		t.Fatalf("pool has %d chunks, want %d", p.Available(), chunks)
	}
	seen := make([]bool, chunks)
	refs := make([]frame.Ref, 0, chunks)
	for r := p.Alloc(); r != frame.Nil; r = p.Alloc() {
		if seen[r] {
			t.Fatalf("chunk %d is in the pool twice", r)
		}
		seen[r] = true
		refs = append(refs, r)
	}
	for _, r := range refs {
		p.FreeChunk(r)
	}
}

// What comes after Note is not received before the next one.
func TestNote(t *testing.T) {
	a := frame.MustArena(64, 2048, 256)
	p := frame.NewPool(a)
	s, k := InMemory(64, 32, 0)
	s.Fill(p)
	out := make([]frame.Ref, 8)
	k.Deliver(2, 60, 0)
	s.Note()
	k.Deliver(3, 60, 0)
	for i, want := range []int{2, 0} {
		if n := s.Receive(a, out); n != want {
			t.Errorf("call %d: %d frames, want %d", i, n, want)
		}
	}
	s.Note()
	if n := s.Receive(a, out[:2]) + s.Receive(a, out); n != 3 {
		t.Errorf("%d frames after the next look, want 3", n)
	}
}

func TestReceiveChains(t *testing.T) {
	a := frame.MustArena(64, 2048, 256)
	p := frame.NewPool(a)
	s, k := InMemory(64, 32, 0)
	s.Fill(p)
	out := make([]frame.Ref, 4)

	k.Deliver(2, 1792, unix.XDP_PKT_CONTD)
	if n := s.Receive(a, out); n != 0 {
		t.Fatalf("received %d frames before the last chunk came", n)
	}
	k.Deliver(1, 100, 0)
	k.Deliver(1, 60, 0)
	if n := s.Receive(a, out); n != 2 {
		t.Fatalf("received %d frames, want 2", n)
	}
	head := a.Meta(out[0])
	mid := a.Meta(head.Next)
	last := a.Meta(mid.Next)
	if head.Wire != 2*1792+100 || head.Len != 1792 || last.Len != 100 || last.Next != frame.Nil {
		t.Fatalf("chain: wire %d, lengths %d %d %d", head.Wire, head.Len, mid.Len, last.Len)
	}
	if head.Flags&frame.Chained == 0 || mid.Flags&frame.Chained == 0 || last.Flags&frame.Chained != 0 {
		t.Fatalf("chained flags: %v %v %v", head.Flags, mid.Flags, last.Flags)
	}
	if m := a.Meta(out[1]); m.Next != frame.Nil || m.Wire != 60 || m.Head != 256 {
		t.Fatalf("frame after the chain: %+v", m)
	}

	// And out again: one descriptor for each chunk, all but the last continued.
	if n := s.Transmit(a, out[:2]); n != 2 || s.Outstanding() != 4 {
		t.Fatalf("took %d frames, %d chunks outstanding", n, s.Outstanding())
	}
	want := []uint32{unix.XDP_PKT_CONTD, unix.XDP_PKT_CONTD, 0, 0}
	for i, w := range want {
		if got := s.tx.entries[i].Options; got != w {
			t.Errorf("descriptor %d has options %d, want %d", i, got, w)
		}
	}
	k.Send(4)
	if n := s.Complete(p); n != 4 || s.Outstanding() != 0 {
		t.Fatalf("completed %d, %d outstanding", n, s.Outstanding())
	}
}

// A chain is posted whole or not at all.
func TestTransmitKeepsChainsWhole(t *testing.T) {
	a := frame.MustArena(64, 2048, 256)
	p := frame.NewPool(a)
	s, k := InMemory(64, 8, 0)
	single := func() frame.Ref { return p.New(make([]byte, 60)) }
	var v []frame.Ref
	for range 6 {
		v = append(v, single())
	}
	chain := single()
	for r, i := chain, 0; i < 3; i++ {
		a.Meta(r).Next = single()
		r = a.Meta(r).Next
	}
	v = append(v, chain, single())
	if n := s.Transmit(a, v); n != 6 {
		t.Fatalf("took %d frames, want the 6 before the chain", n)
	}
	k.Send(8)
	s.Complete(p)
	if n := s.Transmit(a, v[6:]); n != 2 || s.Outstanding() != 5 {
		t.Fatalf("took %d frames, %d chunks outstanding", n, s.Outstanding())
	}
}

// What the kernel would swallow without a completion never reaches it.
func TestTransmitRejects(t *testing.T) {
	const chunks = 64
	a := frame.MustArena(chunks, 2048, 256)
	p := frame.NewPool(a)
	s, _ := InMemory(chunks, 32, 0)
	s.multibuffer = false
	empty := p.Alloc()
	a.Reset(empty)
	chain := p.New(make([]byte, 60))
	a.Meta(chain).Next = p.New(make([]byte, 60))
	good := p.New(make([]byte, 60))
	if n := s.Transmit(a, []frame.Ref{empty, chain, good}); n != 3 || s.Outstanding() != 1 {
		t.Fatalf("took %d, %d outstanding", n, s.Outstanding())
	}
	if got := s.count.txInvalid.Load(); got != 2 {
		t.Fatalf("counted %d invalid frames, want 2", got)
	}
	s.Complete(p)
	if p.Available()+s.Held() != chunks || s.Held() != 1 {
		t.Fatalf("pool %d, held %d", p.Available(), s.Held())
	}
}

func TestHotCallsDoNotAllocate(t *testing.T) {
	const chunks = 1024
	a := frame.MustArena(chunks, 2048, 256)
	p := frame.NewPool(a)
	s, k := InMemory(chunks, 256, math.MaxUint32-100)
	out := make([]frame.Ref, 64)
	if n := testing.AllocsPerRun(1000, func() {
		s.Fill(p)
		k.Deliver(8, 1792, unix.XDP_PKT_CONTD)
		k.Deliver(56, 60, 0)
		n := s.Receive(a, out)
		s.Transmit(a, out[:n])
		_ = s.Kick()
		k.Send(64)
		s.Complete(p)
	}); n != 0 {
		t.Fatalf("%v allocations per run, want 0", n)
	}
	if s.count.rxFrames.Load() == 0 || s.count.txFrames.Load() != s.count.rxFrames.Load() {
		t.Fatalf("received %d, transmitted %d", s.count.rxFrames.Load(), s.count.txFrames.Load())
	}
}

func BenchmarkRings(b *testing.B) {
	const chunks = 8192
	a := frame.MustArena(chunks, 2048, 256)
	p := frame.NewPool(a)
	s, k := InMemory(chunks, 2048, 0)
	out := make([]frame.Ref, 64)
	frames := 0
	for b.Loop() {
		s.Fill(p)
		k.Deliver(64, 60, 0)
		n := s.Receive(a, out)
		s.Transmit(a, out[:n])
		_ = s.Kick()
		k.Send(64)
		s.Complete(p)
		frames += n
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(frames), "ns/frame")
}
