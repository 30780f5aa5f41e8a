package hostnic

import (
	"gswitch/frame"
	"gswitch/transport"
	"gswitch/wire"
)

// Predicts which frames on their way will complete something. An engine that steps nodes
// in parallel must know when a completion has to be reported to the other side; see
// sim.Foresight, which NIC implements for message services of hosts that process data
// immediately.

// foresight is what is known about the frames that arrive next.
type foresight struct {
	one  [1]frame.Ref
	seen []seen // by the index of the queue pair
}

// seen is the data of a queue pair that has arrived or will arrive.
type seen struct {
	qpn  uint32
	next uint64 // packet after the highest
}

// Pending reports whether there are completions or round-trip times to take.
func (n *NIC) Pending() bool { return n.Completed() > 0 || len(n.rtts) > 0 }

// MayEnd reports whether r, which will arrive after all frames that were passed before,
// may cause a completion. It may err only by returning true.
func (n *NIC) MayEnd(r frame.Ref) bool {
	if n.arc.unwraps != 0 {
		return true // its headers may be behind something that a feature removes
	}
	n.foresight.one[0] = r
	n.parser.Parse(n.arena, n.foresight.one[:])
	m := n.arena.Meta(r)
	may := n.mayEnd(m, n.arena.Bytes(r))
	m.Forget()
	return may
}

func (n *NIC) mayEnd(m *frame.Meta, b []byte) bool {
	switch {
	case m.Reason != frame.Keep, m.Flags&(frame.IsMACControl|frame.HasICMP) != 0:
		return false // dropped, a pause, a notice
	case m.Flags&frame.HasRoCE == 0:
		return true
	}
	bth := wire.BTHOffset(m, b)
	q, why := n.lookup(wire.BTH(b[bth:]).DestQP())
	switch {
	case why != frame.Keep:
		return false
	case !q.service.messages || q.hasLow() || b[bth+4]&levelMask != 0:
		return true
	}
	psn := (wire.BTH(b[bth:]).PSN() - q.initial) & 0xffffff
	switch op := b[bth]; {
	case op == wire.RoCECongestionNotify:
		return false
	case op == wire.RCAcknowledge && len(b) >= bth+wire.BTHLen+wire.AETHLen:
		// What it acknowledges is all that matters: the first message ends there, or before.
		if b[bth+wire.BTHLen]&0x60 != wire.AETHNak {
			psn++
		}
		return q.msgs.n > 0 && transport.Unwrap(q.tx.Cum(), psn&0xffffff) >= q.msgs.at(0).end
	case int(op) < len(kinds):
		// It may close the last gap of a message, unless it is the newest packet of all.
		newest := n.newest(q, transport.Unwrap(q.rx.Expected(), psn))
		return !newest || kinds[op].kind != transport.Middle
	}
	return true
}

// newest reports whether no packet of a queue pair with the number seq or a higher
// one was shown before.
func (n *NIC) newest(q *queuePair, seq uint64) bool {
	i := int(q.qpn & (1<<n.numbers.bits - 1))
	for len(n.foresight.seen) <= i {
		n.foresight.seen = append(n.foresight.seen, seen{})
	}
	s := &n.foresight.seen[i]
	if s.qpn != q.qpn {
		*s = seen{qpn: q.qpn}
	}
	if seq < s.next {
		return false
	}
	s.next = seq + 1
	return true
}
