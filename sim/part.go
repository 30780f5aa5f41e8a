package sim

import "gswitch/frame"

// part is some of the nodes of a network, what they are to do, and the chunks
// that they make frames of. A direction is of the part of the node that it leads
// to, and what its sender keeps of it of the part of that. While the parts run
// ahead of each other, each on a core of its own, none touches what is of
// another.
type part struct {
	e      *Engine
	dirs   []direction // of the engine, as its nodes: each step reads them
	nodes  []node
	arena  *frame.Arena
	pool   *frame.Pool
	now    frame.Time
	queue  calendar
	dirty  *stepped // where it notes nodes: its own list, or while all go in step that of all
	own    stepped
	window bool  // it runs ahead
	rounds int   // of events at the present instant of a window
	err    error // of a window, for which the engine has failed at its end
	events uint64
	before uint64 // events, when the window began

	scratch [vector]frame.Ref
	touched [16]uint16
	crossed []int32  // directions whose outbox has frames
	ends    instants // when a frame arrives here that may end something
}

// stepped lists nodes that were stepped or poked and not looked at since.
type stepped struct{ nodes []int32 }

func (e *Engine) addPart(pool *frame.Pool) {
	e.parts = append(e.parts, &part{e: e, arena: e.arena, pool: pool, dirty: &e.stepped})
}

// grown has the parts see the nodes and directions that were added.
func (e *Engine) grown() {
	for _, p := range e.parts {
		p.dirs, p.nodes = e.dirs, e.nodes
	}
}

// part returns the part of a node.
func (e *Engine) part(node int32) *part { return e.parts[e.nodes[node].part] }

// receiver returns the part of a direction.
func (e *Engine) receiver(dir *direction) *part { return e.part(dir.to) }

func (p *part) mark(i int32) {
	if n := &p.nodes[i]; !n.dirty {
		n.dirty = true
		p.dirty.nodes = append(p.dirty.nodes, i)
	}
}

func (p *part) fail(err error) {
	if !p.window {
		p.e.fail(err)
	} else if p.err == nil {
		p.err = err
	}
}

// starved reports whether there is no free chunk for a part.
func (p *part) starved() bool {
	return p.pool.Available() == 0 && (p.e.depot == nil || p.e.depot.Free() == 0)
}

// serve looks at the nodes of all parts that were stepped.
func (e *Engine) serve() {
	for i := 0; i < len(e.stepped.nodes); i++ {
		n := e.stepped.nodes[i]
		e.part(n).look(n)
	}
	e.stepped.nodes = e.stepped.nodes[:0]
}

// next returns the first instant at which something is pending in any part.
func (e *Engine) next() frame.Time {
	t := e.parts[0].queue.next()
	for _, p := range e.parts[1:] {
		t = min(t, p.queue.next())
	}
	return t
}

// instant runs the events of the present instant, those of all parts in the order
// that they have where there is one.
func (e *Engine) instant(t frame.Time) {
	e.batch = e.batch[:0]
	for _, p := range e.parts {
		if p.queue.next() > t {
			p.queue.now = t
			continue
		}
		e.batch = append(e.batch, p.queue.take(t)...)
	}
	sortSlots(e.batch)
	e.events(t, e.batch)
}

// runAlone is runParts for a network of one part, without the questions of which part and
// of how far ahead.
func (p *part) runAlone(until frame.Time) {
	e := p.e
	for {
		if e.ctl.Next() <= p.now {
			e.control()
			continue
		}
		p.serve()
		t, c := p.queue.next(), e.ctl.Next()
		if min(c, t) > until || e.err != nil {
			return
		}
		if c <= t {
			e.advance(max(p.now, c))
			e.rounds = 0
			continue
		}
		if e.rounds++; t > p.now {
			e.now, p.now, e.rounds = t, t, 0
		} else if e.rounds > maxRounds {
			e.fail(e.standstill())
			return
		}
		p.instant(t)
	}
}

// instant runs the events of a part: arrivals, timers, then what leaves, each in the
// order of their index.
func (p *part) instant(t frame.Time) {
	batch := p.queue.take(t)
	p.fetch(batch)
	i := 0
	for ; i < len(batch) && batch[i] < p.queue.firstTx; i++ {
		if s := batch[i]; s < p.queue.firstTimer {
			p.arrive(s)
		} else {
			p.timer(s - p.queue.firstTimer)
		}
	}
	if i == len(batch) {
		return
	}
	p.serve() // a frame that arrived now may leave now, in the order of its class
	for ; i < len(batch); i++ {
		if d := batch[i] - p.queue.firstTx; p.dirs[d].txAt == t {
			p.transmit(d)
			p.mark(p.dirs[d].from)
		}
	}
}

// events runs the events of an instant as part.instant does, each in the part that it is of.
func (e *Engine) events(t frame.Time, batch []int32) {
	q, i := &e.parts[0].queue, 0 // the slots have the same numbers in all parts
	for ; i < len(batch) && batch[i] < q.firstTx; i++ {
		if s := batch[i]; s < q.firstTimer {
			e.receiver(&e.dirs[s]).arrive(s)
		} else {
			e.part(s - q.firstTimer).timer(s - q.firstTimer)
		}
	}
	if i == len(batch) {
		return
	}
	e.serve()
	for ; i < len(batch); i++ {
		if d := batch[i] - q.firstTx; e.dirs[d].txAt == t {
			p := e.part(e.dirs[d].from)
			p.transmit(d)
			p.mark(e.dirs[d].from)
		}
	}
}

// fetch asks for what the arrivals of an instant need, level by level, so that
// their cache misses overlap instead of following each other.
func (p *part) fetch(batch []int32) {
	n := 0
	for n < len(batch) && batch[n] < p.queue.firstTimer {
		n++
	}
	if n < 2 || len(p.dirs) < p.e.wide {
		return
	}
	batch = batch[:n]
	for _, s := range batch {
		d := &p.dirs[s]
		frame.Prefetch(d)
		frame.Prefetch(&d.digest)
	}
	for _, s := range batch {
		if f := &p.dirs[s].flight; len(f.ring) > 0 {
			frame.Prefetch(f.first())
		}
	}
	for _, s := range batch {
		if f := &p.dirs[s].flight; f.head != f.tail {
			p.arena.Prefetch(f.first().ref)
		}
	}
	for _, s := range batch {
		d := &p.dirs[s]
		if n := &p.nodes[d.to]; n.warm != nil && d.flight.head != d.flight.tail {
			n.warm.Expect(d.toPort, d.flight.first().ref)
		}
	}
}
