package clocks

import (
	"math"
	"slices"
	"testing"

	"gswitch/fabric/clock"
	"gswitch/fabric/measure"
	"gswitch/fabric/results"
	"gswitch/frame"
)

const us = frame.Microsecond

// A gap counts where it has ended, and by its length, unless the node was cut off at a look
// since its last message: before the gap, in it, or when the look found it.
func TestImpact(t *testing.T) {
	rec := measure.New(measure.Config{End: 100 * us})
	c := newReadings(rec, "")
	look := func(v ...reading) { c.sample(5*us, 1, v) }
	look(reading{Valid: 1}, reading{Valid: 1, Host: true}, reading{Valid: 1}, reading{Valid: 1, Cut: true})
	look(reading{Valid: 1}, reading{Valid: 1, Host: true}, reading{Valid: 1, Cut: true}, reading{Valid: 1})
	look(reading{Valid: 2, Gaps: 1, Impacted: 270}, reading{Valid: 3, Gaps: 1, Impacted: 365, Host: true}, reading{Valid: 2, Gaps: 1, Impacted: 9000}, reading{Valid: 2, Gaps: 1, Impacted: 8000})
	look(reading{Valid: 3, Gaps: 1, Impacted: 270}, reading{Valid: 9, Gaps: 1, Impacted: 365, Host: true}, reading{Valid: 3, Gaps: 2, Impacted: 9300}, reading{Valid: 3, Gaps: 1, Impacted: 8000})
	rec.Close(100 * us)
	run := results.Run{Values: map[string]float64{}, Series: []results.Series{{Name: "queue"}}}
	c.result(&run)
	for k, want := range map[string]float64{"clock_working_gaps_total": 2, "clock_working_impacted_seconds_total": 570e-9, "host_clock_working_gaps_total": 1, "host_clock_working_impacted_seconds_total": 365e-9} {
		if got := run.Values[k]; math.Abs(got-want) > 1e-15 {
			t.Errorf("%s = %v, want %v", k, got, want)
		}
	}
}

// A bound is held against the truth wherever a clock says one: before the warm-up
// and at nodes that are cut off, too, which nothing else counts.
func TestSample(t *testing.T) {
	rec := measure.New(measure.Config{Warmup: 10 * us, End: 100 * us, Windows: []measure.Window{{Name: "late", From: 50 * us}}})
	c := newReadings(rec, "s3")
	c.sample(5*us, 2, []reading{{Known: true, Eps: 900, Error: 901, Depth: 1}, {}})
	c.sample(20*us, 1, []reading{{Known: true, Eps: 20, Error: 20, Depth: 1, Watched: true, SinceMessage: 9, Turned: true}, {Known: true, SinceMessage: 99, Eps: 999, Error: 1000, Cut: true}, {}})
	c.sample(60*us, 1, []reading{{Known: true, Eps: 40, Error: 2, Depth: 1, Watched: true, SinceMessage: 7, Turned: true}, {Known: true, Eps: 70, Depth: 99, SinceMessage: 8}})
	rec.Close(100 * us)
	c.sample(110*us, 9, []reading{{Known: true, Eps: 1, Error: 2}})
	run := results.Run{Values: map[string]float64{}, Series: []results.Series{{Name: "queue"}}}
	c.result(&run)
	for k, want := range map[string]float64{"clock_samples_total": 5, "clock_broken_total": 2, "clock_unknown_total": 1, "clock_roots_max": 1, "clock_eps_max_seconds": 70e-9,
		"late.clock_eps_mean_seconds": 55e-9, "clock_watched_eps_min_seconds": 20e-9, "clock_watched_eps_max_seconds": 40e-9, "clock_error_max_seconds": 20e-9,
		"clock_idle_max_seconds": 9e-9, "late.clock_idle_max_seconds": 8e-9, "clock_quiet_max_seconds": 9e-9, "late.clock_quiet_max_seconds": 8e-9, "clock_found_max_seconds": 9e-9, "clock_found_mean_seconds": 8e-9, "late.clock_found_max_seconds": 7e-9,
		"clock_depth1_eps_max_seconds": 40e-9, "clock_depth12_eps_max_seconds": 70e-9} {
		if got := run.Values[k]; math.Abs(got-want) > 1e-12 {
			t.Errorf("%s = %v, want %v", k, got, want)
		}
	}
	if len(run.Series) != 2 || run.Series[0].Name != "clock_eps" || run.Series[0].Object != "s3" || len(run.Series[0].V) != 2 {
		t.Errorf("series %+v", run.Series)
	}
}

// Whatever is seen of clocks has a documented key, and the other way round.
func TestValuesAreKnown(t *testing.T) {
	rec := measure.New(measure.Config{End: 100 * us, Windows: []measure.Window{{Name: "w"}}})
	c := newReadings(rec, "s3")
	for d := range depths + 1 {
		c.sample(50*us, 1, []reading{{Known: true, Eps: 10, Error: 3, Depth: d, Watched: true, Turned: true}})
	}
	run := results.Run{Values: map[string]float64{}}
	if err := (&clockSet{seen: c, keeper: &clock.Keeper{}}).finish(nil, &run); err != nil {
		t.Fatal(err)
	}
	known := measure.Known(nil, nil, []string{"w"}, nil)
	for name := range run.Values {
		if !slices.Contains(known, name) {
			t.Errorf("%s is measured, but not documented", name)
		}
	}
	for i := range values {
		for _, name := range values[i].Names() {
			if _, ok := run.Values[name]; !ok {
				t.Errorf("%s is documented, but was not measured", name)
			}
		}
	}
}
