package point

import (
	"gswitch/escape"
	"gswitch/frame"
	"gswitch/vswitch"
	"gswitch/wire"
)

// control acts on a token or a request from the neighbour at a port, and reports
// false if the port does not understand it.
func (p *ports) control(port uint16, c wire.MACControl) bool {
	x := p.at(port)
	if x == nil || !x.on || !p.partner(port) {
		return false
	}
	switch c.Opcode() {
	case wire.OpToken:
		return p.token(port, x, c)
	case wire.OpRequest:
		return p.requested(port, x, c)
	}
	return false
}

// token releases the first frame of the flow that a token names, or passes it on.
func (p *ports) token(port uint16, x *egressState, c wire.MACControl) bool {
	var t wire.TokenFields
	if _, why := t.Decode(c); why != frame.Keep || t.Hops == 0 {
		return false
	}
	if t.Hops > escape.MaxHops {
		x.Drop()
		return true
	}
	if p.params.Printed && x.Free() == 0 {
		x.Drop()
		return true
	}
	hash := p.hashOf(t.Flow)
	p.flow = t.Flow
	for q := range x.fifo {
		if x.from>>q&1 == 0 {
			continue
		}
		if r := p.node.Extract(port, q, hash, p.same); r != frame.Nil {
			x.Hit()
			p.sendMarked(x, r, p.arena.Meta(r), uint8(t.Hops))
			return true
		}
	}
	if tok, ok := x.Pass(p.node.Now(), hash, t.Flow, t.Hops, p.waited); ok {
		p.sendToken(tok)
		p.arm(x.Due())
	}
	return true
}

func (p *ports) hashOf(f wire.FlowID) uint32 { return p.hasher.IPv4(f.Addrs, f.Ports, f.Proto) }

// isWanted reports whether a frame is of the flow that is looked for.
func (p *ports) isWanted(r frame.Ref) bool {
	m := p.arena.Meta(r)
	return isPlain(m) && flowOf(p.arena.Bytes(r), m) == p.flow
}

// isWaited reports whether frames of a class that come by a port are held back
// by the neighbour there, and none is under way any more: only then does no
// frame overtake an older one where the token goes further than one hop. As
// printed a pause that is requested suffices.
func (p *ports) isWaited(in uint16, class uint8) bool {
	x := p.at(in)
	if x == nil || !p.partner(in) || !p.node.LinkUp(in) {
		return false
	}
	c := p.node.PFC(in).Class(int(class))
	return c.XOFFSent && (p.params.Printed || p.node.Now()-c.XOFFSince >= x.patience)
}

// mayEscape is isWaited for flows whose way on is open.
func (p *ports) mayEscape(in uint16, class uint8) bool {
	return p.open>>(class&7)&1 != 0 && p.isWaited(in, class)
}

// arm has the next round at an instant, if not before.
func (p *ports) arm(at frame.Time) {
	if at < p.due {
		p.due = at
		p.node.Arm(at)
	}
}

// armRound has a round of tokens at the next multiple of the period.
func (p *ports) armRound(now frame.Time) { p.arm(now - now%p.period + p.period) }

// pauses is called when a neighbour is paused: there may be tokens to make.
func (p *ports) pauses(now frame.Time, port uint16) {
	if p.node.PFC(port).XOFFSent() != 0 {
		p.armRound(now)
	}
}

// paused is called when the neighbour at a port pauses or resumes.
func (p *ports) paused(now frame.Time, port uint16) { p.arm(p.ask(now, port)) }

// advance is a round, if it is time: for each open egress port, tokens for the
// flows that wait at neighbours which this switch has paused.
func (p *ports) advance(now frame.Time) frame.Time {
	if now < p.due {
		return p.due
	}
	p.due = frame.Never
	asked := false
	for i, x := range p.ports {
		if x != nil && p.node.PFC(uint16(i)).XOFFSent()&p.lossless != 0 && p.partner(uint16(i)) {
			asked = true
		}
	}
	for i, x := range p.ports {
		if x == nil {
			continue
		}
		port := uint16(i)
		x.Reclaim(now)
		if asked && x.on && p.node.LinkUp(port) && p.node.Draining(port) == 0 {
			p.open = p.lossless &^ p.node.PFC(port).Paused(now)
			for tok, ok := x.Offer(now, p.may); ok; tok, ok = x.Offer(now, p.may) {
				p.sendToken(tok)
			}
		}
		p.due = min(p.due, x.Due())
		if p.asks && x.on {
			p.due = min(p.due, p.ask(now, port))
		}
	}
	if asked && p.on {
		p.armRound(now)
	}
	return p.due
}

// sendToken sends a token to the neighbour at its port. One that cannot be made
// is like one that is lost: its place is reclaimed.
func (p *ports) sendToken(t escape.Token) {
	if b, r := p.node.NewControl(t.In); b != nil {
		f := wire.TokenFields{Src: p.node.Config().MAC, Flow: t.Flow, Hops: t.Hops}
		f.Encode(b)
		p.node.SendControl(t.In, r)
	}
}

// View is what one port has to do with frames that escape.
type View struct {
	Port              int
	On                bool
	Free, Kept, Taken int // places
	Parked            int // others, of frames that wait in the queue of their class
	Flows             int // that are known
	Unmarked          uint64
	escape.Counts
}

// Views appends what the ports of a worker have to do with frames that escape.
// Like every reader of a node's state it is called between two steps of it.
func Views(n *vswitch.Node, v []View) []View {
	p, _ := n.Feature(Name).(*ports)
	if p == nil {
		return v
	}
	for i, x := range p.ports {
		if x != nil {
			v = append(v, View{Port: i, On: x.on, Free: x.Free(), Kept: x.Kept(), Taken: x.Taken(), Parked: x.Parked(), Flows: x.Flows(), Unmarked: x.unmarked, Counts: x.Counts()})
		}
	}
	return v
}
