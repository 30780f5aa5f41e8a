package sim

import "gswitch/frame"

// At calls fn at t, or now if t has passed.
func (e *Engine) At(t frame.Time, fn func(now frame.Time)) {
	e.ctl.Put(Entry{At: max(t, e.now), Do: fn})
}

// Every calls fn at first and then once in each period, which must be
// positive, as long as the engine runs.
func (e *Engine) Every(first, period frame.Time, fn func(now frame.Time)) {
	e.ctl.Put(Entry{At: max(first, e.now), Period: max(period, 1), Do: fn})
}

// control runs the control event that is due: before anything else that happens
// then.
func (e *Engine) control() {
	c := e.ctl.Take()
	e.count.Events++
	c.Do(e.now)
	if c.Period > 0 {
		c.At += c.Period
		e.ctl.Put(c)
	}
	e.layOut()
}

// layOut gives nodes and directions that were added their slots. Each part has
// all of them, and uses those of its nodes: arrivals at them, their timers, and
// their transmissions.
func (e *Engine) layOut() {
	if e.laid {
		return
	}
	e.laid = true
	for i := range e.parts {
		e.parts[i].queue.reset(e.now, len(e.dirs), len(e.nodes))
	}
	for i := range e.dirs {
		dir := &e.dirs[i]
		if at := dir.nextArrival(); at != frame.Never {
			e.receiver(dir).queue.set(int32(i), max(at, e.now))
		}
		if dir.txAt != frame.Never {
			q := &e.part(dir.from).queue
			q.set(q.firstTx+int32(i), max(dir.txAt, e.now))
		}
	}
	for i := range e.nodes {
		if at := e.nodes[i].timerAt; at != frame.Never {
			q := &e.part(int32(i)).queue
			q.set(q.firstTimer+int32(i), max(at, e.now))
		}
	}
	e.divide()
}
