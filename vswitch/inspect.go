package vswitch

import (
	"net/netip"

	"gswitch/buffer"
	"gswitch/frame"
	"gswitch/pfc"
	"gswitch/pipeline"
	"gswitch/scheduler"
	"gswitch/wire"
)

// What the control plane reads of a Node. It must be called by the worker that steps the
// node, between two steps: the counters are plain words.

// HasPort reports whether this worker has adopted a program with the port. The port may
// only be read if it has.
func (n *Node) HasPort(port uint16) bool { return int(port) < len(n.ports) }

// ReadPort adds this worker's counters of a port to c.
func (n *Node) ReadPort(port uint16, c *PortCounts) {
	ps := &n.ports[port]
	c.Plus(&PortCounts{Rx: ps.rx, Tx: ps.tx, RxClass: ps.rxClass, Drops: ps.drops, ParseErrors: ps.parseErrors, QueueDrops: ps.queueDrops})
}

// AddDrops adds this worker's drops at a port, by reason.
func (n *Node) AddDrops(port uint16, to *[frame.NumReasons]uint64) {
	ps := &n.ports[port]
	for r := range to {
		to[r] += ps.drops[r] + ps.parseErrors[r]
	}
}

// Counts returns what this worker counted for the switch as a whole.
func (n *Node) Counts() Counts { return n.count }

// SelfDrops returns the frames that the switch itself failed to make or send,
// by reason.
func (n *Node) SelfDrops() [frame.NumReasons]uint64 { return n.own.drops }

// Owns reports whether this worker owns the egress queues of a port.
func (n *Node) Owns(port uint16) bool {
	return int(port) < len(n.ports) && n.ports[port].sched != nil
}

// LinkUp reports whether a port is enabled and has a link.
func (n *Node) LinkUp(port uint16) bool { return n.linkUp.has(port) }

// Scheduler returns the egress queues of a port, nil on workers that do not
// own them.
func (n *Node) Scheduler(port uint16) *scheduler.Port { return n.ports[port].sched }

// PFC returns the flow control of a port, nil on workers that do not own it.
func (n *Node) PFC(port uint16) *pfc.Port { return n.ports[port].pfc }

// Buffer writes the state of this worker's share of the buffer into s.
func (n *Node) Buffer(s *buffer.Snapshot, clearPeaks bool) { n.buffer.Snapshot(s, clearPeaks) }

// RouteCounts appends the traffic of each route, by route id.
func (n *Node) RouteCounts(to []Traffic) []Traffic { return append(to, n.routeCount...) }

// RuleCounts appends the traffic of each access-list entry, by counter id.
func (n *Node) RuleCounts(to []Traffic) []Traffic { return append(to, n.aclCount...) }

// Neighbor describes an entry of the neighbour table.
type Neighbor struct {
	Interface string
	Addr      netip.Addr
	MAC       wire.MAC // zero while unresolved
	State     string   // incomplete, reachable, probing, static or failed
	Pending   int      // frames that wait for it
}

// Neighbors lists the neighbour table in the order in which its entries were
// made. Only worker 0 has it.
func (n *Node) Neighbors() []Neighbor {
	if n.local == nil {
		return nil
	}
	out := make([]Neighbor, 0, len(n.local.table))
	for nb := n.local.first; nb != nil; nb = nb.after {
		out = append(out, Neighbor{Interface: n.prog.ifaces[nb.iface].name, Addr: nb.key.addr(), MAC: wire.MACFromUint64(nb.mac), State: nb.state.String(), Pending: nb.pending.Len()})
	}
	return out
}

// NeighborUse is the use of the neighbour table and of other state that neighbours can
// fill.
type NeighborUse struct {
	Entries    int // resolved or not
	Unresolved int // for which requests are being sent
	Ports      [MaxPorts]struct{ Entries, Unresolved int }
	Datagrams  int // datagrams to the switch itself that are incomplete
}

// NeighborUse reports the neighbour table. Only worker 0 has it.
func (n *Node) NeighborUse() (u NeighborUse) {
	l := n.local
	if l == nil {
		return u
	}
	u.Entries, u.Unresolved, u.Datagrams = len(l.table), l.unresolved, len(l.datagrams)
	for i := range u.Ports {
		u.Ports[i].Entries, u.Ports[i].Unresolved = l.shares[i].entries, l.shares[i].unresolved
	}
	return u
}

// ClearCounts sets the counters of this worker to zero. What measures state
// (queue lengths, buffer, pauses) stays.
func (n *Node) ClearCounts() {
	n.count = Counts{}
	n.own.drops = [frame.NumReasons]uint64{}
	n.paths.count = PathCounts{}
	clear(n.routeCount)
	clear(n.aclCount)
	for i := range n.ports {
		ps := &n.ports[i]
		ps.rx, ps.tx, ps.rxClass, ps.queueDrops = Traffic{}, Traffic{}, [8]Traffic{}, [8]uint64{}
		clear(ps.drops[:])
		clear(ps.parseErrors[:])
	}
}

// FDB returns the forwarding database. It may be used from any goroutine.
func (sw *Switch) FDB() *pipeline.FDB { return sw.fdb }

// RouteInfo describes a route of a Program.
type RouteInfo struct {
	Prefix   netip.Prefix
	ID       uint32 // of its counters
	Kind     string // local, connected, via, learned, blackhole, unreachable or prohibit
	Via      []NextHop
	Networks string // interface of a connected network
}

// Routes yields the routes of the program by address.
func (p *Program) Routes(yield func(RouteInfo) bool) {
	for prefix, id := range p.routing.table.All() {
		e := p.routing.entries[id]
		if e.kind == routeBroadcast {
			continue // goes with its network
		}
		info := RouteInfo{Prefix: prefix, ID: id}
		switch e.kind {
		case routeLocal:
			info.Kind = "local"
		case routeConnected:
			info.Kind, info.Networks = "connected", p.ifaces[e.iface].name
		case routeBlackhole:
			info.Kind = Blackhole.String()
		case routeUnreachable:
			info.Kind = Unreachable.String()
		case routeProhibit:
			info.Kind = Prohibit.String()
		case routeGroup:
			info.Kind = "via"
			for _, m := range p.routing.groups[e.group].Members() {
				info.Via = append(info.Via, NextHop{Via: p.via(m.NextHop), Weight: m.Weight})
			}
		}
		if e.learned && info.Kind == "via" {
			info.Kind = "learned"
		}
		if !yield(info) {
			return
		}
	}
}

// via returns the address of a next hop, a link-local one with its interface.
func (p *Program) via(hop uint32) netip.Addr {
	h := p.routing.hops[hop]
	a := h.key.addr()
	if a.Is6() && a.IsLinkLocalUnicast() {
		return a.WithZone(p.ifaces[h.iface].name)
	}
	return a
}

// GroupInfo describes next hops among which frames choose.
type GroupInfo struct {
	Choose pipeline.Chooser
	Routes int // that lead to it
	Hops   []HopInfo
}

// HopInfo is one of them.
type HopInfo struct {
	Via    netip.Addr
	Weight uint32
	Port   uint16 // frame.NoPort: behind a VLAN
}

// Groups yields the groups of several next hops that routes lead to, in the
// order in which they were made.
func (p *Program) Groups(yield func(GroupInfo) bool) {
	rt := &p.routing
	routes := make([]int, len(rt.groups))
	for _, id := range rt.table.All() {
		if e := rt.entries[id]; e.kind == routeGroup {
			routes[e.group]++
		}
	}
	for i, g := range rt.groups {
		if routes[i] == 0 || len(g.Members()) < 2 {
			continue
		}
		info := GroupInfo{Choose: g.Chooser(), Routes: routes[i]}
		for _, m := range g.Members() {
			hop := rt.hops[m.NextHop]
			info.Hops = append(info.Hops, HopInfo{Via: p.via(m.NextHop), Weight: m.Weight, Port: p.ifaces[hop.iface].port})
		}
		if !yield(info) {
			return
		}
	}
}

// Rules yields the entries of an access list with their counter ids.
func (p *Program) Rules(yield func(list string, rule *ACLRule, counter uint32) bool) {
	for i := range p.acls {
		for j := range p.Config.ACLs[i].Rules {
			if !yield(p.acls[i].name, &p.Config.ACLs[i].Rules[j], p.acls[i].count[j]) {
				return
			}
		}
	}
}
