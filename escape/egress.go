package escape

import (
	"gswitch/frame"
	"gswitch/wire"
)

// MaxHops bounds how far a token goes: the mark has a byte for it.
const MaxHops = 255

// Egress is what an egress port keeps for frames that escape by it. Of its
// places each is free, kept for the frame of a token that is out, or taken by
// a frame that escapes.
//
// A frame that has come to the switch whose token it was is parked: it waits
// with the others of its class, and if their port is paused meanwhile, for as
// long as that lasts. It would keep its place from tokens of other switches,
// which frames that wait in a place of theirs may in turn be in need of. So
// there are as many places again for those that are parked, and only tokens
// that begin here are held back by them.
type Egress struct {
	cfg    Config
	table  table
	kept   int
	taken  int
	parked int
	count  Counts
	check  frame.Time // Printed: when to look at the pool again
	pool   int        // Printed: places that were free the last time
}

// Counts are what a port counted.
type Counts struct {
	Made      uint64 // tokens that began here
	Forwarded uint64 // passed on
	Hits      uint64 // tokens that got a frame here
	Dropped   uint64 // tokens that ended here without one: no place, or nothing to wait for
	Arrived   uint64 // frames that came on a token of this port
	Strays    uint64 // marked frames for which no token was out
	Reclaimed uint64 // tokens that came to nothing
	Full      uint64 // frames of flows for which the table had no room
	Asked     uint64 // requests for tokens that left by this port
	Requests  uint64 // requests for tokens of flows that leave by this port
	Refused   uint64 // requests that came by this port and led nowhere
}

// NewEgress returns a port all of whose places are free.
func NewEgress(c Config) *Egress {
	if c.Printed {
		c.Flows, c.PerFlow = c.Slots, c.Slots
	}
	return &Egress{cfg: c, table: newTable(c.Flows)}
}

// Free, Kept and Taken count places; their sum is Config.Slots. Parked counts
// those of frames that are parked, of which there are as many.
func (e *Egress) Free() int   { return e.cfg.Slots - e.kept - e.taken }
func (e *Egress) Kept() int   { return e.kept }
func (e *Egress) Taken() int  { return e.taken }
func (e *Egress) Parked() int { return e.parked }

// spare is how many frames more may be sent for, or lent a place, so that all
// can be parked.
func (e *Egress) spare() int { return e.Free() - e.parked }

// Counts returns what the port counted.
func (e *Egress) Counts() Counts { return e.count }

// Flows returns how many flows are known.
func (e *Egress) Flows() int { return e.table.n }

// Note takes note of a frame of a flow that is queued at the port. Most frames
// are of a flow that has its bucket of the table to itself and was seen since
// the last unknown one.
func (e *Egress) Note(hash uint32, key wire.FlowID, in uint16, class uint8) {
	t := &e.table
	if i := uint64(*t.bucket(hash)); i < uint64(len(t.flows)) {
		if f := &t.flows[i]; f.stamp != 0 && f.hash == hash && f.key == key && f.in == in && f.class == class {
			t.stamp++
			f.stamp = t.stamp
			return
		}
	}
	e.enter(hash, key, in, class)
}

// enter is Note for any flow.
func (e *Egress) enter(hash uint32, key wire.FlowID, in uint16, class uint8) {
	t := &e.table
	i := t.find(hash, key)
	if i == none {
		if i = t.add(hash, key); i == none {
			e.count.Full++
			return
		}
	}
	f := &t.flows[i]
	if f.in, f.class = in, class; f.window == 0 {
		f.window = uint32(e.cfg.PerFlow)
	}
	if f.stamp == 0 {
		t.stamped = append(t.stamped, i)
	}
	t.stamp++
	f.stamp = t.stamp
	if f.rest == frame.Never {
		f.rest, f.misses = 0, 0 // it comes by here again
	}
}

// Request takes note of a flow of which the neighbour at port in says that its
// frames wait.
func (e *Egress) Request(hash uint32, key wire.FlowID, in uint16, class uint8) {
	e.count.Requests++
	e.Note(hash, key, in, class)
}

// Refuse notes that a request came by this port for a flow that no port can send.
func (e *Egress) Refuse() { e.count.Refused++ }

// Ask notes that a request for tokens left by this port.
func (e *Egress) Ask() { e.count.Asked++ }

// Each calls visit with the flows that may get tokens.
func (e *Egress) Each(visit func(hash uint32, key wire.FlowID, in uint16, class uint8)) {
	for i := range e.table.flows[:e.table.n] {
		if f := &e.table.flows[i]; f.rest != frame.Never {
			visit(f.hash, f.key, f.in, f.class)
		}
	}
}

// Retire takes note that a flow does not leave by this port any more: it gets no
// token here until it does again. Those that are out are reclaimed.
func (e *Egress) Retire(hash uint32, key wire.FlowID) {
	if i := e.table.find(hash, key); i != none {
		e.table.catchUp() // so that its next frame is looked at
		e.table.flows[i].rest = frame.Never
	}
}

// Token is a token that is to leave by port In.
type Token struct {
	Flow wire.FlowID
	In   uint16
	Hops uint16
}

// lookAhead bounds the flows that one call of Offer looks at.
const lookAhead = 64

// Offer makes a token for the next flow, in turn, that may have one: whose
// frames come by a port that may is true for. It returns false where there is
// no place or no such flow among the next ones. As printed a flow gets one
// token at an instant.
func (e *Egress) Offer(now frame.Time, may func(in uint16, class uint8) bool) (Token, bool) {
	t := &e.table
	if e.spare() <= 0 {
		return Token{}, false
	}
	look := min(t.n, lookAhead)
	if e.cfg.Printed {
		look = t.n
	}
	for range look {
		if t.cursor++; int(t.cursor) >= t.n {
			t.cursor = 0
		}
		f := &t.flows[t.cursor]
		if f.out < f.window && now >= f.rest && !(e.cfg.Printed && f.made == now) && may(f.in, f.class) {
			e.keep(now, t.cursor)
			f.made = now
			e.count.Made++
			return Token{f.key, f.in, 1}, true
		}
	}
	return Token{}, false
}

// keep sets a place aside.
func (e *Egress) keep(now frame.Time, i uint32) {
	t := &e.table
	if t.flows[i].out > 0 {
		t.unwait(i)
	}
	t.flows[i].out++
	t.wait(i, now)
	if e.kept++; e.kept == 1 {
		e.check, e.pool = now+e.cfg.Reclaim, e.Free()
	}
}

// Hit notes that a token got a frame here. No place changes hands: the frame
// goes to the places that the switches below keep for it.
func (e *Egress) Hit() { e.count.Hits++ }

// Pass takes a token that came in by this port, whose flow has no frame in its
// queue. It returns the token to send on, or false where it ends: there is no
// place, the flow is not known or has its tokens out, or waited is false for
// the port that its frames come by, which then come by themselves.
func (e *Egress) Pass(now frame.Time, hash uint32, key wire.FlowID, hops uint16, waited func(in uint16, class uint8) bool) (Token, bool) {
	i := e.table.find(hash, key)
	if i == none || e.Free() == 0 || hops >= MaxHops {
		e.count.Dropped++
		return Token{}, false
	}
	f := &e.table.flows[i]
	if f.out >= uint32(e.cfg.PerFlow) || f.rest == frame.Never || !waited(f.in, f.class) {
		e.count.Dropped++
		return Token{}, false
	}
	e.keep(now, i)
	e.count.Forwarded++
	return Token{key, f.in, hops + 1}, true
}

// Borrow gives a marked frame for which no token of this port is out a place
// that is free, which it then takes until Leave, or returns false.
func (e *Egress) Borrow() bool {
	if e.spare() <= 0 {
		return false
	}
	e.taken++
	return true
}

// Drop notes that a token ended here for a reason of the switch's.
func (e *Egress) Drop() { e.count.Dropped++ }

// Arrive reports whether a place is kept for a marked frame that leaves by this
// port, which then takes it until Leave.
func (e *Egress) Arrive(now frame.Time, hash uint32, key wire.FlowID) bool {
	t := &e.table
	i := t.find(hash, key)
	if i == none || t.flows[i].out == 0 {
		e.count.Strays++
		return false
	}
	f := &t.flows[i]
	t.unwait(i)
	if f.out--; f.out > 0 {
		t.wait(i, now)
	}
	f.window = min(f.window+1, uint32(e.cfg.PerFlow))
	if f.misses = 0; f.rest != frame.Never {
		f.rest = 0
	}
	e.kept--
	e.taken++
	e.count.Arrived++
	return true
}

// Park moves a frame that took a place to one of those for parked frames. It
// returns false if there is none, and the frame stays where it is.
func (e *Egress) Park() bool {
	if e.parked == e.cfg.Slots {
		return false
	}
	e.taken--
	e.parked++
	return true
}

// Leave gives back the place of a frame that had one: it left, or was dropped.
func (e *Egress) Leave(parked bool) {
	if parked {
		e.parked--
	} else {
		e.taken--
	}
}

// maxBackoff is how often the rest of a flow may double.
const maxBackoff = 5

// rest is for how long a flow waits whose tokens came to nothing: from Reclaim
// to 2^misses as much, a number of its own for each flow, port and time. Were
// it one for all, tokens that used up the places of a port, so that none came as
// far as to a frame, would do so again for ever.
func (e *Egress) rest(f *flow) frame.Time {
	x := f.hash ^ uint32(e.count.Reclaimed)*0x9e3779b9
	x = (x ^ x>>16) * 0x85ebca6b // the finalizer of MurmurHash3
	x = (x ^ x>>13) * 0xc2b2ae35
	x ^= x >> 16
	return e.cfg.Reclaim * frame.Time(1+x&(1<<f.misses-1))
}

// Reclaim gives back the places that were kept for tokens that are out too
// long. Tokens of one flow count from the last that left or came back.
func (e *Egress) Reclaim(now frame.Time) {
	if e.cfg.Printed {
		e.reclaimOne(now)
		return
	}
	t := &e.table
	for i := t.first; i != none && now-t.flows[i].sent >= e.cfg.Reclaim; i = t.first {
		f := &t.flows[i]
		t.unwait(i)
		e.kept -= int(f.out)
		e.count.Reclaimed += uint64(f.out)
		f.out = 0
		if f.rest == frame.Never {
			continue
		}
		// One at once if none came at all since the last time; each that comes
		// adds one.
		if f.misses > 0 {
			f.window = 1
		}
		f.rest = now + e.rest(f)
		f.misses = min(f.misses+1, maxBackoff)
	}
}

// reclaimOne is the timer of the printed algorithm (section 4.3.3, 5): where as
// many places are free as an interval ago, one token counts as lost.
func (e *Egress) reclaimOne(now frame.Time) {
	t := &e.table
	if t.first == none || now < e.check {
		return
	}
	if i := t.first; e.Free() == e.pool {
		t.unwait(i)
		e.kept--
		e.count.Reclaimed++
		if f := &t.flows[i]; f.out > 1 {
			f.out--
			t.wait(i, f.sent)
		} else {
			f.out = 0
		}
	}
	e.check, e.pool = now+e.cfg.Reclaim, e.Free()
}

// Due returns when Reclaim next has something to do, Never if no token is out.
func (e *Egress) Due() frame.Time {
	if e.table.first == none {
		return frame.Never
	}
	if e.cfg.Printed {
		return e.check
	}
	return e.table.flows[e.table.first].sent + e.cfg.Reclaim
}
