package hostnic

import (
	"gswitch/cc"
	"gswitch/frame"
	"gswitch/transport"
	"gswitch/wire"
)

// acknowledged processes an ACK or NAK.
func (n *NIC) acknowledged(now frame.Time, r frame.Ref, m *frame.Meta, b []byte, bth int, q *queuePair) {
	if b[bth+4]&levelMask != 0 {
		if q.second == nil {
			n.drop(r, frame.QPOpcode)
			return
		}
		n.acknowledgedLow(now, r, b, bth, q)
		return
	}
	aeth := b[bth+wire.BTHLen:]
	syndrome := aeth[0]
	nak := syndrome&0x60 == wire.AETHNak
	if syndrome&0x60 != wire.AETHAck && syndrome != wire.AETHNak {
		n.drop(r, frame.QPOpcode) // the message service has no receiver-not-ready and no remote errors
		return
	}
	psn := (wire.BTH(b[bth:]).PSN() - q.initial) & 0xffffff
	a := transport.Ack{NAK: nak}
	if !nak {
		psn++
	}
	a.Cum = transport.Unwrap(q.tx.Cum(), psn&0xffffff)
	rest := aeth[wire.AETHLen:]
	if nak && q.selects {
		if len(rest) < sackLen {
			n.drop(r, frame.ParseShortRoCE)
			return
		}
		a.Sack = transport.Unwrap(q.tx.Cum(), (be.Uint32(rest)-q.initial)&0xffffff)
		rest = rest[sackLen:]
	}
	if !q.tx.WasSent(a.Cum) || a.Sack >= q.tx.Next() && a.Sack != 0 {
		n.drop(r, frame.QPSequence)
		return
	}
	if !n.cfg.Virtual {
		rest = rest[:max(0, len(rest)-wire.ICRCLen)] // an acknowledgement may have no telemetry
	}
	f := &n.feedback
	*f = cc.Feedback{Now: now, NAK: nak, CE: b[bth+4]&becn != 0}
	if q.intLen != 0 && len(rest) > 0 && q.cc != nil {
		if _, why := q.codec.DecodeEcho(rest, &n.path); why != frame.Keep {
			n.drop(r, frame.QPTelemetry)
			return
		}
		if n.path.N == 0 {
			n.count.Blind++
		}
		n.path.Age = now
		f.Path = &n.path
	}
	n.pool.Free(r)
	n.feed(now, q, a)
}

// feed passes an acknowledgement to the transport and to congestion control.
func (n *NIC) feed(now frame.Time, q *queuePair, a transport.Ack) {
	f := &n.feedback
	res := q.tx.Ack(now, a)
	q.acked += uint64(res.NewBytes)
	if a.NAK {
		q.stats.Naks++
		n.count.NaksReceived++
	} else {
		q.stats.Acks++
		n.count.AcksReceived++
	}
	if f.CE {
		q.stats.CEs++
	}
	if res.NewPackets > 0 {
		q.service.retire(n, now, q)
	}
	if res.EnteredRecovery {
		q.stats.Losses++
	}
	n.sample(now, q, res)
	if q.cc != nil {
		f.Ack, f.SndNxt, f.Newly = q.acked, q.sent, res.NewBytes
		if bytes, back := q.tx.GoesBack(); back {
			f.Next = q.acked + bytes
		}
		q.cc.OnAck(f)
		if res.EnteredRecovery {
			q.cc.OnLoss(now, cc.LossNAK)
		}
		n.adopt(q)
	}
	n.schedule(now, q)
	n.arm(now, q)
}

// RTTSample is a round-trip time that an acknowledgement gave, without the serialisation
// time of the frame or segment itself (TIMELY section 3.1).
type RTTSample struct {
	QPN uint32
	RTT frame.Time
}

// TakeRTTs moves up to len(out) samples to out, oldest first, and returns how
// many. Config.RTTSamples keeps them.
func (n *NIC) TakeRTTs(out []RTTSample) int {
	k := copy(out, n.rtts)
	n.rtts = n.rtts[:copy(n.rtts, n.rtts[k:])]
	return k
}

// RTTs returns how many samples wait to be taken.
func (n *NIC) RTTs() int { return len(n.rtts) }

// sample fills in the RTT of a frame, or of a segment that is complete; see
// the package comment.
func (n *NIC) sample(now frame.Time, q *queuePair, res *transport.AckResult) {
	f := &n.feedback
	if q.seg.size != 0 {
		f.RTT, f.Bytes = q.seg.acked(now, q.tx.Cum())
	} else if res.RTT > 0 {
		f.RTT, f.Bytes = res.RTT, n.dataWire(q, res.RTTBytes)+n.cfg.Overhead
	}
	if f.RTT <= 0 {
		return
	}
	if n.synced && f.Path != nil && f.Path.N > 0 {
		f.OneWay = n.oneWay(now-f.RTT, q.codec.Range().TS, f.Path.Hops[f.Path.N-1].TS)
	}
	if n.cfg.RTTSamples {
		perByte := q.seg.perByte
		if perByte == 0 {
			perByte = 8e9 / float64(n.cfg.Rate)
		}
		n.rtts = append(n.rtts, RTTSample{q.qpn, max(f.RTT-frame.Time(float64(f.Bytes)*perByte), 0)})
	}
	if n.cfg.RTTNoise > 0 {
		f.RTT += frame.Time(n.noise.Float64() * float64(n.cfg.RTTNoise))
	}
}

// oneWay returns how long a frame that left at an instant took until the last switch sent
// it on. That switch's stamp counts nanoseconds modulo modulo. It returns 0 if the stamp
// precedes the departure, as with a clock that is not synchronised.
func (n *NIC) oneWay(left frame.Time, modulo, stamp uint64) frame.Time {
	d := (stamp - uint64(left+n.lead)) & (modulo - 1)
	if d > modulo/2 {
		return 0
	}
	return frame.Time(d)
}

// notified processes a congestion notification.
func (n *NIC) notified(now frame.Time, q *queuePair) {
	n.count.CNPsReceived++
	n.slowDown(now, q)
}

func (n *NIC) slowDown(now frame.Time, q *queuePair) {
	q.stats.CNPs++
	if q.cc == nil {
		return
	}
	q.cc.OnCNP(now)
	n.adopt(q)
	n.schedule(now, q)
	n.arm(now, q)
}
