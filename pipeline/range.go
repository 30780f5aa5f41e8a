package pipeline

import (
	"cmp"
	"fmt"
	"slices"
)

// Interval maps the numbers from Lo to Hi, both included, to Value.
type Interval struct{ Lo, Hi, Value uint32 }

// Range maps disjoint intervals of numbers (ports, VLAN ids, lengths) to
// values by binary search. It is an immutable snapshot; the zero value is
// empty.
type Range struct {
	lo   []uint32 // sorted, apart from the rest so that the search stays dense
	rest []Interval
}

// NewRange returns a table of intervals, given in any order. They must not
// overlap.
func NewRange(intervals []Interval) (*Range, error) {
	t := &Range{rest: slices.Clone(intervals)}
	slices.SortFunc(t.rest, func(a, b Interval) int { return cmp.Compare(a.Lo, b.Lo) })
	for i, v := range t.rest {
		if v.Lo > v.Hi {
			return nil, fmt.Errorf("range: interval %d-%d is empty", v.Lo, v.Hi)
		}
		if i > 0 && t.rest[i-1].Hi >= v.Lo {
			p := t.rest[i-1]
			return nil, fmt.Errorf("range: intervals %d-%d and %d-%d overlap", p.Lo, p.Hi, v.Lo, v.Hi)
		}
		t.lo = append(t.lo, v.Lo)
	}
	return t, nil
}

// Lookup returns the value of the interval that holds x.
func (t *Range) Lookup(x uint32) (value uint32, ok bool) {
	if len(t.lo) == 0 || x < t.lo[0] {
		return 0, false
	}
	// The last start that is <= x is among the n from i on. The body is a
	// conditional move, so there is no branch to mispredict.
	i := 0
	for n := len(t.lo); n > 1; {
		half := n / 2
		next := i
		if t.lo[i+half] <= x {
			next = i + half
		}
		i = next
		n -= half
	}
	if t.rest[i].Hi < x {
		return 0, false
	}
	return t.rest[i].Value, true
}

// LookupVec writes the value for xs[i] to values[i], or miss.
func (t *Range) LookupVec(xs, values []uint32, miss uint32) {
	values = values[:len(xs)]
	for i, x := range xs {
		v, ok := t.Lookup(x)
		if !ok {
			v = miss
		}
		values[i] = v
	}
}

// With returns the table with one more interval.
func (t *Range) With(v Interval) (*Range, error) {
	return NewRange(append(slices.Clone(t.rest), v))
}

// Without returns the table without the interval that starts at lo.
func (t *Range) Without(lo uint32) *Range {
	n := &Range{}
	for _, v := range t.rest {
		if v.Lo != lo {
			n.rest = append(n.rest, v)
			n.lo = append(n.lo, v.Lo)
		}
	}
	return n
}

// Intervals returns the intervals in ascending order. The caller must not
// change them.
func (t *Range) Intervals() []Interval { return t.rest }
