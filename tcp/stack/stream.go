package stack

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"gswitch/frame"
	"gswitch/tcp"
	"gswitch/wire"
)

// A stream is a connection whose application is a program that writes and reads bytes by
// calls. Others begin streams at ports on which the host listens. Programs know streams by
// numbers that are never used again.

// Streams says what streams are like.
type Streams struct {
	TCP  tcp.Config // of each
	Most int        // that are open at once
	// ISS returns the initial sequence number of a connection, which must not be
	// predictable (RFC 6528).
	ISS func(now frame.Time, f tcp.Flow) uint32
}

// Bounds of streams, for all callers.
const (
	maxHalfOpen = 64 // that have not answered our SYN yet
	maxResets   = 64 // that wait to be sent
	// answerTime is for how long an end waits for the other one to answer its SYN, and
	// leaveTime for the other one to close when the program has gone (tcp_fin_timeout of
	// Linux).
	answerTime = 10 * frame.Second
	leaveTime  = 60 * frame.Second

	firstEphemeral = 49152 // RFC 6335
)

// streams is what a stack has of them.
type streams struct {
	last   uint64 // number
	open   int
	ports  []uint16 // on which the host listens
	port   uint16   // that was dialled from last
	resets []frame.Ref
}

// stream is that of an end.
type stream struct {
	number   uint64
	accepted bool
	gone     bool       // the program is
	deadline frame.Time // when the end is closed, where something is waited for
}

var (
	// ErrNoStream says that a number is of no stream.
	ErrNoStream = errors.New("the connection is gone")
	// ErrMany says that no more streams can be opened.
	ErrMany = errors.New("as many connections of TCP are open as there may be (tcp.connections)")
)

// ListenOn lets others begin streams at a port, or no more.
func (s *Stack) ListenOn(port uint16, on bool) error {
	i := slices.Index(s.streams.ports, port)
	switch {
	case s.cfg.Streams == nil || port == 0:
		return fmt.Errorf("host %s: port %d cannot be listened on", s.cfg.Name, port)
	case on && i >= 0:
		return fmt.Errorf("host %s: port %d has a listener already", s.cfg.Name, port)
	case on:
		s.streams.ports = append(s.streams.ports, port)
	case i >= 0:
		s.streams.ports = slices.Delete(s.streams.ports, i, i+1)
	}
	return nil
}

// DialStream begins a stream to a port of another host, whose next hop has an address of
// Ethernet, and returns its number.
func (s *Stack) DialStream(now frame.Time, to netip.AddrPort, mac wire.MAC) (uint64, error) {
	c := s.cfg.Streams
	if c == nil {
		return 0, fmt.Errorf("host %s has no connections of TCP for programs", s.cfg.Name)
	}
	if s.streams.open >= c.Most {
		return 0, fmt.Errorf("host %s: %w", s.cfg.Name, ErrMany)
	}
	o := Options{TCP: c.TCP, Remote: to.Addr(), RemoteMAC: mac, RemotePort: to.Port()}
	for range 65536 - firstEphemeral {
		s.streams.port = max(s.streams.port+1, firstEphemeral)
		if o.LocalPort = s.streams.port; to.Addr().Is4() && s.Free(&o) {
			break
		}
	}
	if to.Addr().Is4() {
		o.ISS = c.ISS(now, tcp.Flow{Src: s.addr, Dst: to.Addr().As4(), SrcPort: o.LocalPort, DstPort: o.RemotePort})
	}
	slot, err := s.add(&o)
	if err != nil {
		return 0, err
	}
	e := s.timers.ends[slot]
	if e.conn, err = tcp.Dial(clock(now), e.opts.TCP, o.ISS); err != nil {
		s.remove(slot)
		return 0, err
	}
	n := s.stream(now, e, false)
	s.act(now, slot)
	return n, nil
}

// stream makes an end one that a program uses.
func (s *Stack) stream(now frame.Time, e *end, accepted bool) uint64 {
	s.streams.last++
	s.streams.open++
	e.stream = &stream{number: s.streams.last, accepted: accepted, deadline: now + answerTime}
	return e.stream.number
}

// accept makes an end for a segment of no connection that wants to begin one, or says
// that there is none.
func (s *Stack) accept(now frame.Time, seg *tcp.Segment, f tcp.Flow, b []byte) (slot uint32, ok bool) {
	c := s.cfg.Streams
	if seg.Flags&(tcp.SYN|tcp.ACK|tcp.RST) != tcp.SYN || !slices.Contains(s.streams.ports, f.DstPort) {
		if seg.Flags&tcp.RST == 0 {
			s.refuse(seg, f, b)
		}
		return 0, false
	}
	if s.streams.open >= c.Most || s.half() >= maxHalfOpen {
		s.count.Refused++ // it asks again
		return 0, false
	}
	o := Options{TCP: c.TCP, Remote: netip.AddrFrom4(f.Src), RemotePort: f.SrcPort, LocalPort: f.DstPort, ISS: c.ISS(now, f.Reverse())}
	copy(o.RemoteMAC[:], b[6:12])
	slot, err := s.add(&o)
	if err != nil {
		s.count.Refused++
		return 0, false
	}
	s.stream(now, s.timers.ends[slot], true)
	return slot, true
}

// half counts the streams of others that have not answered.
func (s *Stack) half() (n int) {
	for _, e := range s.timers.ends {
		if e != nil && e.stream != nil && e.stream.accepted && (e.conn == nil || e.conn.State() == tcp.SynReceived) {
			n++
		}
	}
	return n
}

// refuse answers a segment of no connection with a reset (RFC 9293 section 3.10.7.1).
func (s *Stack) refuse(seg *tcp.Segment, f tcp.Flow, b []byte) {
	if len(s.streams.resets) == maxResets {
		return
	}
	r := s.alloc()
	if r == frame.Nil {
		return
	}
	out := tcp.Segment{Flags: tcp.RST | tcp.ACK, Ack: seg.Seq + uint32(seg.Len)}
	if seg.Flags&(tcp.SYN|tcp.FIN) != 0 {
		out.Ack++
	}
	if seg.Flags&tcp.ACK != 0 {
		out = tcp.Segment{Flags: tcp.RST, Seq: seg.Ack}
	}
	m := s.arena.Reset(r)
	m.Len = wire.MinFrame
	to := s.arena.Bytes(r)
	clear(to)
	copy(to, b[6:12])
	copy(to[6:], s.cfg.MAC[:])
	to[12], to[13] = 0x08, 0x00
	out.AppendPacket(to[:wire.EthernetLen], f.Reverse(), 0)
	m.Wire = wire.MinFrame
	s.count.Resets++
	s.streams.resets = append(s.streams.resets, r)
}

// reset returns a reset that is to be sent.
func (s *Stack) reset() frame.Ref {
	r := s.streams.resets[0]
	s.streams.resets = s.streams.resets[:copy(s.streams.resets, s.streams.resets[1:])]
	return r
}

// sealed reports whether the checksum over a payload is right, or was when the host was
// recorded.
func (s *Stack) sealed(b []byte, f tcp.Flow) bool {
	v := s.cfg.Verdicts
	if v == nil {
		return tcp.Sealed(b, f)
	}
	if v.Scripted() {
		return v.Next()
	}
	return v.Note(tcp.Sealed(b, f))
}

// find returns the end of a stream.
func (s *Stack) find(number uint64) (slot uint32, e *end, err error) {
	for i, e := range s.timers.ends {
		if e != nil && e.stream != nil && e.stream.number == number && !e.stream.gone {
			return uint32(i), e, nil
		}
	}
	return 0, nil, ErrNoStream
}

// WriteStream writes bytes to a stream and returns how many it took. With b nil it writes
// n bytes of which only the number matters, as in a replay.
func (s *Stack) WriteStream(now frame.Time, number uint64, b []byte, n int) (int, error) {
	slot, e, err := s.find(number)
	if err != nil {
		return 0, err
	}
	if b != nil {
		n = e.conn.Write(b)
	} else {
		n = e.conn.WriteLen(n)
	}
	s.act(now, slot)
	return n, nil
}

// ReadStream reads bytes of a stream into b, or n bytes of which only the number matters,
// and returns how many there were.
func (s *Stack) ReadStream(now frame.Time, number uint64, b []byte, n int) (int, error) {
	slot, e, err := s.find(number)
	if err != nil {
		return 0, err
	}
	if b != nil {
		n = e.conn.Read(clock(now), b)
	} else {
		n = e.conn.ReadLen(clock(now), n)
	}
	s.act(now, slot)
	return n, nil
}

// CloseStream ends the direction to the peer. With all the program has gone: what arrives
// is thrown away, and the end is removed when the connection is closed. With reset it is
// aborted.
func (s *Stack) CloseStream(now frame.Time, number uint64, all, reset bool) error {
	slot, e, err := s.find(number)
	if err != nil {
		return err
	}
	if reset {
		e.conn.Abort()
	} else {
		e.conn.CloseWrite()
	}
	if all || reset {
		e.stream.gone, e.stream.deadline = true, now+leaveTime
	}
	s.act(now, slot)
	return nil
}

// flow is update for a stream.
func (s *Stack) flow(now frame.Time, slot uint32, e *end) {
	x, c := e.stream, e.conn
	waits := x.gone || c.State() == tcp.SynReceived
	if waits && now >= x.deadline && c.State() != tcp.Closed {
		c.Abort()
		x.gone = true
		s.listOnce(slot, e)
	}
	if x.gone {
		c.ReadLen(clock(now), c.Readable())
		if c.State() == tcp.Closed && !e.listed {
			s.remove(slot)
			return
		}
	}
	due := c.Due()
	if due != frame.Never {
		due = clock(due + frame.Microsecond - 1)
	}
	if waits && c.State() != tcp.Closed {
		due = min(due, x.deadline)
	}
	s.timers.set(slot, due)
}

func (s *Stack) listOnce(slot uint32, e *end) {
	if !e.listed {
		s.list(slot, e)
	}
}

// StreamView is a stream as it is.
type StreamView struct {
	Number        uint64
	Local, Remote netip.AddrPort
	Accepted      bool // the other end began it
	State         tcp.State
	Readable      int  // bytes
	Room          int  // bytes that can be written
	EOF           bool // the other end has closed, and all was read
	Err           error
	Unacked       int // bytes
	InFlight      int // bytes
	Window        int // congestion window, bytes
	PeerWindow    int // bytes
	RTT, RTO      frame.Time
	Stats         tcp.Stats
}

// Stream returns a stream.
func (s *Stack) Stream(number uint64) (StreamView, error) {
	_, e, err := s.find(number)
	if err != nil || e.conn == nil {
		return StreamView{}, ErrNoStream
	}
	return s.view(e), nil
}

func (s *Stack) view(e *end) StreamView {
	c := e.conn
	v := StreamView{Local: netip.AddrPortFrom(netip.AddrFrom4(s.addr), e.opts.LocalPort), Remote: netip.AddrPortFrom(e.opts.Remote, e.opts.RemotePort),
		State: c.State(), Readable: c.Readable(), Room: c.Room(), EOF: c.EOF(), Err: c.Err(), Unacked: c.Unacked(), InFlight: c.InFlight(),
		Window: c.Window(), PeerWindow: c.PeerWindow(), RTT: c.RTT(), RTO: c.RTO(), Stats: c.Stats}
	if e.stream != nil {
		v.Number, v.Accepted = e.stream.number, e.stream.accepted
	}
	return v
}

// Connections calls yield with each connection that there is: streams, and those that carry
// messages, which are distinguished by their addresses.
func (s *Stack) Connections(yield func(*StreamView)) {
	for _, e := range s.timers.ends {
		if e != nil && e.conn != nil {
			v := s.view(e)
			yield(&v)
		}
	}
}

// Open returns how many streams are open, and how many there may be.
func (s *Stack) Open() (open, most int) {
	if s.cfg.Streams == nil {
		return 0, 0
	}
	return s.streams.open, s.cfg.Streams.Most
}

// StreamList appends the streams that there are to v, in the order in which they began.
func (s *Stack) StreamList(v []StreamView) []StreamView {
	for _, e := range s.timers.ends {
		if e != nil && e.stream != nil && e.conn != nil {
			v = append(v, s.view(e))
		}
	}
	slices.SortFunc(v, func(a, b StreamView) int {
		if a.Number < b.Number {
			return -1
		}
		return 1
	})
	return v
}

// ListeningOn returns the ports on which the host listens.
func (s *Stack) ListeningOn() []uint16 { return slices.Clone(s.streams.ports) }
