package vswitch

import (
	"gswitch/buffer"
	"gswitch/frame"
	"gswitch/pfc"
)

// A port that does harm is err-disabled for a while, as if its link were down: routes
// with several next hops use others, and frames that arrive through it are dropped.
// Features decide when (Disable). The switch itself does it if a neighbour does not pause
// when asked to, and so overflows the buffer at the cost of others. A port that is
// disabled and enabled again by the configuration is back at once.

// byPause is the cause that DisabledBy returns for a port whose neighbour does not pause.
const byPause = "pfc"

// violations is the limit for the neighbour of a port.
func (c *PFCConfig) violations(p *PortConfig, b *BufferConfig) pfc.ViolationLimit {
	if c.ErrDisable == 0 {
		return pfc.ViolationLimit{}
	}
	grace := c.Grace
	if grace == 0 {
		// What arrives after a pause was decided takes its time; allow a quarter more.
		l := p.Link(b)
		l.Response = max(l.Response, c.Response)
		skid := buffer.Headroom(l, 0).Total()
		grace = frame.Time(float64(skid)*8e9/float64(max(l.Rate, 1))*1.25) + 1
	}
	return pfc.ViolationLimit{Grace: grace, Resends: c.Resends}
}

// checkErrDisable enables an own port again when its time is over, and disables it if its
// neighbour does not pause when asked to. Frames of the neighbour that other workers
// received are not counted.
func (n *Node) checkErrDisable(now frame.Time, port uint16) {
	ps := &n.ports[port]
	if ps.disabled != 0 {
		if now < ps.disabled {
			n.flow.due = min(n.flow.due, ps.disabled)
			return
		}
		n.Enable(now, port)
	}
	var frames [8]uint64
	for c := range frames {
		frames[c] = ps.rxClass[c].Frames
	}
	if ps.pfc.CheckViolations(now, &frames) {
		n.Disable(now, port, now+n.prog.Config.PFC.ErrDisable, byPause)
	}
}

// Disable disables an own port until an instant, unless it is disabled for longer
// already, and records the cause.
func (n *Node) Disable(now frame.Time, port uint16, until frame.Time, by string) {
	ps := &n.ports[port]
	if until <= ps.disabled {
		return
	}
	ps.disabled = until
	n.flow.due = min(n.flow.due, until)
	n.sw.disabledBy[port].Store(&by)
	n.setDisabled(now, port, true)
}

// Enable enables an own port that is err-disabled.
func (n *Node) Enable(now frame.Time, port uint16) {
	n.ports[port].disabled = 0
	n.sw.disabledBy[port].Store(nil)
	n.setDisabled(now, port, false)
}

// setDisabled shows all workers whether a port is err-disabled.
func (n *Node) setDisabled(now frame.Time, port uint16, disabled bool) {
	word, bit := &n.sw.disabled[port/64], uint64(1)<<(port%64)
	if disabled {
		word.Or(bit)
	} else {
		word.And(^bit)
	}
	n.adoptLinks(now, n.sw.links.Add(1))
	n.others.handed |= n.others.bits &^ n.others.bit // the others may sleep
}

// Disabled reports whether a port of this worker is err-disabled.
func (n *Node) Disabled(port uint16) bool { return n.ports[port].disabled != 0 }

// DisabledUntil returns the time until which a port of this worker is err-disabled, 0 if
// it is not.
func (n *Node) DisabledUntil(port uint16) frame.Time { return n.ports[port].disabled }

// DisabledBy returns the cause for which a port is err-disabled, pfc or the name of a
// feature, or "" if it is not. Any goroutine may call it.
func (n *Node) DisabledBy(port uint16) string { return n.sw.DisabledBy(port) }

// DisabledBy is Node.DisabledBy.
func (sw *Switch) DisabledBy(port uint16) string {
	if by := sw.disabledBy[port].Load(); by != nil {
		return *by
	}
	return ""
}
