// Package kernel tracks the routes that routing daemons install in a kernel, for a switch
// whose ports have interfaces there ("twins").
package kernel

import (
	"cmp"
	"net"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"gswitch/vswitch"
)

// candidate is a route of the kernel. Among routes with the same prefix the kernel uses
// the one with the least metric.
type candidate struct {
	metric int
	hops   []hop
	refuse vswitch.Refusal
	seen   bool // since Begin
}

type hop struct {
	link   int
	via    netip.Addr // invalid: no gateway, the destination itself is on the link
	weight int
}

// dead reports whether all next hops are dead: the kernel then uses the route with the
// next metric.
func (c *candidate) dead() bool { return c.refuse == vswitch.Accept && len(c.hops) == 0 }

// Table is a copy of a kernel's main routing table. Set and Delete take the kernel's
// messages, and Take returns what a switch must change.
type Table struct {
	ports     map[int]string // port names by the index of their twin
	routes    map[netip.Prefix][]candidate
	dirty     map[netip.Prefix]bool
	installed map[netip.Prefix]bool // in the switch
	all       bool                  // the switch must remove everything that was installed
}

// NewTable returns an empty table.
func NewTable() *Table {
	return &Table{routes: map[netip.Prefix][]candidate{}, dirty: map[netip.Prefix]bool{}, installed: map[netip.Prefix]bool{}, all: true}
}

// Ports sets which interface is the twin of which port. It reports whether that has
// changed, since all routes may then lead elsewhere.
func (t *Table) Ports(ports map[int]string) bool {
	same := len(ports) == len(t.ports)
	for link, name := range ports {
		same = same && t.ports[link] == name
	}
	t.ports = ports
	if same {
		return false
	}
	for prefix := range t.routes {
		t.dirty[prefix] = true
	}
	return true
}

// Begin starts a listing of all routes. End removes those that have not been set since.
func (t *Table) Begin() {
	for _, cs := range t.routes {
		for i := range cs {
			cs[i].seen = false
		}
	}
}

// End ends the listing that Begin started.
func (t *Table) End() {
	for prefix, cs := range t.routes {
		if kept := slices.DeleteFunc(cs, func(c candidate) bool { return !c.seen }); len(kept) != len(cs) {
			t.keep(prefix, kept)
		}
	}
}

func (t *Table) keep(prefix netip.Prefix, cs []candidate) {
	t.dirty[prefix] = true
	if len(cs) == 0 {
		delete(t.routes, prefix)
		return
	}
	t.routes[prefix] = cs
}

// Set enters a route of the kernel, replacing the one with the same prefix and metric. A
// route that the kernel does not use for forwarding removes it.
func (t *Table) Set(r *netlink.Route) {
	prefix, c, ok := read(r)
	switch {
	case !ok:
		return
	case c.dead():
		t.Delete(r)
		return
	}
	c.seen = true
	cs := t.routes[prefix]
	i, found := slices.BinarySearchFunc(cs, c.metric, func(x candidate, metric int) int { return cmp.Compare(x.metric, metric) })
	if !found {
		t.keep(prefix, slices.Insert(cs, i, c))
		return
	}
	if cs[i].refuse == c.refuse && slices.Equal(cs[i].hops, c.hops) {
		cs[i].seen = true
		return
	}
	cs[i] = c
	t.dirty[prefix] = true
}

// Delete removes a route, or some of its next hops: for IPv6 the kernel reports those
// that were removed.
func (t *Table) Delete(r *netlink.Route) {
	prefix, c, ok := read(r)
	if !ok {
		return
	}
	cs := t.routes[prefix]
	i := slices.IndexFunc(cs, func(x candidate) bool { return x.metric == c.metric })
	if i < 0 {
		return
	}
	left := slices.DeleteFunc(slices.Clone(cs[i].hops), func(h hop) bool {
		return slices.ContainsFunc(c.hops, func(g hop) bool { return g.link == h.link && g.via == h.via })
	})
	if prefix.Addr().Is6() && len(c.hops) > 0 && len(left) > 0 {
		cs[i].hops = left
		t.dirty[prefix] = true
		return
	}
	t.keep(prefix, slices.Delete(cs, i, i+1))
}

// Waiting returns how many prefixes Take would examine.
func (t *Table) Waiting() int { return len(t.dirty) }

// Take returns what the switch must change, or nil.
func (t *Table) Take() *vswitch.LearnRoutes {
	c := &vswitch.LearnRoutes{Reset: t.all}
	if t.all {
		clear(t.installed)
		for prefix := range t.routes {
			t.dirty[prefix] = true
		}
	}
	for prefix := range t.dirty {
		if r, ok := t.best(prefix); ok {
			c.Set = append(c.Set, r)
			t.installed[prefix] = true
		} else if t.installed[prefix] {
			c.Delete = append(c.Delete, prefix)
			delete(t.installed, prefix)
		}
	}
	t.all = false
	clear(t.dirty)
	if !c.Reset && c.Set == nil && c.Delete == nil {
		return nil
	}
	slices.SortFunc(c.Set, func(a, b vswitch.Route) int { return compare(a.Prefix, b.Prefix) })
	slices.SortFunc(c.Delete, compare)
	return c
}

func compare(a, b netip.Prefix) int {
	return cmp.Or(a.Addr().Compare(b.Addr()), cmp.Compare(a.Bits(), b.Bits()))
}

// best returns the route that the kernel would use, if that leads to a port of the switch
// or to nowhere.
func (t *Table) best(prefix netip.Prefix) (vswitch.Route, bool) {
	cs := t.routes[prefix]
	if len(cs) == 0 {
		return vswitch.Route{}, false
	}
	r := vswitch.Route{Prefix: prefix, Refuse: cs[0].refuse}
	for _, h := range cs[0].hops {
		port, ok := t.ports[h.link]
		if !ok || !h.via.IsValid() {
			continue // another interface of this kernel, or no address to resolve
		}
		if h.via.Is6() && h.via.IsLinkLocalUnicast() {
			h.via = h.via.WithZone(port)
		}
		r.NextHops = append(r.NextHops, vswitch.NextHop{Via: h.via, Weight: uint32(h.weight)})
	}
	return r, r.Refuse != vswitch.Accept || r.NextHops != nil
}

// read extracts the relevant parts of a route. It returns false for routes of other
// tables, and for those that neither a routing daemon nor a person made.
func read(r *netlink.Route) (netip.Prefix, candidate, bool) {
	c := candidate{metric: r.Priority}
	if r.Table != unix.RT_TABLE_MAIN || r.Protocol == unix.RTPROT_KERNEL || r.Protocol == unix.RTPROT_REDIRECT || r.Protocol == unix.RTPROT_RA {
		return netip.Prefix{}, c, false
	}
	prefix, ok := prefixOf(r)
	if !ok {
		return prefix, c, false
	}
	switch r.Type {
	case unix.RTN_UNICAST:
	case unix.RTN_BLACKHOLE:
		c.refuse = vswitch.Blackhole
		return prefix, c, true
	case unix.RTN_UNREACHABLE:
		c.refuse = vswitch.Unreachable
		return prefix, c, true
	case unix.RTN_PROHIBIT:
		c.refuse = vswitch.Prohibit
		return prefix, c, true
	default:
		return prefix, c, false
	}
	add := func(link int, gw net.IP, via netlink.Destination, weight, flags int) {
		h := hop{link: link, weight: weight}
		if v, ok := via.(*netlink.Via); ok && v != nil { // IPv4 by an IPv6 next hop (RFC 8950)
			gw = v.Addr
		}
		if a, ok := netip.AddrFromSlice(gw); ok && !a.IsUnspecified() {
			h.via = a.Unmap()
		}
		if flags&unix.RTNH_F_DEAD == 0 {
			c.hops = append(c.hops, h)
		}
	}
	if len(r.MultiPath) == 0 {
		add(r.LinkIndex, r.Gw, r.Via, 1, r.Flags)
	}
	for _, n := range r.MultiPath {
		add(n.LinkIndex, n.Gw, n.Via, n.Hops+1, n.Flags)
	}
	return prefix, c, true
}

func prefixOf(r *netlink.Route) (netip.Prefix, bool) {
	if r.Dst == nil {
		if r.Family == unix.AF_INET6 {
			return netip.PrefixFrom(netip.IPv6Unspecified(), 0), true
		}
		return netip.PrefixFrom(netip.IPv4Unspecified(), 0), r.Family == unix.AF_INET
	}
	a, ok := netip.AddrFromSlice(r.Dst.IP)
	bits, size := r.Dst.Mask.Size()
	if ok && size == 32 {
		a = a.Unmap()
	}
	return netip.PrefixFrom(a, bits).Masked(), ok && size == a.BitLen()
}
