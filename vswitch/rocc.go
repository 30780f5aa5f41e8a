package vswitch

import (
	"fmt"
	"math"

	"gswitch/frame"
	"gswitch/rocc"
)

// RoCCConfig makes egress queues of a port congestion points of RoCC: each
// works out the rate that is fair for the flows in it and tells their senders.
type RoCCConfig struct {
	Queues uint8 // bitmap; 0 = off
	Params rocc.Params
	// Table says which flows of a queue are told.
	Table rocc.TableConfig
	// AtHosts sends the length of the queue and the parameters in place of a
	// fair rate: hosts run the controller, for switches that cannot.
	AtHosts bool
	// PerTick is how many are told in a period, in turn. 0 = as many as can
	// have the least rate, FMax/FMin, but no more than 1024: more could not be
	// held anyway, and their notices would leave in one burst.
	PerTick int
}

func (c *RoCCConfig) validate() error {
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
func (c *RoCCConfig) perTick() int {
	if c.PerTick > 0 {
		return c.PerTick
	}
	return rocc.Share(&c.Params)
}

// point is the congestion point of one egress queue, on the worker that owns
// the port. It stays when it is turned off, until the port goes: frames that
// it knows may still wait.
type point struct {
	on      bool
	port    uint16
	queue   uint8
	perTick int
	params  rocc.Params
	stretch uint8 // of the period, as messages tell it
	control *rocc.Controller
	atHosts bool
	kept    rocc.TableConfig
	flows   *rocc.Flows // those of waiting frames; they are told if there is no other table
	table   *rocc.Table // of the kinds that do not see frames leave

	// A queue that no frame makes longer than this is not looked at: while the
	// point rests the rate is the largest, everybody knows, and up to calm the
	// next update leaves it so. A frame that makes the queue longer wakes the
	// point, which then looks at all that wait.
	quiet   uint64
	calm    uint64
	resting bool
	ordered bool // frames leave the queue as they came
	// flows, while a frame only has to be looked up there: frames leave in order,
	// there is no other table and the point does not rest. Else nil.
	quick *rocc.Flows

	due    frame.Time // of the next update, Never while nothing can change
	before uint64     // length at the last one
	atMax  int        // updates in a row that left the rate at its largest
	idle   int        // that found the queue empty
	count  RoCCCounts
}

// RoCCCounts are what a congestion point counted.
type RoCCCounts struct {
	Updates uint64    // periods in which the controller ran
	Branch  [3]uint64 // of these, by what they did: see rocc.Branch
	Notices uint64    // sent
	Unsent  uint64    // that could not be made: no chunk was free
	Full    uint64    // packets of flows for which the table had no room
}

// adoptRoCC brings the congestion points of an own port in line with the
// configuration.
func (n *Node) adoptRoCC(now frame.Time, i uint16, c *RoCCConfig) {
	ps := &n.ports[i]
	if ps.points == nil {
		if c.Queues == 0 {
			return
		}
		ps.points = new([8]*point)
	}
	for q := range ps.points {
		on, p := c.Queues>>q&1 != 0, ps.points[q]
		switch {
		case !on && p == nil:
			continue
		case !on:
			p.on, p.due, p.quiet = false, frame.Never, math.MaxUint64
			continue
		case p == nil:
			p = &point{port: i, queue: uint8(q), due: frame.Never}
			ps.points[q] = p
			n.points = append(n.points, p)
		}
		p.ordered = ps.sched.InOrder(q)
		p.keep(c.Table.With(&c.Params), n.prog.Config.Seed^uint64(i)<<32^uint64(q)<<16)
		if !p.on || p.params != c.Params || p.atHosts != c.AtHosts {
			p.on, p.params, p.stretch, p.control = true, c.Params, rocc.StretchOf(c.Params.Period), rocc.NewController(&c.Params)
			p.due, p.before, p.atMax = frame.Never, 0, 0
			p.resting, p.quiet, p.calm = true, 0, p.control.Calm()
			if c.AtHosts {
				p.calm = 0 // which rate they are at is not known here
			}
			if frames, _ := ps.sched.QueueLen(q); frames > 0 || p.known() > 0 { // what left while it was off is still known
				n.arm(now, p)
			}
		}
		p.perTick, p.atHosts = c.perTick(), c.AtHosts
		p.settle()
	}
}

// keep changes which flows are told. Frames that wait know their flow by its
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

// dismissRoCC forgets the congestion points of a port whose queues are empty
// and gone.
func (n *Node) dismissRoCC(i uint16) {
	ps := &n.ports[i]
	if ps.points == nil {
		return
	}
	kept := n.points[:0]
	for _, p := range n.points {
		if p.port != i {
			kept = append(kept, p)
		}
	}
	n.points, ps.points = kept, nil
}

// arm lets a congestion point run at its next period. The instants are whole
// multiples of it, whenever it was idle.
func (n *Node) arm(now frame.Time, p *point) {
	p.due = now - now%p.params.Period + p.params.Period
	n.pointsDue = min(n.pointsDue, p.due)
}

// interested returns the congestion point that must know of a frame which is
// about to wait, nil if none must, and the frame's place in the queue: among all
// that ever were in it.
func (ps *portState) interested(m *frame.Meta) (p *point, place uint64) {
	if p = ps.points[m.Queue&7]; p != nil {
		var bytes uint64
		if bytes, place = ps.sched.Ahead(m.Queue); bytes+uint64(m.Wire) <= p.quiet {
			p = nil
		}
	}
	return p, place + 1
}

// meet shows a congestion point a frame that is about to wait in its queue, and
// makes it longer than the point's quiet length.
func (n *Node) meet(p *point, r frame.Ref, m *frame.Meta, place uint64) {
	if f := p.quick; f != nil && m.Flags&(frame.HasIPv4|untold) == frame.HasIPv4 && m.InPort != m.OutPort && f.Renew(m.Hash, n.flowKey4(r, m), place) {
		return
	}
	n.notice(p, r, m, place)
}

// notice notes that a frame is about to wait in the queue of a congestion point,
// and makes it longer than the point's quiet length.
func (n *Node) notice(p *point, r frame.Ref, m *frame.Meta, place uint64) {
	if !Tellable(m) || p.resting && !n.rouse(p, m) {
		return
	}
	if p.table != nil {
		n.glance(p, r, m)
		return
	}
	n.enter(p, r, m, place)
}

// settle is called when what quick depends on may have changed.
func (p *point) settle() {
	if p.quick = nil; p.ordered && p.table == nil && !p.resting {
		p.quick = p.flows
	}
}

// rouse lets a congestion point run again for the sake of a frame. It ends the
// point's rest, and returns true, if the frame makes the queue longer than what
// is of no interest: all that came meanwhile and still wait enter the table.
func (n *Node) rouse(p *point, m *frame.Meta) bool {
	sched := n.ports[p.port].sched
	if p.due == frame.Never {
		n.arm(n.now, p)
		p.quiet = p.calm
		if bytes, _ := sched.Ahead(p.queue); bytes+uint64(m.Wire) <= p.quiet {
			return false
		}
	}
	p.resting, p.quiet = false, 0
	p.settle()
	if p.table != nil {
		return true // which sees frames arrive, now or never
	}
	w := &n.rousing
	if w.next == nil {
		w.next = n.enterWaiting
	}
	w.point, w.place = p, sched.Left(int(p.queue))
	sched.Each(int(p.queue), w.next)
	return true
}

// rousing is where rouse is: the point, the place of the last frame that
// entered, and enterWaiting, made once.
type rousing struct {
	point *point
	place uint64
	next  func(frame.Ref) bool
}

// enterWaiting enters a frame that waits in the queue of the point that is
// being roused.
func (n *Node) enterWaiting(r frame.Ref) bool {
	w := &n.rousing
	w.place++
	if m := n.arena.Meta(r); m.Flow == 0 && Tellable(m) {
		n.enter(w.point, r, m, w.place)
	}
	return true
}

// enter notes that a frame waits at a place in the queue of a congestion
// point. Where frames overtake, the place does not tell when it leaves, and
// quit must.
func (n *Node) enter(p *point, r frame.Ref, m *frame.Meta, place uint64) {
	if !p.ordered {
		place = 0
	}
	i, flow, ok := p.flows.Enter(m.Hash, n.flowKey(r, m), place)
	if !ok {
		return
	}
	if !p.ordered {
		p.flows.Hold(i)
		m.Flow = i + 1
	}
	if flow != nil {
		NoteSender(&flow.Sender, n.arena.Bytes(r), m)
	}
}

// glance shows a frame to a table that does not see frames leave.
func (n *Node) glance(p *point, r frame.Ref, m *frame.Meta) {
	if p.table.Skips() {
		return
	}
	if flow := p.table.Note(m.Hash, n.flowKey(r, m)); flow != nil {
		NoteSender(&flow.Sender, n.arena.Bytes(r), m)
	}
}

func (n *Node) flowKey(r frame.Ref, m *frame.Meta) rocc.Key {
	if m.Flags&frame.HasIPv4 != 0 {
		return n.flowKey4(r, m)
	}
	return n.flowKey6(r, m)
}

// flowKey4 tells flows of IPv4 apart: addresses, ports and protocol.
func (n *Node) flowKey4(r frame.Ref, m *frame.Meta) rocc.Key {
	return rocc.Key{Addresses: n.arena.Word(r, m, m.L3+12), Ports: portsOf(m)}
}

// flowKey6 is that of IPv6, folded: two flows of one hash that fold alike are
// told as one.
func (n *Node) flowKey6(r frame.Ref, m *frame.Meta) rocc.Key {
	var a addresses
	a.read(n.arena.Bytes(r), m)
	return rocc.Key{Addresses: a.src.hi ^ a.src.lo ^ uint64(m.Hash)<<16, Ports: portsOf(m)<<16 ^ a.dst.hi ^ a.dst.lo}
}

func portsOf(m *frame.Meta) uint64 {
	return uint64(m.SrcPort)<<24 | uint64(m.DstPort)<<8 | uint64(m.ProtoIn)
}

// quit notes that a frame waits there no longer.
func (n *Node) quit(m *frame.Meta) {
	if points := n.ports[m.OutPort].points; points != nil && points[m.Queue] != nil {
		points[m.Queue].flows.Leave(m.Flow - 1)
	}
	m.Flow = 0
}
