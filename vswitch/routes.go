package vswitch

import (
	"encoding/binary"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"gswitch/frame"
	"gswitch/pipeline"
)

// routeKind says what a route leads to.
type routeKind uint8

const (
	routeNone      routeKind = iota
	routeLocal               // the switch itself
	routeConnected           // a network on an interface: the next hop is the destination
	routeGroup               // next hops
	routeBlackhole
	routeUnreachable
	routeProhibit
	routeBroadcast // first or last address of a connected IPv4 network
)

// routeEntry is what a prefix leads to. Its index is the prefix's counter id.
type routeEntry struct {
	kind    routeKind
	learned bool // by LearnRoutes
	iface   uint16
	group   uint32
}

// nextHop is a neighbour on an interface.
type nextHop struct {
	iface uint16
	key   addrKey
}

// routing is the routing part of a Program.
type routing struct {
	table   *pipeline.LPM
	entries []routeEntry // by route id
	hops    []nextHop
	groups  []*pipeline.Group
	sets    map[string]uint32 // group of a set of next hops, chosen from in one way
	cleanAt int               // number of groups from which those without a route are looked for
	fresh   bool              // no worker has seen sets, so it may be written

	// Methods used by groups, even by those that no route refers to any more.
	flowlets, byLoad, exact bool
}

// compileRoutes enters connected networks with their broadcast addresses, own
// addresses and configured routes. A configured route to what the switch
// itself is connected to is refused.
func (p *Program) compileRoutes(cfg *Config, ids *idSet) error {
	p.routing = routing{sets: map[string]uint32{}, fresh: true}
	defer func() { p.routing.fresh = false }()
	b := routeBuilder{p: p, ids: ids}
	for i := 1; i < len(p.ifaces); i++ {
		for _, a := range p.ifaces[i].addrs {
			b.add(a.Masked(), routeEntry{kind: routeConnected, iface: uint16(i)})
			b.addBroadcast(a)
		}
	}
	for i := 1; i < len(p.ifaces); i++ {
		for _, a := range p.ifaces[i].addrs {
			b.add(netip.PrefixFrom(a.Addr(), a.Addr().BitLen()), routeEntry{kind: routeLocal})
		}
	}
	if p.anyRouted {
		// All interfaces have one MAC, so one link-local address.
		a := linkLocalOf(cfg.MAC.Uint64())
		b.add(netip.PrefixFrom(a, a.BitLen()), routeEntry{kind: routeLocal})
	}
	for _, a := range cfg.Loopbacks {
		b.add(netip.PrefixFrom(a, a.BitLen()), routeEntry{kind: routeLocal})
	}
	for _, r := range cfg.Routes {
		if err := p.setRoute(r, ids, &b); err != nil {
			return err
		}
	}
	table, err := pipeline.NewLPM(b.bulk)
	if err != nil {
		return fmt.Errorf("switch %s: %w", cfg.Name, err)
	}
	p.routing.table = table
	p.routing.cleanAt = 2*len(p.routing.groups) + spareSets
	return nil
}

// routeBuilder collects routes for one bulk build of the table.
type routeBuilder struct {
	p    *Program
	ids  *idSet
	bulk []pipeline.Route
}

func (b *routeBuilder) add(prefix netip.Prefix, e routeEntry) {
	b.bulk = append(b.bulk, pipeline.Route{Prefix: prefix, Value: b.p.enter(prefix, e, b.ids, false)})
}

// addBroadcast enters the two broadcast addresses of a connected IPv4 network
// (RFC 1812 4.2.2.11), which are not forwarded to (RFC 2644). Networks of two
// addresses have none (RFC 3021).
func (b *routeBuilder) addBroadcast(a netip.Prefix) {
	if !a.Addr().Is4() || a.Bits() > 30 {
		return
	}
	first := a.Masked().Addr()
	last := first.As4()
	binary.BigEndian.PutUint32(last[:], binary.BigEndian.Uint32(last[:])|^uint32(0)>>a.Bits())
	for _, x := range []netip.Addr{first, netip.AddrFrom4(last)} {
		b.add(netip.PrefixFrom(x, 32), routeEntry{kind: routeBroadcast})
	}
}

// enter stores an entry under its prefix's id, in a copy if older programs share the
// slice: workers may be reading it.
func (p *Program) enter(prefix netip.Prefix, e routeEntry, ids *idSet, shared bool) uint32 {
	id := ids.get(prefix.String())
	r := &p.routing
	if int(id) < len(r.entries) && shared {
		if r.entries[id] == e {
			return id
		}
		r.entries = append([]routeEntry(nil), r.entries...)
	}
	for len(r.entries) <= int(id) {
		r.entries = append(r.entries, routeEntry{})
	}
	r.entries[id] = e
	return id
}

// resolve turns a configured route into an entry.
func (p *Program) resolve(r Route) (routeEntry, error) {
	if !r.Prefix.IsValid() {
		return routeEntry{}, fmt.Errorf("switch %s: a route has no prefix", p.Config.Name)
	}
	switch r.Refuse {
	case Blackhole:
		return routeEntry{kind: routeBlackhole}, nil
	case Unreachable:
		return routeEntry{kind: routeUnreachable}, nil
	case Prohibit:
		return routeEntry{kind: routeProhibit}, nil
	}
	if len(r.NextHops) == 0 {
		return routeEntry{}, fmt.Errorf("switch %s route %s: no next hop, and neither blackhole nor unreachable nor prohibit", p.Config.Name, r.Prefix)
	}
	kind := p.Config.Paths.Choose
	if r.Choose != nil {
		kind = *r.Choose
	}
	if len(r.NextHops) == 1 {
		kind = pipeline.ChooseHash
	}
	var key strings.Builder
	key.WriteString(kind.String())
	for _, h := range r.NextHops {
		fmt.Fprintf(&key, " %s*%d", h.Via, h.Weight)
	}
	rt := &p.routing
	if g, ok := rt.sets[key.String()]; ok {
		return routeEntry{kind: routeGroup, group: g}, nil
	}
	members := make([]pipeline.Member, 0, len(r.NextHops))
	hops := rt.hops
	for _, h := range r.NextHops {
		f := p.ifaceToward(h.Via)
		if f == noIface {
			return routeEntry{}, fmt.Errorf("switch %s route %s: next hop %s is on no connected network", p.Config.Name, r.Prefix, h.Via)
		}
		members = append(members, pipeline.Member{NextHop: uint32(len(hops)), Weight: max(h.Weight, 1)})
		hops = append(hops, nextHop{f, keyOf(h.Via)})
	}
	g, err := p.newGroup(kind, members, hops)
	if err != nil {
		return routeEntry{}, fmt.Errorf("switch %s route %s: %w", p.Config.Name, r.Prefix, err)
	}
	rt.flowlets = rt.flowlets || kind == pipeline.ChooseFlowlet
	rt.byLoad = rt.byLoad || kind.ByLoad()
	rt.exact = rt.exact || kind == pipeline.ChooseLeast
	rt.hops = hops
	rt.groups = append(rt.groups, g)
	if !rt.fresh {
		rt.sets = maps.Clone(rt.sets)
	}
	rt.sets[key.String()] = uint32(len(rt.groups) - 1)
	return routeEntry{kind: routeGroup, group: uint32(len(rt.groups) - 1)}, nil
}

// newGroup returns the group of some members. hops are all next hops.
func (p *Program) newGroup(kind pipeline.Chooser, members []pipeline.Member, hops []nextHop) (*pipeline.Group, error) {
	if !kind.ByPort() {
		return pipeline.NewGroup(kind, groupBuckets(len(members)), members)
	}
	ports := make([]uint16, len(members))
	for i := range members {
		hop := hops[members[i].NextHop]
		f := &p.ifaces[hop.iface]
		if f.port == frame.NoPort {
			return nil, fmt.Errorf("next hop %s is behind VLAN %d, which may be any port: %q looks at ports; give the port of the next hop an address of its own, or the route another way to choose", hop.key.addr(), f.vid, kind)
		}
		if at := slices.Index(ports[:i], f.port); at >= 0 {
			return nil, fmt.Errorf("next hops %s and %s are both behind port %s: %q looks at ports; name one of them, or another way to choose", hops[members[at].NextHop].key.addr(), hop.key.addr(), f.name, kind)
		}
		ports[i] = f.port
		if kind == pipeline.ChooseWeighted {
			members[i].Weight = capacity(members[i].Weight, p.Config.Ports[f.port].rate())
		}
	}
	g, err := pipeline.NewGroup(kind, groupBuckets(len(members)), members)
	if err != nil {
		return nil, err
	}
	return g.AtPorts(ports)
}

// capacity is the weight of a next hop by the rate of its port, in Mb/s.
func capacity(weight uint32, rate uint64) uint32 {
	return uint32(min(max(rate/1e6, 1)*uint64(weight), 1<<32-1))
}

// groupBuckets gives a group some thirty buckets a member, so that shares are
// exact to 3 %.
func groupBuckets(n int) int {
	if n == 1 {
		return 1
	}
	return min(max(32*n, 256), pipeline.MaxBuckets)
}

// setRoute adds or replaces a route; with a builder, in its bulk.
func (p *Program) setRoute(r Route, ids *idSet, b *routeBuilder) error {
	r.Prefix = r.Prefix.Masked()
	if b == nil {
		p.dropUnusedSets()
	}
	e, err := p.resolve(r)
	if err != nil {
		return err
	}
	if id := ids.get(r.Prefix.String()); int(id) < len(p.routing.entries) && p.routing.entries[id].own() && p.reaches(r.Prefix, b) {
		return fmt.Errorf("switch %s route %s: the switch itself is connected there", p.Config.Name, r.Prefix)
	}
	if b != nil {
		b.add(r.Prefix, e)
		return nil
	}
	id := p.enter(r.Prefix, e, ids, true)
	table, err := p.routing.table.With(r.Prefix, id)
	if err != nil {
		return fmt.Errorf("switch %s: %w", p.Config.Name, err)
	}
	p.routing.table = table
	return nil
}

// own reports whether the switch itself is what the route leads to.
func (e *routeEntry) own() bool {
	return e.kind == routeLocal || e.kind == routeConnected || e.kind == routeBroadcast
}

// reaches reports whether a prefix whose id has an entry is in the table, or
// will be, where the entries were made with it.
func (p *Program) reaches(prefix netip.Prefix, b *routeBuilder) bool {
	if b != nil {
		return true
	}
	_, ok := p.routing.table.Get(prefix)
	return ok
}

func (p *Program) deleteRoute(prefix netip.Prefix) error {
	prefix = prefix.Masked()
	id, ok := p.routing.table.Get(prefix)
	if !ok || p.routing.entries[id].learned {
		return fmt.Errorf("switch %s: there is no route %s", p.Config.Name, prefix)
	}
	if p.routing.entries[id].own() {
		return fmt.Errorf("switch %s route %s: the switch itself is connected there", p.Config.Name, prefix)
	}
	table, err := p.routing.table.Without(prefix)
	if err != nil {
		return fmt.Errorf("switch %s: %w", p.Config.Name, err)
	}
	p.routing.table = table
	return nil
}

// ifaceToward returns the interface on whose networks an address lies. A
// link-local address is on the interface that its zone names, as in
// fe80::1%eth0.
func (p *Program) ifaceToward(a netip.Addr) uint16 {
	if a.Is6() && a.IsLinkLocalUnicast() {
		for i := 1; i < len(p.ifaces); i++ {
			if f := &p.ifaces[i]; len(f.addrs) > 0 && f.name == a.Zone() {
				return uint16(i)
			}
		}
		return noIface
	}
	best, bits := noIface, -1
	for i := 1; i < len(p.ifaces); i++ {
		for _, n := range p.ifaces[i].addrs {
			if n.Contains(a) && n.Bits() > bits {
				best, bits = uint16(i), n.Bits()
			}
		}
	}
	return best
}

// onLink reports whether an address is a neighbour on an interface.
func (p *Program) onLink(i uint16, k addrKey) bool {
	a := k.addr()
	for _, n := range p.ifaces[i].addrs {
		if n.Contains(a) {
			return true
		}
	}
	return len(p.ifaces[i].addrs) > 0 && a.Is6() && a.IsLinkLocalUnicast()
}

// owns reports whether an address is the switch's own on an interface.
func (p *Program) owns(i uint16, k addrKey) bool {
	a := k.addr()
	f := &p.ifaces[i]
	for _, n := range f.addrs {
		if n.Addr() == a {
			return true
		}
	}
	return a == f.local || a.Is6() && a == netip.IPv6LinkLocalAllNodes()
}

// routeOf finds the route of a frame that waits for its neighbour.
func (n *Node) routeOf(b []byte, m *frame.Meta) (e *routeEntry, dst addrKey) {
	rt := &n.prog.routing
	dst = addressesOf(b, m).dst
	if id := lookupRoute(rt.table, m, &dst); id != pipeline.NoEntry {
		return &rt.entries[id], dst
	}
	return &noRoute, dst
}

var noRoute routeEntry

// hopOf finds the next hop of a frame that waits for its neighbour.
func (n *Node) hopOf(b []byte, m *frame.Meta) (nextHop, bool) {
	switch e, dst := n.routeOf(b, m); e.kind {
	case routeConnected:
		return nextHop{e.iface, dst}, true
	case routeGroup:
		return n.prog.routing.hops[n.choose(e.group, m)], true
	}
	return nextHop{}, false
}

// hopThatAnswers finds another next hop of a frame's route that has a MAC, and returns
// it. A neighbour that does not answer behind a link that is up must not keep frames from
// the others, least of all if paths are chosen by load, since nothing waits there.
func (n *Node) hopThatAnswers(b []byte, m *frame.Meta) (iface uint16, mac uint64) {
	e, _ := n.routeOf(b, m)
	if e.kind != routeGroup {
		return noIface, 0
	}
	rt := &n.prog.routing
	members := rt.groups[e.group].Members()
	for i := range members {
		to := &members[(uint64(m.Hash)+uint64(i))%uint64(len(members))]
		if hop := rt.hops[to.NextHop]; to.Weight > 0 && n.hasLink(to.NextHop) {
			if mac = n.neighbors.lookup(hop.iface, hop.key); mac != 0 {
				return hop.iface, mac
			}
		}
	}
	return noIface, 0
}

// sourceFor returns the address of an interface that a neighbour should see
// as the sender.
func (f *iface) sourceFor(k addrKey) addrKey {
	a := k.addr()
	for _, n := range f.addrs {
		if n.Contains(a) {
			return keyOf(n.Addr())
		}
	}
	if a.Is4() {
		return keyOf(f.v4)
	}
	return keyOf(f.local)
}

// errorSource4 is the source of ICMP errors about frames from an interface.
func (p *Program) errorSource4(i uint16) ([4]byte, bool) {
	if a := p.ifaces[i].v4; a.IsValid() {
		return a.As4(), true
	}
	for _, l := range p.Config.Loopbacks {
		if l.Is4() {
			return l.As4(), true
		}
	}
	return [4]byte{}, false
}

func (p *Program) errorSource6(i uint16, to addrKey) [16]byte {
	if a := p.ifaces[i].v6; a.IsValid() {
		return a.As16()
	}
	for _, l := range p.Config.Loopbacks {
		if l.Is6() {
			return l.As16()
		}
	}
	return p.ifaces[i].local.As16()
}
