package vswitch

import (
	"fmt"
	"math/bits"
	"slices"

	"gswitch/frame"
	"gswitch/pipeline"
	"gswitch/scheduler"
)

// PathsConfig configures how one of several next hops is chosen for a frame.
type PathsConfig struct {
	// Choose is the method for routes that do not set their own.
	Choose pipeline.Chooser
	// Thresholds of the adaptive choice in drain bytes of a port's queue, ascending, up
	// to pipeline.MaxTiers; or Times, the thresholds as times at the port's rate, for
	// ports of different rates. If neither is set: 16 KiB and 64 KiB (DeTail: Zats et
	// al., UCB/EECS-2012-33, section 6.1).
	Thresholds []uint64
	Times      []frame.Time
	// FlowletGap is the pause after which a flow may take another path; 0 = 500 us.
	FlowletGap frame.Time
	// Assigned counts frames as load of their port from the time it is chosen, including
	// while they wait at an input for their egress queue.
	Assigned bool
	// Exempt is a bitmap of classes whose frames are hashed by flow in any case: probes,
	// and mirrored frames whose path is of interest.
	Exempt uint8
}

var defaultThresholds = []uint64{16 << 10, 64 << 10}

// defaultFlowletGap is the gap of the paper's testbed (Vanini et al., NSDI 2017, section
// 4).
const defaultFlowletGap = 500 * frame.Microsecond

// flowletBits gives more entries than there are active flows in most switches. An entry
// takes 24 bytes.
const flowletBits = 13

// Validate reports what no switch can do.
func (c *PathsConfig) Validate() error {
	switch {
	case c.Choose >= pipeline.NumChoosers:
		return fmt.Errorf("%v is no way to choose", c.Choose)
	case len(c.Thresholds) > 0 && len(c.Times) > 0:
		return fmt.Errorf("thresholds in bytes and in time exclude each other")
	case len(c.Thresholds) > pipeline.MaxTiers || len(c.Times) > pipeline.MaxTiers:
		return fmt.Errorf("more than %d thresholds", pipeline.MaxTiers)
	case c.FlowletGap < 0:
		return fmt.Errorf("the gap %v between flowlets is negative", c.FlowletGap.Duration())
	}
	if err := ascend(c.Thresholds); err != nil {
		return err
	}
	return ascend(c.Times)
}

func ascend[T uint64 | frame.Time](v []T) error {
	for i, t := range v {
		if t <= 0 || i > 0 && t <= v[i-1] {
			return fmt.Errorf("threshold %d of %v is not above the one before it, or above 0: write them from small to large", i+1, v)
		}
	}
	return nil
}

// thresholds are those of a port, in bytes.
func (c *PathsConfig) thresholds(p *PortConfig) []uint64 {
	if len(c.Times) == 0 {
		return c.Bytes()
	}
	v := make([]uint64, len(c.Times))
	for i, t := range c.Times {
		v[i] = max(1, uint64(float64(p.rate())/8*t.Seconds()))
	}
	return v
}

// Bytes returns the thresholds if they are given in bytes.
func (c *PathsConfig) Bytes() []uint64 {
	if len(c.Thresholds) == 0 {
		return defaultThresholds
	}
	return c.Thresholds
}

// Tiers is how many thresholds there are.
func (c *PathsConfig) Tiers() int {
	if n := max(len(c.Times), len(c.Thresholds)); n > 0 {
		return n
	}
	return len(defaultThresholds)
}

// paths is the state with which a worker chooses paths.
type paths struct {
	gap      frame.Time
	flowlets *pipeline.Flowlets // nil: no group uses flowlets
	exempt   uint8
	tiers    int
	exact    bool
	loads    *scheduler.Loads // nil: no group chooses by load
	// What this worker has passed to other workers' ports in this vector, which their
	// owners cannot have counted yet.
	ahead  []*scheduler.Drain
	handed portSet
	set    [pipeline.MaxTiers]pipeline.PortSet // scratch: below, for all workers
	load   [MaxPorts]uint64                    // scratch
	hops   []hopMemo
	count  PathCounts
}

// PathCounts are the counters of a worker's choices.
type PathCounts struct {
	// Tier counts adaptive choices by class and by the first threshold that the port's
	// load was below; MaxTiers: it was below none.
	Tier     [8][pipeline.MaxTiers + 1]uint64
	Flowlets uint64 // flowlets that started
}

// Plus adds the counts of another worker.
func (c *PathCounts) Plus(o *PathCounts) {
	for class := range c.Tier {
		for t := range c.Tier[class] {
			c.Tier[class][t] += o.Tier[class][t]
		}
	}
	c.Flowlets += o.Flowlets
}

// adoptPaths brings what paths are chosen by in line with the program, after
// its ports.
func (n *Node) adoptPaths(configured bool) {
	c, rt, x := &n.prog.Config.Paths, &n.prog.routing, &n.paths
	x.gap, x.exempt, x.tiers = c.FlowletGap, c.Exempt, c.Tiers()
	if x.gap == 0 {
		x.gap = defaultFlowletGap
	}
	if rt.flowlets && x.flowlets == nil {
		x.flowlets = pipeline.NewFlowlets(flowletBits)
	}
	x.hops = slices.Grow(x.hops[:0], len(rt.hops))[:len(rt.hops)]
	clear(x.hops)
	if !rt.byLoad {
		if x.loads != nil {
			for i := range n.ports {
				n.watch(uint16(i))
			}
			x.loads, x.ahead = nil, nil
		}
		return
	}
	if x.loads != nil && x.exact == rt.exact && !configured {
		return // only table entries changed
	}
	var shown *scheduler.ShownLoads
	if len(n.others.in) > 1 {
		shown = n.shown
	}
	x.exact = rt.exact
	x.loads = scheduler.NewLoads(shown)
	x.ahead = make([]*scheduler.Drain, len(n.ports))
	for i := range n.ports {
		n.watch(uint16(i))
	}
}

// watch tracks a port's load, if anything depends on it.
func (n *Node) watch(i uint16) {
	x, ps := &n.paths, &n.ports[i]
	if !n.prog.routing.byLoad || int(i) >= len(n.prog.ports) || n.prog.ports[i].name == "" {
		if ps.sched != nil {
			ps.sched.Watch(nil)
		}
		return
	}
	thresholds := n.prog.Config.Paths.thresholds(&n.prog.Config.Ports[i])
	if ps.sched != nil {
		d := scheduler.NewDrain(x.loads, i, thresholds, true, x.exact)
		if n.prog.Config.Paths.Assigned {
			d.CountExpected()
		}
		ps.sched.Watch(d)
		return
	}
	x.ahead[i] = scheduler.NewDrain(x.loads, i, thresholds, false, x.exact)
}

// choose returns the next hop of a group for a frame, as an index of routing.hops. It is
// the only place where a path is chosen.
func (n *Node) choose(group uint32, m *frame.Meta) uint32 {
	g := n.prog.routing.groups[group]
	key := m.Hash
	if kind := g.Chooser(); kind != pipeline.ChooseHash && n.paths.exempt>>(m.Class&7)&1 == 0 {
		if kind.ByLoad() && n.vec.decidedN > 0 { // the loads of queues contain the frames before it
			n.egress()
		}
		switch kind {
		case pipeline.ChooseScatter:
			key = uint32(n.rng.Uint64() >> 32)
		case pipeline.ChooseFlowlet:
			var began bool
			if key, began = n.paths.flowlets.Key(n.now, m.Hash, n.paths.gap, &n.rng); began {
				n.paths.count.Flowlets++
			}
		case pipeline.ChooseAdaptive:
			x := &n.paths
			queue := n.prog.class.Queue[m.Class&7] & 7
			tiers := x.loads.Below[queue][:x.tiers]
			if n.shown != nil {
				tiers = n.belowForAll(queue)
			}
			hop, tier := g.Adaptive((*pipeline.PortSet)(&n.linkUp), tiers, &n.rng)
			if hop == pipeline.NoEntry {
				return g.Select(m.Hash) // whose frames are dropped there and counted
			}
			if tier == x.tiers {
				tier = pipeline.MaxTiers
			}
			x.count.Tier[m.Class&7][tier]++
			return hop
		case pipeline.ChooseLeast:
			return n.chooseLeast(g, m)
		}
	}
	return n.chooseByKey(g, key)
}

// chooseByKey is choose for a flow, or for whatever the key represents. Flows of a next
// hop whose port has no link are spread over the others by weight; the flows of the
// others do not move.
func (n *Node) chooseByKey(g *pipeline.Group, key uint32) uint32 {
	hop := g.Select(key)
	if n.hasLink(hop) {
		return hop
	}
	// The flow gets another key, the same one each time, until it falls on a
	// link: from the high bits of a generator with a full period (Knuth, TAOCP
	// vol. 2, 3.2.1.2).
	again := key
	for range rekeys {
		again = again*2654435761 + 1013904223
		if hop := g.Select(again); n.hasLink(hop) {
			return hop
		}
	}
	members := g.Members()
	for i := range members {
		m := members[(uint64(key)+uint64(i))%uint64(len(members))]
		if m.Weight > 0 && n.hasLink(m.NextHop) {
			return m.NextHop
		}
	}
	return hop
}

// rekeys is enough attempts to find a link, if half of the weight is left, except once in
// 65536 times.
const rekeys = 16

func (n *Node) hasLink(hop uint32) bool {
	port := n.prog.ifaces[n.prog.routing.hops[hop].iface].port
	return port == frame.NoPort || n.linkUp.has(port)
}

// belowForAll returns the ports below each threshold by what their owners show
// and by what this worker has handed them since.
func (n *Node) belowForAll(queue uint8) []pipeline.PortSet {
	x := &n.paths
	x.set = x.loads.Below[queue]
	words := (len(n.prog.ports) + 63) / 64
	for _, other := range n.sw.Nodes {
		if other != n {
			other.shown.Cut(queue, x.set[:x.tiers], words)
		}
	}
	return x.set[:x.tiers]
}

// chooseLeast takes the port with the fewest drain bytes.
func (n *Node) chooseLeast(g *pipeline.Group, m *frame.Meta) uint32 {
	x := &n.paths
	queue := n.prog.class.Queue[m.Class&7] & 7
	load := &x.loads.Bytes[queue]
	if n.shown != nil {
		load = &x.load
		for w, set := range g.Ports() {
			for ; set != 0; set &= set - 1 {
				p := uint16(w*64 + bits.TrailingZeros64(set))
				load[p] = x.loads.Bytes[queue][p]
				if owner := n.prog.ports[p].worker; int(owner) != n.index {
					load[p] += n.sw.Nodes[owner].shown.Bytes(queue, p)
				}
			}
		}
	}
	if hop := g.Least((*pipeline.PortSet)(&n.linkUp), load, &n.rng); hop != pipeline.NoEntry {
		return hop
	}
	return g.Select(m.Hash)
}

// expectAt counts a frame for the port of another worker that it is handed to.
func (x *paths) expectAt(m *frame.Meta) {
	if d := x.ahead[m.OutPort]; d != nil {
		d.Add(int(m.Queue), m.Wire)
		x.handed.add(m.OutPort)
	}
}

// forgetHanded clears what was handed to a worker, which can count it itself by now.
func (n *Node) forgetHanded(worker int) {
	x := &n.paths
	for p := x.handed.next(0); p >= 0; p = x.handed.next(p + 1) {
		if int(n.prog.ports[p].worker) == worker {
			x.ahead[p].Reset()
			x.handed.remove(uint16(p))
		}
	}
}

// PathCounts returns what this worker counted of its choices. Like every
// reader of a node's state it is called between two steps of it.
func (n *Node) PathCounts() PathCounts { return n.paths.count }
