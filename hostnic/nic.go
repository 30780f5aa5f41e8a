package hostnic

import (
	"gswitch/cc"
	"gswitch/frame"
	inband "gswitch/int"
	"gswitch/notice"
	"gswitch/pfc"
	"gswitch/scheduler"
	"gswitch/wire"
)

// vector is how many frames are parsed together.
const vector = 64

// NIC is a host's network interface as a node: one port, number 0, and its
// queue pairs. It implements frame.Stepper.
type NIC struct {
	cfg    Config
	arena  *frame.Arena
	pool   *frame.Pool
	parser *wire.Parser
	mac    uint64
	addr   address
	maxQPs int

	// Transmit side.
	clock      scheduler.RateClock
	up         bool
	synced     bool       // synchronised time is known
	lead       frame.Time // by how much it is ahead of the NIC's own
	touched    bool
	lastWake   frame.Time // last result of PortWake, Never since the last Transmit
	paused     uint8      // classes that may not be sent: paused by the neighbour, or in a gap
	gaps       stageGaps  // classes that the neighbour slows
	control    frame.FIFO // flow control frames
	plain      frame.FIFO // frames without a queue pair that take turns with data
	plainTurn  bool
	replies    queues
	maxReplies int // in one of them, if the others are empty
	classes    [8]class
	ready      [numLanes]uint8 // classes with lanes that may send now, by their kind
	sources    []source        // features with frames of their own

	paceWheel wheel

	qps     []*queuePair
	slab    []queuePair // made, not yet used
	free    []uint32
	opened  uint32 // the last one opened
	numbers numbering
	timers  wheel

	notices notices

	flow      *pfc.Port
	controlAt frame.Time // its next frame is not made before this time, for lack of chunks
	quench    quench
	slow      slowReceiver
	foresight foresight

	stack *stack // nil without Config.Stack

	features []running // nil without Config.Options
	arc      arc

	memory     Memory
	ports      Secret // of source ports
	spareVerbs []*verbs

	arrived []Arrived // by queue pairs for frames, not taken
	early   int       // frames that wait behind gaps of such queue pairs
	carried int       // packets that such queue pairs hold until they are acknowledged

	rtts  []RTTSample // kept, not taken
	noise frame.Rand  // of round-trip times

	done     []Completion
	doneHead int

	dropped []frame.Ref // listed for a capture; capacity 0 while none runs

	// Scratch space, so that calls through interfaces do not allocate it.
	env            cc.Env
	feedback       cc.Feedback
	path           inband.Path
	packet         packet
	echo           [maxEcho]byte
	defaultProfile inband.Profile

	verdicts frame.Verdicts // on payload

	count Counts
}

// New returns a NIC without queue pairs, its link up.
func New(cfg *Config, pool *frame.Pool) (*NIC, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	n := &NIC{
		cfg: *cfg, arena: pool.Arena, pool: pool, mac: cfg.MAC.Uint64(), addr: addressOf(cfg.Addr),
		parser: new(wire.Parser), up: true, lastWake: frame.Never,
		maxQPs: cfg.MaxQPs, defaultProfile: inband.DefaultProfile(), noise: frame.NewRand(cfg.Seed),
	}
	n.cfg.defaults()
	if n.maxQPs == 0 {
		n.maxQPs = defaultMaxQPs
	}
	n.memory.keys, n.ports = NewDraws("keys of memory", cfg.Seed), NewSecret("source ports", cfg.Seed)
	n.numbers = newNumbering(n.maxQPs)
	if cfg.RandomNumbers {
		n.numbers.secret = NewSecret("numbers of queue pairs", cfg.Seed)
		n.numbers.random = true
	}
	n.maxReplies = max(1, pool.Chunks()/repliesShare)
	n.clock.SetRate(cfg.Rate)
	n.clock.WholeNs(cfg.WholeNs)
	n.control.Init()
	n.plain.Init()
	n.replies.init()
	n.notices.kinds = notice.Readers()
	n.notices.pending.Init()
	for c := range n.classes {
		for i := range n.classes[c].lanes {
			n.classes[c].lanes[i].burst = noNode
		}
	}
	n.setLevels()
	n.flow = pfc.NewPort(cfg.flow())
	n.slow.init(&n.cfg)
	n.quench.due = frame.Never
	if cfg.Stack != nil {
		n.stack = newStack(cfg)
	}
	n.adoptFeatures()
	return n, nil
}

// Config returns the configuration, with defaults filled in.
func (n *NIC) Config() Config { return n.cfg }

// Transmit implements frame.Node: flow control frames, then what pick selects, as the
// link has room. With Burst, if the caller is late, it goes through the instants that
// were missed, in order: frames that waited for the link leave at those instants, and
// later ones are not yet considered.
func (n *NIC) Transmit(now frame.Time, port uint16, out []frame.Ref) int {
	n.lastWake = frame.Never
	if !n.up {
		return 0
	}
	if n.gaps.classes != 0 {
		n.endGaps(now)
	}
	n.clock.Idle(now - n.cfg.Burst)
	k := 0
	for k < len(out) && n.control.Len() > 0 {
		out[k] = n.takeControl(now)
		k++
	}
	if n.cfg.Burst == 0 {
		n.release(now)
	}
	for k < len(out) {
		t := n.clock.Free()
		if t > now {
			break
		}
		if n.cfg.Burst != 0 {
			n.release(t)
		}
		r := n.pick(t, now)
		if r == frame.Nil {
			if n.cfg.Burst == 0 || n.ready[inTurn]&^n.paused != 0 {
				break
			}
			if t = n.upcoming(); t > now {
				break
			}
			n.clock.Idle(t) // there was nothing to send until then
			continue
		}
		out[k] = r
		k++
	}
	if n.arc.departs != 0 {
		n.showDeparting(now, out[:k])
	}
	return k
}

// release makes the queue pairs ready whose departure is due at t.
func (n *NIC) release(t frame.Time) {
	for i, ok := n.paceWheel.pop(t); ok; i, ok = n.paceWheel.pop(t) {
		n.expire(t, n.qps[i])
	}
}

// Touched implements frame.Stepper.
func (n *NIC) Touched(out []uint16) int {
	if !n.touched || len(out) == 0 {
		return 0
	}
	n.touched = false
	out[0] = 0
	return 1
}

// touch says that a frame may leave as soon as the link is free, but not before t.
func (n *NIC) touch(t frame.Time) {
	if max(t, n.clock.Free()) < n.lastWake {
		n.touched = true
	}
}

// PortWake implements frame.Stepper.
func (n *NIC) PortWake(now frame.Time, port uint16) frame.Time {
	n.lastWake = n.portWake(now)
	return n.lastWake
}

func (n *NIC) portWake(now frame.Time) frame.Time {
	switch {
	case !n.up:
		return frame.Never
	case n.control.Len() > 0:
		return now
	case n.sendable():
		return max(now, n.clock.Free())
	}
	at := min(n.paceWheel.next(), n.gapWake())
	if at == frame.Never {
		return at
	}
	return max(now, at, n.clock.Free())
}

// Advance implements frame.Node: timers, the end of pauses, a slow receiver.
func (n *NIC) Advance(now frame.Time) {
	n.drainSlow(now)
	if n.stack != nil {
		n.stack.advance(now, n)
	}
	n.takeNotices(now)
	for i, ok := n.timers.pop(now); ok; i, ok = n.timers.pop(now) {
		n.timer(now, n.qps[i])
	}
	if now >= n.arc.due {
		n.advanceFeatures(now)
	}
	n.flow.Advance(now, n.ready[inTurn])
	n.updatePaused(now)
	if now >= n.quench.due {
		n.countQuenched(now)
	}
	n.queueFlowControl(now)
}

// TimerWake implements frame.Stepper.
func (n *NIC) TimerWake(now frame.Time) frame.Time {
	at := min(n.timers.next(), n.flowWake(now), n.slow.due(), n.quench.due, n.noticeDue(), n.arc.due)
	if n.stack != nil {
		at = min(at, n.stack.due)
	}
	return max(now, at)
}

// Wake implements frame.Node.
func (n *NIC) Wake(now frame.Time) frame.Time {
	return min(n.TimerWake(now), n.portWake(now))
}

// SetLink implements frame.Node. Replies that wait for a link that goes down
// are dropped; queue pairs recover by their timers.
func (n *NIC) SetLink(now frame.Time, port uint16, up bool) {
	if up == n.up {
		return
	}
	n.up = up
	n.flow.Reset(now)
	n.updatePaused(now)
	if up {
		n.queueFlowControl(now)
		n.touched = true
		n.linkFeatures(now, up)
		return
	}
	for r := n.control.Pop(n.arena); r != frame.Nil; r = n.control.Pop(n.arena) {
		n.drop(r, frame.QueueFlush)
	}
	n.flush(&n.replies)
	for r := n.plain.Pop(n.arena); r != frame.Nil; r = n.plain.Pop(n.arena) {
		n.drop(r, frame.QueueFlush)
	}
	n.linkFeatures(now, up)
}

// drop counts a frame with a reason and frees it.
func (n *NIC) drop(r frame.Ref, why frame.Reason) {
	n.count.Drops[why]++
	if len(n.dropped) < cap(n.dropped) {
		m := n.arena.Meta(r)
		m.Reason, m.InPort = why, 0 // the only port
		n.dropped = append(n.dropped, r)
		return
	}
	n.pool.Free(r)
}
