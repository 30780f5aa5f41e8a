package hostnic

import (
	"fmt"
	"net/netip"

	"gswitch/cc"
	"gswitch/frame"
	inband "gswitch/int"
	"gswitch/pfc"
	"gswitch/transport"
	"gswitch/wire"
)

// Config describes a NIC, in base units: bit/s, bytes, nanoseconds.
type Config struct {
	Name    string
	MAC     wire.MAC
	Addr    netip.Addr // IPv4 or IPv6
	Gateway wire.MAC   // destination MAC of queue pairs that do not set one

	Epoch int64 // wall clock's time at the host's time 0, in nanoseconds since 1970 (UTC); 0: unknown

	Rate     uint64     // bit/s of the port; never 0
	Overhead uint32     // bytes that each frame occupies on the link beyond its own: 0, or scheduler.EthernetOverhead
	Burst    frame.Time // how far behind now the link may catch up; 0 in virtual time
	WholeNs  bool       // a frame takes the largest whole number of ns below its exact time, on the link and of its pace, and no remainder is carried

	Payload int        // bytes of payload in a full data frame; 0 = 1000
	BaseRTT frame.Time // T of congestion control

	// AckClass is the class of acknowledgements and congestion notifications; -1: the
	// class of the data that they answer. They leave before the data of their class and
	// of lower ones, unless the neighbour pauses AckPauseClass; -1: their own class.
	AckClass      int
	AckPauseClass int

	DSCP    [8]uint8  // of each class
	Weights [8]uint32 // of each class, 0 strict; adjacent weighted classes share what is left by weight

	// Turn is how many payload bytes a queue pair sends before the next one of its class
	// gets its turn, unless its message ends, or it may not send, earlier; 0: one frame.
	Turn uint32

	PFC        bool  // act on and send 802.1Qbb frames for PFCClasses
	PFCClasses uint8 // bitmap of the classes under flow control
	PFCStages  uint8 // last stage of Gentle Flow Control (pfc.Stages), which replaces pauses; 0: pauses
	// PFCResponse is the time from a pause's arrival until it takes effect.
	PFCResponse frame.Time
	Pause       bool       // instead of PFC: act on and send 802.3x frames for the whole link
	CableDelay  frame.Time // one-way delay of the link, for the threshold of a slow receiver

	// Virtual: frames consist of headers only, without ICRC. Meta.Wire is the length that
	// they would have on a link.
	Virtual bool
	Sizes   Sizes // Virtual only

	CNP CNPConfig

	// First reports whether packet next leaves before packet best, of two queue pairs of
	// a class that may both send. It is called for each queue pair that may send, so a
	// frame costs as many calls. nil: they take turns.
	First func(next, best *Waiting) bool

	// MarkAbove sets the congestion mark on data frames of a class that leave while more
	// than this many bytes of that class and higher ones wait for the host's own link; 0:
	// never. The waiting bytes are those that windows have admitted. In a lossless
	// network this reports congestion that has spread back to the source (DeTail, section
	// 4.2).
	MarkAbove uint32
	// QuenchAfter counts a class as quenched if the neighbour pauses it for longer; 0:
	// never.
	QuenchAfter frame.Time

	// Overshoot sends while the bytes in flight are below the window, so that they may
	// exceed it by a frame. Without it only what fits is sent.
	Overshoot bool

	// InOrder lets queue pairs take turns in the order in which they were opened, so that a
	// new one comes after all others. Without it one that takes the place of a closed one
	// has its turn.
	InOrder bool

	// NoticeDelay is the time from the arrival of a congestion point's notice until it
	// takes effect (15 us in the NIC of Taheri et al., CoNEXT 2020, section 3.5).
	NoticeDelay frame.Time

	Receive ReceiveConfig

	// Options are the options of features (Register), by name.
	Options Options

	// Stack makes the NIC answer for its address and resolve others, on a real link; nil:
	// it accepts only frames of queue pairs and flow control.
	Stack *StackConfig

	// RTTNoise is the largest random time that is added to each round-trip time for
	// congestion control, like the error of a clock that is read late.
	RTTNoise frame.Time
	// PaceJitter lengthens or shortens each paced gap by up to this share of it, at
	// random. Without it senders that get the same rate at the same time stay
	// synchronised.
	PaceJitter float64
	// RTTSamples keeps the round-trip times, without noise, for TakeRTTs.
	RTTSamples bool

	Seed   uint64
	MaxQPs int // largest number of open queue pairs; 0 = 65536
	// RandomNumbers starts queue pair numbers at random values derived from Seed, so that
	// late frames to a host that was restarted do not match one by chance.
	RandomNumbers bool
}

// CNPConfig is how a receiver reports congestion marks.
type CNPConfig struct {
	Frames   bool       // by RoCEv2 congestion notification packets; false: by the BECN bit of acknowledgements
	Interval frame.Time // of Frames: at most one per queue pair in this time; 0 = 50 us (DCQCN, table 2)
}

// Sizes are the bytes on the wire of frames, to match other simulators; 0 is the size of
// the real headers. A frame is never smaller than Ethernet, IP, UDP and BTH with its
// extensions.
type Sizes struct {
	Data   int // of a data frame, besides payload and telemetry
	Ack    int // of an acknowledgement
	AckINT int // of one that echoes telemetry; echoed bytes beyond it are in memory but do not count
	PFC    int // of a flow control frame
}

// ReceiveConfig makes a host process frames more slowly than its link delivers them. With
// Rate 0 it processes them immediately.
type ReceiveConfig struct {
	Rate   uint64 // bit/s at which received frames leave the NIC's buffer
	Buffer uint32 // bytes; frames that do not fit are dropped. 0 = 1 MiB
	XOFF   uint32 // bytes above which the neighbour is asked to pause; 0 = Buffer minus the headroom of the link
	XON    uint32 // bytes at or below which it may resume; 0 = XOFF/2
}

// Placer receives the payload of packets in the order of arrival, with the number of each
// in its direction. The bytes are valid only during the call.
type Placer interface {
	Place(qpn uint32, packet uint64, payload []byte)
}

// QPConfig describes a queue pair.
type QPConfig struct {
	// Number is the number of the queue pair, for a host that repeats recorded
	// operations; its index must be free. 0: the next number.
	Number uint32

	RemoteAddr netip.Addr
	RemoteMAC  wire.MAC // zero: the gateway's
	SrcPort    uint16   // UDP source port, by which multipath routing spreads; 0 = derived from the number of the queue pair
	Class      uint8

	Transport transport.Config
	// CC makes the congestion control, nil for none. If the previous queue pair in the
	// slot had the same CCName and its congestion control is a cc.Resetter, that is reset
	// instead.
	CC     func(*cc.Env) cc.Algorithm
	CCName string

	// Writes sends messages as RDMA Writes instead of Sends, so that the first packet
	// shows the length of its message (RETH) to observers on the path. Both ends must
	// agree on it, and on where the bytes go: address and key are 0.
	Writes bool

	// LowClasses are the classes of the levels of Transport.Recursive, each lower than
	// the previous one, and all below Class.
	LowClasses []uint8

	// NoECN makes data frames not ECN-capable: neither switches nor this host (MarkAbove)
	// mark them. The segments that open a TCP connection are like that (RFC 3168, section
	// 6.1.1).
	NoECN bool

	INT        inband.Mode
	INTProfile *inband.Profile
	INTRates   *inband.RateTable // link rates, if the format does not carry them

	InitialPSN uint32 // of both directions, 24 bits

	// Verbs makes it a queue pair for RDMA operations over registered memory;
	// nil: for the message service.
	Verbs *VerbsConfig

	// Frames makes it a queue pair that carries packets of a caller; nil: one for
	// messages or RDMA operations.
	Frames *FramesConfig

	// Place receives the payload of each new packet; nil: it is counted and discarded, as
	// in virtual time.
	Place Placer

	// Segment paces bursts of this many payload bytes instead of frames, and
	// takes one RTT sample per burst; 0 paces frames (TIMELY 4.2.1).
	Segment uint32
	// SegmentRate spaces the frames of a segment, in bit/s, as rate limiters of
	// NICs do; other queue pairs may send between them. 0: they follow each
	// other on the link (TIMELY, NIC pacing).
	SegmentRate uint64
	// LazyPacing keeps a departure that was planned before a change of rate until it is
	// due. It is then postponed if the rate fell, and not advanced if it rose (TIMELY
	// 4.3). Without it every change moves the departure at once.
	LazyPacing bool
	// KeepPlanned never moves a departure that was planned before a change of rate: only
	// the next gap uses the new rate, as in the published simulator's DCQCN, TIMELY and
	// DCTCP.
	KeepPlanned bool
}

const (
	defaultPayload = 1000
	defaultMaxQPs  = 1 << 16
	maxQPs         = 1 << 20
	defaultCNP     = 50 * frame.Microsecond
	defaultRxBuf   = 1 << 20
)

// Validate reports the first invalid setting.
func (c *Config) Validate() error {
	switch {
	case c.First != nil && c.Turn != 0:
		return fmt.Errorf("nic %s: turns of %d bytes beside an order of queue pairs: one of the two", c.Name, c.Turn)
	case c.Rate == 0:
		return fmt.Errorf("nic %s: rate 0: give the link's rate in bit/s", c.Name)
	case !c.Addr.IsValid():
		return fmt.Errorf("nic %s: no address", c.Name)
	case c.MAC.IsZero() || c.MAC.IsMulticast():
		return fmt.Errorf("nic %s: %v is not the address of a station", c.Name, c.MAC)
	case c.Payload < 0 || c.Payload > 9000:
		return fmt.Errorf("nic %s: payload of %d bytes per frame is not within 1 and 9000", c.Name, c.Payload)
	case c.AckClass < -1 || c.AckClass > 7:
		return fmt.Errorf("nic %s: class %d of acknowledgements is not within -1 and 7", c.Name, c.AckClass)
	case c.AckPauseClass < -1 || c.AckPauseClass > 7:
		return fmt.Errorf("nic %s: pause class %d of acknowledgements is not within -1 and 7", c.Name, c.AckPauseClass)
	case c.PFC && c.Pause:
		return fmt.Errorf("nic %s: priority flow control and 802.3x pause exclude each other", c.Name)
	case c.PFCStages > pfc.MaxStages || c.PFCStages != 0 && !c.PFC:
		return fmt.Errorf("nic %s: %d stages in place of pauses: they need priority flow control, and there are at most %d", c.Name, c.PFCStages, pfc.MaxStages)
	case c.PFC && c.PFCClasses == 0:
		return fmt.Errorf("nic %s: priority flow control without a class", c.Name)
	case c.Burst < 0 || c.CableDelay < 0 || c.BaseRTT < 0 || c.CNP.Interval < 0 || c.RTTNoise < 0 || c.QuenchAfter < 0 || c.NoticeDelay < 0:
		return fmt.Errorf("nic %s: times must not be negative", c.Name)
	case !(c.PaceJitter >= 0 && c.PaceJitter <= 0.5):
		return fmt.Errorf("nic %s: a jitter of %g of the pace is not within 0 and 0.5", c.Name, c.PaceJitter)
	case c.MaxQPs < 0 || c.MaxQPs > maxQPs:
		return fmt.Errorf("nic %s: %d queue pairs are not within 0 and %d", c.Name, c.MaxQPs, maxQPs)
	case !c.Virtual && c.Sizes != (Sizes{}):
		return fmt.Errorf("nic %s: sizes of other simulators need virtual frames", c.Name)
	}
	if err := c.Stack.validate(c); err != nil {
		return err
	}
	if err := c.Receive.validate(c); err != nil {
		return err
	}
	return c.checkFeatures()
}

func (r *ReceiveConfig) validate(c *Config) error {
	if r.Rate == 0 {
		return nil
	}
	x, on := r.thresholds(c)
	switch {
	case x > r.buffer():
		return fmt.Errorf("nic %s: receive XOFF %d is above the buffer of %d bytes", c.Name, x, r.buffer())
	case on > x:
		return fmt.Errorf("nic %s: receive XON %d is above XOFF %d", c.Name, on, x)
	}
	return nil
}

func (c *QPConfig) validate(n *NIC) error {
	local := n.cfg.Addr
	if c.Frames != nil && c.Frames.Addr.IsValid() {
		local = c.Frames.Addr
	}
	switch {
	case !c.RemoteAddr.IsValid() || c.RemoteAddr.Is4() != local.Is4():
		return fmt.Errorf("nic %s: remote address %v is not of the family of %v", n.cfg.Name, c.RemoteAddr, local)
	case c.Class > 7:
		return fmt.Errorf("nic %s: class %d is not within 0 and 7", n.cfg.Name, c.Class)
	case c.RemoteMAC.IsZero() && n.cfg.Gateway.IsZero():
		return fmt.Errorf("nic %s: neither a remote MAC nor a gateway: set one", n.cfg.Name)
	case c.Frames != nil && c.Verbs != nil:
		return fmt.Errorf("nic %s: a queue pair is for frames or for RDMA operations, not both", n.cfg.Name)
	}
	if err := c.validateLow(n); err != nil {
		return err
	}
	return c.Frames.validate(n, &c.Transport)
}
