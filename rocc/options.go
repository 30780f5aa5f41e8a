package rocc

import (
	"math"

	"gswitch/frame"
)

// Options are what a user may set of the parameters; zero leaves what For says.
type Options struct {
	Period           frame.Time
	QRef, QMid, QMax uint32 // bytes; a new reference moves the others in proportion
	Alpha, Beta      float64
	FMin             uint64 // bit/s
	First            FirstCut
	Regions          int
}

// At returns the parameters for a link of the given rate in bit/s.
func (o *Options) At(rate uint64) Params {
	p := For(rate)
	if o.Period > 0 {
		p.Period = o.Period
	}
	if o.QRef > 0 {
		k := float64(o.QRef) / float64(p.QRef)
		p.QRef, p.QMid, p.QMax = o.QRef, scaled(p.QMid, k), scaled(p.QMax, k)
	}
	if o.QMid > 0 {
		p.QMid = o.QMid
	}
	if o.QMax > 0 {
		p.QMax = o.QMax
	}
	if o.Alpha > 0 {
		p.Alpha, p.Beta = o.Alpha, 5*o.Alpha
	}
	if o.Beta > 0 {
		p.Beta = o.Beta
	}
	if o.FMin > 0 {
		p.FMin = uint32(min(max(1, o.FMin/p.RateUnit), math.MaxUint32))
	}
	p.First, p.Regions = o.First, o.Regions
	return p
}

func scaled(n uint32, k float64) uint32 {
	return uint32(min(math.Round(float64(n)*k), math.MaxUint32))
}

// Cuts are the names of what the first level of multiplicative decrease does.
var Cuts = map[string]FirstCut{"fmin": CutToMin, "half": CutToHalf, "eighth": CutToEighth}
