package vswitch

import (
	"gswitch/frame"
	"gswitch/notice"
	"gswitch/wire"
)

// Only switches send notices of congestion points, and frames with telemetry records.
// Such frames are forged if a port's neighbour is a host.

// distrust drops the forged frames of a vector that came from a host, and returns the
// rest. Telemetry that a receiver echoes passes: it is for the sender of the frame that
// carried it.
func (n *Node) distrust(v []frame.Ref) []frame.Ref {
	keep := v[:0]
	for _, r := range v {
		m := n.arena.Meta(r)
		why := frame.Keep
		switch {
		case m.Proto == wire.ProtoICMP && n.icmpType(r, m) == notice.Type4, m.Proto == wire.ProtoICMPv6 && n.icmpType(r, m) == notice.Type6:
			why = frame.NoticeAtEdge
		case m.Flags&frame.HasINT != 0 && n.stamped(r, m):
			why = frame.TelemetryAtEdge
		}
		if why != frame.Keep {
			n.drop(r, why)
			continue
		}
		keep = append(keep, r)
	}
	return keep
}

// icmpType returns the type of an ICMP message, 0 if it is truncated.
func (n *Node) icmpType(r frame.Ref, m *frame.Meta) uint8 {
	if b := n.arena.Bytes(r); m.L4 != 0 && int(m.L4) < len(b) {
		return b[m.L4]
	}
	return 0
}

// stamped reports whether a data frame carries telemetry records of switches.
func (n *Node) stamped(r frame.Ref, m *frame.Meta) bool {
	b := n.arena.Bytes(r)
	if m.Flags&frame.HasRoCE != 0 {
		if bth := wire.BTHOffset(m, b); bth < len(b) && !wire.IsRoCEData(b[bth]) {
			return false
		}
	}
	return int(m.INT) < len(b) && wire.HasRecords(m.DstPort, b[m.INT:])
}
