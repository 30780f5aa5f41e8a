package hostnic

import (
	"fmt"
	"math/bits"
	"net/netip"

	"gswitch/frame"
	"gswitch/transport"
	"gswitch/wire"
)

// FramesConfig makes a queue pair carry packets of a caller (QPConfig.Frames): each
// message is one IP packet, in a Send of one frame. There are no completions: the NIC
// owns a packet from SendFrame until it is acknowledged, and TakeFrames returns packets
// that arrived in place, in order and once.
type FramesConfig struct {
	Addr netip.Addr // address of our end, if it is not Config.Addr
	MAC  wire.MAC   // MAC of our end, if it is not Config.MAC
	PKey uint16     // partition key of the frames, which distinguishes them from other RoCEv2; 0 = 0xffff
}

// Arrived is a packet that arrived on a queue pair for frames: an Ethernet frame, with
// the addresses of the frame that carried it. The caller owns it.
type Arrived struct {
	QPN uint32
	Ref frame.Ref
}

// frames is the additional state of a queue pair for frames.
type frames struct {
	posted uint64      // payload bytes so far
	early  []frame.Ref // arrived ahead of a gap, by the low bits of the packet's number
	waits  uint32      // of them
	acked  frame.Time  // when one that came was acknowledged last
	owed   uint32      // short frames whose acknowledgement was deferred
}

const (
	// maxArrived bounds the packets that wait to be taken. Further ones are dropped
	// before the receiver of the transport sees them, so that they are sent again.
	maxArrived = 1024
	// maxEarlyCap bounds the cap of queue pairs that keep what comes early.
	maxEarlyCap = 1 << 14
	// earlyShare is the divisor for the part of the chunks that may wait behind gaps.
	earlyShare = 4
	// carriedShare is the divisor for the part that queue pairs may hold of what they
	// send.
	carriedShare = 3

	// shortPacket is the size up to which a packet is short, such as the acknowledgement
	// of a TCP segment. With telemetry its own acknowledgement takes more of the reverse
	// link than the packet itself, in the direction of the segments. It is enough to
	// acknowledge one in shortsAnAck, or one per lateAck-th part of the base round trip,
	// which is also the longest delay of one. A single short packet is acknowledged at
	// once.
	shortPacket = 256
	shortsAnAck = 4
	lateAck     = 4
)

func (c *FramesConfig) validate(n *NIC, t *transport.Config) error {
	switch {
	case c == nil:
		return nil
	case n.cfg.Virtual:
		return fmt.Errorf("nic %s: a queue pair for frames needs real frames", n.cfg.Name)
	case t.Kind().Keeps && (t.Cap == 0 || t.Cap > maxEarlyCap):
		return fmt.Errorf("nic %s: a queue pair for frames with recovery %v needs a cap between 1 and %d packets", n.cfg.Name, t.Kind(), maxEarlyCap)
	}
	return nil
}

// openFrames readies q for the service.
func (q *queuePair) openFrames(t *transport.Config) {
	f := q.framesMemory
	if f == nil {
		f = new(frames)
		q.framesMemory = f
	}
	q.serve(&packetService)
	q.frames = f
	f.posted, f.waits, f.acked, f.owed = 0, 0, -frame.Second, 0
	size := 0
	if t.Kind().Keeps {
		size = 1 << bits.Len32(t.Cap-1)
	}
	if cap(f.early) < size {
		f.early = make([]frame.Ref, size)
	}
	f.early = f.early[:size]
	for i := range f.early {
		f.early[i] = frame.Nil
	}
}

// SendFrame posts the bytes of r, an IP packet, on a queue pair for frames. It
// returns why it does not take r, which then remains the caller's.
func (n *NIC) SendFrame(now frame.Time, qpn uint32, r frame.Ref) frame.Reason {
	q, why := n.lookup(qpn)
	if why != frame.Keep {
		return why
	}
	size := uint32(n.arena.Meta(r).Len)
	if q.service != &packetService || size == 0 || size > uint32(n.cfg.Payload) {
		return frame.MTUExceeded
	}
	if n.carried >= n.pool.Chunks()/carriedShare {
		return frame.BufferFull
	}
	n.carried++
	m := q.msgs.push()
	*m = message{id: uint64(r), bytes: uint64(size), first: q.posted, end: q.posted + 1, lastLen: size, start: now}
	q.posted++
	q.frames.posted += uint64(size)
	n.schedule(now, q)
	return frame.Keep
}

// Backlog returns the payload bytes that a queue pair for frames has not sent
// yet, and the packets that are not acknowledged, those included.
func (n *NIC) Backlog(qpn uint32) (bytes uint64, packets int) {
	q, why := n.lookup(qpn)
	if why != frame.Keep || q.service != &packetService {
		return 0, 0
	}
	return q.frames.posted - q.sent, int(q.msgs.n)
}

// SetRemoteMAC changes the station that a queue pair sends to: the next hop is
// another one now.
func (n *NIC) SetRemoteMAC(qpn uint32, mac wire.MAC) {
	if q, why := n.lookup(qpn); why == frame.Keep {
		copy(q.data.b[:6], mac[:])
		copy(q.reply.b[:6], mac[:])
	}
}

// TakeFrames moves up to len(out) packets that arrived to out, oldest first,
// and returns how many.
func (n *NIC) TakeFrames(out []Arrived) int {
	k := copy(out, n.arrived)
	n.arrived = n.arrived[:copy(n.arrived, n.arrived[k:])]
	return k
}

// ReceiveParsed processes a frame that the caller has parsed, and found to be flow
// control or for one of its queue pairs: the destination station is not checked.
func (n *NIC) ReceiveParsed(now frame.Time, r frame.Ref) {
	m, b := n.arena.Meta(r), n.arena.Bytes(r)
	n.count.RxFrames++
	n.count.RxBytes += uint64(m.Wire)
	switch {
	case !n.up:
		n.drop(r, frame.PortDown)
	case m.Reason != frame.Keep:
		n.drop(r, m.Reason)
	case m.Flags&frame.IsMACControl != 0:
		n.flowControlArrived(now, r, m, b)
	case m.Flags&roceFlags != frame.HasRoCE || m.Flags&frame.Chained != 0:
		n.drop(r, frame.LocalUnhandled)
	default:
		n.roce(now, r, m, b)
	}
}

// takeFrame takes in a data frame of a queue pair for frames: what is new goes
// up as it is, and the answer gets a chunk of its own.
func (n *NIC) takeFrame(now frame.Time, r frame.Ref, m *frame.Meta, b []byte, bth int, q *queuePair) {
	head := bth + wire.BTHLen
	size, ok := n.payload(m, b, bth, head)
	if !ok || b[bth] != wire.RCSendOnly || size == 0 || size > uint32(n.cfg.Payload) {
		n.drop(r, frame.RoCELength)
		return
	}
	telemetry := b[int(m.L4)+wire.UDPLen : bth]
	if len(telemetry) != 0 && q.codec.EchoLen(telemetry) != len(telemetry) {
		n.drop(r, frame.QPTelemetry)
		return
	}
	f := q.frames
	seq := transport.Unwrap(q.rx.Expected(), (wire.BTH(b[bth:]).PSN()-q.initial)&0xffffff)
	early := seq != q.rx.Expected()
	if len(n.arrived)+int(f.waits) >= maxArrived || early && n.early >= n.pool.Chunks()/earlyShare {
		n.drop(r, frame.BufferFull) // as if it were lost on the way
		return
	}
	answer := n.pool.Alloc()
	if answer == frame.Nil {
		n.drop(r, frame.ArenaExhausted)
		return
	}
	v := q.rx.Data(now, seq, transport.LastCQE)
	if v.Deliver && v.Reply == transport.None && wire.BTH(b[bth:]).AckReq() {
		v = q.rx.Answer(v)
	}
	n.marked(now, q, m)
	if !n.putsOff(now, q, &v, size, wire.BTH(b[bth:]).AckReq()) && v.Reply != transport.None {
		n.answer(now, answer, q, &v, telemetry)
	} else {
		n.pool.FreeChunk(answer)
	}
	switch {
	case v.Deliver:
		q.stats.RxFrames++
		q.stats.RxBytes += uint64(size)
		n.count.Delivered++
		n.restore(r, m, b, head, size)
		n.handUp(q, r, seq, v.InOrder)
		return
	case v.Duplicate:
		n.count.Duplicates++
	default:
		n.count.OutOfOrder++
	}
	n.pool.Free(r)
}

// putsOff reports whether the acknowledgement of a packet waits for that of a
// later one, or for answerLate.
func (n *NIC) putsOff(now frame.Time, q *queuePair, v *transport.Verdict, size uint32, asked bool) bool {
	f := q.frames
	at := f.acked + n.cfg.BaseRTT/lateAck
	if asked || size > shortPacket || v.InOrder != 1 || q.ceSeen || f.owed+1 >= shortsAnAck || at <= now {
		if v.Reply != transport.None {
			f.acked, f.owed, q.ackDue = now, 0, frame.Never
		}
		return false
	}
	if f.owed++; f.owed == 1 {
		q.ackDue = at
		n.arm(now, q)
	}
	return true
}

// answerLate sends an acknowledgement that was deferred. It has no telemetry: its age
// would be attributed to the network.
func (n *NIC) answerLate(now frame.Time, q *queuePair) {
	q.ackDue = frame.Never
	r := n.pool.Alloc()
	if r == frame.Nil {
		n.count.Drops[frame.ArenaExhausted]++ // as if it were lost on the way
		return
	}
	q.frames.acked, q.frames.owed = now, 0
	v := q.rx.Answer(transport.Verdict{})
	n.answer(now, r, q, &v, nil)
}

// writeFrame writes the data frame of a packet. Short ones do not ask for their
// acknowledgement.
func (n *NIC) writeFrame(q *queuePair, r frame.Ref, m *frame.Meta, msg *message, seq uint64, payload, _ uint32) {
	head := n.writeSend(q, r, m, msg, seq, payload, payload > shortPacket)
	n.writePayload(q, n.arena.Bytes(r), head, payload, n.arena.Bytes(frame.Ref(msg.id)))
}

// restore turns a data frame into the Ethernet frame that it carries.
func (n *NIC) restore(r frame.Ref, m *frame.Meta, b []byte, head int, size uint32) {
	eth := b[head-wire.EthernetLen : head]
	copy(eth, b[:12]) // the headers between are longer: they do not overlap
	be.PutUint16(eth[12:], wire.EtherTypeIPv4)
	if b[head]>>4 == 6 {
		be.PutUint16(eth[12:], wire.EtherTypeIPv6)
	}
	n.arena.Pull(r, head-wire.EthernetLen)
	m.Len = uint16(wire.EthernetLen + size)
	m.Wire = uint32(m.Len)
}

// handUp passes a packet to the caller, and those behind it that waited for it.
func (n *NIC) handUp(q *queuePair, r frame.Ref, seq uint64, inOrder uint32) {
	f := q.frames
	mask := uint64(len(f.early) - 1)
	if inOrder == 0 {
		f.early[seq&mask] = r
		f.waits++
		n.early++
		return
	}
	n.arrived = append(n.arrived, Arrived{q.qpn, r})
	for i := uint64(1); i < uint64(inOrder); i++ {
		slot := &f.early[(seq+i)&mask]
		n.arrived = append(n.arrived, Arrived{q.qpn, *slot})
		*slot = frame.Nil
		f.waits--
		n.early--
	}
}

// retireFrames releases the packets that are acknowledged.
func (n *NIC) retireFrames(_ frame.Time, q *queuePair) {
	for cum := q.tx.Cum(); q.msgs.n > 0 && q.msgs.at(0).end <= cum; q.msgs.pop() {
		n.pool.Free(frame.Ref(q.msgs.at(0).id))
		n.carried--
		n.count.MessagesSent++
	}
}

// closeFrames drops what is not acknowledged, and what waits for a gap.
func (n *NIC) closeFrames(_ frame.Time, q *queuePair) {
	for ; q.msgs.n > 0; q.msgs.pop() {
		n.drop(frame.Ref(q.msgs.at(0).id), frame.QueueFlush)
		n.carried--
	}
	for i, r := range q.frames.early {
		if r != frame.Nil {
			n.drop(r, frame.QueueFlush)
			q.frames.early[i] = frame.Nil
			n.early--
		}
	}
	q.frames = nil
}
