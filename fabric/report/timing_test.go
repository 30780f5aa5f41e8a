package report

import (
	"bytes"
	"strings"
	"testing"

	"gswitch/fabric/goldentest"
	"gswitch/fabric/results"
)

// live is small on real frames: the first run kept time, the second did not.
func live() *results.File {
	f := small()
	for i := range f.Runs {
		r := &f.Runs[i]
		r.Engine, r.Digest = "netns", ""
		r.Values["fct_p99_seconds"], r.Values["goodput_bps"] = 12e-6, 10e9
		r.Timing = &results.Timing{Scale: 1000, Valid: i == 0, BaseRTT: 8e-6, Frame: 84e-9, LateP50: 10e-9, LateP99: 1.5e-6, LateMax: 9e-6, OverFrame: 0.2, OverRTT: 0.001,
			TransitP50: 5e-9, TransitP99: 40e-9, TransitMax: 3e-6,
			Bound: 2e-6, ClockRead: 50e-9, RingDrops: 0, Workers: []results.Worker{{Name: "hosts", CPU: -1, Poll: "adaptive", Nodes: 3, Busy: 0.5, LateP50: 10e-9, LateP99: 1.5e-6, LateMax: 9e-6}}}
	}
	t := f.Runs[1].Timing
	t.LateP99, t.RingDrops = 4e-6, 7
	t.Why, t.Remedies = []string{"lateness p99 is 4 µs, more than 2 µs"}, []string{"a larger scale", "fewer nodes"}
	return f
}

func TestTimingGolden(t *testing.T) {
	var w bytes.Buffer
	if err := Text(&w, live(), TextOptions{}); err != nil {
		t.Fatal(err)
	}
	goldentest.Compare(t, "live.txt", w.String())
	w.Reset()
	if err := HTML(&w, live()); err != nil {
		t.Fatal(err)
	}
	goldentest.Compare(t, "live.html", w.String())
}

// A run that did not keep time is marked before its numbers, and one in
// virtual time has nothing to report of it.
func TestInvalidIsLoud(t *testing.T) {
	var text, page bytes.Buffer
	if err := Text(&text, live(), TextOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := HTML(&page, live()); err != nil {
		t.Fatal(err)
	}
	for _, out := range []string{text.String(), page.String()} {
		mark, numbers := strings.Index(out, "two is INVALID"), strings.Index(out, "10 Gb/s")
		if mark < 0 || mark > numbers {
			t.Errorf("the mark is at %d, the first numbers at %d", mark, numbers)
		}
		for _, want := range []string{"larger scale", "fewer nodes", "raw"} {
			if !strings.Contains(out, want) {
				t.Errorf("%q is missing", want)
			}
		}
	}
	text.Reset()
	if err := Text(&text, small(), TextOptions{}); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(text.String(), "late p50") {
		t.Error("virtual time is never late")
	}
}

// Virtual time and real frames stand in every drawing of one page.
func TestBeside(t *testing.T) {
	f := Beside(small(), live())
	var names []string
	for i := range f.Runs {
		names = append(names, f.Runs[i].Name)
	}
	if got, want := strings.Join(names, "|"), "one, sim|one, netns|two, sim|two, netns"; got != want {
		t.Errorf("runs %s, want %s", got, want)
	}
	var w bytes.Buffer
	if err := HTML(&w, f); err != nil {
		t.Fatal(err)
	}
	if strings.Count(w.String(), "one, netns") < 3 {
		t.Error("real frames are not drawn")
	}
	if v := newDesign(f.Runs).series(); len(v) != 1 || len(v[0].Figures) != 2 || len(v[0].Figures[0].legend) != 2 {
		t.Errorf("over time: %d quantities, of the first %d drawings, want one for each run on both engines", len(v), len(v[0].Figures))
	}
	if v := newDesign(small().Runs).series(); len(v[0].Figures) != 2 || v[0].Figures[0].legend != nil {
		t.Errorf("over time, without real frames: %d drawings", len(v[0].Figures))
	}
}
