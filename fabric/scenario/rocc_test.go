package scenario

import (
	"testing"

	"github.com/gswitch/gswitch/rocc"
)

// Scenarios and switches have the same default of the table: each leaves it to rocc.
func TestOneDefaultTable(t *testing.T) {
	p := rocc.For(100e9)
	for kind := range rocc.Kinds {
		r := &RoCC{Table: kind}
		if got, want := r.Flowtable().With(&p), (rocc.TableConfig{Kind: rocc.Kinds[kind]}).With(&p); got != want {
			t.Errorf("%s: %+v, want %+v", kind, got, want)
		}
	}
	if got := (&RoCC{Table: "queue"}).Flowtable().With(&p).Flows; got != rocc.DefaultFlows {
		t.Errorf("%d flows", got)
	}
}
