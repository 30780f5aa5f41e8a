package rocc

import "testing"

// What a queue that is far too long does to the rate, by variant: as printed
// the least there is, a half of what it was as long as that is above the gate,
// an eighth of the largest.
func TestFirstCut(t *testing.T) {
	for _, v := range []struct {
		first FirstCut
		want  []float64 // at 600 units and above
		cuts  int
	}{
		{CutToMin, []float64{10, 10}, 1},
		{CutToHalf, []float64{2000, 1000, 500}, 3},
		{CutToEighth, []float64{500}, 1},
	} {
		p := forty
		p.First = v.first
		c, cuts := at(p, 4000, 0), 0
		for i, want := range v.want {
			f, branch := c.step(600)
			if branch == Cut {
				cuts++
			}
			if f != want {
				t.Errorf("variant %d, step %d: F = %v, want %v", v.first, i, f, want)
			}
		}
		if _, branch := c.step(600); cuts != v.cuts || branch != Tuned {
			t.Errorf("variant %d cut %d times, want %d, then took branch %d", v.first, cuts, v.cuts, branch)
		}
	}
}

// Each further region halves the gains once more, below a 64th and a 128th of
// the largest rate.
func TestMoreRegions(t *testing.T) {
	for _, v := range []struct {
		regions int
		f, want float64 // by ten units above the reference: 3 with the gains as they are
	}{
		{6, 60, -3.0 / 32}, {7, 60, -3.0 / 64}, {7, 20, -3.0 / 64}, {8, 20, -3.0 / 128}, {8, 63, -3.0 / 32}, {8, 62, -3.0 / 64}, {8, 31, -3.0 / 128},
	} {
		p := forty
		p.Regions = v.regions
		if got, _ := at(p, v.f, 260).step(260); got-v.f-v.want > 1e-3 || v.want-got+v.f > 1e-3 {
			t.Errorf("with %d regions F = %v moves by %v, want %v", v.regions, v.f, got-v.f, v.want)
		}
	}
}

// Senders get the nearest whole unit.
func TestUnitsAreRounded(t *testing.T) {
	for f, want := range map[float64]uint32{271.9375: 272, 271.5: 272, 271.4375: 271, 10: 10} {
		if got := at(forty, f, 0).Units(); got != want {
			t.Errorf("%v is sent as %d, want %d", f, got, want)
		}
	}
}
