package live

import (
	"strings"
	"testing"

	"gswitch/dataplane"
	"gswitch/fabric/results"
	"gswitch/frame"
)

// A run is valid as long as no bound is exceeded; otherwise it says which, by
// how much, and what would help.
func TestJudge(t *testing.T) {
	const us = 1e-6
	for _, k := range []struct {
		name   string
		t      results.Timing
		why    []string
		advice string
	}{
		{name: "good", t: results.Timing{LateP99: 3 * us, StoppedShare: 0.4}},
		{name: "at the bound", t: results.Timing{LateP99: 3.25 * us, TransitP99: 3.25 * us, StoppedShare: 0.5}},
		{name: "slow", t: results.Timing{StoppedShare: 0.95}, advice: "a scale of 20000 would have taken as long: the clock of the nodes was stopped for 95 %"},
		{name: "stood", t: results.Timing{StoppedShare: 1}},
		{"late", results.Timing{LateP99: 6.5 * us}, []string{"lateness is 6.5µs, above the bound of 3.25µs (T is 13µs)"}, "4000 instead of 1000"},
		{"drops", results.Timing{RingDrops: 7}, []string{"7 frames were lost"}, "2000 instead of 1000"},
		{"slow kernel", results.Timing{TransitP99: 13 * us}, []string{"from node to node besides the emulated link is 13µs, above the bound of 3.25µs"}, "8000 instead of 1000"},
		{"slow and drops", results.Timing{RingDrops: 1, StoppedShare: 0.95}, []string{"1 frames were lost"}, "20000 instead of 1000"},
		{"all", results.Timing{LateP99: 65 * us, TransitP99: 6.5 * us, RingDrops: 1, StoppedShare: 0.95}, []string{"lateness", "lost", "node to node"}, "40000 instead of 1000"},
	} {
		v := k.t
		v.Scale, v.BaseRTT, v.Bound = 1000, 13*us, 3.25*us
		judge(&v, dataplane.Adaptive)
		if v.Valid != (k.why == nil) {
			t.Errorf("%s: valid %v, %q", k.name, v.Valid, v.Why)
		}
		why, advice := strings.Join(v.Why, "; "), strings.Join(v.Remedies, "; ")
		for _, w := range k.why {
			if !strings.Contains(why, w) {
				t.Errorf("%s: %q is not in %q", k.name, w, why)
			}
		}
		if !strings.Contains(advice, k.advice) || k.advice == "" && advice != "" {
			t.Errorf("%s: advice %q, want %q", k.name, advice, k.advice)
		}
	}
}

// What the workers counted becomes seconds of the nodes and shares; a busy
// worker gets other advice.
func TestTiming(t *testing.T) {
	e := engine(t, "star(2)", Config{Dilation: 1000, Workers: 2, Bound: 50})
	dp, err := dataplane.New(dataplane.Config{Chunks: 64, Dilation: 1000})
	if err != nil {
		t.Fatal(err)
	}
	defer dp.Stop()
	e.dp, e.clock = dp, 40
	if v := e.Timing(); v.Valid || len(v.Workers) != 0 {
		t.Errorf("before the end: %+v", v)
	}
	e.end = 3 * frame.Millisecond
	e.final = &dataplane.Stats{
		Workers: []dataplane.WorkerStats{{Name: "nodes", Pin: true, CPU: 1, Nodes: 4, Running: 1000, Busy: 800, Stopped: frame.Millisecond, StoppedMax: 2000}},
		Ports:   []dataplane.PortStats{{PortCounters: dataplane.PortCounters{RxDropped: 1, RxRingFull: 2, KickDrops: 4, TxInvalid: 8, TxDropped: 16, FillRingEmpty: 1}}},
	}
	w := &e.final.Workers[0]
	for range 90 {
		w.FrameLateness.Observe(10)
	}
	for range 9 {
		w.Lateness.Observe(200)
	}
	w.Lateness.Observe(20_000)
	w.Transit.Observe(300)
	v := e.Timing()
	near := func(a, b float64) bool { return a > 0.75*b && a < 1.3*b } // the width of a bucket
	if v.Scale != 1000 || v.Frame != 88e-9 || v.BaseRTT != 13e-6 || v.Bound != 50e-9 || v.ClockRead != 40e-9 || v.RingDrops != 31 || v.Valid {
		t.Errorf("%+v", v)
	}
	if !near(v.LateP50, 10e-9) || v.LateMax != 20e-6 || v.OverFrame != 0.1 || v.OverRTT != 0.01 {
		t.Errorf("lateness: %+v", v)
	}
	if !near(v.TransitP50, 300e-9) || !near(v.TransitP99, 300e-9) || v.TransitMax != 300e-9 {
		t.Errorf("transit: %+v", v)
	}
	if v.StoppedShare != 0.25 || v.StoppedMax != 2e-3 {
		t.Errorf("stood: %v, at once %v", v.StoppedShare, v.StoppedMax)
	}
	if len(v.Workers) != 1 || v.Workers[0].Nodes != 3 || v.Workers[0].CPU != 1 || v.Workers[0].Busy != 0.8 {
		t.Errorf("workers: %+v", v.Workers)
	}
	if advice := strings.Join(v.Remedies, "; "); !strings.Contains(advice, "fewer nodes") {
		t.Errorf("advice %q", advice)
	}
}
