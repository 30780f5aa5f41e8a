// Package kernel follows the routes that routing daemons give a kernel, for a
// switch whose ports have twins there.
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

// candidate is a route of the kernel. Of those with one prefix the kernel takes
// that of the least metric.
type candidate struct {
	metric int
	hops   []hop
	refuse vswitch.Refusal
	seen   bool // since Begin
}

type hop struct {
	link   int
	via    netip.Addr // not valid: none, the destination itself is on the link
	weight int
}

// dead reports whether all next hops are dead: the kernel then takes the route of
// the next metric.
func (c *candidate) dead() bool { return c.refuse == vswitch.Accept && len(c.hops) == 0 }

// Table is what is known of a kernel's main table: the kernel's messages go in, and
// what a switch must change comes out.
type Table struct {
	ports     map[int]string // ports of the switch by the index of their twin
	routes    map[netip.Prefix][]candidate
	dirty     map[netip.Prefix]bool
	installed map[netip.Prefix]bool // in the switch
	all       bool                  // the switch is to remove what was installed
}

// NewTable returns an empty table.
func NewTable() *Table {
	return &Table{routes: map[netip.Prefix][]candidate{}, dirty: map[netip.Prefix]bool{}, installed: map[netip.Prefix]bool{}, all: true}
}

// Ports says which interface is the twin of which port. It reports whether that
// changed; all routes may then lead elsewhere.
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

// Begin begins a list of all routes. Those that have not been set when End is
// called are gone.
func (t *Table) Begin() {
	for _, cs := range t.routes {
		for i := range cs {
			cs[i].seen = false
		}
	}
}

// End ends the list that Begin began.
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

// Set takes a route that the kernel has, in place of the one of the same prefix
// and metric. One by which the kernel cannot go ends that one.
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

// Delete takes back a route, or some of its next hops: of IPv6 the kernel names
// those that go.
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

// Waiting returns how many prefixes Take would look at.
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

// best returns the route by which the kernel would go, where that leads to a
// port of the switch or nowhere.
func (t *Table) best(prefix netip.Prefix) (vswitch.Route, bool) {
	cs := t.routes[prefix]
	if len(cs) == 0 {
		return vswitch.Route{}, false
	}
	r := vswitch.Route{Prefix: prefix, Refuse: cs[0].refuse}
	for _, h := range cs[0].hops {
		port, ok := t.ports[h.link]
		if !ok || !h.via.IsValid() {
			continue // another interface of this kernel, or nobody to ask for a MAC address
		}
		if h.via.Is6() && h.via.IsLinkLocalUnicast() {
			h.via = h.via.WithZone(port)
		}
		r.NextHops = append(r.NextHops, vswitch.NextHop{Via: h.via, Weight: uint32(h.weight)})
	}
	return r, r.Refuse != vswitch.Accept || r.NextHops != nil
}

// read takes what matters of a route. It is false for routes that no daemon and
// no person made, and for other tables.
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
