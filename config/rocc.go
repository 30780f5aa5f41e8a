package config

import (
	"cmp"
	"fmt"

	"github.com/gswitch/gswitch/frame"
	"github.com/gswitch/gswitch/rocc"
	"github.com/gswitch/gswitch/vswitch"
)

// config returns what a port of the given rate in bit/s has.
func (r *RoCC) config(rate Rate) vswitch.RoCCConfig {
	o := rocc.Options{Period: frame.Time(r.Period), QRef: uint32(r.QRef), QMid: uint32(r.QMid), QMax: uint32(r.QMax),
		Alpha: r.Alpha, Beta: r.Beta, FMin: uint64(r.FMin), First: rocc.Cuts[r.Cut], Regions: r.Regions}
	out := vswitch.RoCCConfig{Params: o.At(uint64(rate)), PerTick: r.PerTick, AtHosts: r.Compute == "hosts",
		Table: rocc.TableConfig{Kind: rocc.Kinds[r.Table], Flows: r.Flows, Age: r.Age, Sample: r.Sample, Shadow: r.Shadow}}
	for _, q := range r.Queues {
		out.Queues |= 1 << q
	}
	return out
}

// noticeCode is the code point of notices, CS7.
const noticeCode = 56

// validateRoCC checks what a port gets from its queue profile.
func (d *decoder) validateRoCC(s *Switch, p *Port, path string) {
	r := s.QoS[p.QoS].RoCC
	if r == nil {
		return
	}
	name := cmp.Or(p.Name, p.Interface, p.Wire)
	profile := fmt.Sprintf("%s.qos.%s.rocc", path, p.QoS)
	if p.Rate == 0 {
		if len(d.errs) > 0 {
			return // its key may be among those that are misspelt
		}
		d.failAt(profile, "port %s has no rate, of which flows could have a share; give it one, or another profile", name)
		return
	}
	for key, size := range map[string]Size{"qref": r.QRef, "qmid": r.QMid, "qmax": r.QMax} {
		if size >= 1<<32 {
			d.failAt(profile+"."+key, "%s is more than 4 GiB", size)
			return
		}
	}
	c := r.config(p.Rate)
	if err := c.Params.Validate(); err != nil && !d.bad[profile] {
		d.failAt(profile, "at port %s of %s: %v", name, p.Rate, err)
	}
	d.noticesPass(s, profile)
}
