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
	Gateway wire.MAC   // destination MAC of queue pairs that name none

	Epoch int64 // instant of the wall clock at the host's time 0, in nanoseconds since 1970 (UTC); 0: not known

	Rate     uint64     // bit/s of the port; never 0
	Overhead uint32     // bytes that each frame occupies on the link beyond its own: 0, or scheduler.EthernetOverhead
	Burst    frame.Time // how far behind now the link may catch up; 0 in virtual time
	WholeNs  bool       // every frame occupies the link a whole number of ns, rounded down, and nothing is carried to the next

	Payload int        // bytes of payload in a full data frame; 0 = 1000
	BaseRTT frame.Time // the constant T of congestion control

	// AckClass is the class of acknowledgements and congestion notifications,
	// -1: that of the data they answer. They leave before the data of their class
	// and of those below, unless the neighbour pauses AckPauseClass; -1: their own
	// class.
	AckClass      int
	AckPauseClass int

	DSCP    [8]uint8  // of each class
	Weights [8]uint32 // of each class, 0 strict; weighted classes next to each other share what is left by weight

	// Turn is how many payload bytes a queue pair sends before the next one of
	// its class has its turn, unless its message ends, or it may not send,
	// before; 0: one frame.
	Turn uint32

	PFC        bool  // act on and send 802.1Qbb frames for PFCClasses
	PFCClasses uint8 // one bit for each class under flow control
	PFCStages  uint8 // the last stage of Gentle Flow Control (pfc.Stages), which takes the place of pauses; 0: pauses
	// PFCResponse is how long after its arrival a pause takes effect.
	PFCResponse frame.Time
	Pause       bool       // instead of PFC: act on and send 802.3x frames for the whole link
	CableDelay  frame.Time // one way, of the link; for the threshold of a slow receiver

	// Virtual: only headers are materialised, and no ICRC. Meta.Wire says
	// what the frame would be on a link.
	Virtual bool
	Sizes   Sizes // Virtual only

	CNP CNPConfig

	// First reports whether the packet next leaves before the packet best, of queue
	// pairs of a class that may both send. It is asked for each that may, so a frame
	// costs as many calls. nil: they take turns.
	First func(next, best *Waiting) bool

	// MarkAbove sets the congestion mark on data frames of a class that leave
	// while more than so many bytes of that class and those above wait for the
	// host's own link; 0: never. What waits is what windows have let go. In a
	// network that loses nothing this reports congestion that has come back to
	// the source (DeTail, section 4.2).
	MarkAbove uint32
	// QuenchAfter counts a class as quenched that the neighbour pauses for
	// longer; 0: never.
	QuenchAfter frame.Time

	// Overshoot sends while the bytes in flight are below the window, so that
	// they may exceed it by a frame, instead of only what fits.
	Overshoot bool

	// NoticeDelay is how long after its arrival a notice of a congestion point
	// takes effect (15 us in the NIC of Taheri et al., CoNEXT 2020, section 3.5).
	NoticeDelay frame.Time

	Receive ReceiveConfig

	// Options are those of features (Register), by the name of each.
	Options Options

	// Stack lets the NIC answer for its address and find others, on a real
	// link; nil: it takes frames of queue pairs and flow control only.
	Stack *StackConfig

	// RTTNoise adds a random time from 0 up to it to each round-trip time that
	// congestion control gets: what a clock that is read late does.
	RTTNoise frame.Time
	// PaceJitter makes each paced gap longer or shorter by up to this share of
	// it, at random. Without it senders that get the same rate at the
	// same instant keep in step.
	PaceJitter float64
	// RTTSamples keeps the round-trip times, without noise, for TakeRTTs.
	RTTSamples bool

	Seed   uint64
	MaxQPs int // queue pairs open at once; 0 = 65536
	// RandomNumbers begins the numbers of queue pairs at random, by Seed, so that
	// late frames to a host that started again do not find one by chance.
	RandomNumbers bool
}

// CNPConfig says how a receiver reports congestion marks.
type CNPConfig struct {
	Frames   bool       // by RoCEv2 congestion notification packets; false: by the BECN bit of acknowledgements
	Interval frame.Time // of Frames: at most one per queue pair in this time; 0 = 50 us (DCQCN, table 2)
}

// Sizes are the bytes on the wire of frames, for agreement with other
// simulators; 0 is the size of the real headers. A frame is never smaller
// than Ethernet, IP, UDP and BTH with its extensions.
type Sizes struct {
	Data   int // of a data frame, besides payload and telemetry
	Ack    int // of an acknowledgement
	AckINT int // of one that echoes telemetry; echoed bytes beyond it lie in memory but do not count
	PFC    int // of a flow control frame
}

// ReceiveConfig makes a host that takes frames slower than its link brings
// them. Rate 0 takes all at once.
type ReceiveConfig struct {
	Rate   uint64 // bit/s at which received frames leave the NIC's buffer
	Buffer uint32 // bytes; what does not fit is dropped. 0 = 1 MiB
	XOFF   uint32 // the neighbour is asked to pause above this; 0 = Buffer less the headroom of the link
	XON    uint32 // and to go on at or below this; 0 = XOFF/2
}

// Placer takes the payload of packets in the order of their arrival, with the number of each
// in its direction. The bytes are its own only during the call.
type Placer interface {
	Place(qpn uint32, packet uint64, payload []byte)
}

// QPConfig describes a queue pair.
type QPConfig struct {
	// Number is the number that the queue pair gets, where a host is to do again what it did:
	// one whose place is free. 0: the next one.
	Number uint32

	RemoteAddr netip.Addr
	RemoteMAC  wire.MAC // zero: the gateway's
	SrcPort    uint16   // UDP source port: what multipath routing spreads; 0 = derived from the number of the queue pair
	Class      uint8

	Transport transport.Config
	// CC makes the congestion control, nil for none. The one of a queue pair
	// that was closed is reset instead if it is a cc.Resetter and both have
	// the same CCName.
	CC     func(*cc.Env) cc.Algorithm
	CCName string

	// Writes sends messages as RDMA Writes in place of Sends: the first packet says
	// how long its message is (RETH), to whoever looks on the way. Both ends have it
	// or none, and agree where the bytes go: address and key are 0.
	Writes bool

	// LowClasses are the classes of the levels of Transport.Recursive, each below
	// the one before, and all below Class.
	LowClasses []uint8

	// NoECN makes data frames that are not ECN-capable: they are not marked, neither
	// switches nor this host (MarkAbove). What opens a TCP connection is such
	// (RFC 3168, section 6.1.1).
	NoECN bool

	INT        inband.Mode
	INTProfile *inband.Profile
	INTRates   *inband.RateTable // link rates, where the format does not carry them

	InitialPSN uint32 // of both directions, 24 bits

	// Verbs makes it a queue pair for RDMA operations over registered memory;
	// nil: for the message service.
	Verbs *VerbsConfig

	// Frames makes it a queue pair that carries packets of others; nil: one for
	// messages or RDMA operations.
	Frames *FramesConfig

	// Place takes the payload of each packet that is new; nil: it is counted and
	// removed, as in virtual time.
	Place Placer

	// Segment paces bursts of this many payload bytes instead of frames, and
	// takes one RTT sample per burst; 0 paces frames (TIMELY 4.2.1).
	Segment uint32
	// SegmentRate spaces the frames of a segment, in bit/s, as rate limiters of
	// NICs do; other queue pairs may send between them. 0: they follow each
	// other on the link (TIMELY, NIC pacing).
	SegmentRate uint64
	// LazyPacing leaves a departure that was planned before a change of rate
	// until it is due: then it is put off if the rate fell, and not advanced
	// if it rose (TIMELY 4.3). Otherwise every change moves it at once.
	LazyPacing bool
	// KeepPlanned leaves a departure that was planned before a change of rate
	// where it is, whatever the change: only the next gap is of the new rate,
	// as in the published simulator's DCQCN, TIMELY and DCTCP.
	KeepPlanned bool
}

const (
	defaultPayload = 1000
	defaultMaxQPs  = 1 << 16
	maxQPs         = 1 << 20
	defaultCNP     = 50 * frame.Microsecond
	defaultRxBuf   = 1 << 20
)

// Validate reports the first setting that cannot be meant.
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
		return fmt.Errorf("nic %s: %d stages of gentle flow control: it needs priority flow control and has at most %d", c.Name, c.PFCStages, pfc.MaxStages)
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
