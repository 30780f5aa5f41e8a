package scenario

import (
	"fmt"
	"slices"

	"gswitch/frame"
	"gswitch/rocc"
	"gswitch/units"
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

// cramped tells of congestion points whose queue drops before it is as long as
// they want it, so that the fair rate only rises; "" if there are none.
func (d *Document) cramped() string {
	r, limit := &d.Switch.RoCC, d.Switch.Buffer.QueueLimit
	if !r.Enabled || limit == 0 {
		return ""
	}
	told, lossless := or(r.Classes, d.Hosts.Class), or(d.PFC.Classes, d.Hosts.Class)
	lossy := !d.PFC.Enabled || slices.ContainsFunc(told, func(c int) bool { return !slices.Contains(lossless, c) })
	// Ports of 100 Gb/s have a longer reference: the least that any has.
	qref := units.Size(r.Params(40e9).QRef)
	if limit >= qref || !lossy {
		return ""
	}
	return fmt.Sprintf("switch.buffer.queue_limit: queues are to be held at %s by switch.rocc, and drop beyond %s: the fair rate would only rise; lower switch.rocc.qref or raise the limit", qref, limit)
}

// or returns the classes, or that of the data if none are named.
func or(classes []int, data int) []int {
	if len(classes) == 0 {
		return []int{data}
	}
	return classes
}
