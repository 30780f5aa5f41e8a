package gswitch

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gswitch/control/api"
)

// The table has a line for each port, pauses of all classes together, and the
// classes that are being paused; without a crossbar it says how to have one.
func TestPrintCrossbar(t *testing.T) {
	var b strings.Builder
	printCrossbar(&b, &api.Crossbar{Ports: []*api.CrossbarPort{
		{Switch: "s1", Port: "p1", IngressBytes: 26000, IngressPeak: 30000, RefusedFrames: 2, RefusedLossyFrames: 5, Shunned: true,
			Classes: []*api.CrossbarClass{{Class: 0, Pausing: true, Pauses: 3}, {Class: 2, Pauses: 4}, {Class: 7, Pausing: true, Pauses: 1}}},
		{Switch: "s1", Port: "p2", EgressBytes: 4000, EgressPeak: 131072, CrossedFrames: 4, CrossedBytes: 4000, SkippedFrames: 1},
	}})
	const want = `
PORT   INGRESS      PEAK    EGRESS     PEAK  CROSSED  SKIPPED  REFUSED  LOSSY REFUSED  PAUSES  PAUSING  DISABLED
p1    25.4 KiB  29.3 KiB       0 B      0 B        0        0        2              5       8  0 7      yes
p2         0 B       0 B  3.91 KiB  128 KiB        4        1        0              0       0  -        -
`
	if diff := cmp.Diff(strings.TrimPrefix(want, "\n"), b.String()); diff != "" {
		t.Error(diff)
	}
	b.Reset()
	printCrossbar(&b, &api.Crossbar{})
	if got := b.String(); got != "no switch has a crossbar: crossbar of the configuration turns it on\n" {
		t.Errorf("%q", got)
	}
}
