package tcp

import (
	"errors"

	"gswitch/frame"
)

// State is a connection's state (RFC 9293 section 3.3.2).
type State uint8

const (
	Closed State = iota
	SynSent
	SynReceived
	Established
	FinWait1
	FinWait2
	CloseWait
	Closing
	LastACK
	TimeWait
)

var stateNames = [...]string{"CLOSED", "SYN-SENT", "SYN-RECEIVED", "ESTABLISHED", "FIN-WAIT-1", "FIN-WAIT-2", "CLOSE-WAIT", "CLOSING", "LAST-ACK", "TIME-WAIT"}

// String returns the state as the RFC writes it.
func (s State) String() string { return stateNames[s] }

// Errors that end a connection.
var (
	ErrReset    = errors.New("tcp: connection reset by peer")
	ErrRefused  = errors.New("tcp: connection refused")
	ErrTimedOut = errors.New("tcp: connection timed out")
	ErrAborted  = errors.New("tcp: connection aborted")
)

// Stats are the counters of a connection.
type Stats struct {
	Sent, Received         uint64 // segments
	BytesSent, BytesAcked  uint64 // of payload; sent the first time
	Retransmitted          uint64 // segments
	Recoveries             uint64 // times that losses were found by acknowledgements
	Timeouts               uint64
	TailProbes             uint64
	DuplicateACKs          uint64
	WindowUpdates          uint64 // that were no duplicates for that alone: they name another window
	DelayedACKs            uint64 // that the timer sent
	ZeroWindows            uint64 // times that the peer's window was closed to what waited
	SmallWindows           uint64 // times that it had room for too little to be worth a segment
	Marked                 uint64 // packets received with CE
	Echoed                 uint64 // acknowledgements received that echo marks
	OutOfOrder, Duplicates uint64 // segments received
	Unacceptable           uint64 // segments outside of the window, with old stamps, or without sense
	Unchallenged           uint64 // of these, those that were not answered: ten were within five seconds
}

// Conn is one end of a connection. One goroutine owns it.
//
// Everything that happens to it comes in by a call with the instant: Receive,
// Write, Read, CloseWrite, Abort, Advance. After each, Next is asked for segments
// until it has none, and Due for the instant of the next Advance.
type Conn struct {
	Stats Stats
	cfg   Config
	cc    Control
	state State
	err   error

	// Sequence numbers are kept as offsets from the initial one, in 64 bits: the
	// SYN is 0 and the first byte 1.
	iss, irs uint32
	una, nxt uint64 // first not acknowledged, next to be sent
	out      stream // from una on
	fin      uint64 // offset of our FIN; 0: not closed yet
	window   uint64 // the peer's, as an offset: what it takes ends there
	wl1, wl2 uint64 // segment and acknowledgement of the last window update
	maxWnd   int
	lastWnd  uint16 // window field of the last acknowledgement
	sndScale uint8
	mss      int // payload of a full segment to the peer, options included

	sent       []sent // segments under way, oldest first
	pipe       int    // of their sequence numbers, what is taken to be in the network
	sackedSegs int
	tx         uint64 // transmissions so far
	repair     bool   // a loss that was just found is repaired whatever the window says
	lostSegs   int
	dupACKs    int
	reordering int // present DupThresh
	recovering bool
	recover    uint64 // until this is acknowledged
	afterRTO   bool
	rack       rack
	rtt        rtt
	rto        frame.Time // present timeout, backed off
	tries      int        // timeouts, or probes of a closed window, since the peer answered
	timer      frame.Time
	timerKind  timerKind
	reorderAt  frame.Time
	probed     uint64 // nxt when the tail probe was sent
	probing    bool
	zeroProbe  bool       // to be sent
	probeWait  frame.Time // until the next one, backed off
	override   bool       // what a small window has room for is sent

	rcvNxt   uint64 // next expected
	in       stream // in order and not read, and behind it what came out of order
	blocks   []block
	rcvFin   uint64 // offset of the peer's FIN + 1; 0: not seen
	rcvScale uint8
	edge     uint64 // right edge of the window that was last said
	unacked  int    // bytes received since the last acknowledgement
	quick    int    // segments that are still acknowledged at once
	ackNow   bool
	ackAt    frame.Time
	tune     tuning
	grown    int // with SlowWindow: the most that is offered

	sack, stamps   bool
	ecn            bool
	stampBase      uint32
	recent         uint32 // TS.Recent
	recentAt       frame.Time
	lastACKSent    uint64
	echo           bool // ECE is sent
	cwr            bool // to be sent with the next data
	ceState        bool // DCTCP: of the last packet
	ecnEnd         uint64
	synRetransmits int
	closeAt        frame.Time
	sendRST        bool
	challenges     int // sent since challengesFrom
	challengesFrom frame.Time
}

type timerKind uint8

const (
	timerNone timerKind = iota
	timerRTO
	timerTailProbe
	timerPersist
	timerOverride
)

// sent is a segment that was sent and is not acknowledged.
type sent struct {
	off     uint64
	n       int // sequence numbers
	at      frame.Time
	first   frame.Time
	tx      uint64 // number of its last transmission
	retries int
	sacked  bool
	doubted bool // it was, before a timeout
	lost    bool
}

func (s *sent) end() uint64 { return s.off + uint64(s.n) }

func newConn(cfg Config, iss uint32) (*Conn, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	c := &Conn{cfg: cfg, iss: iss, stampBase: iss * 2654435761, timer: frame.Never, reorderAt: frame.Never, ackAt: frame.Never, closeAt: frame.Never,
		reordering: cfg.DupThresh, grown: 10 * cfg.MSS, mss: 536, rto: frame.Second, quick: cfg.QuickACKs, out: newStream(cfg.SendBuffer, cfg.Lengths), in: newStream(cfg.ReceiveBuffer, cfg.Lengths)}
	c.out.start, c.in.start = 1, 1
	c.tune.limit = cfg.ReceiveBuffer
	return c, nil
}

// Dial begins a connection: Next gives its SYN. iss is the initial sequence number,
// which RFC 9293 3.4.1 wants to be hard to guess.
func Dial(now frame.Time, cfg Config, iss uint32) (*Conn, error) {
	c, err := newConn(cfg, iss)
	if err != nil {
		return nil, err
	}
	c.state = SynSent
	c.sack, c.stamps, c.ecn = cfg.SACK, cfg.Stamps, cfg.ECN
	c.rcvScale = cfg.scale()
	return c, nil
}

// Accept begins a connection with a SYN that came.
func Accept(now frame.Time, cfg Config, iss uint32, syn *Segment) (*Conn, error) {
	c, err := newConn(cfg, iss)
	if err != nil {
		return nil, err
	}
	if syn.Flags&(SYN|ACK|RST) != SYN {
		return nil, errors.New("tcp: not a SYN")
	}
	c.state = SynReceived
	c.Stats.Received++
	c.sack, c.stamps = cfg.SACK, cfg.Stamps
	c.rcvScale = cfg.scale()
	c.ecn = cfg.ECN && syn.Flags&(ECE|CWR) == ECE|CWR
	c.greet(now, syn)
	return c, nil
}

// greet takes what a SYN says.
func (c *Conn) greet(now frame.Time, s *Segment) {
	o := &s.Options
	c.irs, c.rcvNxt = s.Seq, 1
	c.sack = c.sack && o.SACKPermitted
	if c.stamps = c.stamps && o.HasStamp; c.stamps {
		c.recent, c.recentAt = o.Stamp, now
	}
	c.sndScale = o.Scale
	if !o.HasScale {
		c.rcvScale = 0
	}
	peer := 536 // RFC 9293 3.7.1
	if o.MSS != 0 {
		peer = max(int(o.MSS), 88)
	}
	c.mss = min(peer, c.cfg.MSS)
	if c.stamps {
		c.mss -= 12
	}
	c.window = uint64(s.Window) // never scaled in a SYN
	c.maxWnd = int(s.Window)
	c.cc = controls[c.cfg.Control](Environment{MSS: c.mss, Initial: c.cfg.InitialWindow * c.mss})
}

// State returns the connection's state.
func (c *Conn) State() State { return c.state }

// Err is why the connection ended, nil if it did not or both ends closed it.
func (c *Conn) Err() error { return c.err }

// Reordering returns how many segments beyond a missing one mean that it is lost.
func (c *Conn) Reordering() int { return c.reordering }

// Closing reports whether this end's direction is closed, or will be when what was
// written is sent.
func (c *Conn) Closing() bool { return c.fin != 0 || c.state == Closed }

// Recovering reports whether losses are being repaired.
func (c *Conn) Recovering() bool { return c.recovering }

// PeerWindow returns how many bytes from the first that is not acknowledged on the
// peer takes.
func (c *Conn) PeerWindow() int { return int(int64(c.window - c.una)) }

// Config returns the connection's parameters.
func (c *Conn) Config() Config { return c.cfg }

// Window returns the congestion window in bytes.
func (c *Conn) Window() int {
	if c.cc == nil {
		return 0
	}
	return c.cc.Window()
}

// InFlight is how many bytes are taken to be in the network.
func (c *Conn) InFlight() int { return c.pipe }

// RTT returns the smoothed round trip, 0 before the first measurement.
func (c *Conn) RTT() frame.Time { return c.rtt.smoothed }

// RTO returns the present timeout.
func (c *Conn) RTO() frame.Time { return c.rto }

// Room is how many bytes Write takes now.
func (c *Conn) Room() int {
	if c.fin != 0 || c.state == Closed || c.state > Established && c.state != CloseWait {
		return 0
	}
	return max(c.cfg.SendBuffer-c.out.n, 0)
}

// Write queues bytes and returns how many it took.
func (c *Conn) Write(b []byte) int {
	n := min(len(b), c.Room())
	c.out.need(c.out.n+n, c.out.n)
	c.out.put(c.out.start+uint64(c.out.n), b[:n])
	c.out.n += n
	return n
}

// WriteLen is Write where only lengths are kept; zeros where bytes are.
func (c *Conn) WriteLen(n int) int {
	n = min(n, c.Room())
	if c.out.ring != nil {
		return c.Write(make([]byte, n))
	}
	c.out.n += n
	return n
}

// Unacked is how many bytes were written and not acknowledged.
func (c *Conn) Unacked() int { return c.out.n }

// Readable is how many bytes Read has.
func (c *Conn) Readable() int { return c.in.n }

// EOF reports whether the peer has closed its direction and all was read.
func (c *Conn) EOF() bool { return c.rcvFin != 0 && c.rcvNxt == c.rcvFin && c.in.n == 0 }

// Read takes bytes out of the receive buffer.
func (c *Conn) Read(now frame.Time, b []byte) int {
	n := min(len(b), c.in.n)
	c.in.get(c.in.start, b[:n])
	return c.taken(now, n)
}

// ReadLen is Read without looking at the bytes.
func (c *Conn) ReadLen(now frame.Time, n int) int { return c.taken(now, min(n, c.in.n)) }

func (c *Conn) taken(now frame.Time, n int) int {
	c.in.drop(n)
	c.tuneBuffer(now, n)
	// The peer has to learn that a window that was nearly closed is open again.
	if n > 0 && c.synchronized() && c.edge-c.rcvNxt < uint64(2*c.mss) && c.offer() >= c.edge-c.rcvNxt+uint64(min(2*c.mss, c.tune.limit/2)) {
		c.ackNow = true
	}
	return n
}

func (c *Conn) synchronized() bool { return c.state >= Established }

// CloseWrite ends the direction to the peer: a FIN follows what was written.
func (c *Conn) CloseWrite() {
	if c.fin != 0 {
		return
	}
	switch c.state {
	case SynSent, SynReceived, Established, CloseWait: // before the handshake is over it waits for it
		c.fin = c.out.start + uint64(c.out.n)
		if c.state == CloseWait {
			c.state = LastACK
		} else if c.state == Established {
			c.state = FinWait1
		}
	}
}

// Abort ends the connection at once; Next gives a RST where the peer may have the connection.
func (c *Conn) Abort() {
	if c.state == Closed {
		return
	}
	c.sendRST = c.state != SynSent && c.state != TimeWait
	c.end(ErrAborted)
}

func (c *Conn) end(err error) {
	c.state, c.err = Closed, err
	c.timer, c.reorderAt, c.ackAt, c.closeAt = frame.Never, frame.Never, frame.Never, frame.Never
	c.ackNow, c.zeroProbe, c.override, c.probing = false, false, false, false
}

// Limit is what holds a sender back.
type Limit uint8

const (
	LimitNone   Limit = iota // it has nothing to send, or may
	LimitWindow              // its congestion window
	LimitPeer                // the window that its peer offers
)

// Unsent is how many bytes were written and never sent.
func (c *Conn) Unsent() int { return int(c.out.start + uint64(c.out.n) - max(c.nxt, c.out.start)) }

// Limited returns what holds new data back.
func (c *Conn) Limited() Limit {
	if c.cc == nil || !c.synchronized() || c.Unsent() == 0 {
		return LimitNone
	}
	n := min(c.Unsent(), c.mss)
	switch {
	case int64(c.window-c.nxt) < int64(n):
		return LimitPeer
	case c.held() > 0 && c.held()+n > c.cc.Window():
		return LimitWindow
	}
	return LimitNone
}

// SlowStart reports whether the window is below the threshold of slow start.
func (c *Conn) SlowStart() bool { return c.cc != nil && c.cc.Window() < c.cc.Threshold() }
