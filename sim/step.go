package sim

import (
	"fmt"

	"gswitch/frame"
)

// How the nodes are stepped: what arrives, what is due, what leaves.

// arrive hands the frames that arrive now by direction d to the node there, as
// one vector.
func (e *Engine) arrive(d int32) {
	dir := &e.dirs[d]
	n := &e.nodes[dir.to]
	room := vector
	if n.pausedUntil > e.now {
		e.queue.set(d, n.pausedUntil)
		return
	}
	if n.gap > 0 {
		if n.takesAt > e.now {
			e.queue.set(d, n.takesAt)
			return
		}
		room, n.takesAt = 1, e.now+n.gap
	}
	v := e.scratch[:0]
	if dir.fault == nil {
		for len(v) < room && dir.flight.due(e.now) {
			x := dir.flight.pop()
			e.record(dir, &x)
			v = append(v, x.ref)
		}
		if dir.flight.len() > 0 {
			e.queue.set(d, max(dir.flight.first().at, e.now))
		}
	} else {
		v = e.arriveFaulty(d, dir, v, room)
	}
	if len(v) == 0 {
		return
	}
	e.count.Events++
	dir.delivered += uint64(len(v))
	n.step.Receive(n.local(e.now), dir.toPort, v)
	e.markDirty(dir.to)
}

// timer runs what is due at node i.
func (e *Engine) timer(i int32) {
	n := &e.nodes[i]
	switch {
	case n.pausedUntil > e.now:
		e.queue.set(e.queue.firstTimer+i, n.pausedUntil)
		return
	case n.timerAt > e.now: // was put off since
		e.queue.set(e.queue.firstTimer+i, n.timerAt)
		return
	}
	e.count.Events++
	n.timerAt = frame.Never
	n.step.Advance(n.local(e.now))
	e.markDirty(i)
}

// serve looks at the nodes that were stepped: who can send does, and what
// they want next is entered into the queue.
func (e *Engine) serve() {
	for i := 0; i < len(e.dirty); i++ {
		e.look(e.dirty[i])
	}
	e.dirty = e.dirty[:0]
}

func (e *Engine) look(i int32) {
	n := &e.nodes[i]
	n.dirty = false
	if n.pausedUntil > e.now {
		e.armTimer(i, n, n.pausedUntil) // Advance does no harm, and serve follows it
		return
	}
	for {
		if n.after != nil {
			n.after(e.now)
			n = &e.nodes[i] // nodes may have been added
		}
		k := n.step.Touched(e.touched[:])
		for _, port := range e.touched[:k] {
			if d := n.dir(port); d != noDir {
				e.offer(d, n)
			}
		}
		if k == 0 {
			break
		}
	}
	e.armTimer(i, n, n.engine(n.step.TimerWake(n.local(e.now))))
}

// armTimer notes when node i is due. A timer that is put off leaves its slot
// where it is: timers that each frame puts off again would cost more than one
// that finds nothing due.
func (e *Engine) armTimer(i int32, n *node, at frame.Time) {
	at = max(at, e.now)
	n.timerAt = at
	if s := e.queue.firstTimer + i; at < e.queue.slots[s].at {
		e.queue.set(s, at)
	}
}

// offer lets direction d send what may leave now.
func (e *Engine) offer(d int32, n *node) {
	dir := &e.dirs[d]
	switch {
	case dir.txAt == e.now: // its turn comes with those that are due
		return
	case dir.free <= e.now:
		e.transmit(d)
		return
	}
	at := n.engine(n.step.PortWake(n.local(e.now), dir.fromPort))
	if at <= e.now && (dir.fault == nil || !dir.fault.model.Slows()) { // a control frame does not wait for the link
		e.transmit(d)
		return
	}
	e.armTx(d, dir, at)
}

func (e *Engine) armTx(d int32, dir *direction, at frame.Time) {
	if dir.fault != nil && dir.fault.model.Slows() && at != frame.Never {
		at = max(at, dir.free)
	}
	if at != frame.Never {
		at = max(at, e.now)
	}
	if at != dir.txAt {
		dir.txAt = at
		e.queue.set(e.queue.firstTx+d, at)
	}
}

// transmit takes what leaves by direction d now, and finds when the port has
// something next.
func (e *Engine) transmit(d int32) {
	dir := &e.dirs[d]
	n := &e.nodes[dir.from]
	if n.pausedUntil > e.now {
		dir.txAt = frame.Never
		e.armTx(d, dir, n.pausedUntil)
		return
	}
	local := n.local(e.now)
	e.count.Events++
	dir.txAt = frame.Never
	for {
		room := vector
		if dir.fault != nil && dir.fault.model.Slows() {
			room = 1
		}
		k := n.step.Transmit(local, dir.fromPort, e.scratch[:room])
		for _, r := range e.scratch[:k] {
			e.launch(d, dir, n, r)
		}
		at := n.engine(n.step.PortWake(local, dir.fromPort))
		if at > e.now || dir.free > e.now && room == 1 {
			if at != frame.Never {
				e.armTx(d, dir, at)
			}
			return
		}
		if k == 0 && e.pool.Available() == 0 {
			e.fail(e.exhausted())
			return
		}
		if k == 0 {
			e.fail(fmt.Errorf("port %d of node %d says at %d ns that a frame leaves now, and gives none", dir.fromPort, dir.from, e.now))
			return
		}
	}
}

// launch puts a frame on direction d: it arrives when its last bit does.
func (e *Engine) launch(d int32, dir *direction, n *node, r frame.Ref) {
	m := e.arena.Meta(r)
	start, end := m.Depart, m.Depart+frame.Time(m.Span)
	if n.clock != nil {
		start, end = n.clock.Engine(start), n.clock.Engine(end)
	}
	m.Forget()
	dir.handed++
	if dir.fault != nil || !dir.up {
		e.launchFaulty(d, dir, start, end, r, m)
		return
	}
	dir.free = end
	at := max(end+dir.delay, dir.last, e.now)
	dir.last = at
	if dir.flight.push(at, r) {
		e.queue.set(d, at)
	}
}
