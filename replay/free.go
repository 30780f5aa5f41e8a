package replay

import (
	"fmt"

	"gswitch/frame"
)

// free is what a player needs to step a node that may do something else than the
// one that was recorded.
type free struct {
	node  frame.Stepper
	rated []uint16
	last  frame.Time // at which pace stepped it without effect
}

// Free lets the node run freely with what was recorded: the same frames, links
// and commands at the same instants. Nothing is compared, and allocations fail when
// there are no chunks. The node's timers run when they are due. The ports of rated,
// which have a rate of their own, send as that allows; at the others a link takes
// as many frames, and when, as it did.
func (p *Player) Free(rated []uint16) error {
	node, ok := p.Node.(frame.Stepper)
	if !ok {
		return fmt.Errorf("a %s does not say when it wants to be stepped", p.Header.Kind)
	}
	p.free = &free{node: node, rated: rated, last: frame.Never}
	return nil
}

// pace steps the node up to an instant.
func (p *Player) pace(to frame.Time) {
	f := p.free
	for {
		due := f.node.TimerWake(p.now)
		for _, port := range f.rated {
			due = min(due, f.node.PortWake(p.now, port))
		}
		if due = max(due, p.now); due >= to || due == f.last {
			return
		}
		f.last, p.now = due, due
		_ = p.failing(func() { p.Node.Advance(due) })
		for _, port := range f.rated {
			for f.node.PortWake(due, port) <= due && p.transmit(port) {
				f.last = frame.Never
			}
		}
		if f.node.TimerWake(due) > due {
			f.last = frame.Never
		}
	}
}

// transmit takes what a port sends now, and reports whether it sent something.
func (p *Player) transmit(port uint16) bool {
	p.out = append(p.out[:0], make([]frame.Ref, 64)...)
	k := 0
	_ = p.failing(func() { k = p.Node.Transmit(p.now, port, p.out) })
	p.out = p.out[:k]
	p.left(port)
	for _, r := range p.out {
		p.pool.Free(r)
	}
	p.out = p.out[:0]
	return k > 0
}
