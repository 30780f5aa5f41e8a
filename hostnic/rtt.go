package hostnic

import (
	"gswitch/frame"
	"gswitch/transport"
)

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
