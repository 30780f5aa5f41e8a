package config

import (
	"fmt"
	"net/netip"
	"slices"

	"gswitch/vswitch"
)

func (d decoder) station(path string, a netip.Addr) {
	if a.IsMulticast() || a.IsUnspecified() || a.Zone() != "" {
		d.Fail(path, "%s is not the address of one station", a)
	}
}

// validateAddresses checks the networks that the switch is connected to.
func (d decoder) validateAddresses(s *Switch, path string) {
	seen := map[netip.Addr]string{}
	check := func(list []netip.Prefix, path string) {
		for i, p := range list {
			sub := fmt.Sprintf("%s.address[%d]", path, i)
			if d.Refused(sub) {
				continue
			}
			d.station(sub, p.Addr())
			if other := seen[p.Addr()]; other != "" {
				d.Fail(sub, "%s is taken by %s", p.Addr(), other)
			}
			seen[p.Addr()] = sub
		}
	}
	for i := range s.Ports {
		check(s.Ports[i].Addresses, fmt.Sprintf("%s.ports[%d]", path, i))
	}
	for i := range s.VLANs {
		check(s.VLANs[i].Addresses, fmt.Sprintf("%s.vlans[%d]", path, i))
	}
}

// plainRoute reports whether nothing can be wrong with a route but that its
// next hop is not connected: so are most of very many.
func plainRoute(r *Route) bool {
	return r.Prefix.IsValid() && r.Prefix == r.Prefix.Masked() && r.Via.IsValid() && r.NextHops == nil && r.refusal() == vswitch.Accept && (r.Via.Is4() || r.Prefix.Addr().Is6())
}

func (d decoder) validateRoutes(s *Switch, path string) {
	connected := func(a netip.Addr) bool {
		if zone := a.Zone(); zone != "" {
			return a.IsLinkLocalUnicast() && slices.ContainsFunc(s.Ports, func(p Port) bool { return p.Name == zone && len(p.Addresses) > 0 })
		}
		in := func(p netip.Prefix) bool { return p.Contains(a) }
		for i := range s.Ports {
			if slices.ContainsFunc(s.Ports[i].Addresses, in) {
				return true
			}
		}
		for i := range s.VLANs {
			if slices.ContainsFunc(s.VLANs[i].Addresses, in) {
				return true
			}
		}
		return false
	}
	for i := range s.Routes {
		r := &s.Routes[i]
		if plainRoute(r) && connected(r.Via) {
			continue
		}
		sub := fmt.Sprintf("%s.routes[%d]", path, i)
		if r.Prefix.IsValid() && r.Prefix != r.Prefix.Masked() {
			d.Fail(sub+".prefix", "%s has bits beyond its length; write %s", r.Prefix, r.Prefix.Masked())
		}
		ways := 0
		for _, has := range []bool{r.Via.IsValid(), len(r.NextHops) > 0, r.Blackhole, r.Unreachable, r.Prohibit} {
			if has {
				ways++
			}
		}
		if ways != 1 && !d.Refused(sub+".via") && !d.Refused(sub+".next_hops") && !d.Refused(sub+".blackhole") {
			d.Fail(sub, "needs exactly one of via, next_hops, blackhole, unreachable, prohibit")
		}
		hop := func(path string, a netip.Addr) {
			switch {
			case !a.IsValid() || !r.Prefix.IsValid():
			case a.Is4() && r.Prefix.Addr().Is6():
				d.Fail(path, "%s is no next hop of %s: an IPv6 route leads to an IPv6 address", a, r.Prefix)
			case a.Zone() != "" && !connected(a):
				d.Fail(path, "behind the %% of %s stands no port with an address, or before it no link-local address", a)
			case a.Is6() && a.IsLinkLocalUnicast() && a.Zone() == "":
				d.Fail(path, "%s may be behind any port; write %s%%PORT", a, a)
			case !connected(a):
				d.Fail(path, "%s is on no network of this switch: no port and no VLAN has an address there", a)
			}
		}
		hop(sub+".via", r.Via)
		for j := range r.NextHops {
			hop(fmt.Sprintf("%s.next_hops[%d].via", sub, j), r.NextHops[j].Via)
		}
	}
	for i := range s.Neighbors {
		n, sub := &s.Neighbors[i], fmt.Sprintf("%s.neighbors[%d]", path, i)
		if n.Address.IsValid() && !connected(n.Address) {
			d.Fail(sub+".address", "%s is on no network of this switch: no port and no VLAN has an address there", n.Address)
		}
		if n.MAC.Multicast() {
			d.Fail(sub+".mac", "%s is a group address", n.MAC)
		}
	}
}
