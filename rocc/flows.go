package rocc

// Flow is a flow that is to be told the fair rate.
type Flow struct {
	// Back is what a notice needs to find the sender: the packet from its
	// network header on, as much as is kept of it, and by which port and VLAN
	// and from which station it came.
	Back [QuoteMax]byte
	Len  uint8
	IPv6 bool
	Port uint16
	VID  uint16
	MAC  uint64

	prev, next uint32 // in the order in which they are told
}

// slot is what each frame of a flow touches, apart from the rest: two of them
// share a cache line.
type slot struct {
	key    Key
	frames uint32 // that wait
	hash   uint32
	chain  uint32 // next with these bits of the hash, +1
	_      uint32
}

// Key tells flows with equal hashes apart.
type Key [2]uint64

// QuoteMax is how much of a packet a notice quotes: an IPv6 header, ports and
// a base transport header of InfiniBand.
const QuoteMax = 40 + 8 + 12

// Flows are those that have, or had since the last update, a packet in a
// queue: exactly the flows that the fair rate is for. How many there are is
// bounded by the queue; what does not fit is not told, and counted.
type Flows struct {
	flows  []Flow
	slots  []slot   // of the same indexes
	heads  []uint32 // +1
	free   []uint32
	cursor uint32 // whose turn it is
	n      int
	limit  int
	// Full counts packets of flows for which there was no room.
	Full uint64
}

// NewFlows returns a table for up to max flows.
func NewFlows(max int) *Flows {
	size := 16
	for size < max {
		size <<= 1
	}
	f := &Flows{flows: make([]Flow, max), slots: make([]slot, max), heads: make([]uint32, size), free: make([]uint32, max), limit: max}
	for i := range f.free {
		f.free[i] = uint32(max - 1 - i)
	}
	return f
}

// Resize changes how many flows the table holds. Those that it has it keeps,
// under their indexes, until they have left; and so the memory of what it once
// could hold.
func (f *Flows) Resize(max int) {
	f.limit = max
	had := len(f.slots)
	if max <= had {
		return
	}
	size := len(f.heads)
	for size < max {
		size <<= 1
	}
	f.flows = append(make([]Flow, 0, max), f.flows...)[:max]
	f.slots = append(make([]slot, 0, max), f.slots...)[:max]
	free := make([]uint32, 0, max)
	for i := max - 1; i >= had; i-- {
		free = append(free, uint32(i))
	}
	f.free = append(free, f.free...)
	f.heads = make([]uint32, size)
	for k, i := 0, f.cursor; k < f.n; k, i = k+1, f.flows[i].next {
		s := &f.slots[i]
		head := &f.heads[s.hash&uint32(size-1)]
		s.chain, *head = *head, i+1
	}
}

// Len returns how many flows there are.
func (f *Flows) Len() int { return f.n }

// Enter notes that a packet of a flow waits. It returns the flow's index, and
// the flow itself where it was not known, to be filled in: nil, and an index
// that Leave refuses, where there is no room.
func (f *Flows) Enter(hash uint32, key Key) (i uint32, fresh *Flow, ok bool) {
	head := &f.heads[hash&uint32(len(f.heads)-1)]
	for at := *head; at != 0; at = f.slots[at-1].chain {
		if e := &f.slots[at-1]; e.hash == hash && e.key == key {
			e.frames++
			return at - 1, nil, true
		}
	}
	if f.n >= f.limit {
		f.Full++
		return 0, nil, false
	}
	i = f.free[len(f.free)-1]
	f.free = f.free[:len(f.free)-1]
	f.slots[i] = slot{key: key, frames: 1, hash: hash, chain: *head}
	e := &f.flows[i]
	*head = i + 1
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

// Leave notes that a packet of flow i waits no longer. The flow stays until it
// has been told once more, so that one with few packets learns, too, when the
// rate rises.
func (f *Flows) Leave(i uint32) {
	if e := &f.slots[i]; e.frames > 0 {
		e.frames--
	}
}

// Next returns the flow whose turn it is to be told, nil if there is none. A
// caller asks at most Len times in a round.
func (f *Flows) Next() *Flow {
	if f.n == 0 {
		return nil
	}
	i := f.cursor
	e := &f.flows[i]
	f.cursor = e.next
	if f.slots[i].frames == 0 {
		f.remove(i, e)
	}
	return e
}

func (f *Flows) remove(i uint32, e *Flow) {
	gone := &f.slots[i]
	at := &f.heads[gone.hash&uint32(len(f.heads)-1)]
	for *at != i+1 {
		at = &f.slots[*at-1].chain
	}
	*at = gone.chain
	f.flows[e.prev].next, f.flows[e.next].prev = e.next, e.prev
	f.free = append(f.free, i)
	f.n--
}
