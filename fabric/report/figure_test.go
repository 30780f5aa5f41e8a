package report

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gonum.org/v1/plot/plotter"

	"gswitch/fabric/goldentest"
	"gswitch/fabric/results"
)

// swept are made-up runs of two variants at three loads with so many seeds.
func swept(seeds int) []results.Run {
	var runs []results.Run
	for _, variant := range []string{"hpcc", "dcqcn"} {
		for _, load := range []string{"0.3", "0.5", "0.7"} {
			for seed := range seeds {
				v := float64(len(variant)) * (1 + float64(seed)/10)
				runs = append(runs, results.Run{Name: variant + ", load=" + load, Params: map[string]string{"load": load}, Engine: "sim", Seed: uint64(seed + 1),
					Values: map[string]float64{"slowdown_mean": v}})
			}
		}
	}
	return runs
}

// A bar is the mean of one variant at one value of the sweep, over its seeds.
func TestBarsAreOfOneVariant(t *testing.T) {
	d := newDesign(swept(3))
	if d.axis != "load" || !slices.Equal(d.groups, []string{"0.3", "0.5", "0.7"}) || !slices.Equal(d.kinds, []string{"hpcc", "dcqcn"}) {
		t.Fatalf("along %s are %v, of kinds %v", d.axis, d.groups, d.kinds)
	}
	f := d.sweeps().Figures[0]
	var got []string
	for _, p := range f.bars {
		got = append(got, strconv.FormatFloat(p.v, 'g', 4, 64))
	}
	if want := []string{"4.4", "5.5", "4.4", "5.5", "4.4", "5.5"}; !slices.Equal(got, want) {
		t.Errorf("bars at %v, want %v", got, want)
	}
	if len(f.legend) != 2 || f.legend[0].name != "hpcc" || f.legend[0].look.color == f.legend[1].look.color {
		t.Errorf("legend %v", f.legend)
	}
}

// Runs that differ in more than the seed never look alike in one drawing, and
// each drawing of several has a legend that names them.
func TestLooksDistinguishRuns(t *testing.T) {
	for _, names := range [][]string{names("variant %d", 3), names("variant %d", 9), names("variant %d", 40), names("rate=%dGbps", 12)} {
		var runs []results.Run
		for i, name := range names {
			r := results.Run{Name: name, Seed: 1, CDFs: []results.CDF{results.NewCDF("slowdown", "", []float64{1, float64(i + 2)})}}
			if key, value, ok := strings.Cut(name, "="); ok {
				r.Params = map[string]string{key: value}
			}
			runs = append(runs, r, r)
			runs[len(runs)-1].Seed = 2
		}
		d := newDesign(runs)
		drawn := 0
		for _, f := range d.facets {
			drawn += len(f.runs)
			if len(f.runs) > 4*togetherRuns {
				t.Errorf("%s: %d runs in a drawing", names[0], len(f.runs))
			}
			looks := map[string]string{}
			for _, i := range f.runs {
				key := fmt.Sprint(d.look[i])
				if other, ok := looks[key]; ok && other != runs[i].Name {
					t.Errorf("%s and %s look alike", other, runs[i].Name)
				}
				looks[key] = runs[i].Name
				if !slices.ContainsFunc(f.legend, func(e entry) bool { return e.name == runs[i].Name && fmt.Sprint(e.look) == key }) {
					t.Errorf("no legend names %s", runs[i].Name)
				}
			}
		}
		if drawn != len(runs) {
			t.Errorf("%d of %d runs are drawn", drawn, len(runs))
		}
	}
}

func names(format string, n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprintf(format, i+1))
	}
	return all
}

// Eight flows give no p99.9, and no p95.
func TestPercentilesNeedFlows(t *testing.T) {
	r := &results.Run{Values: map[string]float64{"flows_total": 8, "mice.flows_total": 120, "mice.flows_unfinished_total": 20}}
	for name, want := range map[string]bool{
		"slowdown_p50": true, "slowdown_p95": false, "fct_p99.9_seconds": false, "slowdown_max": true, "queue_p99.9_bytes": true, "jain_index": true,
		"mice.fct_p99_seconds": true, "mice.slowdown_p99.9": false, "other.slowdown_p99": true,
	} {
		if got := enoughFlows(r, name); got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	b := results.Buckets([]results.Flow{{Bytes: 10, FCT: 1, Slowdown: 1}, {Bytes: 10, FCT: 1, Slowdown: 9}}, []uint64{100})
	run := &results.Run{Buckets: b}
	if got := bucketValue(run, "<= 100", 99); got != "-" {
		t.Errorf("p99 of two flows is %s", got)
	}
	if got := bucketValue(run, "<= 100", 50); got == "-" {
		t.Error("there is no p50 of two flows")
	}
}

// A tail ends at the largest share below one that the sample has.
func TestTailEnds(t *testing.T) {
	ten := results.NewCDF("slowdown", "", []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10})
	d := newDesign([]results.Run{{Name: "a", CDFs: []results.CDF{ten}}})
	figures := d.cdfFigures("slowdown", 0)
	if len(figures) != 2 || figures[1].x.hi >= 10 {
		t.Errorf("the tail of ten observations goes to %v", figures[1].x.hi)
	}
	few := results.NewCDF("slowdown", "", []float64{1, 2, 3})
	d = newDesign([]results.Run{{Name: "a", CDFs: []results.CDF{few}}})
	if figures := d.cdfFigures("slowdown", 0); len(figures) != 1 {
		t.Error("three observations have a tail")
	}
}

// A step has no slopes; a mean holds over the time before it.
func TestCorners(t *testing.T) {
	x, y := []float64{1, 2, 3}, []float64{0, 10, 5}
	for shape, want := range map[string]plotter.XYs{
		results.ShapeStep: {{X: 1, Y: 0}, {X: 2, Y: 0}, {X: 2, Y: 10}, {X: 3, Y: 10}, {X: 3, Y: 5}},
		results.ShapeMean: {{X: 0, Y: 0}, {X: 1, Y: 0}, {X: 1, Y: 10}, {X: 2, Y: 10}, {X: 2, Y: 5}, {X: 3, Y: 5}},
		results.ShapeLine: {{X: 1, Y: 0}, {X: 2, Y: 10}, {X: 3, Y: 5}},
	} {
		if got := corners(x, y, shape, 0); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", shape, got, want)
		}
	}
}

// One picture of each kind, as its file has it. A change of looks shows here:
// look at the new ones before they are committed.
func TestPictures(t *testing.T) {
	f := synthetic([]string{"0.3", "0.5", "0.7"}, "hpcc", "dcqcn", "timely")
	seeds := newDesign(swept(5)).sweeps().Figures[0]
	figures := append(Figures(f), seeds)
	seeds.name = "seeds"
	for _, name := range []string{"size-p50-load-0.3", "cdf-slowdown-load-0.3", "cdf-slowdown-load-0.3-tail", "bars-slowdown_p99", "time-goodput-hpcc-load-0.3", "seeds"} {
		i := slices.IndexFunc(figures, func(f *figure) bool { return f.name == name })
		if i < 0 {
			t.Fatalf("there is no %s among %d figures", name, len(figures))
		}
		var w bytes.Buffer
		if err := figures[i].SVG(&w); err != nil {
			t.Fatal(err)
		}
		goldentest.Compare(t, "figures/"+name+".svg", w.String())
		// However wide the letters of a viewer are, none runs into what stands beside it.
		if texts, wide := strings.Count(w.String(), "<text "), strings.Count(w.String(), " textLength="); texts == 0 || texts != wide {
			t.Errorf("%s: of %d texts %d say how wide they are", name, texts, wide)
		}
		w.Reset()
		if err := figures[i].PDF(&w); err != nil || !bytes.HasPrefix(w.Bytes(), []byte("%PDF-")) || !bytes.Contains(w.Bytes(), []byte("%%EOF")) {
			t.Errorf("%s: %v, a PDF of %d bytes", name, err, w.Len())
		}
	}
}
