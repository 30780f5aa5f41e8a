package scenario

import (
	"math"

	"gswitch/fabric"
	"gswitch/units"
)

// largest is the limit of a threshold or headroom, which switches hold in 32 bits. It is
// also the range of the keys that are passed on unchanged.
const largest = math.MaxUint32

// fits rejects values that are in range in the document but become too large at a link.
func (v *validator) fits() {
	e, b := &v.doc.Switch.ECN, &v.doc.Switch.Buffer
	ref := units.Size(0)
	if e.PI != nil {
		ref = e.PI.Ref
	}
	check := func(key string, l *fabric.Link, bytes float64) bool {
		if bytes <= largest {
			return true
		}
		v.sec.Fail(key, "makes %.4g bytes of the link of %v between %s and %s; at most %v are possible", bytes, units.Rate(l.Rate), v.t.Nodes[l.A.Node].Name, v.t.Nodes[l.B.Node].Name, units.Size(largest))
		return false
	}
	for i := range v.t.Links {
		l := &v.t.Links[i]
		if e.At > 0 && !check("switch.ecn.at", l, float64(max(e.KMin, e.KMax, ref))*float64(l.Rate)/float64(e.At)) {
			break
		}
		if !check("switch.buffer.headroom_delays", l, float64(l.Rate)/8*l.Delay.Seconds()*b.HeadroomDelays) {
			break
		}
	}
}
