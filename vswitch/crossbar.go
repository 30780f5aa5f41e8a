package vswitch

import (
	"fmt"
	"math/bits"

	"gswitch/buffer"
	"gswitch/crossbar"
	"gswitch/frame"
	"gswitch/wire"
)

// CrossbarConfig gives the switch combined input and output queues (package
// crossbar): a frame waits at the port it came by until there is room in its
// egress queue. They take the place of the shared buffer, which only holds what
// the switch itself sends then, and PFC follows the ingress queues.
//
// Each worker has the crossbar of its egress ports, with queues of their own
// for all ingress ports: of a switch on w workers a port can hold up to w times
// Ingress, its neighbour is paused as soon as one of them asks for it, and up to
// w frames cross from it at once. Each queue has the whole room for what is
// under way, so nothing is lost within a worker; between workers as long as the
// ring does not overflow.
type CrossbarConfig struct {
	On              bool
	Ingress, Egress uint32 // bytes of the queue at each port; 0 = 128 KiB
	// Reserve and TotalCap say what counts against Egress, SkipBlocked whether a
	// full egress queue holds up lower classes: see crossbar.Config. Reserve 0
	// is Egress.
	Reserve     uint32
	TotalCap    bool
	SkipBlocked bool
	// Speedup is the rate of the crossbar in rates of the fastest port; 0 = 4.
	Speedup int
	// Pause and Unpause are the thresholds of lossless classes in drain bytes;
	// both 0: the usual ones, of the port that needs the most.
	Pause, Unpause uint32
	Latency        frame.Time // from arrival until a frame can cross
	// Batch is how many bytes a port may hand to its device ahead of its link
	// where a worker was late: PortConfig.Burst is cut to it. What was handed
	// out is in no queue any more, and no pause stops it. 0 = two full frames.
	Batch uint32
}

// Limits of a CrossbarConfig.
const (
	MaxCrossbarPorts = crossbar.MaxPorts
	MaxCrossbarQueue = 1 << 30
)

const (
	defaultCrossbarQueue = 128 << 10
	defaultSpeedup       = 4
)

// Rate returns the bit/s at which frames cross in a switch whose fastest port
// has the given rate.
func (c *CrossbarConfig) Rate(fastest uint64) uint64 {
	if c.Speedup <= 0 {
		return max(fastest, 1) * defaultSpeedup
	}
	return max(fastest, 1) * uint64(c.Speedup)
}

// Queues returns the bytes of the queue of an ingress port, and the most that
// the queue of an egress port can hold.
func (c *CrossbarConfig) Queues() (ingress, egress uint32) {
	if ingress, egress = c.Ingress, c.Egress; ingress == 0 {
		ingress = defaultCrossbarQueue
	}
	if egress == 0 {
		egress = defaultCrossbarQueue
	}
	switch {
	case c.TotalCap:
		return ingress, egress
	case c.Reserve == 0:
		return ingress, 2 * egress
	}
	return ingress, egress + c.Reserve
}

func (c *CrossbarConfig) batch(p *PortConfig) uint32 {
	if c.Batch != 0 {
		return c.Batch
	}
	return 2 * (uint32(p.mtu()) + wire.EthernetLen + p.Scheduler.Overhead)
}

// burst is how far the link of a port may catch up.
func (c *CrossbarConfig) burst(p *PortConfig) frame.Time {
	return min(p.Scheduler.Burst, frame.Time(uint64(c.batch(p))*8e9/p.rate()))
}

// CheckCrossbar reports what stands against the crossbar of a configuration,
// such as thresholds that could lose frames, with those that are safe.
func (cfg *Config) CheckCrossbar() error {
	_, err := cfg.crossbar()
	return err
}

// crossbar returns what the crossbar of the switch is made from, if it has one.
func (cfg *Config) crossbar() (crossbar.Config, error) {
	c := &cfg.Crossbar
	x := crossbar.Config{Ingress: c.Ingress, Egress: c.Egress, Reserve: c.Reserve, TotalCap: c.TotalCap, SkipBlocked: c.SkipBlocked,
		Pause: c.Pause, Unpause: c.Unpause, Latency: c.Latency}
	if !c.On {
		return x, nil
	}
	if x.Ingress == 0 {
		x.Ingress = defaultCrossbarQueue
	}
	if x.Egress == 0 {
		x.Egress = defaultCrossbarQueue
	}
	if x.Reserve == 0 {
		x.Reserve = x.Egress
	}
	for class := range 8 {
		if cfg.Lossless(class) {
			x.Lossless |= 1 << class
		}
	}
	switch {
	case len(cfg.Ports) > crossbar.MaxPorts:
		return x, fmt.Errorf("%d ports, at most %d are possible", len(cfg.Ports), crossbar.MaxPorts)
	case c.Speedup < 0 || c.Speedup > 1000:
		return x, fmt.Errorf("a speed-up of %d is not within 1 and 1000", c.Speedup)
	}
	var fastest uint64
	for i := range cfg.Ports {
		if p := &cfg.Ports[i]; p.Name != "" {
			fastest = max(fastest, p.rate())
			x.Overhead = max(x.Overhead, p.Scheduler.Overhead)
		}
	}
	x.Rate = c.Rate(fastest)
	if x.Lossless != 0 {
		if err := cfg.crossbarThresholds(&x); err != nil {
			return x, err
		}
	}
	if err := x.Validate(); err != nil {
		return x, err
	}
	return x, nil
}

// crossbarThresholds fills in or checks the thresholds of pause, and sets aside
// what lossless classes can come to hold.
func (cfg *Config) crossbarThresholds(x *crossbar.Config) error {
	auto := x.Pause == 0 && x.Unpause == 0
	var queues []buffer.InputQueue
	var names []string // of their ports
	for i := range cfg.Ports {
		p := &cfg.Ports[i]
		if p.Name == "" {
			continue
		}
		q := buffer.InputQueue{Size: uint64(x.Ingress), Classes: uint64(bits.OnesCount8(x.Lossless)), Link: p.Link(&cfg.Buffer)}
		q.Link.Response = max(q.Link.Response, cfg.PFC.Response)
		if cfg.Crossbar.burst(p) > 0 {
			q.Batch = uint64(cfg.Crossbar.batch(p))
		}
		queues, names = append(queues, q), append(names, p.Name)
		if !auto {
			continue
		}
		t, err := q.Thresholds()
		if err != nil {
			return fmt.Errorf("port %s: %w", p.Name, err)
		}
		if x.Pause == 0 || uint32(t.Pause) < x.Pause {
			x.Pause = uint32(t.Pause)
		}
		x.Unpause = max(x.Unpause, uint32(t.Unpause))
	}
	if auto {
		x.Unpause = min(x.Unpause, max(x.Pause, 1)-1) // of another port
	}
	peak := uint64(0)
	for i, q := range queues {
		t, err := q.Thresholds()
		if err == nil {
			err = q.Check(uint64(x.Pause), uint64(x.Unpause))
		}
		if err != nil && !cfg.Buffer.AllowLoss {
			return fmt.Errorf("port %s: %w", names[i], err)
		}
		peak = max(peak, q.Classes*(uint64(x.Pause)+t.Frame+t.Skid))
	}
	if rest := uint64(x.Ingress) - min(peak, uint64(x.Ingress)); rest > 0 {
		x.Lossy = uint32(rest)
	}
	return nil
}

// adoptCrossbar brings the worker in line with the configuration.
func (n *Node) adoptCrossbar(now frame.Time) {
	if !n.prog.Config.Crossbar.On {
		if n.crossbar != nil {
			n.dismissCrossbar(now)
		}
		return
	}
	if n.crossbar == nil {
		n.crossbar = crossbar.New(n.arena, n.prog.crossbar)
	} else {
		n.crossbar.Configure(now, n.prog.crossbar)
	}
}

// dismissCrossbar gives up the crossbar: what waits in ingress queues is
// dropped, what has crossed leaves by its egress queue.
func (n *Node) dismissCrossbar(now frame.Time) {
	n.flushCrossbar()
	for i := range n.ports {
		if s := n.ports[i].sched; s != nil {
			for q := range 8 {
				s.Each(q, func(r frame.Ref) bool {
					n.arena.Meta(r).Flags &^= frame.Crossed
					return true
				})
			}
		}
	}
	n.crossbar = nil
	for i := range n.ports {
		n.want(now, uint16(i))
	}
}

func (n *Node) flushCrossbar() {
	for k := n.crossbar.Flush(n.scratch[:]); k > 0; k = n.crossbar.Flush(n.scratch[:]) {
		n.held -= k
		for _, r := range n.scratch[:k] {
			n.arrivedAt(n.arena.Meta(r))
		}
		n.dropAll(n.scratch[:k], frame.QueueFlush)
	}
}

// cross takes a frame whose egress port is known into the queue of the port it
// came by.
func (n *Node) cross(ps *portState, r frame.Ref, m *frame.Meta) {
	if n.crossbar.Due() <= n.now {
		n.advanceCrossbar(n.now)
	}
	switch {
	case ps.dropping>>m.Queue&1 != 0:
		n.drop(r, frame.PFCWatchdog)
	case n.held >= n.lossyHeld && (n.held >= n.maxHeld || n.losslessClasses>>(m.Class&7)&1 == 0 || m.Flags&frame.IsClone != 0):
		n.drop(r, frame.ArenaExhausted)
	case !n.crossbar.Arrive(n.now, r):
		n.drop(r, frame.IngressQueue)
	default:
		n.held++
		ps.sched.Expect(int(m.Queue), m.Wire)
	}
}

// advanceCrossbar puts what has crossed by now into the egress queues.
func (n *Node) advanceCrossbar(now frame.Time) {
	for r, at := n.crossbar.Next(now); r != frame.Nil; r, at = n.crossbar.Next(now) {
		n.crossed(at, r)
	}
}

// arrivedAt tells the port of a frame that it waits at the crossbar no longer.
func (n *Node) arrivedAt(m *frame.Meta) {
	if s := n.ports[m.OutPort].sched; s != nil {
		s.Expected(int(m.Queue), m.Wire)
	}
}

// crossed puts a frame into its egress queue, or drops it if there is none any
// more.
func (n *Node) crossed(at frame.Time, r frame.Ref) {
	m := n.arena.Meta(r)
	n.arrivedAt(m)
	why := frame.Keep
	switch ps := &n.ports[m.OutPort]; {
	case ps.sched == nil || !n.linkUp.has(m.OutPort):
		why = frame.EgressPortDown
	case ps.dropping>>m.Queue&1 != 0:
		why = frame.PFCWatchdog
	default:
		m.Flags |= frame.Crossed
		n.join(at, ps, r, m)
		return
	}
	n.crossbar.Leave(at, m)
	n.held--
	n.ports[m.OutPort].queueDrops[m.Queue&7]++
	n.drop(r, why)
}

// release gives back what a frame that leaves its egress queue was charged to:
// its ingress port's account in the shared buffer, or that queue.
func (n *Node) release(now frame.Time, m *frame.Meta) {
	n.held--
	if m.Flags&frame.Crossed == 0 {
		n.buffer.Release(m)
		return
	}
	m.Flags &^= frame.Crossed
	n.crossbar.Leave(now, m)
}

// CrossbarView is the crossbar at one port.
type CrossbarView struct {
	Port int
	Own  bool // the worker owns the egress queue
	crossbar.View
}

// Crossbar appends the state of this worker's crossbar, port by port. Like
// every reader of a node's state it is called between two steps of it.
func (n *Node) Crossbar(v []CrossbarView) []CrossbarView {
	if n.crossbar == nil {
		return v
	}
	for i := range n.prog.Config.Ports {
		if n.prog.Config.Ports[i].Name != "" {
			v = append(v, CrossbarView{Port: i, Own: n.ports[i].sched != nil, View: n.crossbar.Port(uint16(i))})
		}
	}
	return v
}
