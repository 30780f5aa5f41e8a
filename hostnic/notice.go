package hostnic

import (
	"errors"

	"gswitch/cc"
	"gswitch/frame"
	"gswitch/notice"
	"gswitch/qcn"
	"gswitch/rocc"
	"gswitch/wire"
)

// Switches that work out fair rates (package rocc), or feedback (package qcn),
// tell them by ICMP messages, which quote a frame of ours: by that, the queue
// pair is found.

// obeying are the connected queue pairs whose congestion control obeys
// switches, by the source port of their frames. Switches tell flows apart by
// addresses and ports: queue pairs that share those are one flow there, of which
// one frame is quoted, and all of them must hear.
type obeying struct {
	heads [256]uint32 // index of the queue pair, +1
}

func obeyBucket(port uint16) uint8 { return uint8(port ^ port>>8) }

// dataUDP is the UDP header of the data frames of a queue pair.
func (q *queuePair) dataUDP() wire.UDP {
	if q.data.ipv4 {
		return q.data.b[wire.EthernetLen+wire.IPv4Len:]
	}
	return q.data.b[wire.EthernetLen+wire.IPv6Len:]
}

// enlist enters a queue pair that was just connected.
func (n *NIC) enlist(q *queuePair) {
	algorithm := q.cc
	if w, ok := algorithm.(cc.Wrapper); ok {
		algorithm = w.Unwrap()
	}
	q.fair, _ = algorithm.(cc.FairRater)
	q.quantized, _ = algorithm.(cc.QuantizedListener)
	if q.fair == nil && q.quantized == nil {
		return
	}
	head := &n.obeying.heads[obeyBucket(q.dataUDP().SrcPort())]
	q.obeyNext, *head = *head, q.index+1
}

// delist takes a queue pair out that is about to be closed.
func (n *NIC) delist(q *queuePair) {
	if q.fair == nil && q.quantized == nil {
		return
	}
	q.fair, q.quantized = nil, nil
	at := &n.obeying.heads[obeyBucket(q.dataUDP().SrcPort())]
	for *at != 0 {
		o := n.qps[*at-1]
		if o == q {
			*at = q.obeyNext
			return
		}
		at = &o.obeyNext
	}
}

// notice takes in what a switch tells, and reports false if the frame is none: another
// ICMP message, or one for somebody else. It is told apart from a forged one
// by what it quotes: a frame of an open queue pair, from our address to its
// peer's.
func (n *NIC) notice(now frame.Time, r frame.Ref, m *frame.Meta, b []byte) bool {
	const wrong = frame.HasTunnel | frame.IsFragment | frame.IsMulticast | frame.Chained | frame.Truncated
	if m.Flags&wrong != 0 || m.L4 == 0 || wire.Ethernet(b).DstUint64() != n.mac || (m.Flags&frame.HasIPv4 != 0) != n.addr.v4 {
		return false
	}
	what, quote, err := n.readNotice(m, b)
	switch {
	case what == toldNothing:
		return false
	case err == nil && n.cfg.NoticeDelay > 0:
		n.putOff(now, r, m)
	default:
		n.takeNotice(now, r, what, quote, err)
	}
	return true
}

var errNoticeSum = errors.New("the checksum of a notice is wrong")

// readNotice decodes the ICMP message of a frame to n.advice.
func (n *NIC) readNotice(m *frame.Meta, b []byte) (what int, quote []byte, err error) {
	v4 := n.addr.v4
	typ, end := uint8(notice.Type4), 0
	if v4 {
		end = int(m.L3) + int(wire.IPv4(b[m.L3:]).TotalLen())
	} else {
		typ, end = notice.Type6, int(m.L3)+wire.IPv6Len+int(wire.IPv6(b[m.L3:]).PayloadLen())
	}
	if end > len(b) || int(m.L4)+wire.ICMPLen > end || b[m.L4] != typ {
		return toldNothing, nil, nil
	}
	msg := b[m.L4:end]
	pseudo := uint64(0)
	if !v4 {
		ip := wire.IPv6(b[m.L3:])
		pseudo = wire.PseudoSum6(ip.Src(), ip.Dst(), wire.ProtoICMPv6, len(msg))
	}
	what, quote, err = n.advice.decode(msg, typ)
	if err == nil && what != toldNothing && wire.SegmentChecksum(pseudo, msg) != 0 {
		err = errNoticeSum
	}
	return what, quote, err
}

// takeNotice gives what was read to the queue pairs that it concerns.
func (n *NIC) takeNotice(now frame.Time, r frame.Ref, what int, quote []byte, err error) {
	if err != nil || !n.tell(now, what, quote, n.addr.v4) {
		n.count.NoticesUnknown++
		n.drop(r, frame.LocalUnhandled)
		return
	}
	n.count.Notices++
	n.pool.Free(r)
}

// putOff keeps what a switch tells until it takes effect.
func (n *NIC) putOff(now frame.Time, r frame.Ref, m *frame.Meta) {
	if n.notices.Len() >= n.maxReplies {
		n.drop(r, frame.QueueTail)
		return
	}
	m.Arrival = now + n.cfg.NoticeDelay
	n.notices.Push(n.arena, r)
}

// noticeDue returns when the next notice takes effect.
func (n *NIC) noticeDue() frame.Time {
	if n.notices.Len() == 0 {
		return frame.Never
	}
	return n.arena.Meta(n.notices.Head()).Arrival
}

// takeNotices lets the notices take effect that are due.
func (n *NIC) takeNotices(now frame.Time) {
	for n.noticeDue() <= now {
		r := n.notices.Pop(n.arena)
		what, quote, err := n.readNotice(n.arena.Meta(r), n.arena.Bytes(r))
		n.takeNotice(now, r, what, quote, err)
	}
}

// told is the last message of a switch, of one of the kinds there are.
type told struct {
	rate     rocc.Notice
	reading  rocc.Reading
	feedback qcn.Message
}

const (
	toldNothing = iota // another ICMP message
	toldRate
	toldReading
	toldFeedback
)

func (t *told) decode(msg []byte, typ uint8) (what int, quote []byte, err error) {
	if quote, err = t.rate.Decode(msg, typ); err != rocc.ErrForeign {
		return toldRate, quote, err
	}
	if quote, err = t.reading.Decode(msg, typ); err != rocc.ErrForeign {
		return toldReading, quote, err
	}
	if quote, err = t.feedback.Decode(msg, typ); err != qcn.ErrForeign {
		return toldFeedback, quote, err
	}
	return toldNothing, nil, nil
}

// heed gives a queue pair what a switch told, and reports false if its
// congestion control does not listen to that.
func (n *NIC) heed(now frame.Time, q *queuePair, what int) bool {
	t := &n.advice
	switch {
	case what == toldFeedback && q.quantized != nil:
		q.quantized.OnQuantized(now, t.feedback.Feedback)
	case what == toldRate && q.fair != nil:
		q.fair.OnFairRate(now, t.rate.Point(), t.rate.Sequence, t.rate.Rate(), t.rate.Period())
	case what == toldReading && q.fair != nil:
		// All flows of this host share the controller of a point.
		if n.followers == nil {
			n.followers = new(rocc.Followers)
		}
		q.fair.OnFairRate(now, t.reading.Point(), t.reading.Sequence, n.followers.Take(now, &t.reading), t.reading.Period())
	default:
		return false
	}
	return true
}

// tell gives what a switch told to the queue pairs of the flow that it quotes,
// and reports false if there is none that listens. Feedback is of one frame, and
// for its queue pair alone where that can be told.
func (n *NIC) tell(now frame.Time, what int, quote []byte, v4 bool) bool {
	head, src, size := wire.IPv6Len, 8, 16
	if v4 {
		head, src, size = wire.IPv4Len, 12, 4
		if len(quote) > 0 && quote[0] != 0x45 { // options, which we do not send
			return false
		}
	}
	if len(quote) < head+wire.UDPLen+wire.BTHLen || !n.addr.is(quote[src:]) {
		return false
	}
	udp, peer := wire.UDP(quote[head:]), quote[src+size:]
	remote := wire.BTH(quote[head+wire.UDPLen:]).DestQP() // of frames without telemetry
	if n.cfg.RandomNumbers && !n.knows(udp, peer, remote, v4) {
		return false
	}
	heard := false
	for i := n.obeying.heads[obeyBucket(udp.SrcPort())]; i != 0; {
		q := n.qps[i-1]
		i = q.obeyNext
		if !q.isFlow(udp, peer, v4) ||
			what == toldFeedback && q.intLen == 0 && q.remote != remote || !n.heed(now, q, what) {
			continue
		}
		heard = true
		n.adopt(q)
		n.schedule(now, q)
		n.arm(now, q)
	}
	return heard
}

// isFlow reports whether frames of a queue pair have those ports and that peer.
func (q *queuePair) isFlow(udp wire.UDP, peer []byte, v4 bool) bool {
	own := q.dataUDP()
	return own.SrcPort() == udp.SrcPort() && own.DstPort() == udp.DstPort() && q.peer.v4 == v4 && q.peer.is(peer)
}

// knows reports whether a quoted frame is one that this NIC may have sent: to
// the other end of a queue pair of that flow, whose number only those know who
// saw its frames. Behind telemetry the number is not quoted.
func (n *NIC) knows(udp wire.UDP, peer []byte, remote uint32, v4 bool) bool {
	for i := n.obeying.heads[obeyBucket(udp.SrcPort())]; i != 0; {
		q := n.qps[i-1]
		i = q.obeyNext
		if q.isFlow(udp, peer, v4) && (q.intLen != 0 || q.remote == remote) {
			return true
		}
	}
	return false
}
