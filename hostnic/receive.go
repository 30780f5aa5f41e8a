package hostnic

import (
	"gswitch/frame"
	"gswitch/wire"
)

// Receive implements frame.Node: flow control acts, data goes to the receiver
// of its queue pair and is answered, acknowledgements go to the sender.
func (n *NIC) Receive(now frame.Time, port uint16, v []frame.Ref) {
	for len(v) > 0 {
		k := min(len(v), vector)
		if n.arc.unwraps != 0 {
			n.unwrap(now, v[:k])
		}
		n.parser.Parse(n.arena, v[:k])
		if n.arc.arrives != 0 {
			n.showArriving(now, v[:k])
		}
		for _, r := range v[:k] {
			n.receive(now, r)
		}
		if n.arc.taken != 0 {
			n.handOver(now)
		}
		v = v[k:]
	}
}

// Expect implements frame.Expecter: it guesses the queue pair from where the number is in
// our frames, those with the longest telemetry if they have any.
func (n *NIC) Expect(port uint16, r frame.Ref) {
	b := n.arena.Bytes(r)
	bth := wire.EthernetLen + wire.IPv4Len + wire.UDPLen
	if len(b) < bth+wire.LongestTelemetry+wire.BTHLen {
		return
	}
	ack := be.Uint16(b[bth-6:]) == wire.RoCEv2Port
	if !ack {
		bth += wire.LongestTelemetry
	}
	i := wire.BTH(b[bth:]).DestQP() & (1<<n.numbers.bits - 1)
	if int(i) >= len(n.qps) {
		return
	}
	q := n.qps[i]
	frame.Prefetch(q)
	frame.Prefetch(&n.count)
	if ack && b[bth] == wire.RCAcknowledge {
		frame.Prefetch(&q.lanes[inTurn].pace)
		frame.Prefetch(&q.tx)
		frame.Prefetch(&q.data)
		frame.Prefetch(&q.stats)
	} else {
		frame.Prefetch(&q.rx)
		frame.Prefetch(&q.assembly)
		frame.Prefetch(&q.codec)
		frame.Prefetch(&q.reply)
	}
}

// A queue pair takes frames that have the first of these flags only: a RoCEv2 header that
// is neither in a tunnel nor in a fragment. The destination is another matter: receive
// compares it with the NIC's, ReceiveParsed leaves it to its caller.
const roceFlags = frame.HasRoCE | frame.HasTunnel | frame.IsFragment

func (n *NIC) receive(now frame.Time, r frame.Ref) {
	m := n.arena.Meta(r)
	n.count.RxFrames++
	n.count.RxBytes += uint64(m.Wire)
	b := n.arena.Bytes(r)
	switch {
	case !n.up:
		n.drop(r, frame.PortDown)
	case m.Reason != frame.Keep:
		n.drop(r, m.Reason)
	case m.Flags&frame.IsMACControl != 0:
		n.flowControlArrived(now, r, m, b)
	case m.Flags&frame.HasICMP != 0 && n.notice(now, r, m, b):
	case n.arc.takes != 0 && m.Flags&frame.HasRoCE == 0 && n.takes(r, m, b):
	case n.stack != nil && m.Flags&frame.HasRoCE == 0:
		n.local(now, r, m, b)
	case wire.Ethernet(b).DstUint64() != n.mac:
		n.drop(r, frame.ForeignMAC)
	case m.Flags&roceFlags != frame.HasRoCE || m.Flags&frame.Chained != 0:
		n.drop(r, frame.LocalUnhandled)
	default:
		n.roce(now, r, m, b)
	}
}

// roce processes a RoCEv2 frame: it finds the queue pair and checks that the frame comes
// from its other end and is intact.
func (n *NIC) roce(now frame.Time, r frame.Ref, m *frame.Meta, b []byte) {
	bth := wire.BTHOffset(m, b)
	q, why := n.lookup(wire.BTH(b[bth:]).DestQP())
	if why != frame.Keep {
		n.drop(r, why)
		return
	}
	src, dst := int(m.L3)+12, int(m.L3)+16
	if m.Flags&frame.HasIPv6 != 0 {
		src, dst = int(m.L3)+8, int(m.L3)+24
	}
	v4 := m.Flags&frame.HasIPv4 != 0
	switch {
	case v4 != q.local.v4 || !q.local.is(b[dst:]) || !q.linked || !q.peer.is(b[src:]),
		q.peerPort != 0 && wire.UDP(b[m.L4:]).SrcPort() != q.peerPort:
		n.drop(r, frame.QPPeer)
		return
	}
	if !n.cfg.Virtual {
		if b = whole(m, b); b == nil {
			n.drop(r, frame.RoCELength)
			return
		}
		if !n.intact(b, int(m.L3), bth) {
			n.drop(r, frame.BadICRC)
			return
		}
	}
	if q.duties&receives != 0 {
		q.service.receive(n, now, r, m, b, bth, q)
		return
	}
	switch op := b[bth]; {
	case op == wire.RCAcknowledge:
		n.acknowledged(now, r, m, b, bth, q)
	case q.carries(op):
		if n.slow.on {
			n.hold(now, r)
			return
		}
		q.service.data(n, now, r, m, b, bth, q)
	case op == wire.RoCECongestionNotify:
		n.notified(now, q)
		n.pool.Free(r)
	default:
		n.drop(r, frame.QPOpcode)
	}
}

// intact checks the ICRC of a packet.
func (n *NIC) intact(b []byte, l3, bth int) bool {
	if n.verdicts.Scripted() {
		return n.verdicts.Next()
	}
	return n.verdicts.Note(wire.CheckICRC(b, l3, bth))
}

// Verdicts returns the counters of the NIC's checks of payload. The receiver of the
// payload may add its own.
func (n *NIC) Verdicts() *frame.Verdicts { return &n.verdicts }

// Extension returns how many bytes of headers a RoCEv2 packet to this host has after
// those of its opcode: selective transports have more.
func (n *NIC) Extension(b []byte, bth int) int {
	if len(b) < bth+wire.BTHLen {
		return 0
	}
	q, why := n.lookup(wire.BTH(b[bth:]).DestQP())
	if why != frame.Keep {
		return 0
	}
	return q.service.extension(q, b[bth])
}

// whole removes the padding of an Ethernet frame after its UDP datagram. It returns nil
// if not all of the datagram is in memory.
func whole(m *frame.Meta, b []byte) []byte {
	end := int(m.L4) + int(wire.UDP(b[m.L4:]).Length())
	if end > len(b) {
		return nil
	}
	return b[:end]
}
