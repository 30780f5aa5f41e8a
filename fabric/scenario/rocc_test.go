package scenario

import (
	"strings"
	"testing"

	"gswitch/rocc"
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

// A queue that drops before it has the length that is held is warned of, where
// the limit counts.
func TestCrampedQueues(t *testing.T) {
	for text, want := range map[string]bool{
		"switch: {rocc: {enabled: true}, buffer: {queue_limit: 100KB}}\n":                                     true,
		"switch: {rocc: {enabled: true, qref: 90KB}, buffer: {queue_limit: 100KB}}\n":                         false,
		"switch: {rocc: {enabled: true}, buffer: {queue_limit: 200KB}}\n":                                     false,
		"switch: {buffer: {queue_limit: 100KB}}\n":                                                            false,
		"switch: {rocc: {enabled: true}, buffer: {queue_limit: 100KB}}\npfc: {enabled: true}\n":               false,
		"switch: {rocc: {enabled: true, classes: [1]}, buffer: {queue_limit: 100KB}}\npfc: {enabled: true}\n": true,
	} {
		w := parse(t, small+text, Options{}).Runs[0].Doc.Warnings()
		if got := len(w) == 1 && strings.HasPrefix(w[0], "switch.buffer.queue_limit: queues are to be held at 150kB"); got != want || !want && len(w) > 0 {
			t.Errorf("%q: %v", text, w)
		}
	}
}
