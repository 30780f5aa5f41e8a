package control

import (
	"strings"
	"testing"

	"gswitch/feature"
	"gswitch/frame"
	"gswitch/replay"
	"gswitch/vswitch"
)

// A call that a feature refuses, or that a switch has no feature for, is counted: the record
// says no more of it than that it was made.
func TestReplayCountsRefusedCalls(t *testing.T) {
	for clock, want := range map[string]struct {
		n   int
		why string
	}{
		"clock: {controlled: true}, ": {0, ""},
		"clock: {root: true}, ":       {2, "controlled"},
		"":                            {2, "the switch has no clock in its configuration"},
	} {
		h := replay.Header{Build: "test", Kind: "switch", Name: "s", Chunk: 2048, Chunks: 64, Headroom: frame.DefaultHeadroom, Start: 1,
			Document: "version: 1\nswitches: [{name: s, " + clock + "ports: [{interface: a}, {interface: b}]}]\n", Ports: []replay.Port{{Name: "a"}, {Name: "b", Number: 1}}}
		m, err := Rebuild(&h, frame.NewPool(frame.MustArena(h.Chunks, h.Chunk, h.Headroom)))
		if err != nil {
			t.Fatal(err)
		}
		call := &vswitch.CallFeature{Feature: "clock", Call: &feature.TakePlan{ClockPlan: feature.ClockPlan{Epoch: 1, Root: true, Parent: -1, Second: -1}}}
		for i := range 2 {
			if err := m.Do(frame.Time(i), call.Encode(nil)); err != nil {
				t.Errorf("%q: %v", clock, err)
			}
		}
		if n, why := m.(*Replayed).Refusals(); n != want.n || (why == nil) != (n == 0) || why != nil && !strings.Contains(why.Error(), want.why) {
			t.Errorf("%q: %d calls are refused: %v", clock, n, why)
		}
	}
}
