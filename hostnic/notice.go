package hostnic

import (
	"github.com/gswitch/gswitch/cc"
	"github.com/gswitch/gswitch/frame"
	"github.com/gswitch/gswitch/rocc"
	"github.com/gswitch/gswitch/wire"
)

// Switches that work out fair rates (package rocc) tell them by ICMP messages,
// which quote a frame of ours: by that, the queue pair is found.

// obeying are the connected queue pairs whose congestion control obeys fair
// rates, by what a quoted frame says of them: the number at the other end.
type obeying struct {
	heads [256]uint32 // index of the queue pair, +1
}

func obeyBucket(remote uint32) uint32 { return (remote ^ remote>>8 ^ remote>>16) & 255 }

// enlist enters a queue pair that was just connected.
func (n *NIC) enlist(q *queuePair) {
	if q.fair, _ = q.cc.(cc.FairRater); q.fair == nil {
		return
	}
	head := &n.obeying.heads[obeyBucket(q.remote)]
	q.obeyNext, *head = *head, q.index+1
}

// delist takes a queue pair out that is about to be closed.
func (n *NIC) delist(q *queuePair) {
	if q.fair == nil {
		return
	}
	q.fair = nil
	at := &n.obeying.heads[obeyBucket(q.remote)]
	for *at != 0 {
		o := n.qps[*at-1]
		if o == q {
			*at = q.obeyNext
			return
		}
		at = &o.obeyNext
	}
}

// notice takes in a fair rate, and reports false if the frame is none: another
// ICMP message, or one for somebody else. It is told apart from a forged one
// by what it quotes: a frame of an open queue pair, from our address to its
// peer's.
func (n *NIC) notice(now frame.Time, r frame.Ref, m *frame.Meta, b []byte) bool {
	const wrong = frame.HasTunnel | frame.IsFragment | frame.IsMulticast | frame.Chained | frame.Truncated
	v4 := m.Flags&frame.HasIPv4 != 0
	if m.Flags&wrong != 0 || m.L4 == 0 || wire.Ethernet(b).DstUint64() != n.mac || v4 != n.addr.v4 {
		return false
	}
	typ, end := uint8(rocc.Type4), 0
	if v4 {
		end = int(m.L3) + int(wire.IPv4(b[m.L3:]).TotalLen())
	} else {
		typ, end = rocc.Type6, int(m.L3)+wire.IPv6Len+int(wire.IPv6(b[m.L3:]).PayloadLen())
	}
	if end > len(b) || int(m.L4)+wire.ICMPLen > end || b[m.L4] != typ {
		return false
	}
	msg := b[m.L4:end]
	pseudo := uint64(0)
	if !v4 {
		ip := wire.IPv6(b[m.L3:])
		pseudo = wire.PseudoSum6(ip.Src(), ip.Dst(), wire.ProtoICMPv6, len(msg))
	}
	var told rocc.Notice
	quote, err := told.Decode(msg, typ)
	if err == rocc.ErrForeign {
		return false
	}
	var q *queuePair
	if err == nil && wire.SegmentChecksum(pseudo, msg) == 0 {
		q = n.quoted(quote, v4)
	}
	if q == nil {
		n.count.NoticesUnknown++
		n.drop(r, frame.LocalUnhandled)
		return true
	}
	n.count.Notices++
	q.fair.OnFairRate(now, told.Point(), told.Rate())
	n.pool.Free(r)
	n.adopt(q)
	n.schedule(now, q)
	n.arm(now, q)
	return true
}

// quoted returns the queue pair that sent a quoted frame, nil if none did that
// obeys.
func (n *NIC) quoted(quote []byte, v4 bool) *queuePair {
	head, src, size := wire.IPv6Len, 8, 16
	if v4 {
		head, src, size = wire.IPv4Len, 12, 4
		if len(quote) > 0 && quote[0] != 0x45 { // options, which we do not send
			return nil
		}
	}
	if len(quote) < head+wire.UDPLen+wire.BTHLen {
		return nil
	}
	udp := wire.UDP(quote[head:])
	if udp.DstPort() != wire.RoCEv2Port || !n.addr.is(quote[src:]) {
		return nil
	}
	remote := wire.BTH(quote[head+wire.UDPLen:]).DestQP()
	for i := n.obeying.heads[obeyBucket(remote)]; i != 0; {
		q := n.qps[i-1]
		if q.remote == remote && q.peer.v4 == v4 && q.peer.is(quote[src+size:]) {
			return q
		}
		i = q.obeyNext
	}
	return nil
}
