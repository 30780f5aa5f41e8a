package hostnic

import (
	"gswitch/frame"
	"gswitch/transport"
	"gswitch/wire"
)

const (
	// sackLen is what a NAK of a selective transport carries after its AETH:
	// the 24-bit number of the packet that caused it (IRN section 5.2).
	sackLen = 4
	// maxEcho bounds the telemetry that an acknowledgement echoes.
	maxEcho = 512
	// cnpLen is what a congestion notification carries after its BTH, reserved
	// (IBTA annex A17.9.3).
	cnpLen = 16
	becn   = 0x40
)

// answer turns the data frame r into the reply to it and queues it. On the
// wire a reply is BTH, AETH, the number of the packet in a NAK of a selective
// transport, and the telemetry of the frame, as it came.
func (n *NIC) answer(now frame.Time, r frame.Ref, q *queuePair, v *transport.Verdict, telemetry []byte) {
	nak := v.Reply == transport.NakReply
	head := int(q.reply.n) + wire.AETHLen
	if nak && q.selects {
		head += sackLen
	}
	echo := len(telemetry)
	if echo > maxEcho || head+echo+wire.ICRCLen > n.arena.Room() {
		n.count.EchoesCut++
		echo = 0
	}
	copy(n.echo[:], telemetry[:echo])

	bytes := uint32(head + echo + wire.ICRCLen)
	if s := &n.cfg.Sizes; echo > 0 && s.AckINT != 0 {
		bytes = max(uint32(head), uint32(s.AckINT))
	} else if s.Ack != 0 {
		bytes = max(uint32(head+echo), uint32(s.Ack))
	}
	m := n.arena.Reset(r)
	m.Wire, m.Class = bytes, q.ackClass
	m.Len = uint16(head + echo)
	if !n.cfg.Virtual {
		m.Len = uint16(bytes)
	}
	b := n.arena.Bytes(r)
	q.reply.stamp(b, bytes, q.nextID())
	n.writeReply(b, q, v, nak)
	copy(b[head:], n.echo[:echo])
	if !n.cfg.Virtual {
		wire.PutICRC(b, wire.EthernetLen, int(q.reply.bth))
	}
	n.queueReply(now, r, q.ackClass)
}

// writeReply writes BTH and AETH. An ACK names the last packet in order, a NAK
// the one that is missing (IBTA 9.7.5.1).
func (n *NIC) writeReply(b []byte, q *queuePair, v *transport.Verdict, nak bool) {
	bth := b[q.reply.bth:]
	bth[0] = q.ackOp
	if q.ceSeen && !n.cfg.CNP.Frames {
		bth[4] |= becn
		n.count.BECNs++
	}
	q.ceSeen = false
	// 31 is the credit count of a responder that counts none (IBTA 9.7.7.2.5).
	psn, syndrome := q.initial+uint32(v.Cum-1), uint32(wire.AETHAck|31)
	if nak {
		psn, syndrome = q.initial+uint32(v.Cum), uint32(wire.AETHNak)
		n.count.NaksSent++
	} else {
		n.count.AcksSent++
	}
	be.PutUint32(bth[8:12], psn&0xffffff)
	be.PutUint32(bth[12:16], syndrome<<24|v.MSN&0xffffff)
	if nak && q.selects {
		be.PutUint32(bth[16:20], (q.initial+uint32(v.Sack))&0xffffff)
	}
}

// notify sends a congestion notification to the sender of q.
func (n *NIC) notify(now frame.Time, q *queuePair) {
	r := n.pool.Alloc()
	if r == frame.Nil {
		n.count.Drops[frame.ArenaExhausted]++
		return
	}
	head := int(q.reply.n) + cnpLen
	m := n.arena.Reset(r)
	m.Wire, m.Class = uint32(head+wire.ICRCLen), q.ackClass
	if m.Len = uint16(head); !n.cfg.Virtual {
		m.Len = uint16(m.Wire)
	}
	b := n.arena.Bytes(r)
	q.reply.stamp(b, m.Wire, q.nextID())
	bth := b[q.reply.bth:]
	bth[0], bth[4] = wire.RoCECongestionNotify, becn
	clear(b[q.reply.n:])
	if !n.cfg.Virtual {
		wire.PutICRC(b, wire.EthernetLen, int(q.reply.bth))
	}
	n.count.CNPsSent++
	n.queueReply(now, r, q.ackClass)
}
