package host

import (
	"fmt"

	"gswitch/cc"
	"gswitch/feature"
	"gswitch/hostnic"
)

// blind warns about congestion control that needs telemetry when no switch on the path
// writes any: it then sends at the rate of the link. It returns "" if there is no
// problem.
func blind(congestion string, n *hostnic.Counts) string {
	in, known := cc.Lookup(congestion)
	if n.Blind == 0 || !known || in.Needs&feature.Telemetry == 0 {
		return ""
	}
	return fmt.Sprintf("%s needs telemetry, and %d of %d acknowledgements brought that of no switch: those flows send at the rate of the link; let the switches write it (telemetry: {int: true} and rates of their ports, links as here), or take a congestion control that does without (gfabric cc list)",
		congestion, n.Blind, n.AcksReceived+n.NaksReceived)
}
