package hostnic

import (
	"gswitch/frame"
	"gswitch/wire"
)

// The data frames of messages, RDMA Sends and Writes.

// writeMessage writes a data frame of a message.
func (n *NIC) writeMessage(q *queuePair, r frame.Ref, m *frame.Meta, msg *message, seq uint64, payload, _ uint32) {
	head := n.writeSend(q, r, m, msg, seq, payload, seq+1 == msg.end || q.transport.AckEvery <= 1)
	if n.cfg.Virtual {
		return
	}
	var data []byte
	if msg.data != nil {
		data = msg.data[(seq-msg.first)*uint64(n.cfg.Payload):]
	}
	n.writePayload(q, n.arena.Bytes(r), head, payload, data)
}

// prepareWrite returns what the RETH adds to the first packet of a message.
func (n *NIC) prepareWrite(q *queuePair, msg *message, seq uint64) uint32 {
	switch {
	case seq != msg.first:
		return 0
	case n.cfg.Sizes.Data != 0: // says how long frames are, so that only the headers must fit
		head, wire := uint32(q.data.n)+wire.RETHLen, n.dataWire(q, n.lengthOf(q, seq))
		return head - min(head, wire)
	}
	return wire.RETHLen
}

// writeSend writes the headers of an RDMA Send or Write and returns their length; on real
// frames the payload follows (writePayload). The packet requests an acknowledgement if
// asks is set, or if window and cap allow no further packet.
func (n *NIC) writeSend(q *queuePair, r frame.Ref, m *frame.Meta, msg *message, seq uint64, payload uint32, asks bool) (head uint32) {
	first, last := seq == msg.first, seq+1 == msg.end
	isWrite := q.duties&writes != 0
	if head = uint32(q.data.n); isWrite && first {
		head += wire.RETHLen
	}
	extra := uint32(0)
	if !n.cfg.Virtual {
		extra = payload + wire.RoCEPad(payload) + wire.ICRCLen
	}
	m.Len = uint16(head + extra)
	b := n.arena.Bytes(r)
	q.data.stamp(b, m.Wire, q.nextID())
	bth := b[q.data.bth:]
	psn := (q.initial + uint32(seq)) & 0xffffff
	switch {
	case first && last:
		bth[0] = wire.RCSendOnly
	case first:
		bth[0] = wire.RCSendFirst
	case last:
		bth[0] = wire.RCSendLast
	default:
		bth[0] = wire.RCSendMiddle
	}
	if isWrite {
		bth[0] += wire.RCWriteFirst // the opcode of a Write is that of the Send plus 6
		if first {
			reth := wire.RETHFields{Length: uint32(msg.bytes)}
			reth.Encode(b[q.data.n:head])
		}
	}
	if asks || n.endsWindow(q, payload) {
		psn |= 1 << 31 // AckReq
	}
	be.PutUint32(bth[8:12], psn)
	switch s := n.cfg.Sizes.Data; {
	case s != 0:
		// Virtual only: how much the frame had to grow to hold its headers.
		bth[8] |= byte(m.Wire-uint32(s+q.intLen)-payload) & 0x7f
	default:
		bth[1] |= byte(wire.RoCEPad(payload)) << 4
	}
	return head
}

// writePayload writes payload, padding and ICRC behind the headers.
func (n *NIC) writePayload(q *queuePair, b []byte, head, payload uint32, data []byte) {
	body := b[head : len(b)-wire.ICRCLen]
	clear(body[copy(body[:payload], data):])
	wire.PutICRC(b, wire.EthernetLen, int(q.data.bth))
}
