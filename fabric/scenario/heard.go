package scenario

import (
	"cmp"
	"fmt"
	"slices"

	"gswitch/cc"
	"gswitch/feature"
)

// silence is congestion control that hears nothing, because no switch says
// what it listens to.
type silence struct {
	key     string // where it is asked for
	problem string
	useless bool // it is nothing but what it hears
}

// silences finds congestion control whose flows would go at the rate of their
// links, so that results would not show why.
func (d *Document) silences() (v []silence) {
	h := &d.Hosts
	if s := d.silence("hosts.cc", h.CC, h.Class); s != nil {
		v = append(v, *s)
	}
	for i := range h.Overrides {
		if s := d.silence(fmt.Sprintf("hosts.overrides[%d].cc", i), h.Overrides[i].CC, h.Class); s != nil {
			v = append(v, *s)
		}
	}
	for i := range d.Workload {
		e, class := &d.Workload[i], h.Class
		if e.Class != nil {
			class = *e.Class
		}
		if e.CC == "" && class == h.Class {
			continue // as the hosts
		}
		if s := d.silence(fmt.Sprintf("workload[%d].cc", i), cmp.Or(e.CC, h.CC), class); s != nil {
			v = append(v, *s)
		}
	}
	return v
}

// silence is that of an algorithm in a class, or nil.
func (d *Document) silence(key, name string, class int) *silence {
	s := &d.Switch
	var hears, marks bool
	var cure string
	in, _ := cc.Lookup(name)
	switch in.Needs {
	case feature.Telemetry:
		hears, cure = s.INT.Mode != "none", "switch.int.mode: auto"
	case feature.EchoedMarks, feature.CNPs | feature.EchoedMarks:
		marks, cure = true, "switch.ecn.kmin and switch.ecn.kmax"
		hears = s.ECN.KMin > 0 || s.ECN.PI.Ref > 0 || d.Hosts.MarkAbove > 0 ||
			slices.ContainsFunc(d.Features(), func(on Feature) bool { return on.Tells&feature.EchoedMarks != 0 && slices.Contains(on.Classes, class) })
	default:
		f := tells(in.Needs)
		if f == nil {
			return nil
		}
		hears = slices.ContainsFunc(d.Features(), func(on Feature) bool { return on.Feature == f && slices.Contains(on.Classes, class) })
		cure = "switch." + f.Name + ".enabled: true"
	}
	if hears {
		return nil
	}
	return &silence{key, fmt.Sprintf("%s needs %s, and no switch gives any in class %d; set %s", name, in.Needs, class, cure), !marks}
}

// heard refuses what is nothing without what it would hear.
func (v *validator) heard() {
	for _, s := range v.doc.silences() {
		if s.useless {
			v.sec.Fail(s.key, "%s", s.problem)
		}
	}
}

// Warnings are what is possible in a run, and seldom meant.
func (d *Document) Warnings() (v []string) {
	for _, s := range d.silences() {
		if !s.useless {
			v = append(v, s.key+": "+s.problem)
		}
	}
	return append(append(v, d.cramped()...), d.Switch.Escape.hasty()...)
}
