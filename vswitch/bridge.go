package vswitch

import (
	"encoding/binary"

	"gswitch/frame"
	"gswitch/pipeline"
)

// bridge forwards by MAC address: it learns the source, looks up the destination and
// floods if it does not find it. Frames for the switch's own address continue to route,
// frames for the switch itself go to the slow path.
func (n *Node) bridge(now frame.Time, in uint16, pp *portProgram, v []frame.Ref) {
	prog := n.prog
	// Frames of one flow come in bursts: keep what the previous one needed.
	var lastSrc, lastDst uint64
	var lastOut uint16
	var lastKnown bool
	var last way
	for _, r := range v {
		m := n.arena.Meta(r)
		head := (*[14]byte)(n.arena.Bytes(r))
		dst := binary.BigEndian.Uint64(head[0:8]) >> 16
		src := pipeline.MACKey(m.VID, binary.BigEndian.Uint64(head[6:14])>>16)
		if dst == last.dst && src == last.src && n.follow(&last, r, m) {
			continue
		}
		if pp.learn && src != lastSrc {
			if n.learn(now, src, in) { // frames for it go another way than those before
				lastDst, lastKnown, last = 0, false, way{}
			}
			lastSrc = src
		}
		if m.OutPort != frame.NoPort { // redirected by the access list
			n.emit(r)
			continue
		}
		if m.Flags&(frame.IsMulticast|frame.IsBroadcast) != 0 {
			if n.localGroup(m, r) {
				n.copyToLocal(r)
			}
			n.flood(now, in, pp, r, m)
			continue
		}
		vp := &prog.vlans[m.VID]
		if vp.iface != noIface && dst == n.selfMAC {
			if len(v) != 1 || !n.recall(r) {
				n.toRoute(r)
			}
			continue
		}
		if key := pipeline.MACKey(m.VID, dst); key != lastDst {
			lastOut, lastKnown = n.fdb.Lookup(key)
			lastDst = key
		}
		out := lastOut
		switch {
		case !lastKnown:
			if n.flood(now, in, pp, r, m) && pp.storm == (StormControl{}) {
				last = n.wayOf(dst, src, r)
				last.flooded = 1
			}
		case out == in:
			n.drop(r, frame.SamePort)
		case int(out) >= len(prog.ports) || !vp.members.has(out):
			n.drop(r, frame.VLANEgress)
		case pp.isolated && prog.ports[out].isolated:
			n.drop(r, frame.Isolated)
		default:
			m.OutPort = out
			n.emit(r)
			last = n.wayOf(dst, src, r)
		}
	}
}

// way is the forwarding decision for frames of a vector with the same addresses and VLAN,
// once one of them has been gathered for a queue, or for the features that see it first.
// The others only need to be gathered.
type way struct {
	dst, src uint64 // 0, 0: none
	key      uint64 // of the train that the first one joined, if no feature sees it first
	flooded  uint64 // 1: it was flooded, to one port
	limit    uint32 // size up to which the port sends a frame in any case
	out      uint16
	class    uint8
	queue    uint8
}

// wayOf returns the decision for a frame that was just forwarded, if others may use it.
func (n *Node) wayOf(dst, src uint64, r frame.Ref) way {
	t, g := &n.train, n.gatheredN
	if !t.on || n.forwardsTo == 0 && (t.n == 0 || t.v[t.n-1] != r) || n.forwardsTo != 0 && (g == 0 || n.gathered[g-1] != r) {
		return way{}
	}
	m := n.arena.Meta(r)
	pp := &n.prog.ports[m.OutPort]
	if m.Flags&(frame.Own|frame.IsClone) != 0 || pp.vlanMode != VLANTransparent && pp.iface == noIface {
		return way{}
	}
	return way{dst: dst, src: src, key: t.key, limit: pp.maxFrame, out: m.OutPort, class: m.Class, queue: m.Queue}
}

// follow gathers a frame with those of the same way, unless it differs in something else.
func (n *Node) follow(w *way, r frame.Ref, m *frame.Meta) bool {
	t := &n.train
	if m.OutPort != frame.NoPort || m.Class != w.class || m.Wire > w.limit {
		return false
	}
	if n.forwardsTo != 0 {
		m.OutPort = w.out
		n.gather(r)
		n.count.Flooded += w.flooded
		return true
	}
	if t.key != w.key || !t.bulk || t.n == len(t.v) {
		return false
	}
	m.OutPort, m.Queue = w.out, w.queue
	t.v[t.n] = r
	t.n++
	n.count.Flooded += w.flooded
	return true
}

// learn records that a station is behind a port (IEEE 802.1Q 8.7), and reports whether
// that is new.
func (n *Node) learn(now frame.Time, key uint64, port uint16) (changed bool) {
	switch result, _ := n.fdb.Learn(now, key, port); result {
	case pipeline.LearnNew:
		n.count.Learned++
		return true
	case pipeline.LearnMoved:
		n.count.Moved++
		return true
	case pipeline.LearnFull:
		n.count.LearnFull++
	}
	return false
}

// flood sends a frame to all other ports of its VLAN: the first of them gets the frame
// itself, the others get copies. It reports whether there is only one.
func (n *Node) flood(now frame.Time, in uint16, pp *portProgram, r frame.Ref, m *frame.Meta) (one bool) {
	if !n.stormAllows(now, in, pp, m) {
		n.drop(r, frame.StormControl)
		return false
	}
	to := n.prog.vlans[m.VID].members
	no := &n.prog.noFlood[floodKind(m)]
	for i := range to { // a copy for a port without a link would only be dropped
		to[i] &= n.linkUp[i] &^ no[i]
		if pp.isolated {
			to[i] &^= n.prog.isolated[i]
		}
	}
	if in != frame.NoPort {
		to.remove(in)
	}
	out := to.next(0)
	if out < 0 {
		n.drop(r, frame.NoVLANMember)
		return false
	}
	n.count.Flooded++
	if n.floodRoom.share != 0 && to.next(out+1) >= 0 {
		m.Flags |= frame.Flooded
	}
	one = true
	for p := to.next(out + 1); p >= 0; p = to.next(p + 1) {
		one = false
		n.count.Made++
		if c := n.pool.Copy(r); c == frame.Nil {
			n.countDrop(in, frame.ArenaExhausted)
		} else {
			cm := n.arena.Meta(c)
			cm.OutPort = uint16(p)
			cm.Flags |= frame.IsClone
			n.emit(c)
		}
	}
	m.OutPort = uint16(out)
	n.emit(r)
	return one
}

// stormAllows charges a frame that is about to be flooded to the storm-control meter of
// its kind, and reports whether it conforms.
func (n *Node) stormAllows(now frame.Time, in uint16, pp *portProgram, m *frame.Meta) bool {
	if pp.storm == (StormControl{}) {
		return true
	}
	kind := floodKind(m)
	rate := [floodKinds]uint64{pp.storm.Broadcast, pp.storm.Multicast, pp.storm.UnknownUnicast}[kind]
	return rate == 0 || n.ports[in].storm[kind].Take(now, int(m.Wire))
}

// The kinds of frames that are flooded.
const (
	floodBroadcast = iota
	floodMulticast
	floodUnknown
	floodKinds
)

func floodKind(m *frame.Meta) int {
	switch {
	case m.Flags&frame.IsBroadcast != 0:
		return floodBroadcast
	case m.Flags&frame.IsMulticast != 0:
		return floodMulticast
	}
	return floodUnknown
}
