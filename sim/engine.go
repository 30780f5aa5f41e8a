package sim

import (
	"fmt"

	"gswitch/fault"
	"gswitch/frame"
)

// Chunks of the arena: headers only, since payload is just length here.
const (
	chunkSize = 256
	headroom  = 32
	// encapsulation is what switches and hosts may put around a frame besides
	// its telemetry: VLAN tags, and an AETH where an acknowledgement has the
	// telemetry of the frame that it answers.
	encapsulation = 32
)

// Config describes an engine.
type Config struct {
	// Chunks bounds the frames that exist at once, in all queues and on all
	// links. 0 takes 65536; a chunk takes 256 bytes and its Meta 128.
	Chunks int
	// Headers is the most bytes of headers that a frame has; chunks grow with it.
	Headers int
	// Seed is that of every random choice of the engine: its faults. Nodes have
	// seeds of their own.
	Seed uint64
	// Parts is how many parts of the network run side by side, each on a core: see
	// Assign. 0 takes 1. Workers run them; nil: one after the other.
	Parts   int
	Workers Workers
}

// Engine steps the nodes of a network in virtual time.
type Engine struct {
	arena *frame.Arena
	depot *frame.Depot // free chunks of several parts, nil where there is one
	seed  uint64
	now   frame.Time
	err   error

	rounds int // of events at the present instant

	nodes []node
	dirs  []direction // two to a link: 2*link is from its first node to its second
	laid  bool        // the slots of the parts' queues fit nodes and dirs
	ctl   Agenda

	parts   []*part
	stepped stepped // nodes, while the parts go in step
	batch   []int32 // events of an instant, of all parts
	wide    int     // directions from which on fetch is worth it
	ahead   ahead   // how the parts run ahead of each other

	count  Stats
	onLost func(id LinkID, way Way, why fault.Loss, b []byte)
}

// vector is how many frames a port may give out or get at once.
const vector = 64

// New returns an engine without nodes, at time 0.
func New(cfg Config) *Engine {
	if cfg.Chunks <= 0 {
		cfg.Chunks = 1 << 16
	}
	size := chunkSize
	for size < headroom+cfg.Headers+encapsulation {
		size *= 2
	}
	e := &Engine{seed: cfg.Seed, wide: fetchFrom}
	if cfg.Parts <= 1 {
		e.arena = frame.MustArena(cfg.Chunks, size, headroom)
		e.addPart(frame.NewPool(e.arena))
		return e
	}
	// What lies unused in the pool of one part is not missing in another.
	e.arena = frame.MustArena(cfg.Chunks+cfg.Parts*frame.PoolKeeps, size, headroom)
	e.depot = frame.NewDepot(e.arena)
	for range cfg.Parts {
		e.addPart(e.depot.NewPool(e.arena))
	}
	if e.ahead.workers = cfg.Workers; cfg.Workers == nil {
		e.ahead.workers = sequential{}
	}
	e.ahead.run = func(part int) { e.parts[part].runTo(e.ahead.to) }
	return e
}

// Pool returns the pool that all nodes of the engine share, or where there are
// several parts those of the first.
func (e *Engine) Pool() *frame.Pool { return e.parts[0].pool }

// PoolOf returns the pool that the nodes of a part share.
func (e *Engine) PoolOf(part int) *frame.Pool { return e.parts[part].pool }

// Now returns the virtual time.
func (e *Engine) Now() frame.Time { return e.now }

// AddNode adds a node and returns its number. after is called whenever the
// node was stepped, before the engine looks at what it wants next; it may
// change the node, post messages to it, or call At. It may be nil.
func (e *Engine) AddNode(n frame.Stepper, after func(now frame.Time)) int {
	e.nodes = append(e.nodes, newNode(n, after))
	e.grown()
	e.laid = false
	e.Poke(len(e.nodes) - 1)
	return len(e.nodes) - 1
}

// Link is what a cable is.
type Link struct {
	Delay frame.Time // one way; rates are those of the nodes' ports
}

// LinkID names a link, in the order of Connect from 0 on.
type LinkID int

// Connect joins port pa of node a and port pb of node b, and notifies both that
// their link is up. An impossible connection is reported by Run.
func (e *Engine) Connect(a int, pa uint16, b int, pb uint16, l Link) LinkID {
	id := LinkID(len(e.dirs) / 2)
	if err := e.checkEnds(a, pa, b, pb, l); err != nil {
		e.fail(fmt.Errorf("link %d: %w", id, err))
		return id
	}
	d := int32(len(e.dirs))
	e.dirs = append(e.dirs,
		direction{from: int32(a), fromPort: pa, to: int32(b), toPort: pb, delay: l.Delay, txAt: frame.Never, up: true},
		direction{from: int32(b), fromPort: pb, to: int32(a), toPort: pa, delay: l.Delay, txAt: frame.Never, up: true})
	e.grown()
	e.nodes[a].attach(pa, d)
	e.nodes[b].attach(pb, d+1)
	e.laid = false
	e.notifyLink(d, true)
	return id
}

func (e *Engine) checkEnds(a int, pa uint16, b int, pb uint16, l Link) error {
	for _, end := range [2]struct {
		node int
		port uint16
	}{{a, pa}, {b, pb}} {
		if end.node < 0 || end.node >= len(e.nodes) {
			return fmt.Errorf("there is no node %d: add it before it is connected", end.node)
		}
		if e.nodes[end.node].dir(end.port) >= 0 {
			return fmt.Errorf("port %d of node %d is connected already", end.port, end.node)
		}
	}
	switch {
	case a == b && pa == pb:
		return fmt.Errorf("port %d of node %d cannot be connected to itself", pa, a)
	case l.Delay < 0:
		return fmt.Errorf("a delay of %v is negative", l.Delay.Duration())
	}
	return nil
}

// Stop ends Run with err before time goes on. The engine does not run again.
func (e *Engine) Stop(err error) { e.fail(err) }

// fail keeps the first error for Run.
func (e *Engine) fail(err error) {
	if e.err == nil {
		e.err = err
	}
}

// Poke says that something other than the engine changed a node, such as a
// message that was posted: its ports and timers are looked at before time goes
// on.
func (e *Engine) Poke(node int) { e.markDirty(int32(node)) }

func (e *Engine) markDirty(i int32) { e.part(i).mark(i) }

// Run lets time go on until the given instant, everything that happens at it
// included. It may be called again with a later one.
func (e *Engine) Run(until frame.Time) error {
	if e.err != nil {
		return e.err
	}
	if until < e.now {
		return fmt.Errorf("time cannot go back from %d to %d ns", e.now, until)
	}
	e.layOut()
	if len(e.parts) == 1 {
		e.parts[0].runAlone(until)
	} else {
		defer e.ahead.workers.Stop()
		e.runParts(until)
	}
	if e.err == nil {
		e.advance(until)
	}
	return e.err
}

// runParts lets time go on for several parts.
func (e *Engine) runParts(until frame.Time) {
	for {
		if e.ctl.Next() <= e.now {
			e.control()
			continue
		}
		e.serve()
		t, c := e.next(), e.ctl.Next()
		if min(c, t) > until || e.err != nil {
			break
		}
		if c <= t {
			e.advance(max(e.now, c))
			e.rounds = 0
			continue
		}
		if to := e.horizon(t, min(c, until+1)); to > t {
			e.runAhead(to)
			continue
		}
		if e.rounds++; t > e.now {
			e.rounds = 0
			e.advance(t)
		} else if e.rounds > maxRounds {
			e.fail(e.standstill())
			break
		}
		e.instant(t)
	}
}

// advance lets time go on for all parts.
func (e *Engine) advance(t frame.Time) {
	e.now = t
	for _, p := range e.parts {
		p.now = t
	}
}

// maxRounds is how often something may happen anew at one instant: frames
// cross a handful of links without delay, and no more.
const maxRounds = 100_000

// standstill says who keeps time from going on.
func (e *Engine) standstill() error {
	if e.starved() {
		return e.exhausted()
	}
	for i := range e.nodes {
		if e.nodes[i].timerAt <= e.now {
			return fmt.Errorf("at %d ns node %d wants to be called again and again: time stands still", e.now, i)
		}
	}
	return fmt.Errorf("at %d ns frames circulate without end: a loop of links without delay", e.now)
}

// starved reports whether there is no free chunk.
func (e *Engine) starved() bool {
	for _, p := range e.parts {
		if p.starved() {
			return true
		}
	}
	return false
}

func (e *Engine) exhausted() error {
	return fmt.Errorf("at %d ns the %d chunks for frames are used up and a node waits for one: set Config.Chunks to more than the network can queue", e.now, e.arena.Chunks())
}

// fetchFrom is from how many directions on a network does not lie in the
// second cache as a whole.
const fetchFrom = 256

// Stats counts what an engine did.
type Stats struct {
	Events    uint64 // arrivals, timers, transmissions and control events that were run
	Windows   uint64 // times that the parts of the network ran side by side
	Ahead     uint64 // of Events, those that were run then
	Longest   uint64 // of those, the sum over the windows of the most that one part had
	FrameHops uint64 // frames that crossed a link
	InFlight  uint64 // frames on links now
	Handed    uint64 // frames that nodes gave out to links
	Injected  uint64 // frames that a fault added: duplicates and storms
	Lost      [fault.NumLosses]uint64
}

// Stats returns the counters. Handed + Injected = FrameHops + the sum of Lost
// + InFlight at any time.
func (e *Engine) Stats() Stats {
	s := e.count
	for _, p := range e.parts {
		s.Events += p.events
	}
	for i := range e.dirs {
		d := &e.dirs[i]
		s.Handed += d.handed
		s.FrameHops += d.delivered
		s.InFlight += uint64(d.flight.len())
		if f := d.fault; f != nil {
			s.Injected += f.injected
			s.InFlight += uint64(len(f.late))
			for k, n := range f.lost {
				s.Lost[k] += n
			}
		}
	}
	return s
}
