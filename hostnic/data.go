package hostnic

import (
	"gswitch/frame"
	"gswitch/transport"
	"gswitch/wire"
)

// assembly reassembles messages: it knows where messages end, and which parts of the
// receive buffers are filled.
type assembly struct {
	begun bool       // a packet of the message in order arrived
	start frame.Time // when
	first uint64     // its first packet
	count uint64     // messages complete
	full  uint32     // payload of first and middle packets

	// Ends of messages whose last packet has arrived and that are not complete: IRN's
	// premature completions. It is a heap ordered by packet, since packets after a gap
	// may arrive in any order.
	ends []messageEnd
}

type messageEnd struct {
	seq  uint64
	size uint32 // payload of the last packet
}

func (a *assembly) reset() { *a = assembly{ends: a.ends[:0]} }

// end records the last packet of a message.
func (a *assembly) end(seq uint64, size uint32) {
	a.ends = append(a.ends, messageEnd{seq, size})
	for i := len(a.ends) - 1; i > 0; {
		up := (i - 1) / 2
		if a.ends[up].seq < seq {
			return
		}
		a.ends[i], a.ends[up] = a.ends[up], a.ends[i]
		i = up
	}
}

// takeEnd removes and returns the first end in the order of packets.
func (a *assembly) takeEnd() messageEnd {
	first, last := a.ends[0], len(a.ends)-1
	a.ends[0] = a.ends[last]
	a.ends = a.ends[:last]
	for i := 0; ; {
		c := 2*i + 1
		if c+1 < last && a.ends[c+1].seq < a.ends[c].seq {
			c++
		}
		if c >= last || a.ends[i].seq < a.ends[c].seq {
			return first
		}
		a.ends[i], a.ends[c] = a.ends[c], a.ends[i]
		i = c
	}
}

// kinds says for each opcode of Sends and Writes what the packet is to its
// message, and how long its headers are behind the BTH.
var kinds = [...]struct {
	kind transport.PacketKind
	head int
}{
	wire.RCSendFirst:   {transport.Middle, 0},
	wire.RCSendMiddle:  {transport.Middle, 0},
	wire.RCSendLast:    {transport.LastCQE, 0},
	wire.RCSendOnly:    {transport.LastCQE, 0},
	wire.RCWriteFirst:  {transport.Middle, wire.RETHLen},
	wire.RCWriteMiddle: {transport.Middle, 0},
	wire.RCWriteLast:   {transport.LastCQE, 0},
	wire.RCWriteOnly:   {transport.LastCQE, wire.RETHLen},
}

// carries reports whether packets of an opcode are those of messages of q.
func (q *queuePair) carries(op byte) bool {
	if q.duties&writes != 0 {
		return op >= wire.RCWriteFirst && op <= wire.RCWriteOnly && op != wire.RCWriteLastImmediate
	}
	return op <= wire.RCSendOnly && op != wire.RCSendLastImmediate
}

// takeData processes a data frame of a message: it delivers the payload and answers the
// frame.
func (n *NIC) takeData(now frame.Time, r frame.Ref, m *frame.Meta, b []byte, bth int, q *queuePair) {
	op := b[bth]
	k := &kinds[op]
	head := bth + wire.BTHLen + k.head
	size, ok := n.payload(m, b, bth, head)
	if !ok || size > uint32(n.cfg.Payload) || k.kind == transport.Middle && size == 0 {
		n.drop(r, frame.RoCELength)
		return
	}
	telemetry := b[int(m.L4)+wire.UDPLen : bth]
	if len(telemetry) != 0 && q.codec.EchoLen(telemetry) != len(telemetry) {
		n.drop(r, frame.QPTelemetry)
		return
	}
	seq := transport.Unwrap(q.rx.Expected(), (wire.BTH(b[bth:]).PSN()-q.initial)&0xffffff)
	var v transport.Verdict
	level := b[bth+4] & levelMask
	switch {
	case level == 0:
		v = q.rx.Data(now, seq, k.kind)
		if v.Deliver && v.Reply == transport.None && wire.BTH(b[bth:]).AckReq() {
			v = q.rx.Answer(v)
		}
		n.marked(now, q, m)
	case !q.hasLow():
		n.drop(r, frame.QPOpcode)
		return
	default:
		v = n.takeLow(now, q, seq, k.kind, m)
	}
	if v.Deliver {
		if q.place != nil && !n.cfg.Virtual {
			q.place.Place(q.qpn, seq, b[head:][:size])
		}
		n.deliver(now, q, seq, size, k.kind, &v)
	} else if v.Duplicate {
		n.count.Duplicates++
	} else {
		n.count.OutOfOrder++
	}
	if v.Reply == transport.None {
		n.pool.Free(r)
		return
	}
	if level != 0 {
		n.answerLow(now, r, q, &v, seq, level)
		return
	}
	n.answer(now, r, q, &v, telemetry)
}

// marked processes a congestion mark on a data frame.
func (n *NIC) marked(now frame.Time, q *queuePair, m *frame.Meta) {
	if m.Flags&frame.IsCE == 0 {
		return
	}
	q.ceSeen = true
	n.count.CEMarked++
	if n.cfg.CNP.Frames && now >= q.cnpAt {
		q.cnpAt = now + n.cfg.CNP.Interval
		n.notify(now, q)
	}
}

// deliver counts the payload of a new packet and completes the messages that it made
// complete.
func (n *NIC) deliver(now frame.Time, q *queuePair, seq uint64, size uint32, kind transport.PacketKind, v *transport.Verdict) {
	q.stats.RxFrames++
	q.stats.RxBytes += uint64(size)
	n.count.Delivered++
	a := &q.assembly
	if kind == transport.Middle {
		a.full = size
	}
	if !a.begun && v.InOrder > 0 {
		a.begun, a.start = true, now
	}
	if kind != transport.Middle {
		a.end(seq, size)
	}
	for ; v.Completions > 0 && len(a.ends) > 0; v.Completions-- {
		e := a.takeEnd()
		n.done = append(n.done, Completion{Op: RecvDone, QPN: q.qpn, ID: a.count, Start: a.start, End: now,
			Bytes: (e.seq-a.first)*uint64(a.full) + uint64(e.size)})
		n.count.MessagesReceived++
		a.count++
		a.first, a.start = e.seq+1, now
		a.begun = v.Cum > a.first
	}
}
