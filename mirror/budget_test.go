package mirror

import (
	"errors"
	"math"
	"strings"
	"testing"
)

// More is admitted as long as all that is traced stays within what collectors take.
func TestBudget(t *testing.T) {
	const k, m = 1_000, 1_000_000
	busy := Budget{Capacity: Rate{Copies: m}, Others: Rate{Copies: 900 * k}}
	granted, used, over, narrow := busy, busy, busy, busy
	granted.Granted.Copies = 50 * k
	used.Granted.Copies, used.Marked.Copies = 50*k, 50*k
	over.Granted.Copies, over.Marked.Copies = 50*k, 80*k
	narrow.Capacity.Bytes, narrow.Others.Bytes = 100*m, 99*m
	for _, c := range []struct {
		what   string
		budget Budget
		want   Rate
		why    string // "": it is admitted
	}{
		{"0.2 of 1 Mpps, 0.9 of which are in use", busy, Rate{Copies: 200 * k}, "200000 copies a second are too many: 900000 of 1000000 are in use"},
		{"0.05 of them", busy, Rate{Copies: 50 * k}, ""},
		{"all that is left", busy, Rate{Copies: 100 * k}, ""},
		{"one more", busy, Rate{Copies: 100*k + 1}, "too many"},
		{"what was granted and is not used yet", granted, Rate{Copies: 50*k + 1}, "950000 of 1000000"},
		{"the same once it is used: it counts once", used, Rate{Copies: 50 * k}, ""},
		{"marks that exceed what they were granted", over, Rate{Copies: 21 * k}, "980000 of 1000000"},
		{"bytes, where copies are few", narrow, Rate{Copies: 10, Bytes: 2 * m}, "2000000 bytes of copies a second are too many: 99000000 of 100000000"},
		{"nobody knows what collectors take", Budget{}, Rate{Copies: 1}, "no collector says"},
		{"more than numbers can say", busy, Rate{Copies: math.MaxUint64}, "too many"},
	} {
		err := c.budget.Admit(c.want)
		var refused *BudgetError
		switch {
		case c.why == "" && err != nil, c.why != "" && (!errors.As(err, &refused) || !strings.Contains(err.Error(), c.why)):
			t.Errorf("%s: %v, want %q", c.what, err, c.why)
		}
	}
}

// Marks are at most what hosts mark, at every switch.
func TestMarksOfHosts(t *testing.T) {
	if r, err := Marks(2, 1000, 5, 200); err != nil || r != (Rate{10_000, 2_000_000}) {
		t.Errorf("%v, %v", r, err)
	}
	if r, err := Marks(mostMarkers, mostMarks, mostPath, mostKept); err != nil || r.Bytes != math.MaxUint64 {
		t.Errorf("the most: %v, %v", r, err)
	}
	for _, v := range [][4]int{{0, 1, 1, 1}, {1, 0, 1, 1}, {1, 1, 0, 1}, {1, 1, 1, 0}, {mostMarkers + 1, 1, 1, 1}, {1, mostMarks + 1, 1, 1}, {1, 1, 256, 1}, {1, 1, 1, mostKept + 1}, {-1, -1, 1, 1}} {
		if r, err := Marks(v[0], v[1], v[2], v[3]); err == nil {
			t.Errorf("%v: %v", v, r)
		}
	}
}

func TestMeter(t *testing.T) {
	var m Meter
	if got := m.Mean(1000); got != (Rate{}) {
		t.Errorf("of nothing %v", got)
	}
	for s := int64(1000); s < 1020; s++ {
		for range 30 {
			m.Add(s, 100)
		}
	}
	for _, c := range []struct {
		at   int64
		want uint64
	}{{1019, 30}, {1020, 30}, {1021, 27}, {1029, 3}, {1025, 3}, {1030, 0}, {5000, 0}} {
		if got := m.Mean(c.at); got != (Rate{c.want, c.want * 100}) {
			t.Errorf("at %d: %v, want %d copies", c.at, got, c.want)
		}
	}
	m.Add(4000, 1) // a clock that was set back
	if got := m.Mean(5001); got != (Rate{}) || m.Mean(5001+LoadTime) != (Rate{}) {
		t.Errorf("%v", got)
	}
	for range LoadTime {
		m.Add(6000, 1)
	}
	if got := m.Mean(6001); got != (Rate{1, 1}) {
		t.Errorf("%v", got)
	}
}
