package vswitch

import (
	"gswitch/frame"
	"gswitch/scheduler"
)

// A flood reaches ports that its sender does not mean. So its copies give
// way to frames that are for one port alone: while such a frame waits at a port that is
// backed up, in whatever class, copies are a part of what the port sends, and at all
// times they hold little enough of the memory to leave the port half of what it always
// has. Frames that only wait for the end of the vector in which they came, or for a few
// others on the link, are no sign of too many.

// floods is what an own port has of copies in its egress queues.
type floods struct {
	frames int
	sent   uint64     // by the port, when credit was last worked out
	credit uint64     // bytes that may join beside others
	wait   frame.Time // by which a frame waits longer at a port that is backed up
}

// floodRoom is what any port of a worker may have of copies.
type floodRoom struct {
	share  uint64 // of what a port sends, in 1/2^16; 0: copies are like other frames
	frames int    // at a port
}

// floodCredit is how many of the port's largest frames copies may be in a row beside
// others. Where no frame waits for longer than as many take, copies need none.
const floodCredit = 4

// loopWait is how long frames may wait at a port that keeps up, only because the loop of
// a worker takes its time. Ports without a rate know nothing else: what their ring does
// not take waits longer.
const loopWait = 50 * frame.Microsecond

// leastFloods is how many copies may wait at a port in the smallest memory.
const leastFloods = 8

// adoptFloods sizes what copies of floods may take. The buffer has the same
// configuration already.
func (n *Node) adoptFloods(c *Config) {
	n.floodRoom = floodRoom{share: uint64(c.Buffer.FloodShare * (1 << 16))}
	largest := uint64(defaultMTU)
	for i := range n.prog.ports {
		size := n.prog.ports[i].maxFrame
		largest = max(largest, uint64(size))
		var link scheduler.RateClock
		link.SetRate(c.Ports[i].Scheduler.Rate)
		n.ports[i].floods.wait = max(link.Span(floodCredit*size), loopWait)
	}
	n.floodRoom.frames = max(int(n.buffer.Own(largest)/2), leastFloods)
}

// admitsFlood reports whether a copy of a flood may join an egress queue, as far as
// others are concerned.
func (n *Node) admitsFlood(ps *portState, m *frame.Meta) bool {
	f := &ps.floods
	if f.frames >= n.floodRoom.frames {
		return false
	}
	if !ps.sched.Exceeds(f.frames) || !ps.sched.WaitsSince(n.now-f.wait) {
		return true
	}
	sent := ps.sched.Sent()
	f.credit = min(f.credit+(sent-f.sent)*n.floodRoom.share>>16, floodCredit*uint64(n.prog.ports[m.OutPort].maxFrame))
	f.sent = sent
	if f.credit < uint64(m.Wire) {
		return false
	}
	f.credit -= uint64(m.Wire)
	return true
}

// leave counts a frame that joined off, if it is a copy of a flood.
func (f *floods) leave(m *frame.Meta) {
	if m.Flags&frame.Flooded == 0 {
		return
	}
	m.Flags &^= frame.Flooded
	f.frames--
}

// thinFloods drops the copies of floods among frames for a worker that has more to do
// than it gets done.
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
