package dataplane

import (
	"runtime"

	"gswitch/capture"
	"gswitch/frame"
)

// vector is how many frames move from stage to stage at once.
const vector = 64

// rxVectors is how many vectors a loop takes from all ports together if there are few
// ports; one port provides at most half of that. Under load, the kernel's transmit path
// evicts code and tables from the first-level caches once per loop, and several vectors
// share the cost of fetching them again. With many ports, one vector from each is enough,
// and the loop must not get longer.
const rxVectors = 8

// txVectors is how many vectors a node may send through one port per loop, so that a port
// that is fed by several others keeps up with them.
const txVectors = 4

// Worker is one thread that steps nodes and serves their ports. Its exported methods may
// be called from any goroutine that is not a worker. Other workers may call Post, too.
type Worker struct {
	engine *Engine
	index  int
	config WorkerConfig
	arena  *frame.Arena
	pool   *frame.Pool

	nodes []*node
	ports []*line

	mail  mailbox
	gone  chan struct{} // closed when the thread has ended
	pace  pace
	sleep sleeper
	stats WorkerStats
	last  frame.Time // when the previous loop started
	moved bool       // it moved frames
	due   frame.Time // Config.Step: time until which nothing was due at the last check, 0 if something was
	vec   [vector]frame.Ref
}

// node is a worker's view of a frame.Node.
type node struct {
	frame.Node                 // what is stepped
	id           frame.Node    // the node that was added: the same, unless it is wrapped
	handoff      Handoff       // nil if the node passes no frames to other workers
	backpressure Backpressured // nil if the node accepts all frames
	posted       Posted        // nil if programs give it no work without waiting
	changing     Changing      // nil if nothing changes it from outside
	drops        DropTap       // nil while drops are not captured
	taps         []nodeTap
	wake         frame.Time // the last result of Wake if that was in the future, else Never
	until        frame.Time // Pause: not stepped before this time
	refused      frame.Time // when it was last full
}

// accepts reports whether frames may be passed to the node.
func (n *node) accepts(now frame.Time) bool {
	return n.until <= now && (n.backpressure == nil || !n.backpressure.Full())
}

// line is a worker's view of a Port: the part that the loop uses.
type line struct {
	node   *node
	number uint16
	dev    device // nil while the port is down
	delay  *delayLine
	cable  bool       // delay exists independently of faults
	fault  *lineFault // nil: no fault
	depth  int        // PortSpec.TxDepth

	// Frames that the node has sent and the device has not yet taken.
	held    [vector]frame.Ref
	nheld   int
	blocked bool // the device accepted less than it was offered, or has not sent all of it

	timing bool // PortSpec.Timing
	fixed  int  // number of held frames whose correction has been written

	taps []lineTap // empty: no capture

	leaving, coming *transit  // Measure; else nil
	sentAt, gotAt   *Passages // Note; else nil
	stamps, stamped *arrivals // Stamp; else nil

	stats PortCounters
}

// run is the thread. The steps below are in the order in which a frame meets them.
func (w *Worker) run() {
	defer close(w.gone)
	runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
	w.prepareThread()
	for {
		// Read the clock once per loop, after recording what has arrived by then.
		w.note()
		now := w.now()

		// Requests of the control plane.
		if w.mail.pending.Load() && !w.mail.deliver(now) {
			return
		}

		w.account(now)
		w.moved = w.step(now)
		w.idle(now)
	}
}

// note records what has arrived. This loop receives nothing else.
func (w *Worker) note() {
	for _, l := range w.ports {
		if l.dev != nil {
			l.dev.note()
		}
	}
}

// now reads the clock, and stops it if too much time has passed.
func (w *Worker) now() frame.Time {
	now := w.engine.Now()
	if q := w.config.Step; q > 0 {
		if over := now - max(w.last+q, w.due); over > 0 {
			w.engine.clock.stand(over)
			w.stats.Stopped += over
			w.stats.StoppedMax = max(w.stats.StoppedMax, over)
			now -= over
		}
	}
	return now
}

// step serves every port and node once and reports whether a frame moved. It neither
// allocates nor blocks.
func (w *Worker) step(now frame.Time) (moved bool) {
	turns := max(1, min(rxVectors/2, rxVectors/max(1, len(w.ports))))
	for _, l := range w.ports {
		for range turns {
			if l.dev == nil {
				break
			}
			if !l.node.accepts(now) {
				w.refuse(now, l)
				break
			}
			n := w.receive(now, l)
			moved = moved || n > 0
			if n < vector {
				break
			}
		}
	}

	// Posted work, timers, frames from other workers, new tables.
	for _, n := range w.nodes {
		if n.until > now {
			continue
		}
		if now >= n.wake {
			w.stats.Lateness.Observe(now - n.wake)
		}
		if n.posted != nil {
			for c := n.posted.Posted(); c != nil; c = n.posted.Posted() {
				n.command(now, c)
			}
		}
		w.advance(now, n)
	}

	for _, l := range w.ports {
		if l.dev == nil {
			continue
		}
		if w.send(now, l) {
			moved = true
		}
	}

	for _, n := range w.nodes {
		if n.drops != nil {
			w.captureDrops(now, n)
		}
		if n.handoff != nil {
			if to := n.handoff.Handoff(); to != 0 {
				w.engine.wakeWorkers(to)
				moved = true
			}
		}
	}
	return moved
}

// refuse leaves arrived frames in place, and takes back the chunks that the port has
// sent.
func (w *Worker) refuse(now frame.Time, l *line) {
	l.node.refused = now
	w.sleep.stale = true // it must not wake the worker
	l.dev.complete(w.pool)
}

// receive takes back the chunks that a port has sent and passes one vector of arrived
// frames to its node. It returns how many frames arrived.
func (w *Worker) receive(now frame.Time, l *line) int {
	l.dev.complete(w.pool)
	n := l.dev.receive(now, w.pool, w.vec[:])
	if n == 0 {
		return 0
	}
	v := w.vec[:n]
	if t := l.coming; t != nil {
		t.came(now, l.stats.RxFrames+l.stats.Faults.RxLost+uint64(n), max(l.node.until, l.node.refused), &w.stats.Transit)
	}
	if p := l.gotAt; p != nil {
		p.pass(now, l.stats.RxFrames+l.stats.Faults.RxLost+uint64(n), max(l.node.until, l.node.refused))
	}
	if l.fault != nil && l.fault.cut {
		l.stats.Faults.RxLost += uint64(n)
		for _, r := range v {
			w.pool.Free(r)
		}
		return n
	}
	l.stats.RxFrames += uint64(n)
	w.stats.Vectors[n]++
	if l.stamped != nil {
		l.stamped.stamp(now, w.arena, v)
	}
	if len(l.taps) > 0 {
		l.capture(now, w.arena, capture.DirIn, v)
	}
	l.node.Receive(now, l.number, v)
	return n
}

// send makes a port send. If the ring is kept shallow and the kernel takes all of it at
// once, as in copy mode, it is refilled until as much has been sent as with a deep ring.
// Otherwise a port with a link rate could send less per loop than it receives, and drop
// the rest, however fast the link is.
func (w *Worker) send(now frame.Time, l *line) (moved bool) {
	for before, again := l.stats.TxTaken, false; ; again = true {
		taken := l.stats.TxTaken
		moved = w.transmit(now, l) || moved
		l.dev.fill(w.pool)
		full := l.blocked
		if l.dev.kick() {
			l.blocked = true
		}
		if !full || l.stats.TxTaken-before+uint64(l.depth) > txVectors*vector {
			return moved
		}
		if again && l.stats.TxTaken == taken { // its node is not stepped now
			return moved
		}
		if l.dev.complete(w.pool); l.dev.room(l.depth) <= 0 {
			return moved
		}
	}
}

// transmit lets the node fill the room of the device. If there is none the node is not
// asked, so that frames queue inside it.
func (w *Worker) transmit(now frame.Time, l *line) (moved bool) {
	if l.delay != nil {
		return w.transmitDelayed(now, l)
	}
	if l.nheld > 0 && !w.flushHeld(now, l) || l.node.until > now {
		return false
	}
	for range txVectors {
		room := min(l.dev.room(l.depth), vector)
		if room <= 0 {
			l.blocked = true
			return moved
		}
		n := l.node.Transmit(now, l.number, l.held[:room])
		if n == 0 {
			break
		}
		moved = true
		w.sent(now, l, l.held[:n])
		l.nheld = n
		if !w.flushHeld(now, l) {
			return moved
		}
		if n < room {
			break
		}
	}
	l.blocked = false
	return moved
}

// transmitDelayed is transmit with an emulated cable between the node and
// the device.
func (w *Worker) transmitDelayed(now frame.Time, l *line) (moved bool) {
	switch {
	case l.node.until > now:
	case l.fault != nil:
		moved = w.launchAll(now, l)
	default:
		moved = w.enterAll(now, l)
	}
	if l.nheld > 0 && !w.flushHeld(now, l) {
		return moved
	}
	for range txVectors {
		room := min(l.dev.room(l.depth), vector)
		if room <= 0 {
			l.blocked = true
			return moved
		}
		if l.nheld = l.arrived(now, l.held[:room], &w.stats.FrameLateness); l.nheld == 0 {
			break
		}
		moved = true
		if !w.flushHeld(now, l) {
			return moved
		}
	}
	l.blocked = false
	if l.fault != nil {
		l.endFault()
	}
	return moved
}

// enterAll puts the frames that the node sends on the emulated cable.
func (w *Worker) enterAll(now frame.Time, l *line) (moved bool) {
	for range txVectors {
		room := min(l.delay.room(), vector)
		if room <= 0 {
			break
		}
		n := l.node.Transmit(now, l.number, w.vec[:room])
		if n == 0 {
			break
		}
		moved = true
		w.sent(now, l, w.vec[:n])
		for _, r := range w.vec[:n] {
			m := w.arena.Meta(r)
			at := l.delay.send(r, departure(m, now))
			if l.timing {
				m.Arrival = at
			}
			l.stamps.enter(w.arena, r, at)
		}
		if n < room {
			break
		}
	}
	return moved
}

// departure returns when the last bit of a frame leaves the node: its scheduled departure
// on the emulated link, if the node keeps one, so that a late worker does not lengthen
// the cable, and now otherwise. A control frame is handed out before the frame ahead of
// it has left.
func departure(m *frame.Meta, now frame.Time) frame.Time {
	if m.Depart > 0 {
		now = m.Depart
	}
	return now + frame.Time(m.Span)
}

// sent counts and captures what a node sends.
func (w *Worker) sent(now frame.Time, l *line, v []frame.Ref) {
	l.stats.TxFrames += uint64(len(v))
	if len(l.taps) > 0 {
		l.capture(now, w.arena, capture.DirOut, v)
	}
}

// flushHeld gives the device the frames left over and reports whether it accepted all of
// them.
func (w *Worker) flushHeld(now frame.Time, l *line) bool {
	if l.timing {
		w.correct(now, l)
	}
	n := l.dev.transmit(now, w.pool, l.held[:l.nheld])
	l.stats.TxTaken += uint64(n)
	if t := l.leaving; t != nil && n > 0 {
		t.left(now, l.stats.TxTaken)
	}
	if p := l.sentAt; p != nil && n > 0 {
		p.pass(now, l.stats.TxTaken, 0)
	}
	if n < l.nheld {
		l.nheld = copy(l.held[:], l.held[n:l.nheld])
		l.fixed = l.nheld
		l.blocked = true
		return false
	}
	l.nheld, l.fixed = 0, 0
	return true
}

// account adds the time since the previous loop to the statistics of that kind of loop.
func (w *Worker) account(now frame.Time) {
	d := now - w.last
	w.last = now
	s := &w.stats
	s.Loops++
	switch {
	case w.moved:
		s.Busy += d
		s.MaxLoop = max(s.MaxLoop, d)
	default:
		s.IdleLoops++
	}
}
