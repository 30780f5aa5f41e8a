package vswitch

import (
	"encoding/binary"

	"gswitch/frame"
	"gswitch/pipeline"
	"gswitch/wire"
)

// receiveRouted sorts a vector that arrived at a routed port: unicast for the
// switch's MAC is routed, groups may concern the switch itself, nothing is
// bridged.
func (n *Node) receiveRouted(v []frame.Ref) {
	for _, r := range v {
		m := n.arena.Meta(r)
		head := (*[14]byte)(n.arena.Bytes(r))
		dst := binary.BigEndian.Uint64(head[0:8]) >> 16
		switch {
		case m.Reason != frame.Keep:
			n.drop(r, m.Reason)
		case m.OutPort != frame.NoPort:
			n.emit(r)
		case dst == n.selfMAC:
			n.toRoute(r)
		case m.Flags&(frame.IsMulticast|frame.IsBroadcast) != 0:
			if n.localGroup(m, r) || n.twinWants(r, m) {
				n.toLocal(r)
			} else {
				n.drop(r, frame.MulticastRouted)
			}
		default:
			n.drop(r, frame.ForeignMAC)
		}
	}
}

// toRoute gathers a frame for the route stage, which runs after bridge.
func (n *Node) toRoute(r frame.Ref) {
	n.routed.vec[n.routed.n] = r
	n.routed.n++
}

// route forwards the gathered frames by network address: lookups for the whole
// vector first, so that their cache misses overlap, then the rewrites.
func (n *Node) route(now frame.Time) {
	v := n.routed.vec[:n.routed.n]
	n.routed.n, n.routed.alone = 0, n.routed.n == 1
	n.routed.lastMAC = 0 // a neighbour may have changed since the vector before
	n.recheck()
	n.lookupRoutes(v)
	for i, r := range v {
		m := n.arena.Meta(r)
		id := n.routed.id[i]
		switch {
		case m.Reason != frame.Keep:
			n.drop(r, m.Reason)
		case m.Flags&frame.IsARP != 0:
			n.toLocal(r)
		case m.Flags&(frame.HasIPv4|frame.HasIPv6) == 0:
			n.drop(r, frame.LocalUnhandled)
		case id == pipeline.NoEntry && n.routed.addr[i].dst.unroutable(m):
			n.drop(r, frame.MulticastRouted) // a martian: no ICMP error is sent (RFC 1812 section 5.3.7)
		case id == pipeline.NoEntry:
			n.unreachable(now, r)
		default:
			n.routeOne(now, r, m, id, &n.routed.addr[i])
		}
	}
}

// addresses are source and destination of an IP packet.
type addresses struct{ src, dst addrKey }

// lookupRoutes reads the addresses of the frames of v and looks them up.
func (n *Node) lookupRoutes(v []frame.Ref) {
	table := n.prog.routing.table
	var last addrKey // of a train of frames to one destination, one is looked up
	var family uint32
	id := uint32(pipeline.NoEntry)
	for i, r := range v {
		m := n.arena.Meta(r)
		a := &n.routed.addr[i]
		if m.Reason != frame.Keep {
			continue // route drops it
		}
		a.read(n.arena.Bytes(r), m)
		if f := m.Flags & (frame.HasIPv4 | frame.HasIPv6); a.dst != last || f != family {
			last, family, id = a.dst, f, lookupRoute(table, m, &a.dst)
		}
		n.routed.id[i] = id
	}
}

// lookupRoute returns the route id of a frame to dst, or pipeline.NoEntry.
func lookupRoute(table *pipeline.LPM, m *frame.Meta, dst *addrKey) uint32 {
	switch {
	case m.Reason != frame.Keep:
	case m.Flags&frame.HasIPv4 != 0:
		return table.Lookup4(uint32(dst.lo))
	case m.Flags&frame.HasIPv6 != 0:
		return table.Lookup6(dst.hi, dst.lo)
	}
	return pipeline.NoEntry
}

// read takes the outer addresses of a frame that the parser found good.
func (a *addresses) read(b []byte, m *frame.Meta) {
	switch {
	case m.Reason != frame.Keep:
	case m.Flags&frame.HasIPv4 != 0:
		w := binary.BigEndian.Uint64(b[m.L3+12:])
		a.src, a.dst = key4(uint32(w>>32)), key4(uint32(w))
	case m.Flags&frame.HasIPv6 != 0:
		d := b[m.L3+8 : m.L3+40]
		a.src = addrKey{binary.BigEndian.Uint64(d), binary.BigEndian.Uint64(d[8:])}
		a.dst = addrKey{binary.BigEndian.Uint64(d[16:]), binary.BigEndian.Uint64(d[24:])}
	}
}

// routeOne forwards one frame along the route with the given id.
func (n *Node) routeOne(now frame.Time, r frame.Ref, m *frame.Meta, id uint32, a *addresses) {
	prog := n.prog
	e := &prog.routing.entries[id]
	n.routeCount[id].add(m.Wire)
	if e.kind == routeLocal {
		n.toLocal(r)
		return
	}
	switch {
	case a.src.unroutable(m):
		n.drop(r, frame.MartianSource)
		return
	case e.kind == routeBroadcast || a.dst.unroutable(m):
		n.drop(r, frame.MulticastRouted)
		return
	case m.TTL <= 1:
		n.icmpTimeExceeded(now, r, m)
		n.drop(r, frame.TTLExpired)
		return
	}
	var hop nextHop
	switch e.kind {
	case routeConnected:
		hop = nextHop{e.iface, a.dst}
	case routeGroup:
		i := n.choose(e.group, m)
		if h, ok := n.recallHop(i); ok && m.Wire-uint32(m.L3) <= h.mtu {
			if h.port == m.InPort {
				n.redirect(now, r, m, prog.routing.hops[i], a)
			}
			if n.routed.alone {
				n.remember(m, a, id, e, &prog.ifaces[prog.routing.hops[i].iface], h.mac)
			}
			n.rewrite(r, m, h.mac)
			m.OutPort = h.port
			n.emit(r)
			return
		}
		hop = prog.routing.hops[i]
	default:
		n.refuse(now, r, m, e.kind)
		return
	}
	f := &prog.ifaces[hop.iface]
	if l3 := m.Wire - uint32(m.L3); l3 > f.mtu {
		n.icmpTooBig(now, r, m, f.mtu)
		n.drop(r, frame.MTUExceeded)
		return
	}
	if hop != n.routed.lastHop || n.routed.lastMAC == 0 {
		n.routed.lastHop, n.routed.lastMAC = hop, n.neighbors.lookup(hop.iface, hop.key)
	}
	mac := n.routed.lastMAC
	if mac == 0 {
		m.Flags |= frame.Routed
		n.toLocal(r) // the slow path resolves the neighbour
		return
	}
	if f.port == m.InPort || f.port == frame.NoPort && f.vid == m.VID {
		n.redirect(now, r, m, hop, a)
	}
	if n.routed.alone {
		n.remember(m, a, id, e, f, mac)
	}
	n.sendRouted(r, m, f, mac)
}

// rewrite writes MACs and TTL of a frame for its next hop. The tags of the
// network it came from end here; retag gives it that of the next.
func (n *Node) rewrite(r frame.Ref, m *frame.Meta, mac uint64) {
	m.Flags |= frame.Routed
	for m.Flags&frame.HasVLAN != 0 {
		wire.PopVLAN(n.arena, r)
	}
	b := n.arena.Bytes(r)
	putMACs(b, mac, n.selfMAC)
	wire.DecTTL(m, b)
}

// sendRouted sends a frame to its next hop.
func (n *Node) sendRouted(r frame.Ref, m *frame.Meta, f *iface, mac uint64) {
	n.rewrite(r, m, mac)
	if f.port != frame.NoPort {
		m.OutPort = f.port
	} else {
		m.VID = f.vid
		out, ok := n.behind(f.vid, mac)
		if !ok { // the forwarding database has lost the next hop
			n.flood(n.now, frame.NoPort, &floodAnywhere, r, m)
			return
		}
		m.OutPort = out
	}
	n.emit(r)
}

// behind returns the port of a VLAN behind which a station was learned.
func (n *Node) behind(vid uint16, mac uint64) (port uint16, ok bool) {
	port, ok = n.fdb.Lookup(pipeline.MACKey(vid, mac))
	return port, ok && n.prog.vlans[vid].members.has(port)
}

// floodAnywhere stands for the router as the port that a flooded frame came
// from: not isolated, no storm control.
var floodAnywhere portProgram

// putMACs writes destination and source of an Ethernet frame.
func putMACs(b []byte, dst, src uint64) {
	h := (*[12]byte)(b)
	binary.BigEndian.PutUint64(h[0:8], dst<<16|src>>32)
	binary.BigEndian.PutUint32(h[8:12], uint32(src))
}

// addressesOf returns the outer addresses of an IP frame off the fast path.
func addressesOf(b []byte, m *frame.Meta) (a addresses) {
	a.read(b, m)
	return a
}

// key4 is an IPv4 address mapped into IPv6 (RFC 4291 2.5.5.2).
func key4(a uint32) addrKey { return addrKey{0, 0xffff<<32 | uint64(a)} }

func (k addrKey) is4() bool { return k.hi == 0 && k.lo>>32 == 0xffff }

// unroutable reports addresses that must not stand in a packet that is passed
// on, as source or as destination: this network, loopback, multicast, the
// future use of class E (RFC 1812 5.3.7); in IPv6 unspecified, loopback and
// embedded IPv4, all in ::/64, link-local and multicast (RFC 4291 2.5, 2.7).
func (k addrKey) unroutable(m *frame.Meta) bool {
	if m.Flags&frame.HasIPv4 != 0 {
		net := uint8(k.lo >> 24)
		return net == 0 || net == 127 || net >= 224
	}
	return k.hi == 0 || k.hi>>56 == 0xff || k.hi>>54 == 0xfe80>>6
}

// isMulticast reports IPv4 addresses from 224.0.0.0 on, limited broadcast among
// them, and IPv6 multicast.
func (k addrKey) isMulticast(m *frame.Meta) bool {
	if m.Flags&frame.HasIPv4 != 0 {
		return uint8(k.lo>>24) >= 224
	}
	return k.hi>>56 == 0xff
}
