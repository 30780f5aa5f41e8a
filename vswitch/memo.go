package vswitch

import (
	"encoding/binary"

	"gswitch/frame"
	"gswitch/wire"
)

// memo caches forwarding decisions for routed IPv4 flows. Within a vector, similar frames
// share table lookups. A frame that arrives alone, as nearly all do in virtual time, can
// share only with earlier frames of its flow.
//
// An entry is valid in one epoch: a new program, a link that goes up or down and a
// neighbour that changes each start a new one.
type memo struct {
	epoch     uint32
	neighbors uint32 // version of the neighbour table in this epoch
	flow      [memoFlows]memoFlow
}

// memoFlows is the number of flows that are active at once through most switches; it
// takes 10 KB.
const memoFlows = 256

// memoFlow is one flow: its addresses and hash, and where it goes.
type memoFlow struct {
	addresses uint64 // source and destination, as they stand in the header
	hash      uint32
	epoch     uint32
	mac       uint64 // of the next hop
	route     uint32
	mtu       uint32
	group     uint32 // 1 + the group from which each frame's way is chosen; 0: mac, port, vid are those of all
	port      uint16 // frame.NoPort: it is behind a VLAN
	vid       uint16
}

// newEpoch begins a new epoch.
func (c *memo) newEpoch() { c.epoch++ }

// recheck begins a new epoch if a neighbour has changed.
func (n *Node) recheck() {
	if v := n.neighbors.version.Load(); v != n.memo.neighbors {
		n.memo.neighbors = v
		n.memo.newEpoch()
	}
}

// recall routes a frame that came alone like the one of its flow before it,
// and reports whether it could.
func (n *Node) recall(r frame.Ref) bool {
	m := n.arena.Meta(r)
	const plain = frame.HasIPv4 | frame.HasVLAN | frame.IsMulticast | frame.IsBroadcast
	if m.Flags&plain != frame.HasIPv4 || m.Reason != frame.Keep || m.OutPort != frame.NoPort || m.TTL <= 1 {
		return false
	}
	n.recheck()
	c := &n.memo
	b := n.arena.Bytes(r)
	f := &c.flow[m.Hash%memoFlows]
	if f.hash != m.Hash || f.epoch != c.epoch || f.addresses != binary.BigEndian.Uint64(b[m.L3+12:]) ||
		m.Wire-uint32(m.L3) > f.mtu || binary.BigEndian.Uint64(b[0:8])>>16 != n.selfMAC {
		return false
	}
	out, mac := f.port, f.mac
	switch {
	case f.group != 0: // frame by frame
		h, ok := n.recallHop(n.choose(f.group-1, m))
		if !ok || m.Wire-uint32(m.L3) > h.mtu {
			return false
		}
		out, mac = h.port, h.mac
	case out == frame.NoPort:
		var ok bool
		if out, ok = n.behind(f.vid, f.mac); !ok {
			return false
		}
		m.VID = f.vid
	}
	n.routeCount[f.route].add(m.Wire)
	m.Flags |= frame.Routed
	putMACs(b, mac, n.selfMAC)
	wire.DecTTL(m, b)
	m.OutPort = out
	n.emit(r)
	return true
}

// remember notes how a frame is routed, if all of its flow would be.
func (n *Node) remember(m *frame.Meta, a *addresses, id uint32, e *routeEntry, f *iface, mac uint64) {
	if m.Flags&(frame.HasIPv4|frame.HasVLAN) != frame.HasIPv4 {
		return
	}
	if e.kind == routeGroup && !n.prog.routing.groups[e.group].Chooser().ByFlow() {
		n.memo.flow[m.Hash%memoFlows] = memoFlow{addresses: a.src.lo<<32 | a.dst.lo&0xffffffff, hash: m.Hash, epoch: n.memo.epoch, route: id, mtu: ^uint32(0), group: e.group + 1}
		return
	}
	n.memo.flow[m.Hash%memoFlows] = memoFlow{addresses: a.src.lo<<32 | a.dst.lo&0xffffffff, hash: m.Hash, epoch: n.memo.epoch,
		mac: mac, route: id, mtu: f.mtu, port: f.port, vid: f.vid}
}

// hopMemo is a next hop of a group as frames need it, in one epoch of the memo.
type hopMemo struct {
	mac   uint64
	epoch uint32
	mtu   uint32
	port  uint16 // frame.NoPort: it is behind a VLAN
}

// recallHop returns a next hop, or false if it has no port or is not resolved.
func (n *Node) recallHop(hop uint32) (*hopMemo, bool) {
	h := &n.paths.hops[hop]
	if h.epoch != n.memo.epoch || h.mac == 0 {
		to := &n.prog.routing.hops[hop]
		f := &n.prog.ifaces[to.iface]
		*h = hopMemo{n.neighbors.lookup(to.iface, to.key), n.memo.epoch, f.mtu, f.port}
	}
	return h, h.mac != 0 && h.port != frame.NoPort
}
