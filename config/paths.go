package config

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"gswitch/frame"
	"gswitch/pipeline"
	"gswitch/vswitch"
)

// Config is what the switch node takes.
func (p *Paths) Config() vswitch.PathsConfig {
	kind, _ := pipeline.ParseChooser(p.Choose) // one of the enumeration
	out := vswitch.PathsConfig{Choose: kind, FlowletGap: frame.Time(p.FlowletGap), Assigned: p.Assigned}
	for _, t := range p.Thresholds {
		out.Thresholds = append(out.Thresholds, uint64(t))
	}
	for _, t := range p.Times {
		out.Times = append(out.Times, frame.Time(t))
	}
	for _, class := range p.Exempt {
		out.Exempt |= 1 << class
	}
	return out
}

// validatePaths checks how paths are chosen, and that routes whose choice
// looks at ports have next hops at ports.
func (d decoder) validatePaths(s *Switch, path string) {
	choose := ""
	if s.Paths != nil {
		choose = s.Paths.Choose
		c := s.Paths.Config()
		if err := c.Validate(); err != nil && !d.Refused(path+".paths") {
			d.Fail(path+".paths", "%v", err)
		}
	}
	for i := range s.Routes {
		r := &s.Routes[i]
		if len(r.NextHops) < 2 && r.Choose == "" {
			continue
		}
		sub := fmt.Sprintf("%s.routes[%d]", path, i)
		if len(r.NextHops) == 0 {
			d.Fail(sub+".choose", "stands beside no next_hops among which to choose")
			continue
		}
		name := r.Choose
		if name == "" {
			name = choose
		}
		kind, err := pipeline.ParseChooser(name)
		if err == nil && !kind.ByFlow() {
			has := func(key string) bool { return key == "choose" || s.leadsTo(r, key) }
			if x := vswitch.Excluded(vswitch.OneSwitch, "choose", has); x != nil {
				d.Fail(d.chosenAt(sub, path), "%s divides the frames of a flow: it %s", kind, x.Beside())
			}
		}
		if err != nil || !kind.ByPort() || len(r.NextHops) < 2 {
			continue
		}
		d.hopsAtPorts(s, r, kind, sub)
	}
}

// leadsTo reports whether frames of a flow of a route could leave by several ports, one
// of which has a feature.
func (s *Switch) leadsTo(r *Route, feature string) bool {
	sec, paired := s.Features.Get(feature).(vswitch.Paired)
	if !paired {
		return false
	}
	at := map[int]bool{}
	for _, h := range r.NextHops {
		at[slices.IndexFunc(s.Ports, func(p Port) bool {
			return slices.ContainsFunc(p.Addresses, func(net netip.Prefix) bool { return net.Contains(h.Via) })
		})] = true
	}
	for i := range at {
		if len(at) > 1 && (i < 0 || slices.Contains(sec.Neighbors(), s.Ports[i].name())) {
			return true
		}
	}
	return false
}

// chosenAt is the key by which a route has its chooser.
func (d decoder) chosenAt(route, sw string) string {
	if !d.Has(route+".choose") && d.Has(sw+".paths.choose") {
		return sw + ".paths.choose"
	}
	return route + ".choose"
}

// hopsAtPorts checks that each next hop of a route is behind another port.
func (d decoder) hopsAtPorts(s *Switch, r *Route, kind pipeline.Chooser, path string) {
	seen := map[int]netip.Addr{} // by port
	for j := range r.NextHops {
		via := r.NextHops[j].Via
		in := func(p netip.Prefix) bool { return p.Contains(via) }
		at := slices.IndexFunc(s.Ports, func(p Port) bool { return slices.ContainsFunc(p.Addresses, in) })
		sub := fmt.Sprintf("%s.next_hops[%d].via", path, j)
		switch {
		case at < 0 && !slices.ContainsFunc(s.VLANs, func(v VLAN) bool { return slices.ContainsFunc(v.Addresses, in) }):
			// On no network: that is said elsewhere.
		case at < 0:
			d.Fail(sub, "%s is behind a VLAN, which may be any port, and choose: %s looks at ports; give its port an address, or choose otherwise", via, kind)
		case seen[at].IsValid():
			p := &s.Ports[at]
			d.Fail(sub, "%s and %s are both behind port %s, and choose: %s looks at ports; leave one of them out, or choose otherwise", via, seen[at], cmp.Or(p.Name, p.Interface, p.Wire), kind)
		default:
			seen[at] = via
		}
	}
}
