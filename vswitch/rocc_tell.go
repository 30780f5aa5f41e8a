package vswitch

import (
	"gswitch/frame"
	"gswitch/notice"
	"gswitch/rocc"
)

// updatePoints runs the congestion points that are due.
func (n *Node) updatePoints(now frame.Time) {
	n.pointsDue = frame.Never
	for _, p := range n.points {
		if p.due <= now {
			n.updatePoint(now, p)
		}
		n.pointsDue = min(n.pointsDue, p.due)
	}
	if n.routeN > 0 {
		n.route(now)
	}
}

// updatePoint is one period of a congestion point: the controller, then the
// senders. A worker that comes late runs it once, not as often as it was due.
func (n *Node) updatePoint(now frame.Time, p *point) {
	_, queue := n.ports[p.port].sched.QueueLen(int(p.queue))
	p.count.Updates++
	if p.table != nil {
		p.table.Tick()
	}
	flows, tell := p.known(), true
	k := min(flows, p.perTick)
	if p.atHosts {
		n.composeLength(p, queue)
	} else {
		p.count.Branch[p.control.Update(queue)]++
		if p.atMax++; !p.control.AtMax() {
			p.atMax = 0
		}
		// At the largest rate nobody needs to be told but those that were told
		// less before: once each.
		tell = (p.atMax-1)*p.perTick < flows
		n.composeRate(p, queue)
	}
	n.tellNext(now, p, k, tell)
	p.before = queue
	if !tell && queue <= p.calm {
		p.resting, p.quiet = true, p.calm
	}
	if p.idle++; queue > 0 {
		p.idle = 0
	}
	if p.ends() { // nothing changes until a frame comes
		p.due, p.resting, p.quiet = frame.Never, true, 0
	} else {
		n.arm(now, p)
	}
	p.settle()
}

// ends reports whether nothing changes any more until a frame comes.
func (p *point) ends() bool {
	switch {
	case p.idle == 0 || !p.atHosts && !p.resting:
		return false
	case p.table == nil:
		return p.flows.Len() == 0
	}
	// Flows that will not come again are forgotten, but not at once.
	return p.table.Len() == 0 || p.idle > p.kept.Age
}

// known returns how many flows there are to be told.
func (p *point) known() int {
	if p.table != nil {
		return p.table.Len()
	}
	return p.flows.Len()
}

// next returns the flow whose turn it is to be told, nil if none, now that so
// many frames have left the queue.
func (p *point) next(left uint64) *rocc.Flow {
	if p.table != nil {
		return p.table.Next()
	}
	return p.flows.Next(left)
}

// composeRate makes the message that tells the fair rate.
func (n *Node) composeRate(p *point, queue uint64) {
	told := rocc.Notice{Stretch: p.stretch, Class: p.queue, Port: p.port, Switch: uint32(n.prog.Config.ID), Fair: p.control.Units(), Unit: uint32(min(p.params.RateUnit, 1<<32-1)),
		Queue: uint32(min(queue, 1<<32-1)), Before: uint32(min(p.before, 1<<32-1)), Sequence: uint32(p.count.Updates)}
	n.told.Set(told.Encode(n.told.Head[:], notice.Type4, nil))
}

// composeLength makes that which tells what the fair rate follows from.
func (n *Node) composeLength(p *point, queue uint64) {
	reading := rocc.Reading{Stretch: p.stretch, Class: p.queue, Port: p.port, Switch: uint32(n.prog.Config.ID), Queue: uint32(min(queue, 1<<32-1)), Before: uint32(min(p.before, 1<<32-1)),
		Sequence: uint32(p.count.Updates), Params: p.params}
	n.told.Set(reading.Encode(n.told.Head[:], notice.Type4, nil))
}

// tellNext sends the message to up to k flows whose turn it is, or only passes
// them.
func (n *Node) tellNext(now frame.Time, p *point, k int, tell bool) {
	left := n.ports[p.port].sched.Left(int(p.queue))
	for range k {
		flow := p.next(left)
		if flow == nil || !tell {
			continue
		}
		if n.Tell(now, &n.told, &flow.Sender) {
			p.count.Notices++
		} else {
			p.count.Unsent++
		}
	}
}

// RoCCView is a congestion point as it is now.
type RoCCView struct {
	Port, Queue int
	Fair        uint64 // bit/s; 0 where hosts work it out
	QueueBytes  uint64
	Reference   uint64 // bytes
	Table       rocc.Kind
	AtHosts     bool
	Flows       int
	RoCCCounts
}

// RoCC appends what the congestion points of this worker are at. Like every
// reader of a node's state it is called between two steps of it.
func (n *Node) RoCC(v []RoCCView) []RoCCView {
	for _, p := range n.points {
		if !p.on {
			continue
		}
		_, queue := n.ports[p.port].sched.QueueLen(int(p.queue))
		at := RoCCView{Port: int(p.port), Queue: int(p.queue), QueueBytes: queue, Reference: uint64(p.params.QRef), Table: p.kept.Kind, AtHosts: p.atHosts, Flows: p.known(), RoCCCounts: p.count}
		if p.table != nil {
			at.Full = p.table.Full
		} else {
			at.Full = p.flows.Full
		}
		if !p.atHosts {
			at.Fair = p.control.Rate()
		}
		v = append(v, at)
	}
	return v
}
