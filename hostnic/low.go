package hostnic

import (
	"fmt"

	"gswitch/frame"
	"gswitch/transport"
	"gswitch/wire"
)

// The second loop of a transport (transport.Recursive) is a separate lane of a queue
// pair: its packets leave in the class of their level, without pace and window, when the
// link has nothing better to do, and are answered in the same class. Data and replies of
// a level carry its number in the reserved low bits of the fifth byte of the BTH, which
// the ICRC does not cover. A reply is
//
//	BTH, AETH, first packet and end of the run that arrived (4 + 4 bytes, 24 bits used)

const (
	levelMask = 0x0f // of byte 4 of the BTH
	runLen    = 8
)

// hasLow reports whether q has a second loop.
func (q *queuePair) hasLow() bool { return q.loops > behind }

// lowClass returns the class of a level; levels beyond the last have its class.
func (q *queuePair) lowClass(level uint8) uint8 {
	return q.lowClasses[min(int(level), len(q.lowClasses))-1]
}

func (c *QPConfig) validateLow(n *NIC) error {
	r := c.Transport.Recursive
	if r == nil {
		return nil
	}
	switch {
	case c.Verbs != nil || c.Frames != nil:
		return fmt.Errorf("nic %s: the second loop is for queue pairs that send messages", n.cfg.Name)
	case len(c.LowClasses) != len(r.Levels):
		return fmt.Errorf("nic %s: %d classes for the %d levels of the second loop", n.cfg.Name, len(c.LowClasses), len(r.Levels))
	}
	above := c.Class
	for i, class := range c.LowClasses {
		if class >= above {
			return fmt.Errorf("nic %s: class %d of level %d of the second loop is not below %d, the one before", n.cfg.Name, class, i+1, above)
		}
		if n.cfg.PFC && n.cfg.PFCClasses>>class&1 != 0 {
			return fmt.Errorf("nic %s: class %d of level %d of the second loop is lossless: its pauses would come from packets that must not harm others; take it out of the classes of flow control", n.cfg.Name, class, i+1)
		}
		above = class
	}
	return nil
}

// openSecond readies the second loop of q.
func (q *queuePair) openSecond(cfg *QPConfig) {
	if cfg.Transport.Recursive != nil {
		q.lanes[behind], q.lowClasses = lane{}, cfg.LowClasses
		q.loops = behind + 1
	}
}

// placeSecond puts the lane of q's second loop where it belongs.
func (n *NIC) placeSecond(now frame.Time, q *queuePair) {
	l := &q.lanes[behind]
	seq, level, ok := q.tx.PeekLow()
	if !ok {
		n.parkSecond(q)
		return
	}
	class := q.lowClass(level)
	if class != l.class {
		n.parkSecond(q)
	}
	l.next, l.nextLen, l.level, l.class = seq, n.lengthOf(q, seq), level, class
	if l.state == idle {
		n.enter(now, q, l)
	}
}

// parkSecond takes the lane of q's second loop off the list.
func (n *NIC) parkSecond(q *queuePair) {
	if q.lanes[behind].state == ready {
		n.leave(q, &q.lanes[behind])
		q.lanes[behind].state = idle
	}
}

// sentSecond notes that the next packet of q's second loop was sent.
func (n *NIC) sentSecond(now frame.Time, q *queuePair) {
	q.tx.SentLow(q.lanes[behind].next, q.lanes[behind].level)
	q.stats.LowFrames++
	n.placeSecond(now, q)
}

// setLevel gives a frame that was stamped the DSCP of its class and its level.
func (n *NIC) setLevel(t *template, b []byte, class, level uint8) {
	t.setDSCP(b, n.cfg.DSCP[class])
	b[t.bth+4] |= level & levelMask
}

// setDSCP changes the DSCP of a frame that was stamped.
func (t *template) setDSCP(b []byte, dscp uint8) {
	if !t.ipv4 {
		l3 := b[wire.EthernetLen:]
		be.PutUint16(l3, be.Uint16(l3)&^0x0fc0|uint16(dscp)<<6)
		return
	}
	h := wire.IPv4(b[wire.EthernetLen:])
	old := be.Uint16(h[0:2])
	h[1] = h[1]&0x03 | dscp<<2
	h.SetChecksum(wire.PatchChecksum(h.Checksum(), old, be.Uint16(h[0:2])))
}

// takeLow passes a packet of the peer's second loop to the receiver of the transport.
func (n *NIC) takeLow(now frame.Time, q *queuePair, seq uint64, kind transport.PacketKind, m *frame.Meta) transport.Verdict {
	v := q.rx.DataLow(now, seq, kind)
	if m.Flags&frame.IsCE != 0 {
		n.count.LowMarked++ // does not concern the ordinary loop's congestion control
	}
	return v
}

// answerLow turns a data frame of a level into the reply to it.
func (n *NIC) answerLow(now frame.Time, r frame.Ref, q *queuePair, v *transport.Verdict, seq uint64, level uint8) {
	head := int(q.reply.n) + wire.AETHLen + runLen
	bytes := uint32(head + wire.ICRCLen)
	if s := n.cfg.Sizes.Ack; s != 0 {
		bytes = max(uint32(head), uint32(s))
	}
	class := q.lowClass(level)
	m := n.arena.Reset(r)
	m.Wire, m.Class = bytes, class
	m.Len = uint16(head)
	if !n.cfg.Virtual {
		m.Len = uint16(bytes)
	}
	b := n.arena.Bytes(r)
	q.reply.stamp(b, bytes, q.nextID())
	n.setLevel(&q.reply, b, class, level)
	bth := b[q.reply.bth:]
	bth[0] = q.ackOp
	be.PutUint32(bth[8:12], (q.initial+uint32(v.Cum-1))&0xffffff)
	be.PutUint32(bth[12:16], uint32(wire.AETHAck|31)<<24|v.MSN&0xffffff)
	first, end := q.rx.Run(seq)
	be.PutUint32(bth[16:20], (q.initial+uint32(first))&0xffffff)
	be.PutUint32(bth[20:24], (q.initial+uint32(end))&0xffffff)
	if !n.cfg.Virtual {
		wire.PutICRC(b, wire.EthernetLen, int(q.reply.bth))
	}
	n.count.AcksSent++
	n.queueReply(now, r, class)
}

// acknowledgedLow takes in the reply to a packet of q's second loop.
func (n *NIC) acknowledgedLow(now frame.Time, r frame.Ref, b []byte, bth int, q *queuePair) {
	run := b[bth+wire.BTHLen+wire.AETHLen:]
	if len(run) < runLen {
		n.drop(r, frame.ParseShortRoCE)
		return
	}
	near := q.tx.Cum()
	first := transport.Unwrap(near, (be.Uint32(run)-q.initial)&0xffffff)
	end := transport.Unwrap(near, (be.Uint32(run[4:])-q.initial)&0xffffff)
	if first > end {
		first = 0 // it began before what has been acknowledged
	}
	before := q.tx.Second().BadRanges
	res := q.tx.AckLow(now, first, end)
	if q.tx.Second().BadRanges != before {
		n.drop(r, frame.QPSequence)
		return
	}
	n.pool.Free(r)
	n.count.LowAcks++
	q.acked += uint64(res.NewBytes)
	if res.NewPackets > 0 {
		q.service.retire(n, now, q)
	}
	n.schedule(now, q)
	n.arm(now, q)
}
