package live

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"gswitch/dataplane"
	"gswitch/fabric"
	"gswitch/fabric/vnet"
	"gswitch/frame"
	"gswitch/sim"
	"gswitch/wire"
)

// Engine steps the nodes of a network on real frames. It is a vnet.Engine.
type Engine struct {
	cfg  Config
	spec *vnet.EngineSpec
	dp   *dataplane.Engine

	place []int // worker by node of the topology
	ctl   []*control
	nodes []*node
	links []link

	gc collector

	tape    *tape // nil if the run is not recorded
	untaped error // why the record is incomplete

	// Shared by callbacks and the caller of Run.
	mu      sync.Mutex
	err     error
	stopped chan struct{} // closed with the first error

	phase phase
	end   frame.Time // when time stopped; set once halted
	final *dataplane.Stats
	clock time.Duration // cost of reading the clock
}

type phase uint8

const (
	building phase = iota
	running
	halted
	closed
)

// link is a link of the topology with its two ports.
type link struct {
	ports [2]*dataplane.Port // from the first node to the second, and back; nil if another process has it
	ends  [2]int             // nodes

	cut     bool // set by SetLink
	reboots int  // number of its ends that are rebooting
}

func (l *link) up() bool { return !l.cut && l.reboots == 0 }

var _ vnet.Engine = (*Engine)(nil)

// New returns an engine for spec, without nodes, at time 0.
func New(c Config, spec *vnet.EngineSpec) (*Engine, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	e := &Engine{cfg: c, spec: spec, stopped: make(chan struct{})}
	if c.Wires != nil && spec.Frame+maxGrowth > maxFrame {
		fits := (spec.Payload + int(wire.RoCEPad(uint32(spec.Payload))) - (spec.Frame + maxGrowth - maxFrame)) &^ 3
		return nil, fmt.Errorf("frames of %d bytes are too large for AF_XDP on veth, which takes %d less %d for telemetry: lower hosts.payload from %dB to %dB", spec.Frame, maxFrame, maxGrowth, spec.Payload, fits)
	}
	log := c.Logger
	if log == nil {
		log = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	workers := e.layOut()
	size := 2048
	if spec.Frame+maxGrowth > size-frame.DefaultHeadroom {
		size = 4096
	}
	dc := dataplane.Config{Chunks: e.chunks(), ChunkSize: size, Workers: workers, Dilation: max(1, c.Dilation), Held: true, Logger: log}
	var err error
	if e.dp, err = dataplane.New(dc); err != nil {
		return nil, err
	}
	for w := range workers {
		ctl := &control{}
		e.ctl = append(e.ctl, ctl)
		if err := e.dp.AddNode(w, ctl); err != nil {
			return nil, errors.Join(err, e.dp.Stop())
		}
	}
	if c.Record != nil {
		if e.untaped = e.record(c.Record); e.untaped != nil && (c.Record.Must || !errors.Is(e.untaped, ErrSeveral)) {
			return nil, errors.Join(e.untaped, e.dp.Stop())
		}
	}
	e.clock = clockCost(e.dp)
	return e, nil
}

const (
	// maxFrame is the largest frame that a veth with an XDP program accepts
	// (drivers/net/veth.c: a page less headroom and skb_shared_info).
	maxFrame = 3498
	// maxGrowth is the most that switches may add to a frame: in-band telemetry.
	maxGrowth = 256
	// ringSize is the size of every AF_XDP ring: a worker that is preempted for 20 ms
	// finds 256 frames on a link that really runs at 100 Mb/s.
	ringSize = 256
	// maxFrames bounds the arena's share for frames in flight: 256 MiB of locked memory.
	// Networks that can queue more hardly ever do.
	maxFrames = 1 << 17
)

// leastFrames is the least number of frames in flight that a process has room for.
const leastFrames = 1 << 13

// chunks is the size of the arena: frames in flight plus those in the rings of all ports,
// empty or received. Frames wait in switches, of which a process may have only some.
func (e *Engine) chunks() int {
	t := e.spec.Plan.Topology
	if e.cfg.Part == nil {
		return min(e.spec.Chunks, maxFrames) + 2*len(t.Links)*2*ringSize
	}
	switches, ports := 0, 0
	for i := range t.Nodes {
		if e.owns(i) {
			ports += len(t.Nodes[i].Links)
			if t.Nodes[i].Kind == fabric.Switch {
				switches++
			}
		}
	}
	share := e.spec.Chunks * switches / max(1, len(t.Switches()))
	return min(max(share, leastFrames), maxFrames) + ports*2*ringSize
}

// owns reports whether this process steps a node of the topology.
func (e *Engine) owns(node int) bool { return e.cfg.Part == nil || e.cfg.Part.Own[node] }

// Virtual implements vnet.Engine.
func (e *Engine) Virtual() bool { return false }

// Pool implements vnet.Engine.
func (e *Engine) Pool(node int) *frame.Pool { return e.dp.Worker(e.place[node]).Pool() }

// AddNode implements vnet.Engine. It ignores nodes of other processes.
func (e *Engine) AddNode(at int, s frame.Stepper, after func(now frame.Time)) int {
	if e.tape != nil {
		s, after = e.tape.Add(s, after), nil
	}
	n := &node{Stepper: s, after: after, at: at, worker: e.place[at], pool: e.Pool(at)}
	e.nodes = append(e.nodes, n)
	if !e.owns(at) {
		return len(e.nodes) - 1
	}
	if err := e.dp.AddNode(n.worker, n); err != nil {
		e.Stop(err)
	}
	return len(e.nodes) - 1
}

// Connect implements vnet.Engine. Run returns the error of an impossible connection.
func (e *Engine) Connect(a int, pa uint16, b int, pb uint16, l sim.Link) sim.LinkID {
	id := sim.LinkID(len(e.links))
	k := link{ends: [2]int{a, b}}
	for i, port := range [2]uint16{pa, pb} {
		if !e.owns(e.nodes[k.ends[i]].at) {
			continue
		}
		p, err := e.open(id, e.nodes[k.ends[i]], port, l)
		if err != nil {
			e.Stop(fmt.Errorf("link %s: %w", e.linkName(id), err))
			break
		}
		k.ports[i] = p
	}
	if e.tape != nil {
		e.tape.Connect(a, pa, b, pb)
	}
	if err := e.measure(&k); err != nil {
		e.Stop(err)
	}
	e.links = append(e.links, k)
	return id
}

// measure enables the measurement of a link's transit times, and time stamps on PTP
// frames.
func (e *Engine) measure(k *link) error {
	switch {
	case k.ports[0] != nil && k.ports[1] != nil:
		return errors.Join(e.dp.Measure(k.ports[0], k.ports[1]), e.dp.Measure(k.ports[1], k.ports[0]),
			e.dp.Stamp(k.ports[0], k.ports[1]), e.dp.Stamp(k.ports[1], k.ports[0]))
	case e.cfg.Part == nil: // reported earlier
		return nil
	}
	for _, p := range k.ports {
		if p != nil {
			return e.dp.Note(p)
		}
	}
	return nil
}

// open makes a port of a node.
func (e *Engine) open(id sim.LinkID, n *node, port uint16, l sim.Link) (*dataplane.Port, error) {
	name := e.spec.Plan.Topology.Nodes[n.at].Name
	s := dataplane.PortSpec{Name: fmt.Sprintf("%s:%d", name, port), Rated: true, Delay: l.Delay, DelayFrames: 1024, TxDepth: ringSize, RingSize: ringSize}
	if e.cfg.Wires != nil {
		s.Kind = dataplane.XDP
		s.NetNS, s.Interface = e.cfg.Wires.End(n.at, int(port))
	} else {
		s.Kind, s.Wire = dataplane.Wire, fmt.Sprintf("link-%d", id)
	}
	return e.dp.AddPort(n.worker, n, port, s)
}

func (e *Engine) linkName(id sim.LinkID) string {
	t := e.spec.Plan.Topology
	if int(id) >= len(t.Links) {
		return fmt.Sprint(id)
	}
	return t.Nodes[t.Links[id].A.Node].Name + " - " + t.Nodes[t.Links[id].B.Node].Name
}

// Now implements vnet.Engine. It may be later than the time passed to a callback, and may
// go back between two calls: while a worker with a step is preempted, the time that
// passes counts until the worker resumes. The time passed to callbacks never goes back.
func (e *Engine) Now() frame.Time {
	if e.phase >= halted {
		return e.end
	}
	return e.dp.Now()
}

// At implements vnet.Engine.
func (e *Engine) At(t frame.Time, fn func(now frame.Time)) { e.ctl[0].Put(sim.Entry{At: t, Do: fn}) }

// Every implements vnet.Engine. If a worker is so late that the next period has been
// reached too, fn is called once for both.
func (e *Engine) Every(first, period frame.Time, fn func(now frame.Time)) {
	e.ctl[0].Put(sim.Entry{At: first, Period: max(1, period), Do: fn})
}

// EveryOn implements vnet.Engine.
func (e *Engine) EveryOn(node int, first, period frame.Time, fn func(now frame.Time)) {
	if !e.owns(e.nodes[node].at) {
		return
	}
	e.ctl[e.nodes[node].worker].Put(sim.Entry{At: first, Period: max(1, period), Do: fn})
}

// Apart implements vnet.Engine.
func (e *Engine) Apart(node int) bool { return e.nodes[node].worker != 0 }

// Call makes f run on the thread of the callbacks soon, and does not wait for it. Any
// goroutine may call it once Run has started.
func (e *Engine) Call(f func(now frame.Time)) error { return e.dp.Worker(0).Post(e.Now(), f) }

// Poke implements vnet.Engine: a worker asks all its nodes in every loop.
func (e *Engine) Poke(node int) {
	if e.tape != nil {
		e.tape.Poke(node)
	}
}

// Stop implements vnet.Engine. It may be called from any goroutine.
func (e *Engine) Stop(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.err == nil && err != nil {
		e.err = err
		close(e.stopped)
	}
}

func (e *Engine) failure() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.err
}
