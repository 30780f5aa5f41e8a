package scenario

import (
	"strings"
	"testing"
)

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
