package stack

import (
	"errors"
	"fmt"
	"math/bits"
	"net/netip"
	"slices"

	"gswitch/frame"
	"gswitch/tcp"
	"gswitch/wire"
)

// Config describes a host's stack.
type Config struct {
	Name    string
	Addr    netip.Addr // IPv4
	MAC     wire.MAC
	Virtual bool // frames are headers with lengths

	// Delay is how long the host takes over a segment that arrived, and Jitter the
	// standard deviation of that: segments stay in order.
	Delay, Jitter frame.Time
	Seed          uint64 // of Jitter

	// Verdicts, if not nil, are the outcomes of the checks of payload, which records do not
	// hold.
	Verdicts *frame.Verdicts

	// Streams lets others connect, and gives connections the bytes of programs
	// (stream.go); nil: there are messages only, between ends that know each other.
	Streams *Streams
}

// Options are those of one end of a connection.
type Options struct {
	TCP        tcp.Config
	Remote     netip.Addr
	RemoteMAC  wire.MAC
	LocalPort  uint16
	RemotePort uint16
	ISS        uint32 // initial sequence number
	Class      uint8  // of the frames
	DSCP       uint8
	// ReadRate is how fast the application reads, in bits per second; 0: at once.
	ReadRate uint64
	// Tap, if not nil, is called for all that happens to the end.
	Tap Tap
}

// Tap gets all that a connection's end is given, before it is, and what it
// sends: what it did can be done again from that. Segments are good during the call.
type Tap interface {
	Dial(now frame.Time, cfg *tcp.Config, iss uint32)
	Accept(now frame.Time, cfg *tcp.Config, iss uint32, syn *tcp.Segment, id uint16)
	Receive(now frame.Time, s *tcp.Segment, id uint16)
	Advance(now frame.Time)
	Write(now frame.Time, n int)
	Read(now frame.Time, n int)
	Close(now frame.Time)
	// Next is called behind Stack.Next; s is nil where there was nothing to be sent, and
	// the connection began to wait for a window.
	Next(now frame.Time, s *tcp.Segment)
}

// Op is what a completion reports of.
type Op uint8

const (
	Sent    Op = iota // a message: all of it was acknowledged
	Arrived           // a message: all of it was read
	Failed            // the connection, which ends without its peer's consent
)

// Completion is the end of something.
type Completion struct {
	End           uint32
	Op            Op
	ID            uint64 // of the message
	Bytes         uint64
	Start         frame.Time // of the message
	Retransmitted uint32     // segments, since it was posted
	Timeouts      uint32
	Err           error
}

// Counts is what a stack counted.
type Counts struct {
	Opened, Failed uint64 // ends
	Segments       uint64 // sent
	Received       uint64
	Strays         uint64 // segments of no connection, or that are none
	Refused        uint64 // connections of others that found no room
	Resets         uint64 // sent for segments of a connection that does not exist
	NoChunk        uint64 // segments that were not sent for want of memory
	Stats          tcp.Stats
}

// clock is the time of connections, in whole microseconds as in Linux: what is below
// is noise, which only makes records longer.
func clock(now frame.Time) frame.Time { return now - now%frame.Microsecond }

// Stack runs connections. One goroutine owns it.
type Stack struct {
	cfg   Config
	arena *frame.Arena
	pool  *frame.Pool
	addr  [4]byte

	table  table
	timers timers
	free   []uint32
	lists  [8][]uint32 // by class: ends that may have something to send, the next first
	ready  uint8       // classes with such ends
	rand   frame.Rand
	inbox  []arrival // with Delay
	last   frame.Time

	done  []Completion
	count Counts
	seg   tcp.Segment // scratch

	streams streams
}

// arrival is a segment that the host has not looked at yet.
type arrival struct {
	due frame.Time
	ref frame.Ref
}

// ErrTuple says that addresses and ports are those of an open connection.
var ErrTuple = errors.New("the addresses and ports are in use")

// Validate reports the first setting that cannot be meant.
func (c *Config) Validate() error {
	switch {
	case !c.Addr.Is4():
		return fmt.Errorf("host %s: TCP needs an address of IPv4, not %v", c.Name, c.Addr)
	case c.Delay < 0 || c.Jitter < 0:
		return fmt.Errorf("host %s: a delay of %v with a deviation of %v: times must not be negative", c.Name, c.Delay.Duration(), c.Jitter.Duration())
	}
	return nil
}

// New returns a stack without connections.
func New(c Config, pool *frame.Pool) (*Stack, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	return &Stack{cfg: c, arena: pool.Arena, pool: pool, addr: c.Addr.As4(), rand: frame.NewRand(c.Seed)}, nil
}

// SetStreams replaces what holds for streams: for those that begin from now on. With nil
// there are no listeners any more, and connections that are open are dropped.
func (s *Stack) SetStreams(c *Streams) {
	if s.cfg.Streams = c; c != nil {
		return
	}
	s.streams.ports = nil
	for slot, e := range s.timers.ends {
		if e != nil && e.stream != nil {
			s.remove(uint32(slot))
		}
	}
}

// Counts returns what was counted, open connections included.
func (s *Stack) Counts() Counts {
	c := s.count
	for _, e := range s.timers.ends {
		if e != nil && e.conn != nil {
			add(&c.Stats, &e.conn.Stats)
		}
	}
	return c
}

// Free reports whether a connection with these ports can be opened.
func (s *Stack) Free(o *Options) bool {
	_, used := s.table.find(o.key())
	return !used
}

func (o *Options) key() uint64 { return key(o.Remote.As4(), o.RemotePort, o.LocalPort) }

// Dial opens a connection and returns the number of its end.
func (s *Stack) Dial(now frame.Time, o *Options) (uint32, error) {
	slot, err := s.add(o)
	if err != nil {
		return 0, err
	}
	e := s.timers.ends[slot]
	if e.tap != nil {
		e.tap.Dial(clock(now), &e.opts.TCP, o.ISS)
	}
	if e.conn, err = tcp.Dial(clock(now), e.opts.TCP, o.ISS); err != nil {
		s.remove(slot)
		return 0, err
	}
	s.act(now, slot)
	return slot, nil
}

// Listen waits for the SYN of one connection and returns the number of its end.
func (s *Stack) Listen(now frame.Time, o *Options) (uint32, error) { return s.add(o) }

func (s *Stack) add(o *Options) (uint32, error) {
	cfg := o.TCP
	if err := cfg.Validate(); err != nil {
		return 0, err
	}
	switch {
	case !o.Remote.Is4():
		return 0, fmt.Errorf("host %s: %v is not an address of IPv4", s.cfg.Name, o.Remote)
	case !s.Free(o):
		return 0, fmt.Errorf("host %s: %v port %d from port %d: %w", s.cfg.Name, o.Remote, o.RemotePort, o.LocalPort, ErrTuple)
	}
	if len(s.free) == 0 {
		s.timers.ends = append(s.timers.ends, nil)
		s.free = append(s.free, uint32(len(s.timers.ends)-1))
	}
	slot := s.free[len(s.free)-1]
	s.free = s.free[:len(s.free)-1]
	e := &end{opts: *o, tap: o.Tap, due: frame.Never, readAt: frame.Never, place: -1,
		flow: tcp.Flow{Src: s.addr, Dst: o.Remote.As4(), SrcPort: o.LocalPort, DstPort: o.RemotePort}}
	e.opts.TCP = cfg
	copy(e.eth[:], o.RemoteMAC[:])
	copy(e.eth[6:], s.cfg.MAC[:])
	e.eth[12], e.eth[13] = 0x08, 0x00
	s.timers.ends[slot] = e
	s.table.put(o.key(), slot)
	s.count.Opened++
	return slot, nil
}

// remove takes an end out of the tables.
func (s *Stack) remove(slot uint32) {
	e := s.timers.ends[slot]
	if e.conn != nil {
		add(&s.count.Stats, &e.conn.Stats)
	}
	if e.stream != nil {
		s.streams.open--
	}
	s.table.drop(e.opts.key())
	s.timers.drop(slot)
	s.timers.ends[slot] = nil
	if e.listed {
		c := e.opts.Class & 7
		s.lists[c] = slices.DeleteFunc(s.lists[c], func(x uint32) bool { return x == slot })
		if len(s.lists[c]) == 0 {
			s.ready &^= 1 << c
		}
	}
	s.free = append(s.free, slot)
}

// Conn returns the connection of an end, nil if it is not open (any more) or no SYN
// has come. It is for reading.
func (s *Stack) Conn(slot uint32) *tcp.Conn {
	if e := s.end(slot); e != nil {
		return e.conn
	}
	return nil
}

func (s *Stack) end(slot uint32) *end {
	if int(slot) >= len(s.timers.ends) {
		return nil
	}
	return s.timers.ends[slot]
}

// Completed is how many completions wait.
func (s *Stack) Completed() int { return len(s.done) }

// TakeCompletions moves completions to out, oldest first.
func (s *Stack) TakeCompletions(out []Completion) int {
	k := copy(out, s.done)
	s.done = s.done[:copy(s.done, s.done[k:])]
	return k
}

// Due is when Advance is to be called next.
func (s *Stack) Due() frame.Time {
	at := s.timers.next()
	if len(s.inbox) > 0 {
		at = min(at, s.inbox[0].due)
	}
	return at
}

// Advance runs what is due.
func (s *Stack) Advance(now frame.Time) {
	k := 0
	for ; k < len(s.inbox) && s.inbox[k].due <= now; k++ {
		s.take(now, s.inbox[k].ref)
	}
	s.inbox = s.inbox[:copy(s.inbox, s.inbox[k:])]
	for s.timers.next() <= now {
		slot := s.timers.heap[0]
		e := s.timers.ends[slot]
		if at := clock(now); e.conn != nil && e.conn.Due() <= at {
			if e.tap != nil {
				e.tap.Advance(at)
			}
			e.conn.Advance(at)
		}
		s.act(now, slot)
	}
}

// Receive takes over a frame of TCP that is for the host.
func (s *Stack) Receive(now frame.Time, r frame.Ref) {
	if s.cfg.Delay == 0 {
		s.take(now, r)
		return
	}
	at := now + s.cfg.Delay
	if s.cfg.Jitter > 0 {
		at += frame.Time(float64(s.cfg.Jitter) * gauss(&s.rand))
	}
	s.last = max(at, now, s.last)
	s.inbox = append(s.inbox, arrival{s.last, r})
}

// gauss draws from the normal distribution, as the sum of twelve uniform numbers:
// exact on every processor.
func gauss(r *frame.Rand) float64 {
	v := -6.0
	for range 12 {
		v += r.Float64()
	}
	return v
}

func (s *Stack) take(now frame.Time, r frame.Ref) {
	m, b := s.arena.Meta(r), s.arena.Bytes(r)
	seg, flow, id, ok := s.parse(m, b)
	if !ok {
		s.count.Strays++
		s.pool.Free(r)
		return
	}
	slot, known := s.table.find(key(flow.Src, flow.SrcPort, flow.DstPort))
	if !known && s.cfg.Streams != nil {
		slot, known = s.accept(now, &seg, flow, b)
	}
	if !known {
		s.count.Strays++
		s.pool.Free(r)
		return
	}
	s.count.Received++
	e, at := s.timers.ends[slot], clock(now)
	switch {
	case e.conn != nil:
		if e.tap != nil {
			e.tap.Receive(at, &seg, id)
		}
		e.conn.Receive(at, &seg)
	case seg.Flags&(tcp.SYN|tcp.ACK|tcp.RST) != tcp.SYN:
		s.count.Strays++
		s.pool.Free(r)
		return
	default:
		c, err := tcp.Accept(at, e.opts.TCP, e.opts.ISS, &seg)
		if err != nil {
			s.count.Strays++
			s.pool.Free(r)
			if e.stream != nil {
				s.remove(slot)
			}
			return
		}
		if e.tap != nil {
			e.tap.Accept(at, &e.opts.TCP, e.opts.ISS, &seg, id)
		}
		e.conn = c
	}
	s.pool.Free(r)
	s.act(now, slot)
}

// parse reads a frame for the host.
func (s *Stack) parse(m *frame.Meta, b []byte) (seg tcp.Segment, flow tcp.Flow, id uint16, ok bool) {
	if int(m.L3) >= len(b) {
		return seg, flow, 0, false
	}
	b = b[m.L3:]
	read := tcp.ParseWhole
	if s.cfg.Virtual {
		read = tcp.ParseHeaders
	}
	seg, flow, err := read(b)
	if err != nil || flow.Dst != s.addr || !s.cfg.Virtual && !s.sealed(b, flow) {
		return seg, flow, 0, false
	}
	return seg, flow, uint16(b[4])<<8 | uint16(b[5]), true
}

// Ready returns the classes of which Next may have a frame.
func (s *Stack) Ready() uint8 {
	if len(s.streams.resets) > 0 {
		return s.ready | 1
	}
	return s.ready
}

// Next returns the next frame of one of the given classes, the highest first, Nil
// if there is none, or no memory for it: what it would have carried is lost then,
// as on the way.
func (s *Stack) Next(now frame.Time, classes uint8) frame.Ref {
	if classes&1 != 0 && len(s.streams.resets) > 0 {
		if r := s.reset(); r != frame.Nil {
			return r
		}
	}
	for s.ready&classes != 0 {
		c := bits.Len8(s.ready&classes) - 1
		slot := s.lists[c][0]
		if s.lists[c] = s.lists[c][:copy(s.lists[c], s.lists[c][1:])]; len(s.lists[c]) == 0 {
			s.ready &^= 1 << c
		}
		e := s.timers.ends[slot]
		e.listed = false
		seg, at, waits := &s.seg, clock(now), e.conn.Stats.ZeroWindows+e.conn.Stats.SmallWindows
		if !e.conn.Next(at, seg) {
			// Only to wait for a window changes anything where nothing is sent.
			if e.tap != nil && e.conn.Stats.ZeroWindows+e.conn.Stats.SmallWindows != waits {
				e.tap.Next(at, nil)
			}
			s.update(now, slot)
			continue
		}
		if e.tap != nil {
			e.tap.Next(at, seg)
		}
		e.id++
		s.count.Segments++
		r := s.frame(e, seg)
		s.act(now, slot)
		if r != frame.Nil {
			return r
		}
	}
	return frame.Nil
}

// alloc takes memory for a segment, or returns frame.Nil, which is counted.
func (s *Stack) alloc() frame.Ref {
	r := s.pool.Alloc()
	if r == frame.Nil {
		s.count.NoChunk++
	}
	return r
}

// Unmade returns how many segments were not sent for want of memory.
func (s *Stack) Unmade() uint64 { return s.count.NoChunk }

// frame makes the frame of a segment.
func (s *Stack) frame(e *end, seg *tcp.Segment) frame.Ref {
	r := s.alloc()
	if r == frame.Nil {
		return r
	}
	m := s.arena.Reset(r)
	m.Len = uint16(s.arena.Room())
	b := append(s.arena.Bytes(r)[:0], e.eth[:]...)
	b = seg.AppendHeaders(b, e.flow, e.opts.DSCP, e.id-1)
	m.Wire = uint32(max(len(b)+seg.Len, wire.MinFrame))
	m.Len, m.Class = uint16(len(b)), e.opts.Class
	if !s.cfg.Virtual {
		m.Len = uint16(m.Wire)
		clear(s.arena.Bytes(r)[len(b)+copy(s.arena.Bytes(r)[len(b):], seg.Data):])
		if seg.Data != nil {
			tcp.Seal(s.arena.Bytes(r)[wire.EthernetLen+wire.IPv4Len:len(b)+seg.Len], e.flow)
		}
	}
	return r
}
