package crossbar

import (
	"math/bits"

	"gswitch/frame"
)

// View is the state of one port.
type View struct {
	Ingress, Egress         [8]uint32 // drain bytes by class
	IngressPeak, EgressPeak uint32    // most bytes there ever were
	Frames                  int       // that wait at the ingress port and are ready to cross
	Chunks                  uint32    // of memory that all take that wait there, 0 where they are not counted
	Wants                   uint8     // classes for which the neighbour should pause
	In                      InCounts
	Out                     OutCounts
}

// Add adds what another crossbar, of other egress ports, reports of the same port.
func (v *View) Add(o *View) {
	for c := range v.Ingress {
		v.Ingress[c] += o.Ingress[c]
		v.Egress[c] += o.Egress[c]
		v.In.Pauses[c] += o.In.Pauses[c]
		v.In.Resume[c] += o.In.Resume[c]
	}
	v.IngressPeak, v.EgressPeak = max(v.IngressPeak, o.IngressPeak), max(v.EgressPeak, o.EgressPeak)
	v.Frames += o.Frames
	v.Chunks += o.Chunks
	v.Wants |= o.Wants
	v.In.Frames += o.In.Frames
	v.In.Bytes += o.In.Bytes
	v.In.Refused += o.In.Refused
	v.In.RefusedLossy += o.In.RefusedLossy
	v.In.RefusedCopied += o.In.RefusedCopied
	v.In.Short += o.In.Short
	v.Out.Frames += o.Out.Frames
	v.Out.Bytes += o.Out.Bytes
	v.Out.Skipped += o.Out.Skipped
}

// Port returns the state of a port.
func (x *Crossbar) Port(port uint16) View {
	in, out := &x.in[port%MaxPorts], &x.out[port%MaxPorts]
	v := View{Ingress: in.drains(), Egress: out.drains(), IngressPeak: in.peak, EgressPeak: out.peak, Chunks: in.chunks + in.spare, Wants: in.wants, In: in.count, Out: out.count}
	for c := range in.fifo {
		v.Frames += in.fifo[c].Len()
	}
	return v
}

// Held returns the frames in all ingress queues, those that cross included.
func (x *Crossbar) Held() int { return x.held }

// EgressDrain returns the bytes of a class and those above it that wait at an
// egress port or are crossing to it.
func (x *Crossbar) EgressDrain(port uint16, class uint8) uint32 {
	return x.out[port%MaxPorts].drain(class)
}

// Blocked visits the ingress ports whose first frame of a class goes to an
// egress port.
func (x *Crossbar) Blocked(out uint16, class uint8, visit func(in uint16)) {
	for b := x.out[out%MaxPorts].head[class&7]; b != 0; b &= b - 1 {
		visit(uint16(bits.TrailingZeros64(b)))
	}
}

// Bytes returns the bytes of a class and those above it that wait at an ingress
// port.
func (x *Crossbar) Bytes(port uint16, class uint8) uint64 {
	return uint64(x.in[port%MaxPorts].drain(class))
}

// Flush removes frames that have not crossed, whether or not they are crossing,
// and returns how many it wrote to out: 0 when all ingress queues are empty.
func (x *Crossbar) Flush(out []frame.Ref) (n int) {
	for b := x.busyOut; b != 0; b &= b - 1 {
		o := &x.out[bits.TrailingZeros64(b)]
		o.remove(o.class, o.cost)
		o.frame = frame.Nil
	}
	x.busyIn, x.busyOut = 0, 0
	for n < len(out) && x.ripening.Len() > 0 {
		out[n] = x.ripening.Pop(x.arena)
		n++
	}
	for i := range x.in {
		for c := range x.in[i].fifo {
			for q := &x.in[i].fifo[c]; n < len(out) && q.Len() > 0; n++ {
				out[n] = q.Pop(x.arena)
			}
		}
	}
	for _, r := range out[:n] {
		m := x.arena.Meta(r)
		in := &x.in[m.InPort%MaxPorts]
		x.takeOut(in, m)
		if x.memory.cfg.Bytes != 0 {
			x.giveChunks(in, m.Class, m.Cost)
		}
		m.Cost = 0
		x.judge(int(m.InPort%MaxPorts), 7)
	}
	x.relist()
	return n
}

// relist finds anew which frames are first.
func (x *Crossbar) relist() {
	for j := range x.out {
		x.out[j].head, x.out[j].classes = [8]uint64{}, 0
	}
	for i := range x.in {
		in := &x.in[i]
		in.some = 0
		for c := range in.fifo {
			if r := in.fifo[c].Head(); r != frame.Nil {
				x.lead(i, uint8(c), x.arena.Meta(r))
			}
		}
	}
	x.work = ^uint64(0)
	x.plan()
}
