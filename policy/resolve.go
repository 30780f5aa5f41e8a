package policy

import "math/bits"

// Admission: a packet is queued first, and what its queue and its buffer have too
// much is repaired then (section 2.3.2 of the dissertation).

// first returns the first case of a boundary condition that holds.
func first(list []condition, x *env) *condition {
	for i := range list {
		c := &list[i]
		if c.full {
			if q := x.q[0]; q.size() > q.prog.size {
				return c
			}
			continue
		}
		if c.when.eval(x) != 0 {
			return c
		}
	}
	return nil
}

// resolve drops packets while a queue is congested, or its buffer where b is not nil,
// and reports whether the packet that came, slot i of number came, is still there. In
// a buffer the last queue in its order drops a packet, the queue that the packet
// came to among equals. A drop with a probability is tried once for each packet that
// comes.
func (e *Engine) resolve(q *queue, b *buffer, x *env, i, came uint32) bool {
	congestion, n := q.prog.congestion, &q.n
	if b != nil {
		congestion, n = b.prog.congestion, &b.n
	}
	stays := true
	for *n > 0 {
		c := first(congestion, x)
		if c == nil {
			return stays
		}
		e.act(q, c, x)
		if !c.drop {
			return stays
		}
		certain := c.chance >= 1<<32
		if !certain && e.rng.Uint64()>>32 >= c.chance {
			return stays
		}
		loser := q
		if b != nil {
			loser = e.poorest(b, q)
		}
		v := loser.adm.pick(&loser.all, loser.proc)
		if loser.e != e {
			e.group.drop(loser, v)
		} else {
			self := v == i && e.slots[v].seq == came
			stays = stays && !self
			e.drop(loser, v, self)
		}
		if !certain {
			return stays
		}
	}
	return stays
}

// poorest returns the queue of a buffer that drops a packet for one that came to
// grew.
func (e *Engine) poorest(b *buffer, grew *queue) *queue {
	if b.spans {
		return b.poorestOfPorts(grew)
	}
	var worst *queue
	x := env{e: e}
	for some := b.prog.queues & e.some; some != 0; some &= some - 1 {
		q := &e.queues[bits.TrailingZeros64(some)]
		if worst == nil || b.later(&x, q, worst, grew) {
			worst = q
		}
	}
	return worst
}

// later reports whether a queue drops a packet before another one does.
func (b *buffer) later(x *env, q, than, grew *queue) bool {
	x.q = [2]*queue{than, q}
	if b.prog.prio.cmp.eval(x) != 0 {
		return true
	}
	x.q = [2]*queue{q, than}
	return q == grew && b.prog.prio.cmp.eval(x) == 0
}

// act does what a case says besides dropping.
func (e *Engine) act(q *queue, c *condition, x *env) {
	if c.mark && !x.p[0].Marked {
		x.p[0].Marked = true
		q.stats.Marked++
	}
	if c.notify && !q.noticed {
		q.stats.Notices++
	}
	q.noticed = c.notify
	for i := range c.modify {
		m := &c.modify[i]
		v := m.by.eval(x)
		switch m.to {
		case qWeightAdm:
			q.weightAdm = min(max(v, 0), 1<<20)
		case qWeightSched:
			q.weight = min(max(v, 0), 1<<20)
		case qAdmState:
			q.admState = min(max(v, -state), state)
		case qSchedState:
			q.state = min(max(v, -state), state)
		}
		e.best = -1
	}
}

// after does what is due when a packet was admitted or served.
func (e *Engine) after(q *queue, list []condition, x *env) {
	if len(list) == 0 {
		return
	}
	c := first(list, x)
	if c == nil {
		q.noticed = false
		return
	}
	e.act(q, c, x)
}
