package pipeline

import (
	"iter"
	"math/bits"
)

// ExactKey is what an Exact table can be keyed by: 64, 128 or 512 bits.
type ExactKey interface {
	[1]uint64 | [2]uint64 | Key
}

// Exact maps fixed-size keys to values, by open addressing with linear probing
// over slots that hold key and value together. It is an immutable snapshot;
// With and Without copy the table, Edit changes many entries for one copy.
// The zero value is an empty table.
type Exact[K ExactKey] struct {
	slots []exactSlot[K] // a power of two, at most half full
	count int
}

type exactSlot[K ExactKey] struct {
	key   K
	value uint32
	used  bool
}

// hashExact mixes the words of a key, each on its own so that the products
// overlap in the processor, and with constants of its own so that their order
// counts.
func hashExact[K ExactKey](k *K) uint64 {
	h := uint64(0)
	for i := 0; i < len(*k); i++ {
		odd := uint64(2*i + 1)
		h ^= fold((*k)[i]^mix0*odd, mix1*odd)
	}
	return h
}

// Lookup returns the value of k.
func (t *Exact[K]) Lookup(k K) (value uint32, ok bool) {
	if len(t.slots) == 0 {
		return 0, false
	}
	mask := uint64(len(t.slots) - 1)
	for n := hashExact(&k) & mask; ; n = (n + 1) & mask {
		s := &t.slots[n]
		if !s.used {
			return 0, false
		}
		if s.key == k {
			return s.value, true
		}
	}
}

// LookupVec writes the value of keys[i] to values[i], or miss.
func (t *Exact[K]) LookupVec(keys []K, values []uint32, miss uint32) {
	values = values[:len(keys)]
	for i := range keys {
		v, ok := t.Lookup(keys[i])
		if !ok {
			v = miss
		}
		values[i] = v
	}
}

// Len returns the number of entries.
func (t *Exact[K]) Len() int { return t.count }

// All yields all entries in no particular order.
func (t *Exact[K]) All() iter.Seq2[K, uint32] {
	return func(yield func(K, uint32) bool) {
		for i := range t.slots {
			if s := &t.slots[i]; s.used && !yield(s.key, s.value) {
				return
			}
		}
	}
}

// With returns the table with k -> value.
func (t *Exact[K]) With(k K, value uint32) *Exact[K] {
	b := t.Edit()
	b.Set(k, value)
	return b.Build()
}

// Without returns the table without k.
func (t *Exact[K]) Without(k K) *Exact[K] {
	b := t.Edit()
	b.Delete(k)
	return b.Build()
}

// ExactBuilder collects changes to an Exact table.
type ExactBuilder[K ExactKey] struct{ t *Exact[K] }

// Edit returns a builder that starts from the entries of t.
func (t *Exact[K]) Edit() *ExactBuilder[K] {
	n := &Exact[K]{slots: make([]exactSlot[K], len(t.slots)), count: t.count}
	copy(n.slots, t.slots)
	return &ExactBuilder[K]{n}
}

// Build returns the snapshot and leaves the builder empty.
func (b *ExactBuilder[K]) Build() *Exact[K] {
	t := b.t
	b.t = &Exact[K]{}
	return t
}

// Set enters k -> value, replacing what k had.
func (b *ExactBuilder[K]) Set(k K, value uint32) {
	if 2*(b.t.count+1) > len(b.t.slots) {
		b.grow()
	}
	mask := uint64(len(b.t.slots) - 1)
	for n := hashExact(&k) & mask; ; n = (n + 1) & mask {
		s := &b.t.slots[n]
		if !s.used {
			*s = exactSlot[K]{k, value, true}
			b.t.count++
			return
		}
		if s.key == k {
			s.value = value
			return
		}
	}
}

// Delete removes k and reports whether it was there.
func (b *ExactBuilder[K]) Delete(k K) bool {
	slots := b.t.slots
	if len(slots) == 0 {
		return false
	}
	mask := uint64(len(slots) - 1)
	n := hashExact(&k) & mask
	for ; slots[n].key != k || !slots[n].used; n = (n + 1) & mask {
		if !slots[n].used {
			return false
		}
	}
	b.t.count--
	// Close the gap: what follows moves up unless that would put it before
	// its home (Knuth, TAOCP 3, algorithm 6.4R).
	for i := (n + 1) & mask; slots[i].used; i = (i + 1) & mask {
		if home := hashExact(&slots[i].key) & mask; (i-home)&mask >= (i-n)&mask {
			slots[n] = slots[i]
			n = i
		}
	}
	slots[n] = exactSlot[K]{}
	return true
}

func (b *ExactBuilder[K]) grow() {
	old := b.t.slots
	b.t = &Exact[K]{slots: make([]exactSlot[K], 1<<bits.Len(uint(max(2*len(old), 8)-1)))}
	for i := range old {
		if old[i].used {
			b.Set(old[i].key, old[i].value)
		}
	}
}
