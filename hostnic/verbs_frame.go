package hostnic

import (
	"sort"

	"gswitch/cc"
	"gswitch/frame"
	"gswitch/transport"
	"gswitch/wire"
)

// prepareRequest makes the next packet of requests and returns the bytes of its
// headers behind the BTH.
func (n *NIC) prepareRequest(q *queuePair, msg *message, seq uint64) uint32 {
	n.packet = q.verbs.req.packet(msg.id, seq)
	return uint32(headersLen(n.packet.op, q.verbs.rsp.inOrder))
}

// prepareResponse makes that of responses.
func (n *NIC) prepareResponse(q *queuePair, _ *message, seq uint64) uint32 {
	n.packet = q.owner.verbs.rsp.packet(seq)
	return uint32(headersLen(n.packet.op, q.owner.verbs.rsp.inOrder))
}

// writeRequest writes the bytes of the packet of requests that was prepared.
func (n *NIC) writeRequest(q *queuePair, r frame.Ref, m *frame.Meta, _ *message, _ uint64, _, extra uint32) {
	n.writeVerb(q, r, m, q.verbs, 0, extra)
}

// writeResponse writes that of responses.
func (n *NIC) writeResponse(q *queuePair, r frame.Ref, m *frame.Meta, _ *message, _ uint64, _, extra uint32) {
	n.writeVerb(q, r, m, q.owner.verbs, q.owner.rx.MSN(), extra)
}

func (n *NIC) writeVerb(q *queuePair, r frame.Ref, m *frame.Meta, v *verbs, msn, extra uint32) {
	p := &n.packet
	head := uint32(q.data.n) + extra
	m.Len = uint16(head)
	if !n.cfg.Virtual {
		m.Len = uint16(m.Wire)
	}
	b := n.arena.Bytes(r)
	q.data.stamp(b, m.Wire, q.nextID())
	bth := b[q.data.bth:]
	bth[0] = p.op
	bth[1] |= byte(wire.RoCEPad(p.size)) << 4
	psn := (q.initial + uint32(p.seq)) & 0xffffff
	if operationOf(p.op).last || q.transport.AckEvery <= 1 || n.endsWindow(q, p.size) {
		psn |= 1 << 31 // AckReq
	}
	be.PutUint32(bth[8:12], psn)
	p.encode(b[q.data.n:head], v.rsp.inOrder, v.req.mtu, msn)
	if !n.cfg.Virtual {
		body := b[head : len(b)-wire.ICRCLen]
		clear(body[copy(body, p.payload):])
		wire.PutICRC(b, wire.EthernetLen, int(q.data.bth))
	}
	p.payload = nil
}

// verb takes in a frame of an RDMA queue pair.
func (n *NIC) verb(now frame.Time, r frame.Ref, m *frame.Meta, b []byte, bth int, q *queuePair) {
	switch op := b[bth]; {
	case op == wire.RCAcknowledge:
		n.verbAck(now, r, m, b, bth, q)
	case op == readAck:
		if len(b) < bth+wire.BTHLen+wire.AETHLen {
			n.drop(r, frame.ParseShortRoCE)
			return
		}
		n.acknowledged(now, r, m, b, bth, q.verbs.resp)
	case op == wire.RoCECongestionNotify:
		// It does not say which way the marked frame went: both slow down.
		n.notified(now, q)
		n.slowDown(now, q.verbs.resp)
		n.pool.Free(r)
	case operationOf(op).family == noFamily:
		n.drop(r, frame.QPOpcode)
	case n.slow.on:
		n.hold(now, r)
	default:
		n.takeVerb(now, r, m, b, bth, q)
	}
}

// takeVerb takes in a packet of a request or a response.
func (n *NIC) takeVerb(now frame.Time, r frame.Ref, m *frame.Meta, b []byte, bth int, q *queuePair) {
	p := &n.packet
	k, why := p.decode(b[bth+wire.BTHLen:], b[bth], q.verbs.rsp.inOrder, q.verbs.req.mtu)
	if why != frame.Keep {
		n.drop(r, why)
		return
	}
	head := bth + wire.BTHLen + k
	size, ok := n.payload(m, b, bth, head)
	if !ok || size > uint32(n.cfg.Payload) || !n.cfg.Virtual && head+int(size) > len(b) {
		n.drop(r, frame.RoCELength)
		return
	}
	p.size = size
	if !n.cfg.Virtual {
		p.payload = b[head:][:size]
	}
	telemetry := b[int(m.L4)+wire.UDPLen : bth]
	if len(telemetry) != 0 && q.codec.EchoLen(telemetry) != len(telemetry) {
		n.drop(r, frame.QPTelemetry)
		return
	}
	psn := wire.BTH(b[bth:]).PSN()
	space := q
	var v transport.Verdict
	if operationOf(p.op).family >= readResponse {
		space = q.verbs.resp
		p.seq = transport.Unwrap(space.rx.Expected(), (psn-space.initial)&0xffffff)
		if !q.verbs.req.checkResponse(p) {
			n.drop(r, frame.QPSequence)
			return
		}
		v = n.response(now, q, p)
	} else {
		var syndrome uint8
		var drop bool
		p.seq = transport.Unwrap(q.rx.Expected(), (psn-q.initial)&0xffffff)
		v, syndrome, drop = q.verbs.rsp.request(now, &q.rx, p)
		n.count.WrongReceives += q.verbs.rsp.wrong
		q.verbs.rsp.wrong = 0
		switch {
		case drop:
			n.drop(r, frame.QPEarly)
			return
		case syndrome != 0:
			n.refuse(now, r, q, syndrome)
			return
		}
		n.received(now, q)
	}
	p.payload = nil
	n.marked(now, space, m)
	n.tally(space, size, &v)
	if v.Deliver && v.Reply == transport.None && wire.BTH(b[bth:]).AckReq() {
		v = space.rx.Answer(v)
	}
	if v.Reply == transport.None {
		n.pool.Free(r)
		return
	}
	n.answer(now, r, space, &v, telemetry)
}

// tally counts a packet of a request or a response.
func (n *NIC) tally(q *queuePair, size uint32, v *transport.Verdict) {
	switch {
	case v.Deliver:
		q.stats.RxFrames++
		q.stats.RxBytes += uint64(size)
		n.count.Delivered++
	case v.Duplicate:
		n.count.Duplicates++
	default:
		n.count.OutOfOrder++
	}
}

// response takes in a packet of a response that was asked for.
func (n *NIC) response(now frame.Time, q *queuePair, p *packet) transport.Verdict {
	v := q.verbs.resp.rx.Data(now, p.seq, operationOf(p.op).kind())
	if v.Deliver {
		q.verbs.req.place(p)
	}
	if v.InOrder > 0 {
		q.verbs.req.answered(v.Cum)
		n.finish(now, q)
		n.schedule(now, q)
	}
	return v
}

// received reports the receive requests that were consumed, and queues the
// responses that became due.
func (n *NIC) received(now frame.Time, q *queuePair) {
	rsp := &q.verbs.rsp
	for i := range rsp.done {
		d := &rsp.done[i]
		n.done = append(n.done, Completion{Op: RecvDone, QPN: q.qpn, ID: d.id, Bytes: d.bytes, Start: d.start, End: now, Imm: d.imm, HasImm: d.immediate, Write: d.write})
		n.count.MessagesReceived++
	}
	rsp.done = rsp.done[:0]
	resp := q.verbs.resp
	if resp.posted == rsp.rNext {
		return
	}
	for i := range rsp.rN {
		s := rsp.response(i)
		if s.first < resp.posted {
			continue
		}
		m := resp.msgs.push()
		*m = message{bytes: s.bytes, first: s.first, end: s.end, start: now}
		if !s.isAtomic {
			m.lastLen = uint32(s.bytes - (s.end-s.first-1)*rsp.mtu)
		}
		resp.posted = s.end
	}
	n.schedule(now, resp)
}

// refuse turns the frame r into a NAK with a syndrome, for the packet that is
// expected.
func (n *NIC) refuse(now frame.Time, r frame.Ref, q *queuePair, syndrome uint8) {
	switch syndrome {
	case wire.AETHRNRNak:
		syndrome |= rnrCode(q.verbs.cfg.RNRTimer)
	case nakRemoteAccess:
		n.count.AccessRefused++
	}
	m := n.arena.Reset(r)
	m.Wire, m.Class = uint32(q.reply.n)+wire.AETHLen+wire.ICRCLen, q.ackClass
	if m.Len = uint16(m.Wire); n.cfg.Virtual {
		m.Len -= wire.ICRCLen
	}
	b := n.arena.Bytes(r)
	q.reply.stamp(b, m.Wire, q.nextID())
	bth := b[q.reply.bth:]
	bth[0] = wire.RCAcknowledge
	be.PutUint32(bth[8:12], (q.initial+uint32(q.rx.Expected()))&0xffffff)
	be.PutUint32(bth[12:16], uint32(syndrome)<<24|q.rx.MSN())
	if !n.cfg.Virtual {
		wire.PutICRC(b, wire.EthernetLen, int(q.reply.bth))
	}
	n.count.NaksSent++
	n.queueReply(now, r, q.ackClass)
}

// verbAck takes in an ACK or NAK of requests.
func (n *NIC) verbAck(now frame.Time, r frame.Ref, m *frame.Meta, b []byte, bth int, q *queuePair) {
	syndrome := b[bth+wire.BTHLen]
	if syndrome&0x60 == wire.AETHAck || syndrome == wire.AETHNak {
		n.acknowledged(now, r, m, b, bth, q)
		return
	}
	psn := (wire.BTH(b[bth:]).PSN() - q.initial) & 0xffffff
	cum := transport.Unwrap(q.tx.Cum(), psn)
	if cum < q.tx.Cum() || cum >= q.tx.Next() {
		n.drop(r, frame.QPSequence) // overtaken, or of what was never sent
		return
	}
	n.pool.Free(r)
	n.feedback = cc.Feedback{Now: now}
	n.feed(now, q, transport.Ack{Cum: cum})
	q.stats.Acks--
	q.stats.Naks++
	v := q.verbs
	switch {
	case syndrome&0x60 == wire.AETHRNRNak:
		if v.rnrAt != cum {
			v.rnr, v.rnrAt = 0, cum
		}
		if v.rnr++; v.cfg.RNRRetries != 0 && v.rnr > v.cfg.RNRRetries {
			n.fail(now, q, StatusNotReady)
			return
		}
		v.rnr = min(v.rnr, 254)
		// Go-back-N, whatever the mode (IRN, appendix on errors).
		q.tx.Rewind(now, now+rnrTimes[syndrome&31])
		n.schedule(now, q)
		n.arm(now, q)
	case syndrome == nakInvalidRequest:
		n.fail(now, q, StatusInvalid)
	default: // access, operation, and what has no other name
		n.fail(now, q, StatusRemote)
	}
}

// rnrTimes are the times that a sender waits, by code (IBTA table 45).
var rnrTimes = func() (t [32]frame.Time) {
	for i, tens := range [32]frame.Time{65536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192,
		256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152} {
		t[i] = tens * 10 * frame.Microsecond
	}
	return t
}()

// rnrCode returns the code of the least time that is not below t; 0, the
// longest, if there is none.
func rnrCode(t frame.Time) uint8 {
	return uint8(1+sort.Search(31, func(i int) bool { return rnrTimes[i+1] >= t })) & 31
}
