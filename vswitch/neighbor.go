package vswitch

import (
	"encoding/binary"
	"math/bits"
	"net/netip"
	"sync/atomic"

	"gswitch/frame"
)

// neighborTable maps (interface, address) to a MAC address. Worker 0 writes,
// all workers read without waiting: a slot is four atomic words, and the word
// that makes it valid is stored last and cleared first.
type neighborTable struct {
	slots []neighborSlot
	mask  uint32
	// Keys of the hash. With known keys an attacker could choose addresses that are
	// stored in one run of slots, which every lookup would have to search.
	k0, k1 uint64
	used   int // slots that hold or held an entry; writer only
	// version changes with every entry, after it.
	version atomic.Uint32
}

type neighborSlot struct {
	hi, lo atomic.Uint64 // the address, IPv4 mapped into IPv6
	mac    atomic.Uint64 // MAC in the low 48 bits, 0 while unresolved
	owner  atomic.Uint64 // slotValid | interface, 0 = never used, slotDead = deleted
}

const (
	slotValid = 1 << 63
	slotDead  = 1 << 62
)

func newNeighborTable(n int, secret uint64) *neighborTable {
	size := 16
	for size < 2*n {
		size <<= 1
	}
	keys := frame.NewRand(secret)
	return &neighborTable{slots: make([]neighborSlot, size), mask: uint32(size - 1), k0: keys.Uint64(), k1: keys.Uint64() | 1}
}

// addrKey is an IP address as two words, IPv4 mapped into IPv6.
type addrKey struct{ hi, lo uint64 }

func keyOf(a netip.Addr) addrKey {
	b := a.As16()
	return addrKey{binary.BigEndian.Uint64(b[:8]), binary.BigEndian.Uint64(b[8:])}
}

func (k addrKey) addr() netip.Addr {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], k.hi)
	binary.BigEndian.PutUint64(b[8:], k.lo)
	return netip.AddrFrom16(b).Unmap()
}

// home is the first slot where a neighbour may stand.
func (t *neighborTable) home(iface uint16, k addrKey) uint32 {
	h := mulFold(mulFold(k.hi^t.k0, t.k1)^k.lo^uint64(iface), t.k1)
	return uint32(h >> 32)
}

// mulFold multiplies to 128 bits and folds the halves.
func mulFold(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return hi ^ lo
}

// lookup returns the MAC of a neighbour, or 0 if it is unknown or unresolved.
func (t *neighborTable) lookup(iface uint16, k addrKey) uint64 {
	want := slotValid | uint64(iface)
	for i := t.home(iface, k); ; i++ {
		s := &t.slots[i&t.mask]
		o := s.owner.Load()
		if o == 0 {
			return 0
		}
		if o == want && s.lo.Load() == k.lo && s.hi.Load() == k.hi {
			mac := s.mac.Load()
			if s.owner.Load() == want && s.lo.Load() == k.lo && s.hi.Load() == k.hi {
				return mac
			}
			return 0
		}
	}
}

// set stores a MAC. The caller keeps no more entries than the table was made
// for. Writer only.
func (t *neighborTable) set(iface uint16, k addrKey, mac uint64) {
	want := slotValid | uint64(iface)
	free := -1
	for i := t.home(iface, k); ; i++ {
		s := &t.slots[i&t.mask]
		switch o := s.owner.Load(); {
		case o == want && s.lo.Load() == k.lo && s.hi.Load() == k.hi:
			s.mac.Store(mac)
			t.version.Add(1)
			return
		case o == slotDead && free < 0:
			free = int(i & t.mask)
		case o == 0:
			if free < 0 {
				// Keep a quarter of the slots free, so that every probe ends.
				if t.used >= len(t.slots)*3/4 {
					t.sweep()
					t.set(iface, k, mac)
					return
				}
				free = int(i & t.mask)
				t.used++
			}
			s = &t.slots[free]
			s.hi.Store(k.hi)
			s.lo.Store(k.lo)
			s.mac.Store(mac)
			s.owner.Store(want)
			t.version.Add(1)
			return
		}
	}
}

// sweep gets rid of deleted slots. A reader may miss an entry meanwhile: its
// frame takes the slow path once. Writer only.
func (t *neighborTable) sweep() {
	type entry struct {
		iface uint16
		key   addrKey
		mac   uint64
	}
	var live []entry
	for i := range t.slots {
		s := &t.slots[i]
		if o := s.owner.Load(); o&slotValid != 0 {
			live = append(live, entry{uint16(o), addrKey{s.hi.Load(), s.lo.Load()}, s.mac.Load()})
		}
		s.owner.Store(0)
	}
	t.used = 0
	for _, e := range live {
		t.set(e.iface, e.key, e.mac)
	}
}

// remove deletes an entry. Writer only.
func (t *neighborTable) remove(iface uint16, k addrKey) {
	want := slotValid | uint64(iface)
	for i := t.home(iface, k); ; i++ {
		s := &t.slots[i&t.mask]
		o := s.owner.Load()
		if o == 0 {
			return
		}
		if o == want && s.lo.Load() == k.lo && s.hi.Load() == k.hi {
			s.owner.Store(slotDead)
			t.version.Add(1)
			return
		}
	}
}

// neighborState is where an entry stands (RFC 4861 7.3.2, without Delay:
// entries are probed before they expire, whether used or not).
type neighborState uint8

const (
	neighborIncomplete neighborState = iota
	neighborReachable
	neighborProbing
	neighborStatic
	neighborFailed
)

var neighborStateNames = [...]string{"incomplete", "reachable", "probing", "static", "failed"}

func (s neighborState) String() string { return neighborStateNames[s] }

// Timers of neighbour resolution: RFC 4861 10 (RETRANS_TIMER 1 s, three
// solicitations); a reachable entry is probed after 60 s. A failed one
// refuses frames for a second before it is tried again.
const (
	neighborRetry   = frame.Second
	neighborTries   = 3
	neighborConfirm = 60 * frame.Second
	neighborHold    = neighborRetry // of one length: they share a timerList
	neighborPending = 8             // frames held for one unresolved neighbour
)

// Bounds of the neighbour table of a switch, in entries.
const (
	MaxNeighbors = 8192 // resolved or not
	// A scan of a connected network makes entries that never resolve; it must
	// leave room for the neighbours that exist (RFC 6583 6.1).
	MaxUnresolved = MaxNeighbors / 2
	// No port has more than half of either: hosts behind one that claim or ask
	// for ever new addresses leave room for what others need.
	NeighborsPerPort  = MaxNeighbors / 2
	UnresolvedPerPort = MaxUnresolved / 2
)

// neighbor is worker 0's view of an entry.
type neighbor struct {
	iface   uint16
	key     addrKey
	port    uint16 // on whose account it is
	state   neighborState
	mac     uint64
	tries   uint8
	pending frame.FIFO

	due        frame.Time // its timer, if it is on a list
	on         *timerList
	prev, next *neighbor

	before, after *neighbor // in the order of local.first
}

// resolved reports whether the MAC of an entry in this state is in use.
func (s neighborState) resolved() bool {
	return s == neighborReachable || s == neighborProbing || s == neighborStatic
}

// timerList are neighbours in the order in which their timers are due.
type timerList struct{ head, tail *neighbor }

// due returns when the first timer is due, or Never.
func (q *timerList) due() frame.Time {
	if q.head == nil {
		return frame.Never
	}
	return q.head.due
}

// arm sets a neighbour's timer, which must not be due before the others of q.
func (l *local) arm(q *timerList, nb *neighbor, due frame.Time) {
	l.disarm(nb)
	nb.due, nb.on, nb.prev = due, q, q.tail
	if q.tail == nil {
		q.head = nb
	} else {
		q.tail.next = nb
	}
	q.tail = nb
	l.due = min(l.due, due)
}

// disarm stops a neighbour's timer, if it runs.
func (l *local) disarm(nb *neighbor) {
	q := nb.on
	if q == nil {
		return
	}
	if nb.prev == nil {
		q.head = nb.next
	} else {
		nb.prev.next = nb.next
	}
	if nb.next == nil {
		q.tail = nb.prev
	} else {
		nb.next.prev = nb.prev
	}
	nb.on, nb.prev, nb.next = nil, nil, nil
}
