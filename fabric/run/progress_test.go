package run

import (
	"strings"
	"testing"
	"time"

	"gswitch/frame"
)

// A quarter of the work took a minute, so three more are left.
func TestReport(t *testing.T) {
	var out strings.Builder
	bars := []*progress{{name: "a", end: 100 * frame.Millisecond}, {name: "b", end: 100 * frame.Millisecond}}
	r := &reporter{w: &out, runs: bars}
	bars[0].state.Store(running)
	bars[0].set(50*frame.Millisecond, 10_000_000)
	if got := r.report(0, time.Minute); got != 10_000_000 {
		t.Errorf("%d events", got)
	}
	for _, want := range []string{"0 of 2 runs done", "2.00 M events/s", "about 3m0s left", "a 50ms of 100ms"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in %q", want, out.String())
		}
	}
	if strings.Contains(out.String(), "lateness") {
		t.Errorf("nobody was late: %q", out.String())
	}
	bars[0].ask(lateBy(3e-6))
	bars[0].ask(lateBy(9e-6)) // too soon
	out.Reset()
	r.report(10_000_000, time.Minute)
	if !strings.Contains(out.String(), "a 50ms of 100ms, p99 of lateness 3µs") {
		t.Errorf("%q", out.String())
	}
	bars[0].state.Store(finished)
	out.Reset()
	r.report(10_000_000, time.Minute)
	if !strings.Contains(out.String(), "1 of 2 runs done, 0.00 M events/s, about 1m0s left") {
		t.Errorf("%q", out.String())
	}
}

// A run that is over with its last flow has no end that could be known before.
func TestReportOfOpenRuns(t *testing.T) {
	var out strings.Builder
	bars := []*progress{{name: "a", end: 100 * frame.Millisecond}, {name: "b", end: 100 * frame.Second, open: true}}
	r := &reporter{w: &out, runs: bars}
	bars[0].state.Store(running)
	bars[0].set(50*frame.Millisecond, 10_000_000)
	r.report(0, time.Minute)
	bars[1].state.Store(running)
	bars[1].set(30*frame.Millisecond, 0)
	r.report(0, time.Minute)
	if strings.Contains(out.String(), "left") || !strings.Contains(out.String(), "b 30ms of at most 1m40s") {
		t.Errorf("%q", out.String())
	}
	// What is left when it is over has an end.
	bars[1].state.Store(finished)
	out.Reset()
	r.report(0, time.Minute)
	if !strings.Contains(out.String(), "1 of 2 runs done, 2.00 M events/s, about 20s left  a 50ms of 100ms") {
		t.Errorf("%q", out.String())
	}
}

type lateBy float64

func (l lateBy) Late() float64 { return float64(l) }
