package vswitch

import (
	"math/bits"
	"slices"

	"gswitch/frame"
)

// PauseLog configures the log of pauses of a switch: which port asked which to pause,
// when, and because of which egress queues' frames.
type PauseLog struct {
	// Keep is how many ended pauses each worker keeps, the last ones; those still in
	// force are always kept. 0: no log.
	Keep int
	// Look bounds the number of frames that are examined to determine the egress queues
	// that caused a pause: the first frames of every queue (with input queues, of every
	// class at the port). 0: all.
	Look int
}

// Pause is one uninterrupted pause of a class.
type Pause struct {
	Port  uint16
	Class uint8
	Asked bool       // we asked the neighbour; otherwise it asked us
	Short bool       // we asked, at all ports, because the chunks for frames ran out
	From  frame.Time // when the buffer wanted it, or when the neighbour's frame took effect
	To    frame.Time // Never while it lasts
	// For a pause that we asked for, at its start: the bytes that the port and class
	// held, and the egress queues of these frames, largest first. With input queues,
	// those that block the port's queue come first.
	Held   uint64
	Causes [pauseCauses]PauseCause
}

// PauseCause is an egress queue for which frames wait. Bytes is 0 if there is none.
type PauseCause struct {
	Port  uint16
	Bytes uint64
	// Stuck: its queue had no room for the first frame of a class in an ingress queue, so
	// that all frames behind that one had to wait, too.
	Stuck bool
}

const pauseCauses = 4

// pauseLog is the log of one worker.
type pauseLog struct {
	cfg       PauseLog
	ended     []Pause // a ring
	next      int
	forgotten uint64
	open      []openPauses // by port
	bytes     [MaxPorts]uint64
}

// openPauses are the pauses of a port that are in force.
type openPauses struct {
	asked, received uint8 // classes
	pause           [2][8]Pause
}

// adoptPauseLog brings the log in line with the configuration, and reports
// whether it is a new one.
func (n *Node) adoptPauseLog(c PauseLog) (anew bool) {
	switch {
	case c.Keep <= 0:
		n.flow.log = nil
		return false
	case n.flow.log == nil:
		n.flow.log, anew = &pauseLog{ended: make([]Pause, 0, c.Keep)}, true
	case n.flow.log.cfg.Keep != c.Keep:
		n.flow.log.resize(c.Keep)
	}
	n.flow.log.cfg = c
	for len(n.flow.log.open) < len(n.ports) {
		n.flow.log.open = append(n.flow.log.open, openPauses{})
	}
	return anew
}

// logLasting enters pauses in force into a log that was just enabled. Those that we asked
// for start now as far as the log knows, since their true start is unknown.
func (n *Node) logLasting(now frame.Time) {
	for i := range n.ports {
		if p := n.ports[i].pfc; p != nil {
			n.logReceived(now, uint16(i), p.Paused(now))
		}
		if i < len(n.prog.ports) {
			n.logAsked(now, uint16(i), n.wanted(uint16(i)))
		}
	}
}

// resize makes room for the given number of ended pauses, and keeps the latest of the
// present ones. Pauses in force are not affected.
func (l *pauseLog) resize(keep int) {
	v := slices.Concat(l.ended[l.next:], l.ended[:l.next])
	lost := max(0, len(v)-keep)
	l.forgotten += uint64(lost)
	l.ended = append(make([]Pause, 0, keep), v[lost:]...)
	l.next = 0
}

// logAsked notes what this worker's share of the buffer wants paused of a
// port's neighbour.
func (n *Node) logAsked(now frame.Time, port uint16, want uint8) {
	l := n.flow.log
	o := &l.open[port]
	for m := o.asked &^ want; m != 0; m &= m - 1 {
		l.end(&o.pause[0][bits.TrailingZeros8(m)], now)
	}
	for m := want &^ o.asked; m != 0; m &= m - 1 {
		c := bits.TrailingZeros8(m)
		p := &o.pause[0][c]
		*p = Pause{Port: port, Class: uint8(c), Asked: true, Short: n.chunks.short, From: now, To: frame.Never, Held: n.heldFrom(port, uint8(c))}
		n.causes(p)
	}
	o.asked = want
}

// logReceived notes what changed of the pauses that a port's neighbour asked
// for.
func (n *Node) logReceived(now frame.Time, port uint16, changed uint8) {
	l := n.flow.log
	o := &l.open[port]
	for m := changed; m != 0; m &= m - 1 {
		c := bits.TrailingZeros8(m)
		p, st := &o.pause[1][c], n.ports[port].pfc.Class(c)
		if o.received>>c&1 != 0 && (!st.Paused || st.PausedSince != p.From) {
			l.end(p, now)
			o.received &^= 1 << c
		}
		if st.Paused && o.received>>c&1 == 0 {
			*p = Pause{Port: port, Class: uint8(c), From: st.PausedSince, To: frame.Never}
			o.received |= 1 << c
		}
	}
}

// end enters a pause that has ended.
func (l *pauseLog) end(p *Pause, now frame.Time) {
	p.To = now
	if len(l.ended) < cap(l.ended) {
		l.ended = append(l.ended, *p)
		return
	}
	l.ended[l.next] = *p
	l.next = (l.next + 1) % len(l.ended)
	l.forgotten++
}

// heldFrom is the bytes of a port and class in this worker's share of the
// buffer; of input queues, those that wait at the port, and with them all of
// higher classes.
func (n *Node) heldFrom(port uint16, class uint8) uint64 {
	if n.inputs != nil {
		return n.inputs.Bytes(port, class)
	}
	return n.buffer.Held(port, class)
}

// causes finds the egress queues whose frames fill the account of a pause's
// port and class.
func (n *Node) causes(p *Pause) {
	stuck := portSet{}
	if n.inputs != nil {
		stuck = n.fillsIngress(p)
	} else {
		n.fillsBuffer(p)
	}
	bytes := &n.flow.log.bytes
	for k := range p.Causes {
		most := -1
		for i := range n.ports {
			if bytes[i] > 0 && (most < 0 || before(&stuck, bytes, i, most)) {
				most = i
			}
		}
		if most < 0 {
			return
		}
		p.Causes[k] = PauseCause{uint16(most), bytes[most], stuck.has(uint16(most))}
		bytes[most] = 0
	}
}

// before is the order of causes: what holds up others, then the most bytes.
func before(stuck *portSet, bytes *[MaxPorts]uint64, i, k int) bool {
	if a, b := stuck.has(uint16(i)), stuck.has(uint16(k)); a != b {
		return a
	}
	return bytes[i] > bytes[k]
}

// fillsBuffer adds up by egress port what came by the port of a pause and
// waits in the egress queues.
func (n *Node) fillsBuffer(p *Pause) {
	bytes, queue := &n.flow.log.bytes, int(n.prog.class.Queue[p.Class])
	arena, in, class := n.arena, p.Port, p.Class
	for i := range n.ports {
		bytes[i] = 0
		s := n.ports[i].sched
		if s == nil || s.Waiting()>>queue&1 == 0 {
			continue
		}
		left := n.flow.log.cfg.Look
		s.Each(queue, func(r frame.Ref) bool {
			if m := arena.Meta(r); m.InPort == in && m.Class == class {
				bytes[i] += uint64(m.Wire)
			}
			left--
			return left != 0
		})
	}
}

// fillsIngress adds up by egress port what waits in the ingress queue of a
// pause, of its class and of those above, which count for it; and returns the
// egress ports that hold it up.
func (n *Node) fillsIngress(p *Pause) (stuck portSet) {
	bytes, arena := &n.flow.log.bytes, n.arena
	for i := range n.ports {
		bytes[i] = 0
	}
	for class := int(p.Class); class < 8; class++ {
		left := n.flow.log.cfg.Look
		n.inputs.Each(p.Port, uint8(class), func(r frame.Ref) bool {
			m := arena.Meta(r)
			bytes[m.OutPort%MaxPorts] += uint64(m.Wire)
			left--
			return left != 0
		})
		if out, ok := n.inputs.Stuck(p.Port, uint8(class)); ok {
			stuck.add(out)
		}
	}
	return stuck
}

// Pauses appends the pauses in the log of this worker, ended ones in the order in which
// they ended and then those in force, and returns how many it has discarded. A pause that
// one worker asks for lasts while its share of the buffer wants it; a neighbour is paused
// while any worker wants it.
func (n *Node) Pauses(v []Pause) ([]Pause, uint64) {
	l := n.flow.log
	if l == nil {
		return v, 0
	}
	v = append(v, l.ended[l.next:]...)
	v = append(v, l.ended[:l.next]...)
	for i := range l.open {
		o := &l.open[i]
		for k, m := range [2]uint8{o.asked, o.received} {
			for ; m != 0; m &= m - 1 {
				v = append(v, o.pause[k][bits.TrailingZeros8(m)])
			}
		}
	}
	return v, l.forgotten
}
