package hostnic

import (
	"errors"

	"gswitch/cc"
	"gswitch/frame"
	"gswitch/notice"
	"gswitch/wire"
)

// Congestion points in switches notify senders by ICMP messages (package notice), which
// quote one of our frames. The quote identifies the queue pair, whose congestion control
// is the reaction point.

// reactionPoints are the connected queue pairs whose congestion control handles notices,
// by the source port of their frames. Switches distinguish flows by addresses and ports:
// queue pairs that share these are one flow to a switch, which quotes a single frame, and
// all of them must react.
type reactionPoints struct {
	heads [256]uint32 // index of the queue pair, +1
}

func portBucket(port uint16) uint8 { return uint8(port ^ port>>8) }

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
	for _, k := range n.notices.kinds {
		if k.Reacts(algorithm) {
			q.reacts = algorithm
		}
	}
	if q.reacts == nil {
		return
	}
	head := &n.notices.points.heads[portBucket(q.dataUDP().SrcPort())]
	q.nextPoint, *head = *head, q.index+1
}

// delist takes a queue pair out that is about to be closed.
func (n *NIC) delist(q *queuePair) {
	if q.reacts == nil {
		return
	}
	q.reacts = nil
	at := &n.notices.points.heads[portBucket(q.dataUDP().SrcPort())]
	for *at != 0 {
		o := n.qps[*at-1]
		if o == q {
			*at = q.nextPoint
			return
		}
		at = &o.nextPoint
	}
}

// notices is the state for notices of congestion points.
type notices struct {
	kinds   []notice.Reader
	points  reactionPoints
	pending frame.FIFO // that take effect later, at Meta.Arrival
}

// notice processes a notice, and returns false if the frame is none: another ICMP
// message, or one for another receiver. A valid notice differs from a forged one by the
// frame that it quotes: of an open queue pair, from our address to its peer's.
func (n *NIC) notice(now frame.Time, r frame.Ref, m *frame.Meta, b []byte) bool {
	const wrong = frame.HasTunnel | frame.IsFragment | frame.IsMulticast | frame.Chained | frame.Truncated
	if m.Flags&wrong != 0 || m.L4 == 0 || wire.Ethernet(b).DstUint64() != n.mac || (m.Flags&frame.HasIPv4 != 0) != n.addr.v4 {
		return false
	}
	k, quote, err := n.readNotice(m, b)
	switch {
	case k == nil:
		return false
	case err == nil && n.cfg.NoticeDelay > 0:
		n.deferNotice(now, r, m)
	default:
		n.takeNotice(now, r, k, quote, err)
	}
	return true
}

var errNoticeSum = errors.New("the checksum of a notice is wrong")

// readNotice decodes the ICMP message of a frame. It returns the reader that decoded it,
// nil if it is no notice.
func (n *NIC) readNotice(m *frame.Meta, b []byte) (k notice.Reader, quote []byte, err error) {
	v4 := n.addr.v4
	typ, end := uint8(notice.Type4), 0
	if v4 {
		end = int(m.L3) + int(wire.IPv4(b[m.L3:]).TotalLen())
	} else {
		typ, end = notice.Type6, int(m.L3)+wire.IPv6Len+int(wire.IPv6(b[m.L3:]).PayloadLen())
	}
	if end > len(b) || int(m.L4)+wire.ICMPLen > end || b[m.L4] != typ {
		return nil, nil, nil
	}
	msg := b[m.L4:end]
	pseudo := uint64(0)
	if !v4 {
		ip := wire.IPv6(b[m.L3:])
		pseudo = wire.PseudoSum6(ip.Src(), ip.Dst(), wire.ProtoICMPv6, len(msg))
	}
	for _, k := range n.notices.kinds {
		quote, ours, err := k.Decode(msg, typ)
		if !ours {
			continue
		}
		if err == nil && wire.SegmentChecksum(pseudo, msg) != 0 {
			err = errNoticeSum
		}
		return k, quote, err
	}
	return nil, nil, nil
}

// takeNotice passes a notice to the queue pairs that it concerns.
func (n *NIC) takeNotice(now frame.Time, r frame.Ref, k notice.Reader, quote []byte, err error) {
	if err != nil || !n.react(now, k, quote, n.addr.v4) {
		n.count.NoticesUnknown++
		n.drop(r, frame.LocalUnhandled)
		return
	}
	n.count.Notices++
	n.pool.Free(r)
}

// deferNotice keeps a notice until it takes effect.
func (n *NIC) deferNotice(now frame.Time, r frame.Ref, m *frame.Meta) {
	if n.notices.pending.Len() >= n.maxReplies {
		n.drop(r, frame.QueueTail)
		return
	}
	m.Arrival = now + n.cfg.NoticeDelay
	n.notices.pending.Push(n.arena, r)
}

// noticeDue returns when the next notice takes effect.
func (n *NIC) noticeDue() frame.Time {
	if n.notices.pending.Len() == 0 {
		return frame.Never
	}
	return n.arena.Meta(n.notices.pending.Head()).Arrival
}

// takeNotices applies the notices that are due.
func (n *NIC) takeNotices(now frame.Time) {
	for n.noticeDue() <= now {
		r := n.notices.pending.Pop(n.arena)
		k, quote, err := n.readNotice(n.arena.Meta(r), n.arena.Bytes(r))
		n.takeNotice(now, r, k, quote, err)
	}
}

// react passes a notice to the queue pairs of the flow that it quotes, and returns false
// if none of them handles it. A notice about a frame is for its queue pair alone if the
// frame names that.
func (n *NIC) react(now frame.Time, k notice.Reader, quote []byte, v4 bool) bool {
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
	remote := wire.BTH(quote[head+wire.UDPLen:]).DestQP() // in frames without telemetry
	if n.cfg.RandomNumbers && !n.knows(udp, peer, remote, v4) {
		return false
	}
	reacted := false
	for i := n.notices.points.heads[portBucket(udp.SrcPort())]; i != 0; {
		q := n.qps[i-1]
		i = q.nextPoint
		if !q.isFlow(udp, peer, v4) ||
			k.OfFrame() && q.intLen == 0 && q.remote != remote || !k.Reacts(q.reacts) {
			continue
		}
		k.React(now, q.reacts)
		reacted = true
		n.adoptCC(q)
		n.schedule(now, q)
		n.arm(now, q)
	}
	return reacted
}

// isFlow reports whether frames of a queue pair have those ports and that peer.
func (q *queuePair) isFlow(udp wire.UDP, peer []byte, v4 bool) bool {
	own := q.dataUDP()
	return own.SrcPort() == udp.SrcPort() && own.DstPort() == udp.DstPort() && q.peer.v4 == v4 && q.peer.is(peer)
}

// knows reports whether a quoted frame is one that this NIC may have sent: to the other
// end of a queue pair of that flow, whose number is known only to nodes that saw its
// frames. With telemetry the number is not part of the quote.
func (n *NIC) knows(udp wire.UDP, peer []byte, remote uint32, v4 bool) bool {
	for i := n.notices.points.heads[portBucket(udp.SrcPort())]; i != 0; {
		q := n.qps[i-1]
		i = q.nextPoint
		if q.isFlow(udp, peer, v4) && (q.intLen != 0 || q.remote == remote) {
			return true
		}
	}
	return false
}
