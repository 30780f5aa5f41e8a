package hostnic

import "gswitch/frame"

// schedule puts q on the right lists, after anything that may have changed what it has to
// send, its window or its pace.
func (n *NIC) schedule(now frame.Time, q *queuePair) {
	if !q.linked {
		return
	}
	n.placeOrdinary(now, q)
	if q.hasLow() {
		n.placeSecond(now, q)
	}
	if n.cfg.MarkAbove != 0 {
		n.weigh(q)
	}
}

// placeOrdinary puts the lane of q's ordinary loop on the right list.
func (n *NIC) placeOrdinary(now frame.Time, q *queuePair) {
	seq, rtx, ok := q.tx.Peek(now, q.posted)
	if !ok {
		n.parkOrdinary(q)
		if q.transport.RetransmitDelay != 0 {
			n.arm(now, q) // Peek may need to be called again
		}
		return
	}
	q.lanes[inTurn].next, q.lanes[inTurn].nextRtx = seq, rtx
	q.lanes[inTurn].nextLen = n.lengthOf(q, seq)
	if !n.permits(q) {
		if q.lanes[inTurn].state != idle {
			q.stats.WindowBlocked++
		}
		n.parkOrdinary(q)
		return
	}
	at, by := q.due(), n.clock.Free()
	switch {
	case n.cfg.Burst == 0:
		by = max(by, now)
	case q.lanes[inTurn].state == waiting: // a late caller changes nothing before
		at = max(at, min(now, n.paceWheel.armed(q.index)))
	case q.lanes[inTurn].state == idle: // it was not ready before
		at = max(at, now)
	}
	if at <= by {
		n.setReady(now, q)
		return
	}
	if q.lanes[inTurn].state == ready {
		n.leave(q, &q.lanes[inTurn])
		if !q.seg.open {
			q.seg.due = unset
		}
	}
	q.lanes[inTurn].state = waiting
	n.paceWheel.arm(q.index, at)
	n.touch(at)
}

// lengthOf returns the payload of a packet.
func (n *NIC) lengthOf(q *queuePair, seq uint64) uint32 {
	if m := q.msgs.find(seq); seq+1 == m.end {
		return m.lastLen
	}
	return uint32(n.cfg.Payload)
}

// permits is the window check: the bytes in flight plus the next packet must fit, but one
// packet may always be in flight (HPCC section 3.2). A selective retransmission is in
// flight already.
func (n *NIC) permits(q *queuePair) bool {
	if q.window <= 0 || !q.tx.AddsToFlight(q.lanes[inTurn].nextRtx) {
		return true
	}
	flight := q.tx.BytesInFlight()
	switch {
	case flight == 0:
		return true
	case n.cfg.Overshoot:
		return float64(flight) < q.window
	}
	return float64(flight+uint64(q.lanes[inTurn].nextLen)) <= q.window
}

// endsWindow reports whether a packet with the given payload, about to be sent, is the
// last one that window and cap admit. It then requests an acknowledgement, which a
// receiver that defers them would otherwise never send.
func (n *NIC) endsWindow(q *queuePair, payload uint32) bool {
	if limit := q.transport.Cap; limit > 0 && q.tx.InFlight()+1 >= limit {
		return true
	}
	return q.window > 0 && float64(q.tx.BytesInFlight()+uint64(payload)+uint64(n.cfg.Payload)) > q.window
}

func (n *NIC) setReady(now frame.Time, q *queuePair) {
	if q.seg.size != 0 && q.seg.due == unset {
		q.seg.due = max(q.lanes[inTurn].pace.at, now)
	}
	if q.lanes[inTurn].state == ready {
		return
	}
	if q.lanes[inTurn].state == waiting {
		n.paceWheel.remove(q.index)
	}
	n.enter(now, q, &q.lanes[inTurn])
}

// parkOrdinary takes the lane of q's ordinary loop off all lists.
func (n *NIC) parkOrdinary(q *queuePair) {
	switch q.lanes[inTurn].state {
	case waiting:
		n.paceWheel.remove(q.index)
	case ready:
		n.leave(q, &q.lanes[inTurn])
	}
	if q.lanes[inTurn].state = idle; !q.seg.open {
		q.seg.due = unset
	}
}

// expire moves a queue pair whose departure is due at now, and that has left the wheel,
// to the ready set.
func (n *NIC) expire(now frame.Time, q *queuePair) {
	q.lanes[inTurn].state = idle
	if !q.seg.open && !q.lanes[inTurn].pace.lapsed(now, n.cfg.WholeNs) {
		q.lanes[inTurn].state = waiting
		n.paceWheel.arm(q.index, q.lanes[inTurn].pace.at)
		return
	}
	n.setReady(now, q)
	if n.cfg.MarkAbove != 0 {
		n.weigh(q)
	}
}

// send makes the next data frame of a lane of q, which starts on the link at t. It
// returns Nil if there is no chunk for it. The frame then counts as lost on the way, so
// that the queue pair follows the rules of its transport, and takes its time on the link,
// so that a queue pair without a window does not lose everything at once.
func (n *NIC) send(t, now frame.Time, c *class, q *queuePair, l *lane) frame.Ref {
	seq, payload, kind := l.next, l.nextLen, q.kind(l)
	msg := q.msgs.find(seq)
	extra := uint32(0)
	if q.duties&prepares != 0 {
		extra = q.service.prepare(n, q, msg, seq)
	}
	bytes := n.dataWire(q, payload) + extra
	r := n.pool.Alloc()
	if r == frame.Nil {
		n.count.Drops[frame.ArenaExhausted]++
		n.clock.Idle(t)
		n.clock.Charge(bytes + n.cfg.Overhead)
	} else {
		m := n.arena.Reset(r)
		m.Wire, m.Class = bytes, l.class
		q.service.write(n, q, r, m, msg, seq, payload, extra)
		if kind == behind {
			n.setLevel(&q.data, n.arena.Bytes(r), l.class, l.level)
		}
		if n.cfg.MarkAbove != 0 && !q.noECN && n.congested(l.class) {
			q.data.markCE(n.arena.Bytes(r))
		}
		n.clock.Idle(t)
		n.depart(t, r)
		n.count.countData(kind)
	}
	c.lanes[kind].last = q.index
	if kind == behind {
		n.sentSecond(now, q)
	} else {
		n.sent(t, now, c, q, msg, bytes)
	}
	return r
}

// sent records that the next packet of q's ordinary loop, with the given bytes, was sent
// at t.
func (n *NIC) sent(t, now frame.Time, c *class, q *queuePair, msg *message, bytes uint32) {
	seq, rtx, payload := q.lanes[inTurn].next, q.lanes[inTurn].nextRtx, q.lanes[inTurn].nextLen
	q.tx.Sent(t, seq, payload, rtx)
	q.stats.TxFrames++
	q.stats.TxBytes += uint64(payload)
	if rtx {
		msg.rtx++
		n.count.Retransmissions++
	} else {
		q.sent += uint64(payload)
	}
	onLink := bytes + n.cfg.Overhead
	if c.quantum != 0 {
		c.deficit -= int64(onLink)
	}
	n.paceSent(t, c, q, seq, payload, onLink, rtx, seq+1 == msg.end)
	if q.cc != nil {
		q.cc.OnSend(t, bytes)
		n.adoptCC(q)
	}
	n.schedule(now, q)
	n.arm(now, q)
}

// paceSent charges a frame to the pace of q.
func (n *NIC) paceSent(t frame.Time, c *class, q *queuePair, seq uint64, payload, onLink uint32, rtx, last bool) {
	whole := n.cfg.WholeNs
	if q.seg.size == 0 {
		if n.cfg.Turn != 0 {
			c.goOn(q.index, payload, n.cfg.Turn, last)
		}
		if q.lanes[inTurn].pace.on {
			q.lanes[inTurn].pace.depart(t, n.jitter(q, onLink), whole)
		}
		return
	}
	goesOn := q.seg.open
	q.seg.depart(t, onLink)
	over := q.seg.sent(seq, payload, onLink, rtx, last)
	if q.lanes[inTurn].pace.on && goesOn {
		q.lanes[inTurn].pace.more(onLink, whole)
	} else if q.lanes[inTurn].pace.on {
		q.lanes[inTurn].pace.depart(t, n.jitter(q, onLink), whole)
	}
	if c.lanes[inTurn].burst = q.index; over || q.seg.perByte != 0 {
		c.lanes[inTurn].burst = noNode
	}
}

// depart puts a frame on the link at t.
func (n *NIC) depart(t frame.Time, r frame.Ref) {
	if n.arc.leaves != 0 {
		n.showLeaving(t, r)
	}
	m := n.arena.Meta(r)
	bytes := m.Wire + n.cfg.Overhead
	m.Depart, m.TxBytes = t, n.count.LinkBytes
	m.QBytes, m.QFrames = 0, 0
	n.clock.Charge(bytes)
	m.Span = uint32(n.clock.Free() - t)
	if n.gaps.slow != 0 {
		n.beginGap(t, m.Class&7, bytes)
	}
	n.count.LinkBytes += uint64(bytes)
	n.count.TxFrames++
	n.count.TxBytes += uint64(m.Wire)
	n.count.TxClass[m.Class&7]++
}
