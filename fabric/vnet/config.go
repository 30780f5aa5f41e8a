package vnet

import (
	"gswitch/cc"
	"gswitch/config"
	"gswitch/fabric"
	"gswitch/frame"
	"gswitch/hostnic"
	inband "gswitch/int"
	"gswitch/scheduler"
	"gswitch/transport"
	"gswitch/vswitch"
)

// Config describes a network in virtual time.
type Config struct {
	Topology *fabric.Topology
	Engine   EngineMaker // nil = Virtual
	Seed     uint64      // of flow hashes, ECN and every other random choice
	// Cores is how many cores step a network in virtual time, side by side: what
	// happens is the same to the bit. 0 takes one.
	Cores int
	// Part, if not nil, says for Cores which part has a node, modulo their number.
	Part func(node int) int

	// Overhead is what a frame occupies on a link beyond its bytes: 0, or 24
	// for preamble, FCS and gap of Ethernet.
	Overhead uint32
	// Payload is the payload of a full data frame. 0 = 1000.
	Payload int
	// WholeNs truncates the time that a frame takes on a link to whole
	// nanoseconds, as ns-3 does; otherwise the remainder is carried on.
	WholeNs bool
	// Sizes overrides the lengths of frames on the wire, for agreement with
	// other simulators. The zero value takes those of the headers.
	Sizes hostnic.Sizes
	// MTU is the largest packet after the Ethernet header that links take. 0
	// takes that of the topology, or what a full data frame needs if that is
	// more.
	MTU int
	// Chunks is how many frames can be in the network at once. 0 computes it
	// from the buffers and the delays.
	Chunks int

	// Weights of the classes at every port of switches and hosts: 0 is strict,
	// a higher class first; weighted classes next to each other share what is
	// left. Class c is marked DSCP 8c and waits in queue c.
	Weights [8]uint32
	// Queue is how every egress queue of a switch is served: its order, what that
	// goes by, its admission and its policies, of which queues of lossless classes have
	// none that drops. Weights, marks and numbers are those of the classes.
	Queue config.Queue
	// OneQueue lets all classes that are not lossless wait in one egress queue, for a
	// policy that has queues of its own.
	OneQueue bool
	// OneQueueAt are switches of which that holds.
	OneQueueAt []string
	// PushOut bounds what waits at each port of a switch, and drops the least
	// valuable.
	PushOut config.PushOut
	// VOQ makes egress queues serve the ports that frames came by in turn, as
	// input-queued switches do, instead of first in, first out.
	VOQ bool

	Buffer Buffer
	PFC    PFC
	ECN    ECN
	INT    INT
	Host   Host
	// Listen says of hosts, by name, which frames that arrive are not their NIC's:
	// the function is shown them, where the host is stepped.
	Listen map[string]func(now frame.Time, b []byte) bool
	// Wrap, if not nil, returns what is stepped in the place of the node of a host or a
	// switch, by its number in the topology.
	Wrap func(n *Network, node int, s frame.Stepper) frame.Stepper
	// Streams lets hosts have connections of TCP.
	Streams Streams

	// Features are registered features of the switches.
	Features []Feature
	Wholes   []Whole // of switches as a whole

	// Paths says how switches choose among shortest paths.
	Paths vswitch.PathsConfig

	// PauseLog is how many pauses that ended each switch keeps, for
	// PauseTrace. 0: none.
	PauseLog int

	// Detours are routes that are not the shortest.
	Detours []Detour

	// BaseRTT is T: what congestion control takes as the round-trip time of
	// the network when it is empty. 0 computes the largest over all pairs of
	// hosts, see Network.MaxRTT.
	BaseRTT frame.Time

	// LinkLocal says that nodes exchange messages of their own with their
	// neighbours, which no header of data is as long as.
	LinkLocal bool

	// RTTs hands the round-trip times of acknowledgements to Network.OnRTT.
	RTTs bool

	// AdjustHost and AdjustSwitch, where not nil, change the configuration of
	// single nodes after Build has filled it in. The names are those of the
	// topology.
	AdjustHost   func(name string, c *hostnic.Config)
	AdjustSwitch func(name string, c *vswitch.Config)
}

// Buffer describes the packet buffer of every switch.
type Buffer struct {
	Size  uint64  // bytes; 0 = 12 MiB
	Alpha float64 // an egress queue of a lossy class may hold alpha times the free bytes; 0 = 1

	// QueueLimit bounds an egress queue of a lossy class in bytes, 0 = not.
	QueueLimit uint32
	// IngressLimit bounds what waits of a lossy class that arrived at one
	// port: input-queued switches with drop tail (240 KB in IRN, Mittal et
	// al., SIGCOMM 2018, section 4.1). 0 = not. Egress queues are then
	// bounded by QueueLimit alone.
	IngressLimit uint32

	// Lossless classes pause their neighbour when what arrived at one port
	// exceeds XOFF bytes, or, where XOFF is 0, LosslessAlpha times the free
	// bytes (0 = 1/8). It may send again when it falls XONOffset below.
	XOFF          uint32
	LosslessAlpha float64
	// ScaleAlpha doubles LosslessAlpha for each doubling of a port's rate
	// above that of the hosts, up to 1: ports with more senders behind them
	// may hold more.
	ScaleAlpha bool
	XONOffset  uint32

	// Headroom of each lossless port and class in bytes, or, where
	// HeadroomDelays is set, the bytes of so many one-way delays of the link
	// at its rate. Both 0: what IEEE 802.1Q annex N computes. AllowLoss
	// accepts a headroom that is less.
	Headroom       uint32
	HeadroomDelays float64
	AllowLoss      bool
	GroupReserve   uint32 // guaranteed bytes per lossless port and class
}

// PFC describes priority flow control (IEEE 802.1Q clause 36), the same at
// switches and hosts.
type PFC struct {
	On      bool
	Classes uint8 // bitmap of lossless classes; 0 = that of Host.Class
	Quanta  uint16
	// Response is how long after its arrival a pause takes effect, and ErrDisable for
	// how long switches disable a port whose neighbour does not pause: see
	// vswitch.PFCConfig.
	Response, ErrDisable frame.Time
}

// ECN describes marking at every egress queue.
type ECN struct {
	On bool
	// KMin and KMax in bytes, for ports of the rate At; ports of another rate
	// scale both in proportion, unless At is 0.
	KMin, KMax uint32
	PMax       float64      // probability at KMax; where KMin = KMax all above it are marked
	PI         scheduler.PI // in place of these; its reference scales like them
	At         uint64
	Classes    uint8 // bitmap of the classes that are marked, 0 = all
}

// INT describes in-band telemetry.
type INT struct {
	Mode    inband.Mode     // None: off
	Profile *inband.Profile // nil: the one for the rates of the network
	Signal  inband.Signal   // which bytes of a port are counted
	// WholePort stamps what waits in all queues of a port instead of what
	// waits in that of the frame.
	WholePort bool
}

// Host describes every host; a Flow may override Class, Transport and CC.
type Host struct {
	Class uint8 // of data, where a flow does not name one

	// AckClass is that of acknowledgements and NAKs, and AckPauseClass the one
	// whose pause stops them at the host.
	AckClass, AckPauseClass ClassChoice

	CNP       hostnic.CNPConfig
	Transport transport.Config
	Recovery  Recovery
	CC        Algorithm
	// LowClasses are those of the levels of Transport.Recursive.
	LowClasses []uint8

	Overshoot   bool   // see hostnic.Config
	Turn        uint32 // see hostnic.Config
	First       func(next, best *hostnic.Waiting) bool
	MarkAbove   uint32     // see hostnic.Config
	QuenchAfter frame.Time // see hostnic.Config
	NoticeDelay frame.Time // see hostnic.Config
	Receive     hostnic.ReceiveConfig
	// Options returns those of features, for a NIC that is configured otherwise;
	// nil: none has any.
	Options  func(c *hostnic.Config) (hostnic.Options, error)
	RTTNoise frame.Time // see hostnic.Config
	// PaceJitter is that of hostnic.Config.
	PaceJitter float64

	Writes bool // messages are RDMA Writes: see hostnic.QPConfig
	// Segment, SegmentRate, LazyPacing and KeepPlanned are those of hostnic.QPConfig.
	Segment                 uint32
	SegmentRate             uint64
	LazyPacing, KeepPlanned bool
}

// Algorithm makes the congestion control of queue pairs. The zero value is
// none: senders are bounded by their line rate and Transport.Cap alone.
type Algorithm struct {
	Name string // distinguishes state that can be recycled: one name for one set of options
	New  func(*cc.Env) cc.Algorithm
}

// ClassChoice is a class that may also be left to the rule: its zero value is
// the class of the data that is answered.
type ClassChoice uint8

// InClass chooses class c, whatever the data is in.
func InClass(c uint8) ClassChoice { return ClassChoice(c&7 + 1) }

// number is what hostnic.Config takes: -1 for the rule.
func (c ClassChoice) number() int { return int(c) - 1 }

// Recovery says which parameters of loss recovery Build derives from the
// topology, see Network.Derived.
type Recovery struct {
	Cap  bool // Transport.Cap, where it is 0
	RTOs bool // Transport.RTOHigh, RTOLow and N, where they are 0
}
