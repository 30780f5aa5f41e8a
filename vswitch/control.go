package vswitch

import (
	"math/bits"
	"sync/atomic"

	"gswitch/frame"
	"gswitch/pfc"
	"gswitch/wire"
)

// The handling of a pause. Requests of the neighbour: screen (ingress.go) finds the MAC
// control frame before any data of its vector is forwarded, control passes it to the
// port's pfc.Port, and applyPauses applies it to the scheduler. Requests of the switch:
// the buffer marks a port dirty when a group crosses its threshold; flowControl finds it,
// Request passes the classes to the port's pfc.Port, and sendFlowControl sends the frame
// ahead of all data of the port.

// wantMask holds the classes that one worker's share of the buffer wants paused at a
// port's neighbour. The worker that owns the port reads it.
type wantMask struct{ atomic.Uint32 }

// control acts on one MAC control frame, on the worker that owns its port.
func (n *Node) control(r frame.Ref, m *frame.Meta) {
	if owner := int(n.prog.ports[m.InPort].worker); owner != n.index {
		n.handOver(owner, r)
		return
	}
	p := n.ports[m.InPort].pfc
	c := wire.MACControl(n.arena.Bytes(r))
	// IEEE 802.3 31B.1: the group address or our own; any other frame is not for us.
	if dst := wire.Ethernet(c).Dst(); dst != wire.MACControlAddr && dst.Uint64() != n.selfMAC {
		n.drop(r, frame.ForeignMAC)
		return
	}
	switch c.Opcode() {
	case wire.OpPFC:
		var quanta [8]uint16
		for i := range quanta {
			quanta[i] = c.Quanta(i)
		}
		p.Receive(n.now, uint16(c.Enabled()), quanta)
	case wire.OpPause:
		p.ReceivePause(n.now, c.PauseQuanta())
	default:
		why := frame.LocalUnhandled
		if n.controlled(m.InPort, c) {
			why = frame.LocalConsumed
		}
		n.drop(r, why)
		return
	}
	n.applyPauses(n.now, m.InPort)
	n.drop(r, frame.PauseConsumed)
}

// watchdogLooks is how often the watchdog looks at a paused port within the time that makes
// a storm. Frames may start to wait at any instant in between, from which on that time
// counts, so a storm is found at most an eighth of it late.
const watchdogLooks = 8

// applyPauses applies the pauses that a port's neighbour requests to its queues. A queue
// that serves several classes stops for any of them.
func (n *Node) applyPauses(now frame.Time, port uint16) {
	ps := &n.ports[port]
	n.wakeFor(now, port)
	if detect := ps.watchdog; detect > 0 && ps.pfc.Paused(now) != 0 {
		n.flow.due = min(n.flow.due, now+detect/watchdogLooks)
	}
	if changed := ps.pfc.Changed(); changed != 0 {
		if n.flow.log != nil {
			n.logReceived(now, port, changed)
		}
		n.hold(now, port, changed)
		n.notifyPaused(now, port)
	}
}

// hold applies the port's pauses to the queues of some classes.
func (n *Node) hold(now frame.Time, port uint16, changed uint8) {
	ps := &n.ports[port]
	n.touched.add(port)
	queue := &n.prog.class.Queue
	for m := changed; m != 0; m &= m - 1 {
		q := queue[bits.TrailingZeros8(m)]
		until := frame.Time(0)
		for c := range queue {
			if queue[c] == q {
				until = max(until, ps.pfc.Until(c))
			}
		}
		if until > now {
			ps.sched.Pause(int(q), until)
		} else {
			ps.sched.Unpause(now, int(q))
		}
	}
	ps.dropping = 0
	for m := ps.pfc.Dropping(); m != 0; m &= m - 1 {
		q := queue[bits.TrailingZeros8(m)]
		ps.dropping |= 1 << q
		n.flushQueue(now, port, int(q), frame.PFCWatchdog)
	}
}

// repause moves the pauses of own ports to the present queues of their classes.
func (n *Node) repause(now frame.Time) {
	for i := range n.ports {
		if ps := &n.ports[i]; ps.pfc != nil {
			for q := range n.prog.class.Queue {
				ps.sched.Unpause(now, q)
			}
			n.hold(now, uint16(i), 0xff)
		}
	}
}

// flowControl passes on what the buffer wants paused since the last call.
func (n *Node) flowControl(now frame.Time) {
	if n.chunks.short || 2*n.chunks.held > n.chunks.limit { // else there are enough frames left by far
		n.judgeFrames(now)
	}
	if n.inputs != nil || n.buffer.Stale() {
		n.passOn(now)
	}
	if n.flow.sweepAt == frame.Never && n.buffer.Unswept() {
		n.flow.sweepAt = now + sweepAfter
	}
}

// judgeFrames decides whether frames run short.
func (n *Node) judgeFrames(now frame.Time) {
	if n.chunks.short == n.shortOfFrames() {
		return
	}
	n.chunks.short = !n.chunks.short
	for i := range n.prog.ports {
		n.wantChanged(now, uint16(i))
	}
}

// passOn finds the ports of which the buffer, or the input queues, now want something else.
func (n *Node) passOn(now frame.Time) {
	for {
		port, ok := n.buffer.NextDirty()
		if !ok {
			break
		}
		n.wantChanged(now, port)
	}
	for n.inputs != nil {
		port, ok := n.inputs.NextDirty()
		if !ok {
			break
		}
		n.wantChanged(now, port)
	}
}

// sweepAfter is how long a group without arrivals and departures may keep its old
// threshold: the time of a few large frames at 100 Gb/s.
const sweepAfter = frame.Microsecond

// shortOfFrames reports whether the chunks for waiting frames run out, which small frames
// can cause before their bytes reach a threshold: then lossless classes are paused at all
// ports. If the buffer counts chunks it pauses the senders that take them.
//
// Lossy frames hold at most 3/4 of the chunks (mayHold) and so never cause it alone: the
// pause begins a quarter of the rest above that, and ends half of that lower.
func (n *Node) shortOfFrames() bool {
	mark := n.chunks.limit * 13 / 16
	if n.chunks.short {
		mark = n.chunks.limit * 25 / 32
	}
	return n.flow.lossless != 0 && n.chunks.held > mark && !n.chunks.counted
}

// wanted returns the classes of a port that this worker's share of the buffer
// wants paused.
func (n *Node) wanted(port uint16) uint8 {
	if n.chunks.short {
		return n.flow.lossless
	}
	if n.inputs != nil {
		return n.inputs.Wants(port)
	}
	return n.buffer.Want(port)
}

// wantChanged passes on what this worker's share of the buffer now wants of one port: to
// the neighbour, or to the worker that owns the port.
func (n *Node) wantChanged(now frame.Time, port uint16) {
	if len(n.others.in) > 1 {
		n.flow.wants[port].Store(uint32(n.wanted(port)))
	}
	if int(port) >= len(n.prog.ports) {
		return // removed: it has no neighbour any more
	}
	if n.flow.log != nil {
		n.logAsked(now, port, n.wanted(port))
	}
	if owner := n.prog.ports[port].worker; int(owner) != n.index {
		n.others.handed |= n.sw.Nodes[owner].others.bit // it may sleep
		return
	}
	n.Request(now, port)
}

// Stages returns the stages to which this worker's share of the buffer wants the
// neighbour at a port slowed: see buffer.Buffer.Stages.
func (n *Node) Stages(port uint16) uint32 { return n.buffer.Stages(port) }

// ShortOfFrames reports whether the chunks for waiting frames run out, so that all
// lossless classes are paused, whatever the buffer wants.
func (n *Node) ShortOfFrames() bool { return n.chunks.short }

// Request asks the neighbour at an own port to pause what any worker's share of the
// buffer wants paused. Features call it to have that said again.
func (n *Node) Request(now frame.Time, port uint16) {
	want := n.wanted(port)
	if len(n.others.in) > 1 {
		for _, other := range n.sw.Nodes {
			want |= uint8(other.flow.wants[port].Load())
		}
	}
	if p := n.ports[port].pfc; p != nil {
		if b := n.ports[port].arc.requests; b != 0 {
			n.stages.features[bits.TrailingZeros32(b)].Requests(port, p)
		} else {
			p.Request(want)
		}
		n.sendFlowControl(now, port)
	}
}

// sendFlowControl sends the flow-control frames that a port has to send now.
func (n *Node) sendFlowControl(now frame.Time, port uint16) {
	ps := &n.ports[port]
	for n.linkUp.has(port) {
		r := n.pool.Alloc()
		if r == frame.Nil {
			n.missFlowControl(now, port)
			break
		}
		m := n.arena.Reset(r)
		m.Len, m.Wire = wire.MinFrame, wire.MinFrame
		m.InPort, m.OutPort, m.Arrival = port, port, now
		if ps.pfc.NextFrame(now, n.arena.Bytes(r)) == 0 {
			n.pool.FreeChunk(r)
			break
		}
		n.count.Made++
		n.SendControl(port, r)
	}
	n.notifyPauses(now, port)
	n.wakeFor(now, port)
}

// flowControlRetry is after how long a flow-control frame for which there was no chunk is
// tried again: a pause must not get lost.
const flowControlRetry = frame.Microsecond

// missFlowControl counts that a port found no chunk, if it has something to send.
func (n *Node) missFlowControl(now frame.Time, port uint16) {
	if ps := &n.ports[port]; now >= ps.retry && ps.pfc.Due(now) {
		n.count.Made++
		n.countDrop(port, frame.ArenaExhausted)
		ps.retry = now + flowControlRetry
	}
}

// wakeFor arms the timer of flow control for what a port has to do next. One
// without a link does nothing, though it may have a frame to send.
func (n *Node) wakeFor(now frame.Time, port uint16) {
	if ps := &n.ports[port]; n.linkUp.has(port) {
		due := ps.pfc.Wake(now)
		if ps.retry > now && ps.pfc.Due(now) {
			due = ps.retry
		}
		n.flow.due = min(n.flow.due, due)
	}
}

// advanceFlowControl does what flow control has to do when time passes.
func (n *Node) advanceFlowControl(now frame.Time) {
	if now >= n.flow.sweepAt {
		n.flow.sweepAt = frame.Never
		n.buffer.Sweep()
	}
	if len(n.others.in) > 1 && n.flow.lossless != 0 {
		n.collectWants(now)
	}
	if now >= n.flow.due {
		n.controlTimers(now)
	}
	n.flowControl(now)
}

// controlTimers runs the timers of the ports' flow control.
func (n *Node) controlTimers(now frame.Time) {
	n.flow.due = frame.Never
	for i := range n.ports {
		ps := &n.ports[i]
		if ps.pfc == nil {
			continue
		}
		if n.prog.Config.PFC.ErrDisable != 0 || ps.disabled != 0 {
			n.checkErrDisable(now, uint16(i))
		}
		ps.pfc.Advance(now, n.waitingClasses(ps))
		n.applyPauses(now, uint16(i))
		n.sendFlowControl(now, uint16(i))
	}
}

// collectWants finds ports of this worker whose neighbours should pause according to
// another worker's share of the buffer.
func (n *Node) collectWants(now frame.Time) {
	for i := range n.ports {
		if n.ports[i].pfc == nil {
			continue
		}
		want := uint8(0)
		for _, other := range n.sw.Nodes {
			want |= uint8(other.flow.wants[i].Load())
		}
		if want != n.ports[i].collected {
			n.ports[i].collected = want
			n.Request(now, uint16(i))
		}
	}
}

// waitingClasses returns the classes with frames that wait at a port.
func (n *Node) waitingClasses(ps *portState) (classes uint8) {
	waiting := ps.sched.Waiting()
	for c, q := range n.prog.class.Queue {
		classes |= (waiting >> q & 1) << c
	}
	return classes
}

// Watchdog returns the storm watchdog of a port.
func (cfg *Config) Watchdog(port uint16) pfc.Watchdog {
	if int(port) < len(cfg.Ports) && cfg.Ports[port].Watchdog != nil {
		return *cfg.Ports[port].Watchdog
	}
	return cfg.PFC.Watchdog
}

// adoptPFC brings flow control of an own port in line with the configuration.
func (n *Node) adoptPFC(now frame.Time, i uint16, c *PortConfig) {
	cfg := n.prog.Config
	pc := pfc.Config{Mode: cfg.PFC.Mode, Enable: cfg.PFC.Classes, Rate: c.rate(), Quanta: cfg.PFC.Quanta, Source: cfg.MAC, Watchdog: cfg.Watchdog(i),
		Violations: cfg.PFC.violations(c, &cfg.Buffer), Response: cfg.PFC.Response}
	cfg.flowControl(&pc)
	if c.Twin != nil {
		pc.Mode = pfc.Off // a kernel does not pause
	}
	ps := &n.ports[i]
	ps.watchdog = pc.Watchdog.Detect
	if ps.pfc == nil {
		ps.pfc = pfc.NewPort(pc)
	} else {
		ps.pfc.Configure(now, pc)
	}
	n.applyPauses(now, i)
	n.sendFlowControl(now, i)
}

// flowControl lets features change the configuration of a port's flow control.
func (cfg *Config) flowControl(f *pfc.Config) {
	for _, x := range features {
		if x.FlowControl != nil && cfg.uses(x) {
			x.FlowControl(cfg, f)
		}
	}
}
