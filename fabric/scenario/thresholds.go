package scenario

import (
	"fmt"
	"slices"

	"gswitch/cc"
	"gswitch/frame"
	"gswitch/options"
)

// Unreachable reports thresholds for round-trip times that are shorter than the
// round-trip time of the empty network: rates would fall with every acknowledgement, to
// the minimum.
func (d *Document) Unreachable(base frame.Time) (v []string) {
	h := &d.Hosts
	v = unreachable(v, "hosts", h.CC, h.Params, base)
	for i := range h.Overrides {
		o := &h.Overrides[i]
		v = unreachable(v, fmt.Sprintf("hosts.overrides[%d]", i), o.CC, o.Params, base)
	}
	for i := range d.Workload {
		e := &d.Workload[i]
		v = unreachable(v, fmt.Sprintf("workload[%d]", i), e.CC, e.Params, base)
	}
	return v
}

func unreachable(v []string, key, name string, p Params, base frame.Time) []string {
	in, _ := cc.Lookup(name)
	if !slices.ContainsFunc(in.Params, func(p options.Param) bool { return p.Name == "thigh" }) {
		return v
	}
	values, err := options.Parse(in.Params, p.texts())
	if err != nil {
		return v // the document's validation reports it
	}
	if values.Choice("delay") == "one-way" {
		return v // which is half of that, or less
	}
	option := "thigh"
	if values.Choice("mode") == "queue" {
		option = "target"
	}
	if at := values.Time(option); at < base {
		v = append(v, fmt.Sprintf("%s.params.%s: %s is below the round-trip time of the empty network on the longest path, %s: each acknowledgement from there lowers the rate; raise it above that",
			key, option, options.Format(float64(at), options.Time), options.Format(float64(base), options.Time)))
	}
	return v
}
