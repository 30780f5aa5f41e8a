package crossbar

import (
	"math/bits"

	"gswitch/frame"
)

// Crossbar is the queues of the ingress ports, the accounts of the egress
// queues and the transfers between them.
type Crossbar struct {
	arena  *frame.Arena
	cfg    Config
	lossy  uint32 // Config.Lossy, or all
	pause  uint32 // Config.Pause, or more than there can be
	memory memory

	in  [MaxPorts]input
	out [MaxPorts]output

	// The last length whose time on the crossbar was asked for, and that.
	length uint32
	span   frame.Time

	busyIn, busyOut uint64               // ports with a transfer
	work            uint64               // egress ports that may be able to take a frame
	ends            [MaxPorts]frame.Time // of transfers, by egress port
	soon            frame.Time           // the next end
	ending          uint64               // transfers that end then and were not given out
	ripening        frame.FIFO
	due             frame.Time // of the next end of a transfer or of a latency
	dirty           uint64     // ingress ports whose Wants changed since NextDirty
	held            int
	largest         uint32 // most that a frame which was first ever counted for at an egress port
}

// input is the queue of an ingress port. The frame that is crossing is still
// the head of its class.
type input struct {
	fifo  [8]frame.FIFO
	first [8]first // of those lists
	some  uint8    // classes whose list holds a frame
	wants uint8    // classes that should be paused
	lossy uint32
	account
	chunks  uint32    // of memory, but for those of headroom
	spare   uint32    // of headroom
	cells   [8]uint32 // both, by class
	pressed uint8     // classes that took headroom, while any is in use
	look    bool      // it wants pauses, or its chunks may ask for one
	count   InCounts
}

// first is what is asked of a frame that waits to cross, again and again.
type first struct {
	cost  uint32 // what it counts for at its egress port
	bytes uint32
	out   uint8
}

// output is what is known of an egress queue, and the transfer to it. The frame
// that is crossing counts.
type output struct {
	head    [8]uint64 // by class: ingress ports whose first frame of the class goes here
	classes uint8     // of which there is any
	account

	frame frame.Ref // crossing
	cost  uint32    // of that
	from  uint8
	class uint8

	turn  uint8 // ingress port that is first among equals
	count OutCounts
}

// InCounts are what was counted of the queue of an ingress port.
type InCounts struct {
	Frames, Bytes  uint64 // taken in
	Refused        uint64 // frames without room, lossless ones
	RefusedLossy   uint64 // frames of other classes, and copies
	RefusedCopied  uint64 // frames of lossless classes for several ports, which wait elsewhere: see Refused
	Short          uint64 // of both, those for which there were no chunks of memory
	Pauses, Resume [8]uint64
}

// OutCounts are what was counted of the transfers to an egress port.
type OutCounts struct {
	Frames, Bytes uint64 // that crossed
	Skipped       uint64 // of them, while a class above was blocked at the same ingress port
}

// New returns an empty crossbar. The configuration must be valid.
func New(a *frame.Arena, cfg Config) *Crossbar {
	x := &Crossbar{arena: a, due: frame.Never, soon: frame.Never}
	x.ripening.Init()
	for i := range x.in {
		for c := range x.in[i].fifo {
			x.in[i].fifo[c].Init()
		}
	}
	x.Configure(0, cfg)
	return x
}

// Configure changes the configuration. What waits stays, also where it is more
// than may wait from now on.
func (x *Crossbar) Configure(now frame.Time, cfg Config) {
	x.cfg = cfg
	x.length, x.span = 0, cfg.Time(0)
	if x.pause = cfg.Pause; cfg.Lossless == 0 {
		x.pause = ^uint32(0)
	}
	if x.lossy = cfg.Lossy; x.lossy == 0 {
		x.lossy = cfg.Ingress
	}
	x.configureChunks()
	for i := range x.in {
		in := &x.in[i]
		if in.wants&^cfg.Lossless != 0 {
			in.wants &= cfg.Lossless
			x.dirty |= 1 << i
		}
		x.judge(i, 7)
	}
	x.work = ^uint64(0)
	x.match(now)
}

// Config returns the configuration in force.
func (x *Crossbar) Config() Config { return x.cfg }

// Arrive takes in frames that were forwarded, 64 at most, by InPort, OutPort, Class and
// Wire, and sets Cost and the flag frame.Lossless; or refuses them, if the queue of their
// ingress port has no room, and returns which, as a bitmap. Whatever Next has to return at
// now must have been taken.
func (x *Crossbar) Arrive(now frame.Time, v []frame.Ref) (refused uint64) {
	for i, r := range v {
		if !x.arrive(now, r, x.arena.Meta(r)) {
			refused |= 1 << i
		}
	}
	return refused
}

func (x *Crossbar) arrive(now frame.Time, r frame.Ref, m *frame.Meta) bool {
	in, lossy := &x.in[m.InPort%MaxPorts], x.isLossy(m)
	switch {
	case in.total+m.Wire > x.cfg.Ingress, lossy && in.lossy+m.Wire > x.lossy:
		in.count.refuse(lossy)
		return false
	case in.chunks < x.memory.easy && m.Wire <= x.memory.whole && in.spare == 0:
		in.chunks++
		in.cells[m.Class&7]++
	case x.memory.cfg.Bytes != 0 && !x.takeChunks(in, m.Class, m.Wire, lossy):
		in.count.refuse(lossy)
		in.count.Short++
		return false
	}
	if m.Flags |= frame.Lossless; lossy {
		in.lossy += m.Wire
		m.Flags &^= frame.Lossless
	}
	m.Cost = m.Wire
	in.add(m.Class, m.Cost)
	in.count.Frames++
	in.count.Bytes += uint64(m.Cost)
	x.held++
	x.judge(int(m.InPort%MaxPorts), int(m.Class&7))
	if x.cfg.Latency > 0 {
		m.Depart = now + x.cfg.Latency
		x.ripening.Push(x.arena, r)
		x.due = min(x.due, m.Depart)
		return true
	}
	x.store(r, m)
	x.match(now)
	return true
}

func (c *InCounts) refuse(lossy bool) {
	if lossy {
		c.RefusedLossy++
	} else {
		c.Refused++
	}
}

// Refused counts a frame for several ports that did not wait here, and for which there was
// no room where it did: a loss, if its class is lossless.
func (x *Crossbar) Refused(m *frame.Meta) {
	if x.cfg.Lossless>>(m.Class&7)&1 != 0 {
		x.in[m.InPort%MaxPorts].count.RefusedCopied++
	}
}

// isLossy reports whether a frame may only use what lossless classes leave.
func (x *Crossbar) isLossy(m *frame.Meta) bool {
	return x.cfg.Lossless>>(m.Class&7)&1 == 0 || m.Flags&frame.IsClone != 0
}

// store puts a frame that is ready to cross into the list of its class.
func (x *Crossbar) store(r frame.Ref, m *frame.Meta) {
	i, c := m.InPort%MaxPorts, m.Class&7
	in := &x.in[i]
	in.fifo[c].Push(x.arena, r)
	if in.some>>c&1 == 0 {
		x.lead(int(i), c, m)
		x.work |= 1 << (m.OutPort % MaxPorts)
	}
}

// lead makes a frame the first of its class at ingress port i.
func (x *Crossbar) lead(i int, c uint8, m *frame.Meta) {
	in, j := &x.in[i], m.OutPort%MaxPorts
	o := &x.out[j]
	in.some |= 1 << c
	cost := x.outCost(m.Cost)
	in.first[c&7] = first{cost, m.Cost, uint8(j)}
	x.largest = max(x.largest, cost)
	o.head[c&7] |= 1 << i
	o.classes |= 1 << c
}

// Due returns the instant at which Next has something to do, Never while
// nothing is under way.
func (x *Crossbar) Due() frame.Time { return x.due }

// Next writes the next frames that have crossed by now to out, those of one instant, and
// returns how many and when; 0 if there are none. Their Cost counts against their egress
// queues until Leave.
func (x *Crossbar) Next(now frame.Time, out []frame.Ref) (k int, at frame.Time) {
	for x.due <= now {
		t := x.due
		if x.soon <= t && x.ending != 0 {
			for ; k < len(out) && x.ending != 0; k++ {
				j := bits.TrailingZeros64(x.ending)
				x.ending &= x.ending - 1
				out[k] = x.finish(j)
			}
			return k, t
		}
		for r := x.ripening.Head(); r != frame.Nil; r = x.ripening.Head() {
			m := x.arena.Meta(r)
			if m.Depart > t {
				break
			}
			x.ripening.Pop(x.arena)
			x.store(r, m)
		}
		x.match(t)
		x.plan()
	}
	return 0, 0
}

// plan finds when something happens next.
func (x *Crossbar) plan() {
	x.soon, x.ending = frame.Never, 0
	for b := x.busyOut; b != 0; b &= b - 1 {
		x.foresee(bits.TrailingZeros64(b))
	}
	x.due = x.soon
	if r := x.ripening.Head(); r != frame.Nil {
		x.due = min(x.due, x.arena.Meta(r).Depart)
	}
}

// foresee takes note of the end of a transfer.
func (x *Crossbar) foresee(j int) {
	switch at := x.ends[j&(MaxPorts-1)]; {
	case at < x.soon:
		x.soon, x.ending = at, 1<<j
	case at == x.soon:
		x.ending |= 1 << j
	}
}

// finish ends the transfer to egress port j.
func (x *Crossbar) finish(j int) frame.Ref {
	o := &x.out[j]
	i, c := int(o.from%MaxPorts), o.class&7
	in := &x.in[i]
	r := in.fifo[c].Pop(x.arena)
	m := x.arena.Meta(r)
	if o.head[c] &^= 1 << i; o.head[c] == 0 {
		o.classes &^= 1 << c
	}
	if next := in.fifo[c].Head(); next != frame.Nil {
		x.lead(i, c, x.arena.Meta(next))
	} else {
		in.some &^= 1 << c
	}
	x.busyIn &^= 1 << i
	x.busyOut &^= 1 << j
	o.frame = frame.Nil
	x.work |= 1 << j
	x.offer(in)
	x.takeOut(in, m)
	top := int(c)
	switch {
	case in.chunks-1 < x.memory.cfg.Own && m.Cost <= x.memory.whole && in.spare == 0: // and there is one
		in.chunks--
		in.cells[c]--
	case x.memory.cfg.Bytes != 0 && x.giveChunks(in, c, m.Cost):
		top = 7 // those that waited for headroom
	}
	x.judge(i, top)
	o.count.Frames++
	o.count.Bytes += uint64(m.Cost)
	m.Cost = o.cost
	return r
}

// takeOut takes a frame out of the account of its ingress queue.
func (x *Crossbar) takeOut(in *input, m *frame.Meta) {
	in.remove(m.Class, m.Cost)
	if m.Flags&frame.Lossless == 0 {
		in.lossy -= m.Cost
	}
	x.held--
}

// offer has the egress ports look that the first frames of an ingress port go
// to.
func (x *Crossbar) offer(in *input) {
	for s := in.some; s != 0; s &= s - 1 {
		x.work |= 1 << (in.first[bits.TrailingZeros8(s)&7].out % MaxPorts)
	}
}

// Leave says that frames which crossed left their egress queues, or were dropped there.
func (x *Crossbar) Leave(now frame.Time, v []frame.Ref) {
	for _, r := range v {
		m := x.arena.Meta(r)
		j := m.OutPort % MaxPorts
		o := &x.out[j]
		o.remove(m.Class, m.Cost)
		m.Cost = 0
		if o.classes != 0 {
			x.work |= 1 << j
		}
		x.match(now)
	}
}

// judge decides which classes up to c of an ingress port should be paused.
func (x *Crossbar) judge(i, c int) {
	if in := &x.in[i&(MaxPorts-1)]; in.total >= x.pause || in.look {
		x.weigh(i, c, in)
	}
}

func (x *Crossbar) weigh(i, c int, in *input) {
	before, drain, cells, mark := in.wants, in.drains(), drains(&in.cells), x.memory.mark
	for p := 0; p <= c; p++ {
		bit := uint8(1) << p
		switch {
		case x.cfg.Lossless&bit == 0:
		case in.wants&bit == 0 && (drain[p&7] >= x.cfg.Pause || cells[p&7] >= mark || in.pressed&bit != 0):
			in.wants |= bit
			in.count.Pauses[p&7]++
		case in.wants&bit != 0 && drain[p&7] <= x.cfg.Unpause && cells[p&7] <= mark/2 && in.spare == 0:
			in.wants &^= bit
			in.count.Resume[p&7]++
		}
	}
	in.look = in.wants|in.pressed != 0 || in.chunks >= mark
	if in.wants != before {
		x.dirty |= 1 << i
	}
}

// Wants returns the classes for which the neighbour at an ingress port should
// pause.
func (x *Crossbar) Wants(port uint16) uint8 {
	if port >= MaxPorts {
		return 0
	}
	return x.in[port].wants
}

// NextDirty returns an ingress port whose Wants changed since it was last
// returned here, in ascending order, and false if there is none.
func (x *Crossbar) NextDirty() (port uint16, ok bool) {
	if x.dirty == 0 {
		return frame.NoPort, false
	}
	i := bits.TrailingZeros64(x.dirty)
	x.dirty &^= 1 << i
	return uint16(i), true
}
