package capture

import (
	"encoding/binary"
	"sync/atomic"

	"gswitch/frame"
)

// Dir says which way a captured frame went, seen from the switch.
type Dir uint8

const (
	DirNone Dir = iota // the file does not say
	DirIn              // received at the port
	DirOut             // sent at the port
	DirDrop            // received at the port and dropped, for Record.Reason
)

// String returns "in", "out", "drop" or "none".
func (d Dir) String() string {
	switch d {
	case DirIn:
		return "in"
	case DirOut:
		return "out"
	case DirDrop:
		return "drop"
	}
	return "none"
}

// Record is what is known of one captured frame beside its bytes.
type Record struct {
	Time   int64        // nanoseconds: since the engine's start in a Ring, since the Unix epoch in a file
	Iface  uint32       // interface: the port's index in the session, or the interface index of a file
	Wire   uint32       // bytes of the frame as it was on the link
	Dir    Dir          //
	Reason frame.Reason // why it was dropped, if Dir is DirDrop
}

// Ring carries records with their bytes from one producer to one consumer.
// Neither ever waits for the other.
//
// A record is a header of recordHeader bytes and its data, padded to eight
// bytes, and never wraps: where it does not fit before the end of the buffer
// a header with length skipLen sends the consumer back to the start.
type Ring struct {
	buf  []byte
	mask uint64
	_    [128]byte

	// Producer's line.
	tail       atomic.Uint64
	cachedHead uint64
	_          [128]byte

	// Consumer's line.
	head    atomic.Uint64
	reading uint64 // bytes of the record that Next returned and Release frees
	_       [128]byte
}

const (
	recordHeader = 24
	skipLen      = 1<<32 - 1
)

// NewRing returns a ring of at least n bytes, rounded up to a power of two.
func NewRing(n int) *Ring {
	size := 4096
	for size < n {
		size <<= 1
	}
	return &Ring{buf: make([]byte, size), mask: uint64(size - 1)}
}

// need returns how many bytes a record of n data bytes takes, and how many of
// them are skipped at the end of the buffer.
func (r *Ring) need(n int) (need, skip uint64) {
	need = uint64(recordHeader+n+7) &^ 7
	if toEnd := uint64(len(r.buf)) - r.tail.Load()&r.mask; toEnd < need {
		return need + toEnd, toEnd
	}
	return need, 0
}

func (r *Ring) space(need uint64) uint64 {
	used := r.tail.Load() - r.cachedHead
	if uint64(len(r.buf))-used < need {
		r.cachedHead = r.head.Load()
		used = r.tail.Load() - r.cachedHead
	}
	return uint64(len(r.buf)) - used
}

// Put appends a record and reports whether there was room. Producer only.
func (r *Ring) Put(rec Record, data []byte) bool {
	need, skip := r.need(len(data))
	if r.space(need) < need {
		return false
	}
	tail := r.tail.Load()
	at := tail & r.mask
	if skip > 0 {
		// Everything is a multiple of 8, so the length always fits.
		binary.LittleEndian.PutUint32(r.buf[at:], skipLen)
		at = 0
	}
	h := r.buf[at:]
	binary.LittleEndian.PutUint32(h, uint32(len(data)))
	binary.LittleEndian.PutUint32(h[4:], rec.Wire)
	binary.LittleEndian.PutUint64(h[8:], uint64(rec.Time))
	binary.LittleEndian.PutUint32(h[16:], rec.Iface)
	h[20], h[21] = uint8(rec.Dir), uint8(rec.Reason)
	copy(h[recordHeader:], data)
	r.tail.Store(tail + need)
	return true
}

// Next returns the oldest record without removing it. data is valid until
// Release. Consumer only.
func (r *Ring) Next() (rec Record, data []byte, ok bool) {
	head := r.head.Load()
	if head == r.tail.Load() {
		return rec, nil, false
	}
	at, skip := head&r.mask, uint64(0)
	if binary.LittleEndian.Uint32(r.buf[at:]) == skipLen {
		skip = uint64(len(r.buf)) - at
		at = 0
	}
	h := r.buf[at:]
	n := int(binary.LittleEndian.Uint32(h))
	rec.Wire = binary.LittleEndian.Uint32(h[4:])
	rec.Time = int64(binary.LittleEndian.Uint64(h[8:]))
	rec.Iface = binary.LittleEndian.Uint32(h[16:])
	rec.Dir, rec.Reason = Dir(h[20]), frame.Reason(h[21])
	r.reading = skip + uint64(recordHeader+n+7)&^7
	return rec, h[recordHeader : recordHeader+n], true
}

// Release removes the record that Next returned. Consumer only.
func (r *Ring) Release() {
	r.head.Store(r.head.Load() + r.reading)
	r.reading = 0
}

// Empty reports whether there is nothing to read, as seen from anywhere.
func (r *Ring) Empty() bool { return r.head.Load() == r.tail.Load() }
