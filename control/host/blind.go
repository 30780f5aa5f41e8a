package host

import (
	"fmt"

	"gswitch/cc"
	"gswitch/feature"
	"gswitch/hostnic"
)

// blind warns of congestion control that needs telemetry where no switch on the
// way writes any: it sends at the rate of the link then. "" if all is well.
func blind(congestion string, n *hostnic.Counts) string {
	in, known := cc.Lookup(congestion)
	if n.Blind == 0 || !known || in.Needs&feature.Telemetry == 0 {
		return ""
	}
	return fmt.Sprintf("%s needs telemetry, and %d of %d acknowledgements brought that of no switch: those flows send at the rate of the link; let the switches write it (telemetry: {int: true} and rates of their ports, links as here), or take a congestion control that does without (gfabric cc list)",
		congestion, n.Blind, n.AcksReceived+n.NaksReceived)
}
