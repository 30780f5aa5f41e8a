package rocc

import "gswitch/frame"

// basePeriod is that of the published parameters (section 3.5). Slower ports
// have longer ones, as For stretches time with the rate.
const basePeriod = 40 * frame.Microsecond

// maxStretch is what four bits hold: periods up to 1.3 s.
const maxStretch = 15

// StretchOf returns how often the published period must be doubled to be no
// shorter than the given one. Messages carry it beside their version, so that
// senders wait in proportion to how often they can be known.
func StretchOf(period frame.Time) uint8 {
	k := uint8(0)
	for k < maxStretch && basePeriod<<k < period {
		k++
	}
	return k
}

// Period returns the longest time between two updates of the congestion point:
// its period, rounded up.
func (n *Notice) Period() frame.Time { return basePeriod << (n.Stretch & maxStretch) }

// Period is that of a Notice.
func (r *Reading) Period() frame.Time { return basePeriod << (r.Stretch & maxStretch) }
