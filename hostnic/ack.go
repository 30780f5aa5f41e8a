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
		if !q.hasLow() {
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
		n.adoptCC(q)
	}
	n.schedule(now, q)
	n.arm(now, q)
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
	n.adoptCC(q)
	n.schedule(now, q)
	n.arm(now, q)
}
