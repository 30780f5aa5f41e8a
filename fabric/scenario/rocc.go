package scenario

import (
	"math"

	"github.com/gswitch/gswitch/frame"
	"github.com/gswitch/gswitch/rocc"
)

var roccCuts = map[string]rocc.FirstCut{"fmin": rocc.CutToMin, "half": rocc.CutToHalf, "eighth": rocc.CutToEighth}

// Params returns the parameters of the congestion points at a port of the
// given rate in bit/s.
func (r *RoCC) Params(rate uint64) rocc.Params {
	p := rocc.For(rate)
	if r.Period > 0 {
		p.Period = frame.Time(r.Period)
	}
	if r.QRef > 0 {
		k := float64(r.QRef) / float64(p.QRef)
		p.QRef, p.QMid, p.QMax = uint32(r.QRef), uint32(math.Round(float64(p.QMid)*k)), uint32(math.Round(float64(p.QMax)*k))
	}
	if r.QMid > 0 {
		p.QMid = uint32(r.QMid)
	}
	if r.QMax > 0 {
		p.QMax = uint32(r.QMax)
	}
	if r.Alpha > 0 {
		p.Alpha, p.Beta = r.Alpha, 5*r.Alpha
	}
	if r.Beta > 0 {
		p.Beta = r.Beta
	}
	if r.FMin > 0 {
		p.FMin = uint32(max(1, uint64(r.FMin)/p.RateUnit))
	}
	p.First, p.Regions = roccCuts[r.Cut], r.Regions
	return p
}
