package crossbar

import "gswitch/frame"

// Each visits the frames of a class that wait at an ingress port, first ones
// first, as long as visit returns true. Those whose Latency has not passed yet
// are not among them. visit must not change the crossbar.
func (x *Crossbar) Each(port uint16, class uint8, visit func(r frame.Ref) bool) {
	q := &x.in[port%MaxPorts].fifo[class&7]
	r := q.Head()
	for range q.Len() {
		if !visit(r) {
			return
		}
		r = x.arena.Meta(r).QNext
	}
}

// Stuck returns the egress port that holds up a class at an ingress port: its
// queue has no room for the frame that is the first. It is false where that
// frame can cross, or does, and where nothing waits.
func (x *Crossbar) Stuck(port uint16, class uint8) (out uint16, ok bool) {
	r := x.in[port%MaxPorts].fifo[class&7].Head()
	if r == frame.Nil {
		return 0, false
	}
	m := x.arena.Meta(r)
	o := &x.out[m.OutPort%MaxPorts]
	return m.OutPort, o.frame != r && !x.room(o, int(class&7), x.outCost(m.Cost))
}
