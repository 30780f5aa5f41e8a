package deter

import (
	"encoding/binary"
	"errors"
	"fmt"

	"gswitch/frame"
	"gswitch/tcp"
)

// Kind is what happened to an end.
type Kind uint8

const (
	Dial    Kind = iota // it began a connection
	Accept              // it took a SYN
	Receive             // a segment arrived
	Advance             // a timer ran out
	Write               // the application wrote
	Read                // the application read
	Close               // the application closed its direction
	Send                // a segment left
	Idle                // it was asked for a segment, and had none
	check               // the hash of what was sent
	ended               // of the record
	kinds
)

var kindNames = [...]string{"dial", "accept", "receive", "timer", "write", "read", "close", "send", "idle", "check", "end"}

func (k Kind) String() string { return kindNames[k] }

// entry is one event as it is written: what follows from Kind in arg.
//
//	Receive  distance from the next packet in order, times two, plus one with a mark
//	Write    bytes
//	Read     0 for as many as the last segment had, else bytes + 1
type entry struct {
	kind Kind
	dt   frame.Time // microseconds
	arg  uint64
}

// guess is what an end lets expect: after the same two kinds, what came last time.
// An entry that is as expected and whose time is, too, or nearly, is one byte.
type guess struct {
	past uint8 // the last two kinds
	by   [1 << 8]entry
}

func (g *guess) next() *entry { return &g.by[g.past] }

func (g *guess) learn(e entry) {
	g.by[g.past] = e
	g.past = g.past<<4 | uint8(e.kind)
}

const (
	missed = 0x80 // the kind or its argument is not as expected: both follow
	far    = 0x7f // the time is not near what was expected: it follows
)

// append appends an entry.
func (g *guess) append(b []byte, e entry) []byte {
	p := g.next()
	head, near := byte(0), zigzag(int64(e.dt-p.dt))
	if e.kind != p.kind || e.arg != p.arg {
		head = missed
	}
	if near < far {
		b = append(b, head|byte(near))
	} else {
		b = binary.AppendUvarint(append(b, head|far), uint64(e.dt))
	}
	if head != 0 {
		b = binary.AppendUvarint(append(b, byte(e.kind)), e.arg)
	}
	g.learn(e)
	return b
}

// ErrRecord is wrapped by errors of a record that cannot be read.
var ErrRecord = errors.New("damaged record")

// read takes the next entry off b.
func (g *guess) read(b []byte) (e entry, rest []byte, err error) {
	if len(b) == 0 {
		return e, nil, fmt.Errorf("%w: it ends without saying so", ErrRecord)
	}
	e = *g.next()
	head := b[0]
	b = b[1:]
	if near := head &^ missed; near == far {
		v, n := binary.Uvarint(b)
		if n <= 0 || v > 1<<50 {
			return e, nil, fmt.Errorf("%w: a time", ErrRecord)
		}
		e.dt, b = frame.Time(v), b[n:]
	} else {
		e.dt += frame.Time(unzigzag(uint64(near)))
	}
	if head&missed != 0 {
		if len(b) == 0 || Kind(b[0]) >= kinds {
			return e, nil, fmt.Errorf("%w: an event of no kind", ErrRecord)
		}
		v, n := binary.Uvarint(b[1:])
		if n <= 0 {
			return e, nil, fmt.Errorf("%w: an argument", ErrRecord)
		}
		e.kind, e.arg, b = Kind(b[0]), v, b[1+n:]
	}
	if e.dt < 0 || e.dt > 1<<50 {
		return e, nil, fmt.Errorf("%w: time goes back", ErrRecord)
	}
	g.learn(e)
	return e, b, nil
}

func zigzag(v int64) uint64   { return uint64(v<<1) ^ uint64(v>>63) }
func unzigzag(v uint64) int64 { return int64(v>>1) ^ -int64(v&1) }

// Segments of a peer that is not recorded are written whole, as the difference to
// what the one before lets expect.

func appendSegment(b []byte, s, last *tcp.Segment) []byte {
	for _, v := range [...]int64{
		int64(int32(s.Seq - last.Seq - uint32(last.Len))), int64(int32(s.Ack - last.Ack)), int64(s.Len - last.Len), int64(s.Window) - int64(last.Window),
		int64(int32(s.Options.Stamp - last.Options.Stamp)), int64(int32(s.Options.Echo - last.Options.Echo)),
	} {
		b = binary.AppendUvarint(b, zigzag(v))
	}
	o := &s.Options
	b = append(b, byte(s.Flags), bit(s.ECT)|bit(s.CE)<<1|bit(o.HasStamp)<<2|bit(o.HasScale)<<3|bit(o.SACKPermitted)<<4|byte(o.SACKs)<<5)
	if s.Flags&tcp.SYN != 0 {
		b = binary.AppendUvarint(append(b, o.Scale), uint64(o.MSS))
	}
	for _, k := range o.SACK[:o.SACKs] {
		b = binary.AppendUvarint(b, zigzag(int64(int32(k[0]-s.Ack))))
		b = binary.AppendUvarint(b, zigzag(int64(int32(k[1]-k[0]))))
	}
	return b
}

func readSegment(b []byte, last *tcp.Segment) (s tcp.Segment, rest []byte, err error) {
	bad := fmt.Errorf("%w: a segment", ErrRecord)
	var v [6]int64
	next := func() (int64, bool) {
		u, n := binary.Uvarint(b)
		if n <= 0 {
			return 0, false
		}
		b = b[n:]
		return unzigzag(u), true
	}
	for i := range v {
		var ok bool
		if v[i], ok = next(); !ok {
			return s, nil, bad
		}
	}
	s.Seq, s.Ack = last.Seq+uint32(last.Len)+uint32(v[0]), last.Ack+uint32(v[1])
	s.Len, s.Window = last.Len+int(v[2]), uint16(int64(last.Window)+v[3])
	if len(b) < 2 || s.Len < 0 || s.Len > 1<<16 {
		return s, nil, bad
	}
	o := &s.Options
	o.Stamp, o.Echo = last.Options.Stamp+uint32(v[4]), last.Options.Echo+uint32(v[5])
	s.Flags = tcp.Flags(b[0])
	f := b[1]
	b = b[2:]
	s.ECT, s.CE, o.HasStamp, o.HasScale, o.SACKPermitted, o.SACKs = f&1 != 0, f&2 != 0, f&4 != 0, f&8 != 0, f&16 != 0, int(f>>5)
	if o.SACKs > len(o.SACK) {
		return s, nil, bad
	}
	if s.Flags&tcp.SYN != 0 {
		if len(b) < 1 {
			return s, nil, bad
		}
		o.Scale = b[0]
		b = b[1:]
		mss, n := binary.Uvarint(b)
		if n <= 0 || mss > 65535 || o.Scale > tcp.MaxScale {
			return s, nil, bad
		}
		o.MSS, b = uint16(mss), b[n:]
	}
	for i := range o.SACKs {
		from, ok := next()
		span, ok2 := next()
		if !ok || !ok2 {
			return s, nil, bad
		}
		o.SACK[i] = [2]uint32{s.Ack + uint32(from), s.Ack + uint32(from) + uint32(span)}
	}
	return s, b, nil
}

func bit(v bool) byte {
	if v {
		return 1
	}
	return 0
}

// digest adds what a segment says to the rolling hash of what was sent (FNV-1a).
func digest(h uint32, s *tcp.Segment) uint32 {
	add := func(v uint32) {
		for range 4 {
			h = (h ^ v&0xff) * 16777619
			v >>= 8
		}
	}
	o := &s.Options
	add(s.Seq)
	add(s.Ack)
	add(uint32(s.Flags)<<24 | uint32(s.Window)<<8 | uint32(bit(s.ECT)))
	add(uint32(s.Len))
	add(o.Stamp)
	add(o.Echo)
	for _, b := range o.SACK[:o.SACKs] {
		add(b[0])
		add(b[1])
	}
	return h
}
