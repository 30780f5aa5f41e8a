package run

import (
	"slices"
	"testing"

	"gswitch/fabric/flows"
	"gswitch/fabric/results"
	"gswitch/fabric/scenario"
)

// Finished runs are taken over, those that did not keep time are run again.
func TestTakenOver(t *testing.T) {
	o := Options{Jobs: 1, Out: t.TempDir(), Program: "p"}
	f := execute(t, incast, o)
	for i, g := range []*results.Timing{{Valid: true}, {Valid: false}, nil, nil} {
		f.Runs[i].Timing = g
	}
	flows.Slots.Set(&f.Runs[2], []flows.Slot{{Slot: 1, Length: 2, Switch: "s1", Link: "s1>h9", Flow: "a", Packets: 3, Bytes: 4, Exact: true}})
	if err := results.Save(o.Out, f); err != nil {
		t.Fatal(err)
	}
	st, err := newStore(load(t, incast, scenario.Options{}), &o, &host{o: &o})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []bool{true, false, true, true} {
		if (st.runs[i] != nil) != want {
			t.Errorf("run %d is taken over: %v", i, !want)
		}
	}
	if got := flows.Slots.Of(st.runs[2]); !slices.Equal(got, flows.Slots.Of(&f.Runs[2])) || len(got) != 1 {
		t.Errorf("slots of flows are not taken over: %+v", got)
	}
}
