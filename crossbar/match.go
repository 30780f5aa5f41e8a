package crossbar

import (
	"math/bits"

	"github.com/gswitch/gswitch/frame"
)

// match starts the transfers that can start: at egress ports that are free and
// may have something new to take.
func (x *Crossbar) match(now frame.Time) {
	for x.work != 0 {
		j := bits.TrailingZeros64(x.work)
		x.work &^= 1 << j
		if x.busyOut>>j&1 == 0 {
			x.serve(now, j)
		}
	}
}

// serve starts the transfer to a free egress port whose turn it is, if any: the
// highest class first, and in a class the ingress ports in turn.
func (x *Crossbar) serve(now frame.Time, j int) {
	o := &x.out[j]
	for c := 7; c >= 0; c-- {
		offered := o.head[c] &^ x.busyIn
		if offered == 0 {
			continue
		}
		first := offered & (^uint64(0) << o.turn)
		for _, set := range [2]uint64{first, offered &^ first} {
			for ; set != 0; set &= set - 1 {
				i := bits.TrailingZeros64(set)
				r := x.in[i].fifo[c].Head()
				if m := x.arena.Meta(r); x.room(o, c, m.Cost) && x.isFirst(&x.in[i], c) {
					x.start(now, i, j, c, r, m.Cost)
					return
				}
			}
		}
	}
}

// isFirst reports whether no class above c of an ingress port stands in its
// way.
func (x *Crossbar) isFirst(in *input, c int) bool {
	above := in.some >> c >> 1 << c << 1
	if above == 0 {
		return true
	}
	if !x.cfg.SkipBlocked {
		return false
	}
	for ; above != 0; above &= above - 1 {
		h := bits.TrailingZeros8(above)
		m := x.arena.Meta(in.fifo[h].Head())
		if x.room(&x.out[m.OutPort%MaxPorts], h, m.Cost) {
			return false
		}
	}
	return true
}

// room reports whether an egress queue can take n bytes more of a class. An
// empty one takes any frame: what is larger than the queue, as mirrored frames
// are that obey no MTU, and those from before a change, would wait forever, and
// all behind it.
func (x *Crossbar) room(o *output, class int, n uint32) bool {
	if o.drain[0] == 0 {
		return true
	}
	if x.cfg.TotalCap {
		return o.drain[0]+n <= x.cfg.Egress
	}
	return o.drain[class&7]+n <= x.cfg.Egress && o.drain[0]+n <= x.cfg.Egress+x.cfg.Reserve
}

// start begins the transfer of the first frame of a class.
func (x *Crossbar) start(now frame.Time, i, j, c int, r frame.Ref, n uint32) {
	o, in := &x.out[j], &x.in[i]
	for p := range c + 1 {
		o.drain[p&7] += n
	}
	if o.drain[0] > o.peak {
		o.peak = o.drain[0]
	}
	if in.some>>c>>1 != 0 {
		o.count.Skipped++
	}
	o.frame, o.from, o.class = r, uint8(i), uint8(c)
	o.ends = now + x.span(n)
	o.turn = uint8(i+1) % MaxPorts
	x.busyIn |= 1 << i
	x.busyOut |= 1 << j
	x.due = min(x.due, o.ends)
	if x.cfg.SkipBlocked {
		x.unblock(o)
	}
}

// unblock has the egress ports look to which ingress ports may turn that were
// waiting for o: it has less room now, so that their next class may go.
func (x *Crossbar) unblock(o *output) {
	var waiting uint64
	for c := range o.head {
		waiting |= o.head[c]
	}
	for waiting &^= x.busyIn; waiting != 0; waiting &= waiting - 1 {
		in := &x.in[bits.TrailingZeros64(waiting)]
		if in.some&(in.some-1) != 0 {
			x.offer(in)
		}
	}
}

// span is how long n bytes are on the crossbar: at least a nanosecond.
func (x *Crossbar) span(n uint32) frame.Time {
	return max(1, frame.Time(uint64(n+x.cfg.Overhead)*x.num/x.den))
}
