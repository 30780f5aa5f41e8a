package scenario

import (
	"github.com/gswitch/gswitch/frame"
	"github.com/gswitch/gswitch/rocc"
)

// Params returns the parameters of the congestion points at a port of the
// given rate in bit/s.
func (r *RoCC) Params(rate uint64) rocc.Params {
	o := rocc.Options{Period: frame.Time(r.Period), QRef: uint32(r.QRef), QMid: uint32(r.QMid), QMax: uint32(r.QMax),
		Alpha: r.Alpha, Beta: r.Beta, FMin: uint64(r.FMin), First: rocc.Cuts[r.Cut], Regions: r.Regions}
	return o.At(rate)
}

// Flowtable says which flows are told.
func (r *RoCC) Flowtable() rocc.TableConfig {
	return rocc.TableConfig{Kind: rocc.Kinds[r.Table], Flows: r.Flows, Age: r.Age, Sample: r.Sample, Shadow: r.Shadow}
}
