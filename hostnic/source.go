package hostnic

import (
	"math/bits"

	"gswitch/frame"
	"gswitch/wire"
)

// weigh updates a queue pair's part of the bytes that wait for the link to what its
// window admits now.
func (n *NIC) weigh(q *queuePair) {
	w := uint64(0)
	if q.state == ready {
		w = n.letGo(q)
	}
	n.classes[q.class].waits += w - q.waits
	q.waits = w
}

// weighAll does so for all queue pairs after a change of MarkAbove. Without it nothing
// counts.
func (n *NIC) weighAll() {
	for _, q := range n.qps {
		if n.cfg.MarkAbove != 0 {
			n.weigh(q)
			continue
		}
		n.classes[q.class].waits -= q.waits
		q.waits = 0
	}
}

// letGo returns the bytes, headers included, that a ready queue pair would put into a
// queue of frames if there were one.
func (n *NIC) letGo(q *queuePair) uint64 {
	packets := q.posted - q.tx.Next()
	if q.nextRtx {
		packets += max(1, q.tx.Next()-q.tx.Cum()-uint64(q.tx.InFlight()))
	}
	if q.window > 0 {
		room := max(0, q.window-float64(q.tx.BytesInFlight()))
		packets = min(packets, max(1, uint64(room)/uint64(n.cfg.Payload)))
	}
	return (packets-1)*uint64(n.dataWire(q, uint32(n.cfg.Payload))) + uint64(n.dataWire(q, q.nextLen))
}

// congested reports whether a frame of a class must be marked: whether more bytes wait
// ahead of it than MarkAbove.
func (n *NIC) congested(class uint8) bool {
	drain := uint64(0)
	for c := int(class); c < len(n.classes); c++ {
		drain += n.classes[c].waits
	}
	if drain <= uint64(n.cfg.MarkAbove) {
		return false
	}
	n.count.SelfMarked++
	return true
}

// markCE sets the congestion mark of a frame that was stamped.
func (t *template) markCE(b []byte) {
	if !t.ipv4 {
		b[wire.EthernetLen+1] |= wire.CE << 4
		return
	}
	h := wire.IPv4(b[wire.EthernetLen:])
	old := be.Uint16(h[0:2])
	h[1] |= wire.CE
	h.SetChecksum(wire.PatchChecksum(h.Checksum(), old, be.Uint16(h[0:2])))
}

// quench watches how long classes are paused.
type quench struct {
	since   [8]frame.Time // of each class that is paused
	counted uint8         // classes whose pause has been counted
	due     frame.Time    // earliest time at which the next pause has lasted too long
}

// watchQuenches restarts with the classes that are paused after a change of QuenchAfter.
func (n *NIC) watchQuenches(now frame.Time) {
	n.quench = quench{due: frame.Never}
	if n.cfg.QuenchAfter != 0 {
		n.quenched(now, 0)
	}
}

// quenched processes a change of what the neighbour pauses.
func (n *NIC) quenched(now frame.Time, before uint8) {
	z := &n.quench
	for m := n.paused &^ before; m != 0; m &= m - 1 {
		z.since[bits.TrailingZeros8(m)] = now
		z.due = min(z.due, now+n.cfg.QuenchAfter)
	}
	z.counted &= n.paused
}

// countQuenched counts the classes whose pause has lasted too long.
func (n *NIC) countQuenched(now frame.Time) {
	z := &n.quench
	z.due = frame.Never
	for m := n.paused &^ z.counted; m != 0; m &= m - 1 {
		c := bits.TrailingZeros8(m)
		if over := z.since[c] + n.cfg.QuenchAfter; over > now {
			z.due = min(z.due, over)
			continue
		}
		z.counted |= 1 << c
		n.count.Quenches++
	}
}

// Quenched returns the classes that the neighbour has paused for longer than
// Config.QuenchAfter. Their senders may want to send less, or elsewhere.
func (n *NIC) Quenched() uint8 { return n.quench.counted }
