package frame

import (
	"slices"
	"sync"
)

// Pool is the stack of free chunks that one worker owns. It is not safe for
// concurrent use; where several workers share an arena each has its own Pool
// and a Depot moves chunks between them in bulk.
type Pool struct {
	*Arena
	free  []Ref
	depot *Depot

	asked  uint64 // allocations so far, those that failed included
	failAt uint64 // the next one that fails although there are chunks; 0 = none
	misses misses
}

// depotBatch is how many chunks move between a Pool and the Depot at once.
const depotBatch = 256

// PoolKeeps is how many free chunks a Pool with a Depot keeps at most.
const PoolKeeps = 4 * depotBatch

// NewPool returns a pool that owns every chunk of a.
func NewPool(a *Arena) *Pool {
	p := &Pool{Arena: a, free: make([]Ref, a.Chunks())}
	for i := range p.free {
		p.free[i] = Ref(len(p.free) - 1 - i)
	}
	return p
}

// Depot holds the free chunks that no worker of a group has in its Pool. Its
// lock is taken once for depotBatch chunks, never per frame.
type Depot struct {
	mu   sync.Mutex
	free []Ref
}

// NewDepot returns a depot that owns every chunk of a.
func NewDepot(a *Arena) *Depot {
	return &Depot{free: NewPool(a).free}
}

// NewPool returns an empty pool that refills from d and spills to it.
func (d *Depot) NewPool(a *Arena) *Pool {
	return &Pool{Arena: a, free: make([]Ref, 0, a.Chunks()), depot: d}
}

// Free returns how many chunks lie in the depot.
func (d *Depot) Free() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.free)
}

func (d *Depot) take(p *Pool) {
	d.mu.Lock()
	n := min(depotBatch, len(d.free))
	p.free = append(p.free, d.free[len(d.free)-n:]...)
	d.free = d.free[:len(d.free)-n]
	d.mu.Unlock()
}

func (d *Depot) give(p *Pool, n int) {
	d.mu.Lock()
	d.free = append(d.free, p.free[len(p.free)-n:]...)
	d.mu.Unlock()
	p.free = p.free[:len(p.free)-n]
}

// Alloc takes a free chunk, or returns Nil if there is none. Its Meta is not
// cleared: Adopt, Reset or SetBytes does that.
func (p *Pool) Alloc() Ref {
	p.asked++
	if p.asked == p.failAt {
		return p.failScripted()
	}
	if len(p.free) == 0 {
		if p.depot == nil {
			return p.miss()
		}
		if p.depot.take(p); len(p.free) == 0 {
			return p.miss()
		}
	}
	r := p.free[len(p.free)-1]
	p.free = p.free[:len(p.free)-1]
	return r
}

// AllocAll takes as many free chunks as there are, up to len(out), and returns
// how many: each as by Alloc.
func (p *Pool) AllocAll(out []Ref) int {
	if n := len(p.free) - len(out); n >= 0 && p.failAt == 0 {
		copy(out, p.free[n:])
		p.free = p.free[:n]
		p.asked += uint64(len(out))
		return len(out)
	}
	for i := range out {
		if out[i] = p.Alloc(); out[i] == Nil {
			return i
		}
	}
	return len(out)
}

// Free returns the frame r, with all chunks chained to it.
func (p *Pool) Free(r Ref) {
	for r != Nil {
		m := &p.meta[r]
		next := m.Next
		m.Next = Nil
		p.FreeChunk(r)
		r = next
	}
}

// FreeChunk returns the single chunk r, whatever its Meta says: for chunks
// that come back from a completion ring.
func (p *Pool) FreeChunk(r Ref) {
	p.free = append(p.free, r)
	if p.depot != nil && len(p.free) > PoolKeeps {
		p.depot.give(p, depotBatch)
	}
}

// FreeChunks is FreeChunk for several.
func (p *Pool) FreeChunks(v []Ref) {
	p.free = append(p.free, v...)
	for p.depot != nil && len(p.free) > PoolKeeps {
		p.depot.give(p, depotBatch)
	}
}

// unused returns which chunks are free, here and in the depot. Other workers, which
// wait for the depot's lock, wait for a copy of its list at most.
func (p *Pool) unused() refSet {
	all := newRefSet(p.Arena)
	for _, r := range p.free {
		all.add(r)
	}
	if d := p.depot; d != nil {
		d.mu.Lock()
		free := slices.Clone(d.free)
		d.mu.Unlock()
		for _, r := range free {
			all.add(r)
		}
	}
	return all
}

// refSet is a set of chunks of an arena.
type refSet []uint64

func newRefSet(a *Arena) refSet { return make(refSet, (a.Chunks()+63)/64) }

func (s refSet) add(r Ref) { s[r/64] |= 1 << (r % 64) }

func (s refSet) has(r Ref) bool { return s[r/64]>>(r%64)&1 != 0 }

// Available returns how many chunks this pool holds.
func (p *Pool) Available() int { return len(p.free) }

// Drain gives every chunk back to the depot, when the worker ends.
func (p *Pool) Drain() {
	if p.depot != nil {
		p.depot.give(p, len(p.free))
	}
}

// New allocates a frame with the content b, or returns Nil if there is no
// free chunk or b does not fit into one.
func (p *Pool) New(b []byte) Ref {
	r := p.Alloc()
	if r == Nil {
		return Nil
	}
	if !p.SetBytes(r, b) {
		p.FreeChunk(r)
		return Nil
	}
	return r
}

// Copy allocates a copy of r with its Meta and all its chunks, or returns
// Nil if the chunks do not suffice.
func (p *Pool) Copy(r Ref) Ref {
	first, last := Nil, Nil
	for ; r != Nil; r = p.meta[r].Next {
		c := p.Alloc()
		if c == Nil {
			if first != Nil {
				p.Free(first)
			}
			return Nil
		}
		m := &p.meta[c]
		*m = p.meta[r]
		m.Next, m.QNext, m.QPrev = Nil, Nil, Nil
		copy(p.Bytes(c), p.Bytes(r))
		if first == Nil {
			first = c
		} else {
			p.meta[last].Next = c
		}
		last = c
	}
	return first
}
