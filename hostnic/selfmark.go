package hostnic

import "gswitch/wire"

// A host marks its own frames when too many bytes wait for its link (Config.MarkAbove).

// weigh updates a queue pair's part of the bytes that wait for the link to what its
// window admits now.
func (n *NIC) weigh(q *queuePair) {
	w := uint64(0)
	if q.lanes[inTurn].state == ready {
		w = n.wouldQueue(q)
	}
	n.classes[q.lanes[inTurn].class].waits += w - q.waits
	q.waits = w
}

// weighAll does so for all queue pairs after a change of MarkAbove. Without it nothing
// counts.
func (n *NIC) weighAll() {
	for _, q := range n.qps {
		if n.cfg.MarkAbove != 0 {
			n.weigh(q)
			continue
		}
		n.classes[q.lanes[inTurn].class].waits -= q.waits
		q.waits = 0
	}
}

// wouldQueue returns the bytes, headers included, that a ready queue pair would have in a
// queue of frames if there were one.
func (n *NIC) wouldQueue(q *queuePair) uint64 {
	packets := q.posted - q.tx.Next()
	if q.lanes[inTurn].nextRtx {
		packets += max(1, q.tx.Next()-q.tx.Cum()-uint64(q.tx.InFlight()))
	}
	if q.window > 0 {
		room := max(0, q.window-float64(q.tx.BytesInFlight()))
		packets = min(packets, max(1, uint64(room)/uint64(n.cfg.Payload)))
	}
	return (packets-1)*uint64(n.dataWire(q, uint32(n.cfg.Payload))) + uint64(n.dataWire(q, q.lanes[inTurn].nextLen))
}

// congested reports whether a frame of a class must be marked: whether more bytes wait
// ahead of it than MarkAbove.
func (n *NIC) congested(class uint8) bool {
	drain := uint64(0)
	for c := int(class); c < len(n.classes); c++ {
		drain += n.classes[c].waits
	}
	if drain <= uint64(n.cfg.MarkAbove) {
		return false
	}
	n.count.SelfMarked++
	return true
}

// markCE sets the congestion mark of a frame that was stamped.
func (t *template) markCE(b []byte) {
	if !t.ipv4 {
		b[wire.EthernetLen+1] |= wire.CE << 4
		return
	}
	h := wire.IPv4(b[wire.EthernetLen:])
	old := be.Uint16(h[0:2])
	h[1] |= wire.CE
	h.SetChecksum(wire.PatchChecksum(h.Checksum(), old, be.Uint16(h[0:2])))
}
