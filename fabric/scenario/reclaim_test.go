package scenario

import (
	"strings"
	"testing"

	escapepoint "gswitch/escape/point"
)

// Tokens of Escape are out for as long as the slowest link between switches needs;
// a shorter time is warned of.
func TestReclaimFollowsTheLinks(t *testing.T) {
	doc := func(rate, reclaim string) string {
		return "version: 1\ntopology: {generate: \"ring(3, 1)\", classes: {host: {rate: 40Gbps}, fabric: {rate: " + rate + "}}}\npfc: {enabled: true}\n" +
			"switch: {escape: {enabled: true" + reclaim + "}}\nworkload: [{kind: saturate, from: [h1], to: [h2], size: 1MB}]\nduration: 1ms\n"
	}
	for rate, want := range map[string]int64{"40Gbps": 100_000, "10Mbps": 2 * 64 * 1100 * 8 * 100} {
		d := parse(t, doc(rate, ""), Options{}).Runs[0].Doc
		if got := int64(d.Wholes()[0].Section.(*escapepoint.Virtual).Reclaim); got != want {
			t.Errorf("%s: %d ns, want %d", rate, got, want)
		}
		if w := d.Warnings(); len(w) > 0 {
			t.Errorf("%s: %v", rate, w)
		}
	}
	w := parse(t, doc("10Mbps", ", reclaim: 5ms"), Options{}).Runs[0].Doc.Warnings()
	if len(w) != 1 || !strings.Contains(w[0], "switch.escape.reclaim: tokens count as lost after 5ms") {
		t.Error(w)
	}
}
