package sim

import (
	"fmt"

	"gswitch/frame"
)

// How the nodes are stepped: what arrives, what is due, what leaves.

// arrive hands the frames that arrive now by direction d to the node there, as
// one vector.
func (p *part) arrive(d int32) {
	dir := &p.dirs[d]
	n := &p.nodes[dir.to]
	room := vector
	if n.pausedUntil > p.now {
		p.queue.set(d, n.pausedUntil)
		return
	}
	if n.gap > 0 {
		if n.takesAt > p.now {
			p.queue.set(d, n.takesAt)
			return
		}
		room, n.takesAt = 1, p.now+n.gap
	}
	v := p.scratch[:0]
	if dir.fault == nil {
		for len(v) < room && dir.flight.due(p.now) {
			x := dir.flight.pop()
			p.record(dir, &x)
			v = append(v, x.ref)
		}
		if dir.flight.len() > 0 {
			p.queue.set(d, max(dir.flight.first().at, p.now))
		}
	} else {
		v = p.arriveFaulty(d, dir, v, room)
	}
	if len(v) == 0 {
		return
	}
	p.events++
	dir.delivered += uint64(len(v))
	n.step.Receive(n.local(p.now), dir.toPort, v)
	p.mark(dir.to)
}

// timer runs what is due at node i.
func (p *part) timer(i int32) {
	n := &p.nodes[i]
	switch {
	case n.pausedUntil > p.now:
		p.queue.set(p.queue.firstTimer+i, n.pausedUntil)
		return
	case n.timerAt > p.now: // was put off since
		p.queue.set(p.queue.firstTimer+i, n.timerAt)
		return
	}
	p.events++
	n.timerAt = frame.Never
	n.step.Advance(n.local(p.now))
	p.mark(i)
}

// serve looks at the nodes that were stepped: who can send does, and what
// they want next is entered into the queue.
func (p *part) serve() {
	for i := 0; i < len(p.dirty.nodes); i++ {
		p.look(p.dirty.nodes[i])
	}
	p.dirty.nodes = p.dirty.nodes[:0]
}

func (p *part) look(i int32) {
	n := &p.nodes[i]
	n.dirty = false
	if n.pausedUntil > p.now {
		p.armTimer(i, n, n.pausedUntil) // Advance does no harm, and serve follows it
		return
	}
	for {
		if n.after != nil {
			p.notify(n)
			n = &p.nodes[i] // nodes may have been added
		}
		k := n.step.Touched(p.touched[:])
		for _, port := range p.touched[:k] {
			if d := n.dir(port); d != noDir {
				p.offer(d, n)
			}
		}
		if k == 0 {
			break
		}
	}
	p.armTimer(i, n, n.engine(n.step.TimerWake(n.local(p.now))))
}

// armTimer notes when node i is due. A timer that is put off leaves its slot
// where it is: timers that each frame puts off again would cost more than one
// that finds nothing due.
func (p *part) armTimer(i int32, n *node, at frame.Time) {
	at = max(at, p.now)
	n.timerAt = at
	if s := p.queue.firstTimer + i; at < p.queue.slots[s].at {
		p.queue.set(s, at)
	}
}

// offer lets direction d send what may leave now.
func (p *part) offer(d int32, n *node) {
	dir := &p.dirs[d]
	switch {
	case dir.txAt == p.now: // its turn comes with those that are due
		return
	case dir.free <= p.now:
		p.transmit(d)
		return
	}
	at := n.engine(n.step.PortWake(n.local(p.now), dir.fromPort))
	if at <= p.now && (dir.fault == nil || !dir.fault.model.Slows()) { // a control frame does not wait for the link
		p.transmit(d)
		return
	}
	p.armTx(d, dir, at)
}

func (p *part) armTx(d int32, dir *direction, at frame.Time) {
	if dir.fault != nil && dir.fault.model.Slows() && at != frame.Never {
		at = max(at, dir.free)
	}
	if at != frame.Never {
		at = max(at, p.now)
	}
	if at != dir.txAt {
		dir.txAt = at
		p.queue.set(p.queue.firstTx+d, at)
	}
}

// transmit takes what leaves by direction d now, and finds when the port has
// something next.
func (p *part) transmit(d int32) {
	dir := &p.dirs[d]
	n := &p.nodes[dir.from]
	if n.pausedUntil > p.now {
		dir.txAt = frame.Never
		p.armTx(d, dir, n.pausedUntil)
		return
	}
	local := n.local(p.now)
	p.events++
	dir.txAt = frame.Never
	for {
		room := vector
		if dir.fault != nil && dir.fault.model.Slows() {
			room = 1
		}
		k := n.step.Transmit(local, dir.fromPort, p.scratch[:room])
		for _, r := range p.scratch[:k] {
			p.launch(d, dir, n, r)
		}
		at := n.engine(n.step.PortWake(local, dir.fromPort))
		if at > p.now || dir.free > p.now && room == 1 {
			if at != frame.Never {
				p.armTx(d, dir, at)
			}
			return
		}
		if k == 0 && p.starved() {
			p.fail(p.e.exhausted())
			return
		}
		if k == 0 {
			p.fail(fmt.Errorf("port %d of node %d says at %d ns that a frame leaves now, and gives none", dir.fromPort, dir.from, p.now))
			return
		}
	}
}

// launch puts a frame on direction d: it arrives when its last bit does.
func (p *part) launch(d int32, dir *direction, n *node, r frame.Ref) {
	m := p.arena.Meta(r)
	start, end := m.Depart, m.Depart+frame.Time(m.Span)
	if n.clock != nil {
		start, end = n.clock.Engine(start), n.clock.Engine(end)
	}
	m.Forget()
	dir.handed++
	if dir.fault != nil || !dir.up {
		p.launchFaulty(d, dir, start, end, r, m)
		return
	}
	dir.free = end
	at := max(end+dir.delay, dir.last, p.now)
	dir.last = at
	if dir.apart {
		p.hand(d, inFlight{at: at, ref: r})
		return
	}
	if dir.foreseen && p.nodes[dir.to].foresight.MayEnd(r) {
		p.ends.put(at)
	}
	if dir.flight.push(at, r) {
		p.queue.set(d, at)
	}
}
