package vswitch

import (
	"encoding/binary"

	"gswitch/frame"
	"gswitch/pipeline"
)

// bridge forwards by MAC address: it learns the source, looks up the destination and
// floods if it does not find it. Frames for the switch's own address continue to route;
// of frames to groups that concern the switch itself a copy goes to the slow path.
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
		if dst == last.dst && src == last.src && m.OutPort == frame.NoPort {
			m.OutPort = last.out
			n.count.Flooded += last.flooded
			n.emit(r)
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
				last = way{dst, src, 1, m.OutPort}
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
			last = way{dst, src, 0, out}
		}
	}
}

// way is the forwarding decision for frames of a vector with the same addresses and VLAN.
type way struct {
	dst, src uint64 // 0, 0: none
	flooded  uint64 // 1: it is a flood, to one port
	out      uint16
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
	if n.chunks.floods.share != 0 && to.next(out+1) >= 0 {
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
