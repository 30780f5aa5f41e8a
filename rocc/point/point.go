// Package point makes egress queues of a switch congestion points of RoCC
// (package rocc): each works out the rate that is fair for the flows in it and
// notifies their senders. Importing it registers the feature.
package point

import (
	"fmt"
	"math"

	"gswitch/feature"
	"gswitch/frame"
	"gswitch/rocc"
	"gswitch/vswitch"
)

// Name is the key of a Config in vswitch.PortConfig.Options.
const Name = "rocc"

// Config says which egress queues of a port are congestion points.
type Config struct {
	Queues uint8 // bitmap; 0 = none
	Params rocc.Params
	// Table says which flows of a queue get notices.
	Table rocc.TableConfig
	// AtHosts sends the length of the queue and the parameters in place of a
	// fair rate: hosts run the controller, for switches that cannot.
	AtHosts bool
	// PerTick is how many get notices in a period, in turn. 0 = as many as can
	// have the least rate, FMax/FMin, but no more than 1024: more could not be
	// held anyway, and their notices would leave in one burst.
	PerTick int
}

// Of returns the options of a port.
func Of(c *vswitch.PortConfig) Config {
	o, _ := c.Options[Name].(Config)
	return o
}

func (c *Config) validate() error {
	if c.Queues == 0 {
		return nil
	}
	if c.PerTick < 0 {
		return fmt.Errorf("rocc: %d notices in a period", c.PerTick)
	}
	if err := c.Table.Validate(); err != nil {
		return err
	}
	return c.Params.Validate()
}

// perTick returns how many notices a period may cost.
func (c *Config) perTick() int {
	if c.PerTick > 0 {
		return c.PerTick
	}
	return rocc.Share(&c.Params)
}

func init() {
	vswitch.Register(vswitch.Feature{Name: Name, Check: check, New: newPoints, Counters: counters,
		Section: func() vswitch.Section { return new(Section) },
		Doc:     "Queues that work out the rate that is fair for their flows and notify the senders (RoCC), for hosts with the congestion control rocc. The port needs a rate.",
		Signals: feature.FairRates, Notices: true})
}

func check(cfg *vswitch.Config) error {
	for i := range cfg.Ports {
		o := Of(&cfg.Ports[i])
		if err := o.validate(); err != nil {
			return fmt.Errorf("port %s: %w", cfg.Ports[i].Name, err)
		}
	}
	return nil
}

// points are the congestion points of a worker's ports.
type points struct {
	node    *vswitch.Node
	arena   *frame.Arena
	ports   []*[8]*point // by port and queue, nil where there never was one
	all     []*point     // in the order in which they were made
	due     frame.Time   // of the next update of one
	message vswitch.Message
	// flow is, by frame, 1 + the index of its flow at the congestion point where
	// it waits, if that is needed when the frame leaves: 0 for all others. It
	// is made when a queue is one in which frames overtake.
	flow  []uint32
	entry entry
}

// point is the congestion point of one egress queue. It stays when it is turned
// off, until the port goes: frames that it knows may still wait.
type point struct {
	on      bool
	port    uint16
	queue   uint8
	perTick int
	params  rocc.Params
	stretch uint8 // of the period, as messages carry it
	control *rocc.Controller
	atHosts bool
	kept    rocc.TableConfig
	flows   *rocc.Flows // those of waiting frames; they are notified if there is no other table
	table   *rocc.Table // of the kinds that do not see frames leave

	// A frame that leaves the queue no longer than watch bytes is not looked at.
	// While the point is dormant the rate is the largest and every flow has been
	// notified of it; up to steady bytes the next update leaves it so. A frame that makes
	// the queue longer wakes the point, which then looks at all that wait.
	watch   uint64
	steady  uint64
	dormant bool
	ordered bool // frames leave the queue as they came
	// quick is flows, while a frame only has to be looked up there: frames leave
	// in order, there is no other table and the point is not dormant. Else nil.
	quick *rocc.Flows

	due    frame.Time // of the next update, Never while nothing can change
	before uint64     // length at the last one
	atMax  int        // updates in a row that left the rate at its largest
	idle   int        // that found the queue empty
	count  Counts
}

func newPoints(n *vswitch.Node) vswitch.Instance {
	p := &points{node: n, arena: n.Arena(), due: frame.Never}
	p.entry.next = p.enterWaiting
	return vswitch.Instance{State: p, Port: p.adopt, Dismiss: p.dismiss, Queued: p.queued, Left: p.left, Advance: p.advance, Read: p.read}
}

// adopt brings the congestion points of a port in line with its options.
func (ps *points) adopt(now frame.Time, port uint16, c *vswitch.PortConfig) (stages vswitch.Stages) {
	o := Of(c)
	for len(ps.ports) <= int(port) {
		ps.ports = append(ps.ports, nil)
	}
	if ps.ports[port] == nil {
		if o.Queues == 0 {
			return 0
		}
		ps.ports[port] = new([8]*point)
	}
	for q := range ps.ports[port] {
		on, p := o.Queues>>q&1 != 0, ps.ports[port][q]
		switch {
		case !on && p == nil:
			continue
		case !on:
			p.on, p.due, p.watch = false, frame.Never, math.MaxUint64
			stages |= vswitch.AtLeft
			continue
		case p == nil:
			p = &point{port: port, queue: uint8(q), due: frame.Never}
			ps.ports[port][q] = p
			ps.all = append(ps.all, p)
		}
		ps.configure(now, p, &o)
		stages |= vswitch.AtQueued
	}
	if ps.flow != nil {
		stages |= vswitch.AtLeft
	}
	return stages
}

// configure turns a congestion point on, or changes it.
func (ps *points) configure(now frame.Time, p *point, o *Config) {
	sched := ps.node.Scheduler(p.port)
	if p.ordered = sched.InOrder(int(p.queue)); !p.ordered && ps.flow == nil {
		ps.flow = make([]uint32, ps.arena.Chunks())
	}
	p.keep(o.Table.With(&o.Params), ps.node.Config().Seed^uint64(p.port)<<32^uint64(p.queue)<<16)
	if !p.on || p.params != o.Params || p.atHosts != o.AtHosts {
		p.on, p.params, p.stretch, p.control = true, o.Params, rocc.StretchOf(o.Params.Period), rocc.NewController(&o.Params)
		p.due, p.before, p.atMax = frame.Never, 0, 0
		p.dormant, p.watch, p.steady = true, 0, p.control.Steady()
		if o.AtHosts {
			p.steady = 0 // which rate they are at is not known here
		}
		if frames, _ := sched.QueueLen(int(p.queue)); frames > 0 || p.known() > 0 { // what left while it was off is still known
			ps.arm(now, p)
		}
	}
	p.perTick, p.atHosts = o.perTick(), o.AtHosts
	p.chooseLookup()
}

// keep changes which flows are notified. Frames that wait know their flow by its
// index in the in-queue table, so that one stays, and larger if need be.
func (p *point) keep(c rocc.TableConfig, seed uint64) {
	if c == p.kept {
		return
	}
	p.kept = c
	if c.Kind != rocc.InQueue {
		p.table = rocc.NewTable(c, seed)
		return
	}
	p.table = nil
	if p.flows == nil {
		p.flows = rocc.NewFlows(c.Flows)
	} else {
		p.flows.Resize(c.Flows)
	}
}

// chooseLookup is called when what quick depends on may have changed.
func (p *point) chooseLookup() {
	if p.quick = nil; p.ordered && p.table == nil && !p.dormant {
		p.quick = p.flows
	}
}

// dismiss removes the congestion points of a port whose queues are empty and
// gone.
func (ps *points) dismiss(port uint16) {
	if int(port) >= len(ps.ports) || ps.ports[port] == nil {
		return
	}
	kept := ps.all[:0]
	for _, p := range ps.all {
		if p.port != port {
			kept = append(kept, p)
		}
	}
	ps.all, ps.ports[port] = kept, nil
}

// arm lets a congestion point run at its next period. The instants are whole
// multiples of it, whenever it was idle.
func (ps *points) arm(now frame.Time, p *point) {
	p.due = now - now%p.params.Period + p.params.Period
	ps.due = min(ps.due, p.due)
	ps.node.Arm(p.due)
}
