package rocc

import "gswitch/notice"

// Flow is a flow whose sender is to get the fair rate.
type Flow struct {
	notice.Sender

	hash       uint32
	held       uint32 // packets that wait, where their places do not say
	prev, next uint32 // in the order in which flows are notified
}

// Key distinguishes flows. It is no array, since those are not passed in
// registers: written in halves and read whole, one waits for the cache.
type Key struct{ Addresses, Ports uint64 }

// slot is what each packet of a flow touches, apart from the rest: two of them
// share a cache line. The first of those with equal bits of the hash stands at
// these bits, the others are chained behind it.
type slot struct {
	key  Key
	last uint64 // place of its last packet in the queue
	flow uint32 // +1; 0 = none, and none behind it
	more uint32 // the next, 0 = none
}

// Flows are those that have, or had since the last update, a packet in a
// queue: exactly the flows that the fair rate is for. How many there are is
// bounded by the queue; what does not fit gets no notice, and is counted.
//
// Whether a packet still waits is not counted where queues are first-in
// first-out: it does until as many have left the queue as its place says. So
// nothing is touched when it leaves, and one word when it comes.
type Flows struct {
	slots  []slot // homes, a power of two, then room for those that are chained
	homes  uint32
	spare  []uint32 // of that room
	flows  []Flow
	free   []uint32
	cursor uint32 // whose turn it is
	n      int
	limit  int
	// Full counts packets of flows for which there was no room.
	Full uint64
}

// NewFlows returns a table for up to max flows.
func NewFlows(max int) *Flows {
	f := &Flows{}
	f.Resize(max)
	return f
}

// Resize changes how many flows the table holds. Those that it has it keeps,
// under their indexes, until they have left; and so the memory of what it once
// could hold.
func (f *Flows) Resize(max int) {
	f.limit = max
	had := len(f.flows)
	if max <= had {
		return
	}
	old := *f
	f.flows = append(make([]Flow, 0, max), f.flows...)[:max]
	f.free = make([]uint32, 0, max)
	for i := max - 1; i >= had; i-- {
		f.free = append(f.free, uint32(i))
	}
	f.free = append(f.free, old.free...)
	f.homes = 16
	for int(f.homes) < max {
		f.homes <<= 1
	}
	f.slots = make([]slot, int(f.homes)+max)
	f.spare = make([]uint32, 0, max)
	for i := len(f.slots) - 1; i >= int(f.homes); i-- {
		f.spare = append(f.spare, uint32(i))
	}
	for k, i := 0, old.cursor; k < old.n; k, i = k+1, old.flows[i].next {
		at, _ := old.find(i)
		s := &old.slots[at]
		f.place(old.flows[i].hash, s.key, s.last, i)
	}
}

// Len returns how many flows there are.
func (f *Flows) Len() int { return f.n }

// Renew is Enter for a packet whose flow stands at the front of its bits of the
// hash, as most do; it reports whether it did.
func (f *Flows) Renew(hash uint32, key Key, place uint64) bool {
	s := &f.slots[hash&(f.homes-1)]
	if s.key != key || s.flow == 0 {
		return false
	}
	s.last = place
	return true
}

// Enter notes that a packet of a flow waits, and at which place among all that
// ever were in the queue: it waits until so many have left. It returns the
// flow's index, and the flow itself where it was not known, to be filled in.
// There is no index where there is no room.
func (f *Flows) Enter(hash uint32, key Key, place uint64) (i uint32, fresh *Flow, ok bool) {
	for at := hash & (f.homes - 1); ; {
		s := &f.slots[at]
		if s.flow != 0 && s.key == key {
			s.last = place
			return s.flow - 1, nil, true
		}
		if at = s.more; at == 0 {
			break
		}
	}
	if f.n >= f.limit {
		f.Full++
		return 0, nil, false
	}
	i = f.free[len(f.free)-1]
	f.free = f.free[:len(f.free)-1]
	f.place(hash, key, place, i)
	e := &f.flows[i]
	e.hash, e.held = hash, 0
	if f.n == 0 {
		e.prev, e.next, f.cursor = i, i, i
	} else { // last of the round
		next := &f.flows[f.cursor]
		e.prev, e.next = next.prev, f.cursor
		f.flows[next.prev].next, next.prev = i, i
	}
	f.n++
	return i, e, true
}

// place gives flow i a slot.
func (f *Flows) place(hash uint32, key Key, last uint64, i uint32) {
	s := &f.slots[hash&(f.homes-1)]
	if s.flow != 0 {
		at := f.spare[len(f.spare)-1]
		f.spare = f.spare[:len(f.spare)-1]
		home := s
		s = &f.slots[at]
		s.more, home.more = home.more, at
	}
	s.key.Addresses, s.key.Ports, s.last, s.flow = key.Addresses, key.Ports, last, i+1
}

// find returns the slot of flow i and the one before it in the chain, which is
// the same for the first.
func (f *Flows) find(i uint32) (at, before uint32) {
	at = f.flows[i].hash & (f.homes - 1)
	before = at
	for f.slots[at].flow != i+1 {
		before, at = at, f.slots[at].more
	}
	return at, before
}

// Hold notes that a packet of flow i waits until Leave: where frames overtake,
// places do not say. It enters at place 0 then.
func (f *Flows) Hold(i uint32) { f.flows[i].held++ }

// Leave notes that a packet that was held waits no longer.
func (f *Flows) Leave(i uint32) {
	if e := &f.flows[i]; e.held > 0 {
		e.held--
	}
}

// Next returns the flow whose turn it is to get a notice, nil if there is none. A
// caller asks at most Len times in a round. A flow of which no packet waits,
// now that so many have left the queue, is removed with that: it stays until
// it has been notified once more, so that one with few packets also knows when
// the rate rises.
func (f *Flows) Next(left uint64) *Flow {
	if f.n == 0 {
		return nil
	}
	i := f.cursor
	e := &f.flows[i]
	f.cursor = e.next
	if e.held > 0 {
		return e
	}
	if at, before := f.find(i); f.slots[at].last <= left {
		f.vacate(at, before)
		f.flows[e.prev].next, f.flows[e.next].prev = e.next, e.prev
		f.free = append(f.free, i)
		f.n--
	}
	return e
}

// vacate takes a slot out of its chain. Where it is the home, the next one
// moves there.
func (f *Flows) vacate(at, before uint32) {
	s := &f.slots[at]
	switch {
	case at != before:
		f.slots[before].more = s.more
	case s.more != 0:
		at = s.more
		*s = f.slots[at]
	default:
		s.flow = 0
		return
	}
	f.slots[at] = slot{}
	f.spare = append(f.spare, at)
}
