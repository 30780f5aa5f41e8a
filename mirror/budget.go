package mirror

import (
	"fmt"
	"math"
)

// Rate is copies and their bytes in a second.
type Rate struct {
	Copies uint64 `json:"copies"`
	Bytes  uint64 `json:"bytes"` // of their outer IP packets
}

// Plus is the sum; what would be more than a number can be is the most that one can be.
func (r Rate) Plus(o Rate) Rate { return Rate{plus(r.Copies, o.Copies), plus(r.Bytes, o.Bytes)} }

func plus(a, b uint64) uint64 {
	if a > math.MaxUint64-b {
		return math.MaxUint64
	}
	return a + b
}

// most is the larger of two rates, each number by itself.
func most(a, b Rate) Rate { return Rate{max(a.Copies, b.Copies), max(a.Bytes, b.Bytes)} }

// Budget is what all collectors of a network take, and what of it is in use.
type Budget struct {
	Capacity Rate `json:"capacity"` // 0 copies: not known; 0 bytes: copies alone are bounded
	// Others are the copies that come of packets without the debug bit, Marked of those
	// with it, each the mean of LoadTime.
	Others  Rate `json:"others"`
	Marked  Rate `json:"marked"`
	Granted Rate `json:"granted"` // what was admitted before
}

// Load is what is in use: marks count with what they were granted, whether that comes by now
// or not, and with more if more comes.
func (b *Budget) Load() Rate { return b.Others.Plus(most(b.Marked, b.Granted)) }

// Admit reports why no more marks are admitted (EnableDbg in table 2 of the paper: only while
// all that is traced stays within what the system can take), nil if they are. want is what
// they add; see Marks.
func (b *Budget) Admit(want Rate) error {
	load := b.Load()
	switch {
	case b.Capacity.Copies == 0:
		return &BudgetError{What: "copies", Want: want.Copies, Load: load.Copies}
	case plus(load.Copies, want.Copies) > b.Capacity.Copies:
		return &BudgetError{"copies", want.Copies, load.Copies, b.Capacity.Copies}
	case b.Capacity.Bytes > 0 && plus(load.Bytes, want.Bytes) > b.Capacity.Bytes:
		return &BudgetError{"bytes of copies", want.Bytes, load.Bytes, b.Capacity.Bytes}
	}
	return nil
}

// BudgetError is a refusal: the limit that would be exceeded. All numbers are of a second.
type BudgetError struct {
	What                 string
	Want, Load, Capacity uint64
}

func (e *BudgetError) Error() string {
	if e.Capacity == 0 {
		return "no collector says how many copies it takes: say it by --most-copies of gcollect run"
	}
	return fmt.Sprintf("%d %s a second are too many: %d of %d are in use. Ask for less, end other marks, or add a collector", e.Want, e.What, e.Load, e.Capacity)
}

// What marks ask for is bounded so that no product of it overflows.
const (
	mostMarkers = 10_000
	mostMarks   = 1_000_000_000 // a second, as in documents of hosts
	mostPath    = 255
	mostKept    = 9216 + 128 // bytes of a copy
)

// Marks returns the most copies that the marks of hosts lead to: each marks at most so many
// packets a second (most in its document), each of which so many switches copy, with so many
// bytes.
func Marks(hosts, each, switches, bytes int) (Rate, error) {
	for _, v := range []struct {
		what  string
		n, to int
	}{{"hosts", hosts, mostMarkers}, {"marks a second", each, mostMarks}, {"switches on the way", switches, mostPath}, {"bytes of a copy", bytes, mostKept}} {
		if v.n < 1 || v.n > v.to {
			return Rate{}, fmt.Errorf("%d %s: between 1 and %d is possible", v.n, v.what, v.to)
		}
	}
	n := uint64(hosts) * uint64(each) * uint64(switches)
	if n > math.MaxUint64/uint64(bytes) {
		return Rate{n, math.MaxUint64}, nil
	}
	return Rate{n, n * uint64(bytes)}, nil
}

// LoadTime is over how many seconds a Meter takes the mean.
const LoadTime = 10

// Meter is how much came in each of the last seconds. The zero value is ready.
type Meter struct {
	second int64 // the last one, which is not over
	came   [LoadTime + 1]Rate
}

// Add notes a copy that comes in a second. Time that goes backwards is taken as the last one.
func (m *Meter) Add(second int64, bytes int) {
	m.advance(second)
	r := &m.came[m.second%int64(len(m.came))]
	*r = r.Plus(Rate{1, uint64(bytes)})
}

// Mean is what came in one of the last ten seconds that are over.
func (m *Meter) Mean(second int64) (sum Rate) {
	m.advance(second)
	for i, r := range m.came {
		if int64(i) != m.second%int64(len(m.came)) {
			sum = sum.Plus(r)
		}
	}
	return Rate{sum.Copies / LoadTime, sum.Bytes / LoadTime}
}

func (m *Meter) advance(second int64) {
	n := int64(len(m.came))
	for s := max(m.second, second-n) + 1; s <= second; s++ {
		m.came[s%n] = Rate{}
	}
	m.second = max(m.second, second)
}
