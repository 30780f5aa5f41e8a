package point

import (
	"gswitch/frame"
	"gswitch/notice"
	"gswitch/rocc"
)

// advance runs the congestion points that are due, and returns when the next one
// is.
func (ps *points) advance(now frame.Time) frame.Time {
	if now < ps.due {
		return ps.due
	}
	ps.due = frame.Never
	for _, p := range ps.all {
		if p.due <= now {
			ps.update(now, p)
		}
		ps.due = min(ps.due, p.due)
	}
	return ps.due
}

// update is one period of a congestion point: the controller, then the
// senders. A worker that comes late runs it once, not as often as it was due.
func (ps *points) update(now frame.Time, p *point) {
	_, queue := ps.node.Scheduler(p.port).QueueLen(int(p.queue))
	p.count.Updates++
	if p.table != nil {
		p.table.Tick()
	}
	flows, notify := p.known(), true
	k := min(flows, p.perTick)
	if p.atHosts {
		ps.composeLength(p, queue)
	} else {
		p.count.Branch[p.control.Update(queue)]++
		if p.atMax++; !p.control.AtMax() {
			p.atMax = 0
		}
		// At the largest rate no flow needs a notice but those that were notified of
		// less before: once each.
		notify = (p.atMax-1)*p.perTick < flows
		ps.composeRate(p, queue)
	}
	ps.notifyNext(now, p, k, notify)
	p.before = queue
	if !notify && queue <= p.steady {
		p.dormant, p.watch = true, p.steady
	}
	if p.idle++; queue > 0 {
		p.idle = 0
	}
	if p.ends() { // nothing changes until a frame comes
		p.due, p.dormant, p.watch = frame.Never, true, 0
	} else {
		ps.arm(now, p)
	}
	p.chooseLookup()
}

// ends reports whether nothing changes any more until a frame comes.
func (p *point) ends() bool {
	switch {
	case p.idle == 0 || !p.atHosts && !p.dormant:
		return false
	case p.table == nil:
		return p.flows.Len() == 0
	}
	// Flows that will not come again are removed, but not at once.
	return p.table.Len() == 0 || p.idle > p.kept.Age
}

// known returns how many flows there are to be notified.
func (p *point) known() int {
	if p.table != nil {
		return p.table.Len()
	}
	return p.flows.Len()
}

// next returns the flow whose turn it is to be notified, nil if none, now that so
// many frames have left the queue.
func (p *point) next(left uint64) *rocc.Flow {
	if p.table != nil {
		return p.table.Next()
	}
	return p.flows.Next(left)
}

// composeRate makes the message with the fair rate.
func (ps *points) composeRate(p *point, queue uint64) {
	rate := rocc.Notice{Stretch: p.stretch, Class: p.queue, Port: p.port, Switch: uint32(ps.node.Config().ID), Fair: p.control.Units(), Unit: uint32(min(p.params.RateUnit, 1<<32-1)),
		Queue: uint32(min(queue, 1<<32-1)), Before: uint32(min(p.before, 1<<32-1)), Sequence: uint32(p.count.Updates)}
	ps.message.Set(rate.Encode(ps.message.Head[:], notice.Type4, nil))
}

// composeLength makes the message with what the fair rate follows from.
func (ps *points) composeLength(p *point, queue uint64) {
	reading := rocc.Reading{Stretch: p.stretch, Class: p.queue, Port: p.port, Switch: uint32(ps.node.Config().ID), Queue: uint32(min(queue, 1<<32-1)), Before: uint32(min(p.before, 1<<32-1)),
		Sequence: uint32(p.count.Updates), Params: p.params}
	ps.message.Set(reading.Encode(ps.message.Head[:], notice.Type4, nil))
}

// notifyNext sends the message to up to k flows whose turn it is, or only passes
// them.
func (ps *points) notifyNext(now frame.Time, p *point, k int, notify bool) {
	left := ps.node.Scheduler(p.port).Left(int(p.queue))
	for range k {
		flow := p.next(left)
		if flow == nil || !notify {
			continue
		}
		if ps.node.SendNotice(now, &ps.message, &flow.Sender) {
			p.count.Notices++
		} else {
			p.count.Unsent++
		}
	}
}
