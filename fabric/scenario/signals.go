package scenario

import (
	"cmp"
	"fmt"
	"slices"

	"gswitch/cc"
	"gswitch/feature"
)

// unsignalled is a congestion control that gets no signal, because no switch gives the
// one it needs.
type unsignalled struct {
	key     string // the key that asks for it
	problem string
	useless bool // it does nothing without the signal
}

// withoutSignal finds congestion controls that would send at line rate for lack of a
// signal, which results would not show.
func (d *Document) withoutSignal() (v []unsignalled) {
	h := &d.Hosts
	if s := d.signalOf("hosts.cc", h.CC, h.Class); s != nil {
		v = append(v, *s)
	}
	for i := range h.Overrides {
		if s := d.signalOf(fmt.Sprintf("hosts.overrides[%d].cc", i), h.Overrides[i].CC, h.Class); s != nil {
			v = append(v, *s)
		}
	}
	for i := range d.Workload {
		e, class := &d.Workload[i], h.Class
		if e.Class != nil {
			class = *e.Class
		}
		if e.CC == "" && class == h.Class {
			continue // the same as for the hosts
		}
		if s := d.signalOf(fmt.Sprintf("workload[%d].cc", i), cmp.Or(e.CC, h.CC), class); s != nil {
			v = append(v, *s)
		}
	}
	return v
}

// signalOf returns the signal that an algorithm in a class lacks, or nil.
func (d *Document) signalOf(key, name string, class int) *unsignalled {
	s := &d.Switch
	var given, marks bool
	var fix string
	in, _ := cc.Lookup(name)
	switch in.Needs {
	case feature.Telemetry:
		given, fix = s.INT.Mode != "none", "switch.int.mode: auto"
	case feature.EchoedMarks, feature.CNPs | feature.EchoedMarks:
		marks, fix = true, "switch.ecn.kmin and switch.ecn.kmax"
		given = s.ECN.On() || d.Hosts.MarkAbove > 0 ||
			slices.ContainsFunc(d.Features(), func(on Feature) bool {
				return on.Signals&feature.EchoedMarks != 0 && slices.Contains(on.Classes, class)
			})
	default:
		f := featureFor(in.Needs)
		if f == nil {
			return nil
		}
		given = slices.ContainsFunc(d.Features(), func(on Feature) bool { return on.Feature == f && slices.Contains(on.Classes, class) })
		fix = "switch." + f.Name + ".enabled: true"
	}
	if given {
		return nil
	}
	return &unsignalled{key, fmt.Sprintf("%s needs %s, and no switch gives any in class %d; set %s", name, in.Needs, class, fix), !marks}
}

// signals rejects congestion control that does nothing without its signal.
func (v *validator) signals() {
	for _, s := range v.doc.withoutSignal() {
		if s.useless {
			v.sec.Fail(s.key, "%s", s.problem)
		}
	}
}

// Warnings returns warnings about settings that are possible but seldom meant.
func (d *Document) Warnings() (v []string) {
	for _, s := range d.withoutSignal() {
		if !s.useless {
			v = append(v, s.key+": "+s.problem)
		}
	}
	return append(append(v, d.cramped()...), d.hasty()...)
}
