package point

import (
	"math/bits"

	"gswitch/escape"
	"gswitch/frame"
	"gswitch/wire"
)

// As it is printed, Escape makes tokens for flows of which a switch has sent a
// frame. A circle in which no frame has come as far as the switch by which its
// flow leaves the circle stays closed for good. So a switch that is paused for
// longer than tokens may stay out asks the neighbour for tokens of the flows that wait; a
// switch whose own way on is paused, too, asks the next one. The first whose port is open
// makes tokens then, and those between know where to pass them on.

// asksAtOnce is how many flows of a queue a port asks for in each Reclaim.
// With 100 us and four paused queues of a switch that is 0.5 Mpps, or 43 Mb/s on
// a link.
const asksAtOnce = 8

// asking is what a port keeps of its requests.
type asking struct {
	askAt  frame.Time
	askRow [8]int // where in the order of flows of a queue to go on
}

// asker is the request that is being made.
type asker struct {
	askBy   uint16
	askLeft int
	one     func(frame.Ref) bool // askFor, made once
}

// ask sends requests by a port that is paused, when they are due, and returns
// when they are the next time.
func (p *ports) ask(now frame.Time, port uint16) frame.Time {
	x, flow := p.ports[port], p.node.PFC(port)
	paused := flow.Paused(now) & p.lossless
	if paused == 0 || !p.partner(port) || !p.node.LinkUp(port) {
		return frame.Never
	}
	due, queues := frame.Never, uint8(0)
	for ; paused != 0; paused &= paused - 1 {
		class := bits.TrailingZeros8(paused)
		if at := flow.Class(class).PausedSince + x.params.Reclaim; at > now {
			due = min(due, at)
		} else {
			queues |= 1 << p.node.Config().Class.Queue[class]
		}
	}
	if queues == 0 {
		return due
	}
	if now >= x.askAt {
		x.askAt = now + x.params.Reclaim
		for ; queues != 0; queues &= queues - 1 {
			q := bits.TrailingZeros8(queues)
			p.askBy, p.askLeft = port, asksAtOnce
			x.askRow[q] = x.fifo[q].EachFlow(p.arena, x.askRow[q], p.one)
		}
	}
	return min(due, x.askAt)
}

// askFor sends a request for a frame that waits, and returns false if it is one
// too many.
func (p *ports) askFor(r frame.Ref) bool {
	m := p.arena.Meta(r)
	if !isPlain(m) {
		return true
	}
	if p.askLeft--; p.askLeft < 0 {
		return false
	}
	p.sendRequest(p.askBy, wire.RequestFields{Flow: flowOf(p.arena.Bytes(r), m), Hops: 1, Class: m.Class})
	return true
}

// requested acts on a request from the neighbour at a port, and reports false if
// the port does not understand it.
func (p *ports) requested(port uint16, x *egressState, c wire.MACControl) bool {
	var f wire.RequestFields
	if _, why := f.Decode(c); why != frame.Keep || f.Hops == 0 || f.Class > 7 || p.lossless>>f.Class&1 == 0 {
		return false
	}
	out, ok := p.node.EgressPort(flowFields(f.Flow))
	if !ok || out == port || !p.node.LinkUp(out) || p.at(out) == nil {
		x.Refuse() // no route, as for what is bridged; back where it came from; or not a port to send by
		return true
	}
	p.at(out).Request(p.hashOf(f.Flow), f.Flow, port, f.Class)
	if p.node.PFC(out).Paused(p.node.Now())>>f.Class&1 != 0 && p.partner(out) && p.asks && f.Hops < escape.MaxHops {
		f.Hops++
		p.sendRequest(out, f)
	}
	return true
}

func (p *ports) sendRequest(port uint16, f wire.RequestFields) {
	if b, r := p.node.NewControl(port); b != nil {
		f.Src = p.node.Config().MAC
		f.Encode(b)
		p.ports[port].Ask()
		p.node.SendControl(port, r)
	}
}
