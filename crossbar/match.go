package crossbar

import (
	"math/bits"

	"gswitch/frame"
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
	for classes := o.classes; classes != 0; {
		c := bits.Len8(classes) - 1
		classes &^= 1 << c
		offered := o.head[c&7] &^ x.busyIn
		if offered == 0 {
			continue
		}
		for set := offered & (^uint64(0) << o.turn); offered != 0; set = offered {
			offered &^= set
			for ; set != 0; set &= set - 1 {
				i := bits.TrailingZeros64(set)
				if n := x.in[i].first[c&7].cost; x.room(o, c, n) && x.isFirst(&x.in[i], c) {
					x.start(now, i, j, c, n)
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
		if f := &in.first[h&7]; x.room(&x.out[f.out%MaxPorts], h, f.cost) {
			return false
		}
	}
	return true
}

// room reports whether an egress queue can take n bytes more of a class. An
// empty one takes any frame: what is larger than the queue, as mirrored frames
// are that exceed the MTU, and those from before a change, would wait forever, and
// all behind it.
func (x *Crossbar) room(o *output, class int, n uint32) bool {
	switch {
	case o.total == 0 || o.total+n <= x.cfg.Egress:
		return true
	case x.cfg.TotalCap || o.total+n > x.cfg.Egress+x.cfg.Reserve:
		return false
	}
	return o.drain(uint8(class))+n <= x.cfg.Egress
}

// start begins the transfer of the first frame of a class, which counts for n bytes.
func (x *Crossbar) start(now frame.Time, i, j, c int, n uint32) {
	o, in := &x.out[j], &x.in[i]
	o.add(uint8(c), n)
	if in.some>>c>>1 != 0 {
		o.count.Skipped++
	}
	o.frame, o.from, o.class = in.fifo[c&7].Head(), uint8(i), uint8(c)
	o.cost = n
	if bytes := in.first[c&7].bytes; bytes != x.length {
		x.length, x.span = bytes, x.cfg.Time(bytes)
	}
	x.ends[j&(MaxPorts-1)] = now + x.span
	o.turn = uint8(i+1) % MaxPorts
	x.busyIn |= 1 << i
	x.busyOut |= 1 << j
	x.foresee(j)
	x.due = min(x.due, x.soon)
	if x.cfg.SkipBlocked && o.total+x.largest > x.cfg.Egress {
		x.unblock(o)
	}
}

// unblock has the egress ports look to which ingress ports may turn that were
// waiting for o: it has less room now, so that their next class may go.
func (x *Crossbar) unblock(o *output) {
	var waiting uint64
	for c := o.classes; c != 0; c &= c - 1 {
		waiting |= o.head[bits.TrailingZeros8(c)&7]
	}
	for waiting &^= x.busyIn; waiting != 0; waiting &= waiting - 1 {
		in := &x.in[bits.TrailingZeros64(waiting)]
		if in.some&(in.some-1) != 0 {
			x.offer(in)
		}
	}
}
