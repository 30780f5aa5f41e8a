package vswitch

import (
	"math/bits"

	"gswitch/buffer"
	"gswitch/feature"
	"gswitch/frame"
	"gswitch/pfc"
	"gswitch/pipeline"
	"gswitch/scheduler"
	"gswitch/wire"
)

// vector is how many frames go through the stages together.
const vector = 64

// Node is the part of a switch that one worker runs. It implements
// frame.Stepper.
type Node struct {
	// Fixed.
	sw        *Switch
	index     int
	arena     *frame.Arena
	pool      *frame.Pool
	fdb       *pipeline.FDB
	neighbors *neighborTable
	parser    *wire.Parser
	selfMAC   uint64

	// Time and program of the present step. Most stages take the time as an argument. It
	// stands here for what features call, which do not pass it, and for the stages that are
	// reached by many ways, such as enqueue.
	now   frame.Time
	lead  feature.Slew // synchronised time less the node's own; 0 without
	leads bool         // lead is known
	prog  *Program

	ports   []portState
	linkUp  portSet // ports that are enabled and have a link
	links   uint32  // Switch.links, when linkUp was last judged
	busy    portSet // own ports with something queued
	touched portSet // own ports that may send earlier than when last asked
	buffer  *buffer.Buffer
	shared  scheduler.Shared // by queues of several ports
	inputs  InputQueues      // where frames wait before their egress queue; nil: nowhere
	chunks  chunks
	acl     aclState
	memo    memo
	local   *local // the slow path, worker 0 only

	// Room for the vector that is in hand.
	vec    vectors
	routed routedVector
	others otherWorkers

	count  Counts
	own    ownFrames
	rng    frame.Rand
	flow   flowState
	stages stages

	ageAt      frame.Time // next step of ageing
	routeCount []Traffic  // by route id
	aclCount   []Traffic  // by rule id

	paths paths
	shown *scheduler.ShownLoads // of own ports, to other workers; nil if not needed

	dropped []frame.Ref // listed for a capture instead of freed; capacity 0 while none runs
}

// chunks are those that a worker's frames hold.
type chunks struct {
	held  int // by frames in the queues
	limit int
	// The part of limit that lossy frames may take. The rest is the headroom of lossless
	// frames; while short is set, all lossless classes are paused.
	lossy   int
	counted bool // the buffer counts and divides chunks
	short   bool
	floods  floodRoom
}

// vectors is room for the frames that a step has in hand.
type vectors struct {
	crossed  [vector]frame.Ref // from the input queues
	decided  [vector]frame.Ref // whose egress port is decided
	decidedN int
	copies   [vector]frame.Ref // for mirrors
	copiesN  int
	scratch  [vector]frame.Ref
	taken    [vector]frame.Ref // from another worker
	one      [1]frame.Ref
	arriving [vector]frame.Ref // what features look at
	dead     [4 * vector]frame.Ref
	deadN    int
}

// routedVector is the part of a vector that is routed.
type routedVector struct {
	vec     [vector]frame.Ref
	id      [vector]uint32
	addr    [vector]addresses
	n       int
	alone   bool    // one frame is routed
	lastHop nextHop // and its MAC, of the frame before in the vector
	lastMAC uint64
}

// otherWorkers is what goes to the other workers of the switch, and comes from them.
type otherWorkers struct {
	out    []handoff     // by worker, as in
	in     []*frame.Ring // frames for own ports
	handed uint64        // workers to wake at the end of this step
	bit    uint64        // of this worker in the engine
	bits   uint64        // of all workers of the switch
}

// handoff is what goes to one worker.
type handoff struct {
	ring   *frame.Ring
	v      [vector]frame.Ref
	n      int
	floods bool // it contains copies of floods
}

// ownFrames is what a worker keeps of frames that the switch itself makes.
type ownFrames struct {
	drops      [frame.NumReasons]uint64 // that could not be made or sent
	icmp       pipeline.Meter
	redirected redirects
	ipID       uint16 // of the last IPv4 header
}

// flowState is the flow control of a worker beyond its ports.
type flowState struct {
	wants    []wantMask // by port: pauses wanted by this worker's share of the buffer
	due      frame.Time // next timer
	log      *pauseLog  // nil: none
	sweepAt  frame.Time // when dynamic thresholds are judged again
	lossless uint8      // classes
}

// stages is what features of a worker are called with, and what they left to do.
type stages struct {
	features  []running      // by the index of each in the package's features
	due       frame.Time     // next timer of a feature
	joined    [vector]Queued // frames that joined queues and that features have not seen yet
	joinedN   int
	joinedFor uint32               // the features that will see them
	forwards  uint32               // the features that see frames before they join
	copies    uint32               // the features that see mirror copies
	dropped   uint32               // the features that see dropped frames
	sends     [2][vector]frame.Ref // what features send once the vector is queued, and what they send in the meantime
	sending   uint8                // which of the two is next
	sendsN    int
	deferred  [vector]composedNotice // messages that wait for the end of the vector
	deferredN int
}

// portState is what one worker keeps of a port.
type portState struct {
	rx, tx      Traffic
	rxClass     [8]Traffic
	drops       [frame.NumReasons]uint64
	parseErrors [frame.NumReasons]uint64
	queueDrops  [8]uint64
	storm       [floodKinds]pipeline.Meter
	stormRate   [floodKinds]uint64
	own         pipeline.Meter // of the switch's own frames
	ownRate     uint64         // bit/s; 0: no limit
	twin        [twinGroups]pipeline.Meter
	twinLimit   uint32 // frames/s; 0: none
	wraps       uint32 // features that unwrap arriving frames, as in an arc
	arrives     uint32 // features that see arriving frames, as in an arc
	admitted    uint32 // features that see frames that passed the access list

	// Only on the worker that owns the port.
	sched     *scheduler.Port
	pfc       *pfc.Port
	arc       arc
	disabled  frame.Time // until when the port is err-disabled, 0: it is not
	retry     frame.Time // from when on a flow-control frame that found no chunk is tried again
	floods    floods     // copies of floods in its queues
	dropping  uint8      // queues that the storm watchdog drains
	collected uint8      // classes last collected from other workers
	watchdog  frame.Time // when the storm watchdog acts; 0: never
}

// Receive implements frame.Node: the way of a frame from its port into an
// egress queue.
func (n *Node) Receive(now frame.Time, port uint16, v []frame.Ref) {
	for len(v) > vector {
		n.Receive(now, port, v[:vector])
		v = v[vector:]
	}
	n.now = now
	if len(v) == 0 || port >= MaxPorts || !n.linkUp.has(port) {
		n.dropArrived(now, port, v)
		return
	}

	ps, pp := &n.ports[port], &n.prog.ports[port]
	if ps.wraps != 0 {
		n.unwrap(now, port, v)
	}
	n.parser.Parse(n.arena, v)
	if ps.arrives != 0 {
		v = n.arrive(now, port, v)
	}
	if pp.twinOf == frame.NoPort {
		v = n.admit(now, port, pp, ps, v)
		if pp.edge {
			v = n.distrust(v)
		}
		if pp.acl != 0 {
			v = n.filter(now, pp.acl-1, v)
		}
		if ps.admitted != 0 {
			n.admitted(now, port, v)
		}
		switch {
		case pp.iface == noIface:
			n.bridge(now, port, pp, v)
		case len(v) != 1 || !n.recall(v[0]):
			n.receiveRouted(v)
		}
	} else {
		n.fromTwin(now, port, pp, ps, v)
	}
	if n.routed.n > 0 {
		n.route(now)
	}
	if n.vec.decidedN > 0 {
		n.egress()
	}
	if n.stages.joinedN+n.stages.deferredN > 0 {
		n.endVector(now)
	}

	n.flowControl(now)
	if len(n.others.out) > 1 {
		n.flushHandoffs()
	}
	if n.vec.deadN > 0 {
		n.freeDropped()
	}
	if n.stages.sendsN > 0 {
		n.sendAll(now)
	}
}

// dropArrived drops what arrived at a port that has no link, or has just been removed.
func (n *Node) dropArrived(now frame.Time, port uint16, v []frame.Ref) {
	for _, r := range v {
		m := n.arena.Meta(r)
		m.InPort, m.Arrival = port, now
		if int(port) < len(n.prog.ports) {
			n.ports[port].rx.add(m.Wire)
		}
	}
	n.dropAll(v, frame.PortDown)
	n.freeDropped()
}

// Expect implements frame.Expecter.
func (n *Node) Expect(port uint16, r frame.Ref) {
	if int(port) < len(n.ports) {
		ps := &n.ports[port]
		frame.Prefetch(&ps.rx)
		frame.Prefetch(&ps.rxClass[4])
	}
	if hash, ok := n.parser.Guess(n.arena.Bytes(r)); ok {
		frame.Prefetch(&n.memo.flow[hash%memoFlows])
	}
}

// Transmit implements frame.Node: the way of a frame out of its egress queue. The port's
// scheduler says which leave now, and stamps their departure; finish gives back what they
// were charged to and writes what their neighbours read in them; what the scheduler dropped
// in place of sending it leaves the switch, too. What all this made room for may end pauses.
func (n *Node) Transmit(now frame.Time, port uint16, out []frame.Ref) int {
	if !n.busy.has(port) {
		return 0
	}
	n.now = now
	ps := &n.ports[port]
	released := ps.sched.Dequeue(now, out)
	k := n.finish(now, port, out[:released])
	shed := ps.sched.HasShed()
	if shed {
		n.dropShed(now, ps)
	}
	if ps.sched.Empty() {
		n.busy.remove(port)
	}
	if released > 0 {
		n.flowControl(now)
	}
	// Frames that waited earlier are for Advance (TimerWake): before PortWake nothing
	// happens here, and a recorder does not record it.
	if n.stages.sendsN > 0 && (released > 0 || shed) {
		n.sendAll(now)
	}
	return k
}

// Changed reports whether the next Advance adopts a new program.
func (n *Node) Changed() bool { return n.sw.program.Load() != n.prog }

// Advance implements frame.Node: adopts a new program, takes frames from
// other workers, runs timers.
func (n *Node) Advance(now frame.Time) {
	n.now = now
	if n.Changed() {
		n.adopt(now, n.sw.program.Load())
	}
	if links := n.sw.links.Load(); links != n.links {
		n.adoptLinks(now, links)
	}
	if len(n.others.in) > 1 {
		n.takeOver()
	}
	if n.local != nil {
		n.local.advance(now)
	}
	if n.vec.decidedN > 0 {
		n.egress()
	}
	if n.inputs != nil {
		n.advanceInputs(now)
	}
	if n.index == 0 && now >= n.ageAt {
		n.age(now)
	}
	n.advanceFlowControl(now)
	if now >= n.stages.due {
		n.advanceFeatures(now)
	}
	if n.vec.decidedN > 0 {
		n.egress()
	}
	if n.stages.joinedN+n.stages.deferredN > 0 {
		n.endVector(now)
	}
	if len(n.others.out) > 1 {
		n.flushHandoffs()
	}
	n.freeDropped()
	if n.stages.sendsN > 0 {
		n.sendAll(now)
	}
}

// Wake implements frame.Node.
func (n *Node) Wake(now frame.Time) frame.Time {
	t := n.TimerWake(now)
	for p := n.busy.next(0); p >= 0; p = n.busy.next(p + 1) {
		t = min(t, n.ports[p].sched.Wake(now))
	}
	return t
}

// TimerWake implements frame.Stepper.
func (n *Node) TimerWake(now frame.Time) frame.Time {
	if n.sw.program.Load() != n.prog || n.sw.links.Load() != n.links || n.stages.sendsN+n.vec.decidedN > 0 {
		return now
	}
	for _, ring := range n.others.in {
		if ring != nil && ring.Len() > 0 {
			return now
		}
	}
	t := min(n.flow.due, n.flow.sweepAt, n.stages.due)
	if n.index == 0 {
		t = min(t, n.ageAt)
	}
	if n.inputs != nil {
		t = min(t, n.inputs.Due())
	}
	if n.local != nil {
		t = min(t, n.local.due)
	}
	return t
}

// PortWake implements frame.Stepper.
func (n *Node) PortWake(now frame.Time, port uint16) frame.Time {
	if !n.busy.has(port) {
		return frame.Never
	}
	return n.ports[port].sched.Wake(now)
}

// Touched implements frame.Stepper.
func (n *Node) Touched(out []uint16) (k int) {
	if n.touched == (portSet{}) {
		return 0
	}
	for i := range n.touched {
		for w := n.touched[i]; w != 0; w &= w - 1 {
			if k == len(out) {
				n.touched[i] = w
				return k
			}
			out[k] = uint16(i*64 + bits.TrailingZeros64(w))
			k++
		}
		n.touched[i] = 0
	}
	return k
}

// Handoff returns, as a bitmap of the engine's workers, to which workers this one has
// passed frames since the last call: an engine wakes those that sleep.
func (n *Node) Handoff() uint64 {
	w := n.others.handed
	n.others.handed = 0
	return w
}

// drop counts a frame under a reason and puts it where freeDropped frees it.
func (n *Node) drop(r frame.Ref, reason frame.Reason) {
	m := n.arena.Meta(r)
	m.Reason = reason
	n.countDrop(m.InPort, reason)
	if n.vec.deadN == len(n.vec.dead) {
		n.freeDropped()
	}
	n.vec.dead[n.vec.deadN] = r
	n.vec.deadN++
}

func (n *Node) dropAll(v []frame.Ref, reason frame.Reason) {
	for _, r := range v {
		n.drop(r, reason)
	}
}

func (n *Node) countDrop(in uint16, reason frame.Reason) {
	if int(in) < len(n.ports) {
		n.ports[in].drops[reason]++
	} else {
		n.own.drops[reason]++
	}
}

// freeDropped frees the dropped frames, or lists them for a capture.
func (n *Node) freeDropped() {
	if n.stages.dropped != 0 && n.vec.deadN > 0 {
		n.showDropped(n.vec.dead[:n.vec.deadN])
	}
	for _, r := range n.vec.dead[:n.vec.deadN] {
		if len(n.dropped) < cap(n.dropped) {
			n.dropped = append(n.dropped, r)
		} else {
			n.pool.Free(r)
		}
	}
	n.vec.deadN = 0
}

// TapDrops gives the node the memory in which to list the frames it drops,
// with Meta.InPort and Meta.Reason set, instead of freeing them. What does
// not fit is freed. nil ends it.
func (n *Node) TapDrops(buf []frame.Ref) { n.dropped = buf[:0:cap(buf)] }

// TakeDrops returns the listed frames, which the caller then owns, and empties the list.
func (n *Node) TakeDrops() []frame.Ref {
	v := n.dropped
	n.dropped = n.dropped[:0]
	return v
}

// Flush frees the frames that the node holds outside the queues of its ports, when it is
// removed: frames that wait for a neighbour or come from other workers.
func (n *Node) Flush(now frame.Time) {
	n.now = now
	for _, ring := range n.others.in {
		if ring == nil {
			continue
		}
		for k := ring.Pop(n.vec.scratch[:]); k > 0; k = ring.Pop(n.vec.scratch[:]) {
			n.dropAll(n.vec.scratch[:k], frame.QueueFlush)
		}
	}
	if n.inputs != nil {
		n.flushInputs()
	}
	if n.local != nil {
		for n.local.first != nil {
			n.local.remove(n.local.first, frame.QueueFlush)
		}
	}
	n.dropAll(n.vec.decided[:n.vec.decidedN], frame.QueueFlush)
	n.vec.decidedN = 0
	n.freeDropped()
	for _, r := range n.stages.sends[n.stages.sending][:n.stages.sendsN] {
		n.countDrop(n.arena.Meta(r).InPort, frame.QueueFlush)
		n.pool.Free(r)
	}
	n.stages.sendsN = 0
}
