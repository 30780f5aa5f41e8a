package vswitch

import (
	"gswitch/frame"
	"gswitch/scheduler"
)

// A flood reaches ports that its sender does not intend. Its copies therefore give way to
// frames for one port alone: while such a frame waits at a port that is backed up, in any
// class, copies get only a share of what the port sends, and at all times they hold so
// little memory that the port keeps half of what it may always hold. Frames that only
// wait for the end of their vector, or for a few others on the link, are no sign of
// congestion.

// floods is the state of flood copies in the egress queues of an own port.
type floods struct {
	frames int
	sent   uint64     // by the port, when credit was last updated
	credit uint64     // bytes that may join besides other frames
	wait   frame.Time // wait beyond which the port counts as backed up
}

// floodRoom is the limit of flood copies at any port of a worker.
type floodRoom struct {
	share  uint64 // of what a port sends, in 1/2^16; 0: copies are treated like other frames
	frames int    // at a port
}

// floodCredit is how many of the port's largest frames may be copies in a row besides
// other frames. If no frame waits longer than these take, copies need no credit.
const floodCredit = 4

// loopWait is how long frames may wait at a port that keeps up, only because of the
// worker's loop. It is the criterion at ports without a rate: frames that their ring does
// not accept wait longer.
const loopWait = 50 * frame.Microsecond

// leastFloods is how many copies may wait at a port with the smallest memory.
const leastFloods = 8

// adoptFloods sets the limits of flood copies. The buffer must already have the same
// configuration.
func (n *Node) adoptFloods(c *Config) {
	n.chunks.floods = floodRoom{share: uint64(c.Buffer.FloodShare * (1 << 16))}
	largest := uint64(defaultMTU)
	for i := range n.prog.ports {
		size := n.prog.ports[i].maxFrame
		largest = max(largest, uint64(size))
		var link scheduler.RateClock
		link.SetRate(c.Ports[i].Scheduler.Rate)
		n.ports[i].floods.wait = max(link.Span(floodCredit*size), loopWait)
	}
	n.chunks.floods.frames = max(int(n.buffer.Own(largest)/2), leastFloods)
}

// admitsFlood reports whether a copy of a flood may join an egress queue, with regard to
// other frames.
func (n *Node) admitsFlood(ps *portState, m *frame.Meta) bool {
	f := &ps.floods
	if f.frames >= n.chunks.floods.frames {
		return false
	}
	if !ps.sched.Exceeds(f.frames) || !ps.sched.WaitsSince(n.now-f.wait) {
		return true
	}
	sent := ps.sched.Sent()
	f.credit = min(f.credit+(sent-f.sent)*n.chunks.floods.share>>16, floodCredit*uint64(n.prog.ports[m.OutPort].maxFrame))
	f.sent = sent
	if f.credit < uint64(m.Wire) {
		return false
	}
	f.credit -= uint64(m.Wire)
	return true
}

// leave removes a frame from the counts, if it is a copy of a flood.
func (f *floods) leave(m *frame.Meta) {
	if m.Flags&frame.Flooded == 0 {
		return
	}
	m.Flags &^= frame.Flooded
	f.frames--
}

// thinFloods drops the copies of floods among frames for a worker that is overloaded.
func (n *Node) thinFloods(h *handoff) {
	h.floods = false
	if h.ring.Len() < h.ring.Cap()/2 {
		return
	}
	keep := h.v[:0]
	for _, r := range h.v[:h.n] {
		if n.arena.Meta(r).Flags&frame.Flooded != 0 {
			n.drop(r, frame.FloodShare)
			continue
		}
		keep = append(keep, r)
	}
	h.n = len(keep)
}
