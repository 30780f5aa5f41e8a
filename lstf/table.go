package lstf

import "gswitch/frame"

// flows is how many flows a table distinguishes.
const flows = 4096

// table is what is kept of flows, by hash. A flow has two places; where both are
// taken by flows that still matter, it shares the first with the one there.
type table[T any] struct {
	slot []slot[T]
	full uint64 // packets of flows that shared a place
}

type slot[T any] struct {
	hash  uint32
	known bool
	until frame.Time // from then on it may be replaced
	v     T
}

func newTable[T any]() table[T] { return table[T]{slot: make([]slot[T], flows)} }

// find returns the place of a flow, and whether it is new there: v is what it was
// for another flow, or zero, then.
func (t *table[T]) find(hash uint32, now frame.Time) (s *slot[T], fresh bool) {
	at := hash % flows &^ 1
	for i := range uint32(2) {
		if s = &t.slot[(at+i)%flows]; s.known && s.hash == hash {
			return s, now > s.until
		}
	}
	for i := range uint32(2) {
		if s = &t.slot[(at+i)%flows]; !s.known || now > s.until {
			s.hash, s.known = hash, true
			return s, true
		}
	}
	t.full++
	return &t.slot[at], false
}
