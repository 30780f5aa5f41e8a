package fit

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"gswitch/fabric/results"
)

// Whatever the smallest scale is that a machine can do, the search comes within
// a fifth of it, tries no scale twice, and recommends none that fails.
func TestSearch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		least, from, most := rapid.IntRange(1, 20_000).Draw(t, "least"), rapid.IntRange(0, 5000).Draw(t, "from"), 100_000
		seen := map[int]bool{}
		r, err := Search(from, most, func(scale int) (Try, error) {
			if seen[scale] {
				t.Fatalf("%d is tried twice", scale)
			}
			seen[scale] = true
			return Try{Valid: scale >= least}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if r.Scale < least || float64(r.Scale) > fine*float64(least)+1 {
			t.Fatalf("found %d, want %d or a little more; %+v", r.Scale, least, r.Tries)
		}
		if r.Quickest != r.Scale {
			t.Fatalf("no clock stopped, and %d took less time than %d", r.Quickest, r.Scale)
		}
		if r.Use < r.Scale || r.Use > 2*r.Scale {
			t.Fatalf("%d is recommended for %d", r.Use, r.Scale)
		}
		if n := len(r.Tries); n > 26 {
			t.Fatalf("%d tries", n)
		}
	})
}

func TestSearchFindsNone(t *testing.T) {
	r, err := Search(8, 100, func(int) (Try, error) { return Try{}, nil })
	if err != nil || r.Scale != 0 || r.Tries[len(r.Tries)-1].Scale != 100 {
		t.Errorf("%+v, %v", r, err)
	}
	var b bytes.Buffer
	if err := r.Text(&b); err != nil || !strings.Contains(b.String(), "keeps time at none") {
		t.Errorf("%s, %v", b.String(), err)
	}
	broken := errors.New("broken")
	if _, err := Search(8, 100, func(int) (Try, error) { return Try{}, broken }); !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
}

// The latest run stands for a try, and one that is not valid for all.
func TestAdd(t *testing.T) {
	var try Try
	on := []bool{
		try.Add("a", &results.Timing{Valid: true, LateP99: 1e-6, Bound: 2e-6, RingDrops: 1}),
		try.Add("b", &results.Timing{Valid: true, LateP99: 2e-6, Bound: 8e-6}), // later, but it may be
	}
	var other Try
	other.Add("b", &results.Timing{Valid: true, LateP99: 2e-6, Bound: 8e-6})
	if other.Add("a", &results.Timing{Valid: true, LateP99: 1e-6, Bound: 2e-6}); other.Run != "a" {
		t.Errorf("%+v", other)
	}
	if !on[0] || !on[1] || !try.Valid || try.Run != "a" || try.RingDrops != 1 {
		t.Errorf("%v %+v", on, try)
	}
	if try.Add("c", &results.Timing{LateP99: 1e-7, Bound: 2e-6, Why: []string{"drops"}}) || try.Valid || try.Run != "c" || try.Why[0] != "drops" {
		t.Errorf("%+v", try)
	}
}

// A scale at which the clock was mostly stopped is not recommended: one at which it
// hardly stands takes as long.
func TestClockThatStands(t *testing.T) {
	for _, c := range []struct {
		stood     float64
		pace, use int
		stands    bool
	}{{0, 1, 1, false}, {0.5, 2, 1, false}, {0.984, 63, 95, true}, {1, 1, 1, false}} {
		r, err := Search(4, 1000, func(scale int) (Try, error) {
			v := Try{}
			v.Add("a", &results.Timing{Valid: true, LateP99: 1, Bound: 2, StoppedShare: c.stood})
			v.Add("b", &results.Timing{Valid: true, LateP99: 1, Bound: 2, StoppedShare: c.stood / 2})
			return v, nil
		})
		if err != nil || r.Scale != 1 || r.Pace != c.pace || r.Use != c.use || r.stands() != c.stands {
			t.Errorf("stood %v: %+v, %v; want pace %d, use %d", c.stood, r, err, c.pace, c.use)
		}
	}
}

// What frames take in the kernel ranks a run as lateness does.
func TestAddRanksTransit(t *testing.T) {
	var try Try
	try.Add("late", &results.Timing{Valid: true, LateP99: 2e-6, Bound: 4e-6, StoppedShare: 0.5})
	try.Add("slow kernel", &results.Timing{Valid: true, LateP99: 1e-6, TransitP99: 3e-6, Bound: 4e-6, StoppedShare: 0.2})
	try.Add("neither", &results.Timing{Valid: true, LateP99: 1e-6, TransitP99: 2.5e-6, Bound: 4e-6})
	if try.Run != "slow kernel" || try.Transit != 3e-6 || try.LateP99 != 1e-6 || try.Stopped != 0.5 {
		t.Errorf("%+v", try)
	}
	var b bytes.Buffer
	r := Result{Scale: 1, Use: 2, Command: "gfabric run x.yaml", Tries: []Try{try}}
	if err := r.Text(&b); err != nil || !strings.HasPrefix(b.String(), "recommended, with room to spare: --scale 2\n  gfabric run x.yaml\n") || !strings.Contains(b.String(), "TRANSIT P99") || !strings.Contains(b.String(), "3us") || !strings.Contains(b.String(), "50 %") {
		t.Errorf("%s, %v", b.String(), err)
	}
}

// Where every scale is valid since the clock stands, the one that takes the
// least real time is recommended.
func TestQuickest(t *testing.T) {
	const needs = 512 // real seconds for one of the nodes, whatever the scale
	r, err := Search(64, 100_000, func(scale int) (Try, error) {
		return Try{Scale: scale, Valid: true, Stopped: max(0, 1-float64(scale)/needs)}, nil
	})
	if err != nil || r.Scale != 1 || r.Quickest != 64 || r.Pace != needs || r.Use != 770 {
		t.Errorf("all take the same: %+v, %v", r, err)
	}
	for _, k := range []struct {
		name  string
		tries []Try
		want  int
	}{
		{"none", nil, 0},
		{"none valid", []Try{{Scale: 8}}, 0},
		{"no clock stands", []Try{{Scale: 200, Valid: true}, {Scale: 100, Valid: true}, {Scale: 50}}, 100},
		{"the smallest is slowest", []Try{{Scale: 400, Valid: true}, {Scale: 100, Valid: true, Stopped: 0.9}, {Scale: 200, Valid: true, Stopped: 0.55}}, 400},
		{"alike", []Try{{Scale: 400, Valid: true, Stopped: 0.05}, {Scale: 200, Valid: true, Stopped: 0.5}}, 400},
		{"they only stood", []Try{{Scale: 4, Valid: true, Stopped: 1}, {Scale: 8, Valid: true, Stopped: 1}}, 0},
	} {
		if got := quickest(k.tries); got != k.want {
			t.Errorf("%s: %d, want %d", k.name, got, k.want)
		}
	}
}
