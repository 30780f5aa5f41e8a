package sim

import (
	"fmt"

	"gswitch/fault"
	"gswitch/frame"
)

// Parts of a network run side by side for as long as nothing that one of them
// does can reach another: what leaves a node now is at the next one no sooner
// than the delay of the link between them. That is conservative lookahead (Chandy
// and Misra, "Distributed Simulation", IEEE TSE 5(5), 1979), and a window of it is
// the least delay of all links.
//
// What control events and the functions of AddNode do reaches all nodes at once.
// So a window ends before the next control event, and before a frame arrives that
// may end something which such a function waits for; that instant is run by all
// parts in step, as one part would. Every frame that arrives within a window was
// sent before it began, so it is known then when the first of these arrives.
//
// Each node sees the same events in the same order as with one part, hence the
// same digest.

// Foresight is what a node knows of what it will want AddNode's function for.
type Foresight interface {
	// Pending reports whether it wants it now.
	Pending() bool
	// MayEnd is shown each frame that will arrive at the node, in the order of
	// their arrival and before it, and reports whether the node may want it then.
	MayEnd(r frame.Ref) bool
}

// Assign puts a node into a part, which must be the one whose Pool it has, and says
// what foresees its wants: nil where AddNode was given no function. A function
// without foresight makes the parts go in step, always. It is for use directly
// after AddNode.
func (e *Engine) Assign(node, part int, f Foresight) {
	e.nodes[node].part, e.nodes[node].foresight = int32(part), f
	e.laid = false
}

// ahead is what the engine knows of windows.
type ahead struct {
	lookahead frame.Time // 0: the parts go in step
	why       string     // for good, from some instant on: a fault
	outbox    []flight   // by direction: frames for another part, until the end of the window
	workers   Workers
	to        frame.Time // where the window ends
	due       []int      // parts that have something to do in it
	run       func(part int)
}

// Workers call functions in parallel.
type Workers interface {
	// Run calls run for each of the parts, which are ascending, and returns when all
	// calls have.
	Run(parts []int, run func(part int))
	// Stop ends what Run started; the next Run starts it again.
	Stop()
}

// sequential are the workers of an engine that was given none.
type sequential struct{}

func (sequential) Run(parts []int, run func(part int)) {
	for _, p := range parts {
		run(p)
	}
}

func (sequential) Stop() {}

// InStep says why the parts do not run ahead of each other, "" if they do.
func (e *Engine) InStep() string {
	switch {
	case len(e.parts) == 1:
		return "the network is one part"
	case e.ahead.why != "":
		return e.ahead.why
	case e.ahead.lookahead <= 0:
		return "a link has no delay, or what a node will end is not foreseen"
	}
	return ""
}

// inStep makes the parts go in step from now on.
func (e *Engine) inStep(why string) {
	if e.ahead.why == "" {
		e.ahead.why = why
	}
}

// divide finds what the parts have to know of each other.
func (e *Engine) divide() {
	if len(e.parts) == 1 {
		return
	}
	a := &e.ahead
	a.lookahead = frame.Never
	for i := range e.nodes {
		if n := &e.nodes[i]; n.after != nil && n.foresight == nil {
			a.lookahead = 0
		}
	}
	for len(a.outbox) < len(e.dirs) {
		a.outbox = append(a.outbox, flight{})
	}
	for i := range e.dirs {
		dir := &e.dirs[i]
		dir.apart = e.part(dir.from) != e.part(dir.to)
		dir.foreseen = e.nodes[dir.to].foresight != nil
		a.lookahead = min(a.lookahead, dir.delay)
	}
}

// horizon returns until when, limit at most, all parts may run side by side from t
// on, the first instant at which something is pending; t if they may not.
func (e *Engine) horizon(t, limit frame.Time) frame.Time {
	a := &e.ahead
	if len(e.parts) == 1 || a.why != "" || a.lookahead <= 0 || e.onLost != nil {
		return t
	}
	to := limit
	if a.lookahead < limit-t {
		to = t + a.lookahead
	}
	for _, p := range e.parts {
		to = min(to, p.ends.from(t))
	}
	return to
}

// runAhead runs all parts up to an instant, without it.
func (e *Engine) runAhead(to frame.Time) {
	a := &e.ahead
	a.to, a.due = to, a.due[:0]
	for i, p := range e.parts {
		if p.before = p.events; p.queue.next() < to {
			a.due = append(a.due, i)
		}
	}
	a.workers.Run(a.due, a.run)
	e.count.Windows++
	longest := uint64(0)
	for _, p := range e.parts {
		n := p.events - p.before
		e.count.Ahead += n
		longest = max(longest, n)
		if p.err != nil && e.err == nil {
			e.err = p.err
		}
	}
	e.count.Longest += longest
	if err := e.missed(); err != nil {
		e.fail(err)
	}
	e.advance(to - 1)
	for _, p := range e.parts {
		for _, d := range p.crossed {
			box := &e.ahead.outbox[d]
			for box.len() > 0 {
				e.deliver(d, box.pop())
			}
		}
		p.crossed = p.crossed[:0]
	}
}

// missed is an error if a node of some part was refused a chunk: with one part, others
// might have been.
func (e *Engine) missed() error {
	for _, p := range e.parts {
		if p.pool.Failed() > 0 {
			return fmt.Errorf("before %d ns the %d chunks for frames were used up, and which node misses one depends on the number of parts: set Config.Chunks to more, or run one part", e.now, e.arena.Chunks())
		}
	}
	return nil
}

// runTo runs a part up to an instant, without it.
func (p *part) runTo(to frame.Time) {
	p.window, p.dirty = true, &p.own
	for p.err == nil {
		p.serve()
		t := p.queue.next()
		if t >= to {
			break
		}
		if p.rounds++; t > p.now {
			p.now, p.rounds = t, 0
		} else if p.rounds > maxRounds {
			p.fail(fmt.Errorf("at %d ns a node wants to be called again and again: time stands still", p.now))
			break
		}
		p.instant(t)
	}
	p.window, p.dirty = false, &p.e.stepped
}

// notify calls the function of a node that was stepped.
func (p *part) notify(n *node) {
	switch {
	case !p.window:
		n.after(p.now)
	case n.foresight.Pending():
		p.fail(fmt.Errorf("at %d ns a node ended something that was not foreseen: run one part, and report it", p.now))
	}
}

// hand puts a frame on a direction to another part.
func (p *part) hand(d int32, x inFlight) {
	if !p.window {
		p.e.deliver(d, x)
		return
	}
	if p.e.ahead.outbox[d].add(x) {
		p.crossed = append(p.crossed, d)
	}
}

// deliver puts a frame on a direction while all parts stand.
func (e *Engine) deliver(d int32, x inFlight) {
	dir := &e.dirs[d]
	q := e.receiver(dir)
	if dir.foreseen && x.cause == fault.LossNone && e.nodes[dir.to].foresight.MayEnd(x.ref) {
		q.ends.put(x.at)
	}
	if dir.flight.add(x) {
		q.queue.set(d, x.at)
	}
}

// instants is a heap of instants.
type instants []frame.Time

func (h *instants) put(t frame.Time) {
	*h = append(*h, t)
	v := *h
	for k := len(v) - 1; k > 0 && v[k] < v[(k-1)/2]; k = (k - 1) / 2 {
		v[k], v[(k-1)/2] = v[(k-1)/2], v[k]
	}
}

// from returns the first instant that is not before t, or Never, and removes those
// before.
func (h *instants) from(t frame.Time) frame.Time {
	for len(*h) > 0 && (*h)[0] < t {
		h.drop()
	}
	if len(*h) == 0 {
		return frame.Never
	}
	return (*h)[0]
}

// drop takes the first out.
func (h *instants) drop() {
	v := *h
	last := len(v) - 1
	v[0] = v[last]
	v = v[:last]
	for k := 0; 2*k+1 < last; {
		child := 2*k + 1
		if child+1 < last && v[child+1] < v[child] {
			child++
		}
		if v[k] <= v[child] {
			break
		}
		v[k], v[child] = v[child], v[k]
		k = child
	}
	*h = v
}
