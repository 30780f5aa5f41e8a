package vswitch

import (
	"gswitch/buffer"
	"gswitch/frame"
	"gswitch/pfc"
)

// A neighbour that does not pause when told takes what is not its own: buffer
// in front of it overflows. Its port is err-disabled, as if its link
// were down: routes with several next hops go by others, what it sends is
// dropped.

// violations is the limit for the neighbour of a port.
func (c *PFCConfig) violations(p *PortConfig, b *BufferConfig) pfc.ViolationLimit {
	if c.ErrDisable == 0 {
		return pfc.ViolationLimit{}
	}
	grace := c.Grace
	if grace == 0 {
		// What arrives after a pause was decided takes as long as it takes, and a
		// quarter more.
		l := p.Link(b)
		l.Response = max(l.Response, c.Response)
		skid := buffer.Headroom(l, 0).Total()
		grace = frame.Time(float64(skid)*8e9/float64(max(l.Rate, 1))*1.25) + 1
	}
	return pfc.ViolationLimit{Grace: grace, Resends: c.Resends}
}

// listen looks whether the neighbour of an own port pauses when told, and
// gives the port up for a while if not. Frames that other workers received
// from it are not seen.
func (n *Node) listen(now frame.Time, port uint16) {
	ps := &n.ports[port]
	if ps.disabled != 0 {
		if now < ps.disabled {
			n.controlDue = min(n.controlDue, ps.disabled)
			return
		}
		ps.disabled = 0
		n.setDisabled(now, port, false)
	}
	var frames [8]uint64
	for c := range frames {
		frames[c] = ps.rxClass[c].Frames
	}
	if ps.pfc.CheckViolations(now, &frames) {
		ps.disabled = now + n.prog.Config.PFC.ErrDisable
		n.controlDue = min(n.controlDue, ps.disabled)
		n.setDisabled(now, port, true)
	}
}

// setDisabled tells all workers that a port is err-disabled, or not any more.
func (n *Node) setDisabled(now frame.Time, port uint16, disabled bool) {
	word, bit := &n.sw.disabled[port/64], uint64(1)<<(port%64)
	if disabled {
		word.Or(bit)
	} else {
		word.And(^bit)
	}
	n.adoptLinks(now, n.sw.links.Add(1))
	n.handedTo |= n.bells &^ n.wakeBit // the others may sleep
}

// Disabled reports whether a port of this worker is err-disabled since
// its neighbour does not pause when told.
func (n *Node) Disabled(port uint16) bool { return n.ports[port].disabled != 0 }
