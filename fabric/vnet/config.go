package vnet

import (
	"gswitch/cc"
	"gswitch/config"
	"gswitch/fabric"
	"gswitch/frame"
	"gswitch/hostnic"
	inband "gswitch/int"
	intpoint "gswitch/int/point"
	"gswitch/transport"
	"gswitch/vswitch"
)

// Config describes a network in virtual time.
type Config struct {
	Topology *fabric.Topology
	Engine   EngineMaker // nil = Virtual
	Seed     uint64      // of flow hashes, ECN and every other random choice
	// Cores is the number of cores that step a network in virtual time in parallel. The
	// result is identical to the bit for any number. 0 = 1.
	Cores int
	// Part, if not nil, assigns each node to one of the Cores parts, modulo their number.
	Part func(node int) int

	// Overhead is the number of bytes that a frame occupies on a link beyond its own: 0,
	// or 24 for Ethernet's preamble, FCS and interframe gap.
	Overhead uint32
	// Payload is the payload of a full data frame. 0 = 1000.
	Payload int
	// WholeNs truncates the time that a frame takes on a link to whole
	// nanoseconds, as ns-3 does; otherwise the remainder is carried on.
	WholeNs bool
	// Sizes overrides the lengths of frames on the wire, for agreement with
	// other simulators. The zero value takes those of the headers.
	Sizes hostnic.Sizes
	// MTU is the largest packet that links carry, in bytes after the Ethernet header. 0
	// takes the MTU of the topology, or what a full data frame needs if that is more.
	MTU int
	// Chunks is the number of frames that can be in the network at once. 0 derives it
	// from buffers and delays.
	Chunks int

	// Weights of the classes at every port of switches and hosts. 0 is strict priority,
	// higher class first; adjacent weighted classes share what is left. Class c is marked
	// DSCP 8c and waits in queue c.
	Weights [8]uint32
	// Queue configures every egress queue of a switch: its order and rank, its admission
	// and its policies. Queues of lossless classes get no policy that drops. Weights,
	// marks and numbers are those of the classes.
	Queue config.Queue
	// OneQueue puts all lossy classes into one egress queue, for a policy that has queues
	// of its own.
	OneQueue bool
	// OneQueueAt names the switches to which OneQueue applies.
	OneQueueAt []string
	// PushOut bounds the bytes that wait at each port of a switch, and drops the least
	// valuable frames.
	PushOut config.PushOut
	// VOQ makes egress queues serve ingress ports in turn, as input-queued switches do,
	// instead of first in, first out.
	VOQ bool

	// Buffer is that of every switch. Size 0 = 12 MiB. Alpha 0 = 1, or no bound where there
	// is a limit at ingress.
	Buffer config.NetworkBuffer
	// OwnFrames looks at a threshold that others move when a frame comes or leaves that
	// counts towards it, and not besides.
	OwnFrames bool
	PFC       PFC
	ECN       ECN
	INT       INT
	Host      Host
	// Listen maps names of hosts to functions that see every frame that arrives. A
	// function returns true if the frame is not for the NIC. It runs where the host is
	// stepped.
	Listen map[string]func(now frame.Time, b []byte) bool
	// Wrap, if not nil, returns what the engine steps in place of a host or a switch.
	// node is its number in the topology.
	Wrap func(n *Network, node int, s frame.Stepper) frame.Stepper
	// Streams enables TCP connections of hosts.
	Streams Streams

	// Features are the registered features that the switches' ports use.
	Features []Feature
	Wholes   []Whole // features of a switch as a whole

	// Paths configures how switches choose among shortest paths.
	Paths config.Paths

	// PauseLog is the number of ended pauses that each switch keeps for PauseTrace. 0 =
	// none.
	PauseLog int

	// Detours are routes that are not shortest paths.
	Detours []Detour

	// BaseRTT is T, which congestion control takes as the round-trip time of the empty
	// network. 0 takes the largest over all pairs of hosts, see Network.MaxRTT.
	BaseRTT frame.Time

	// LinkLocal is how many bytes the longest message has that neighbours exchange. 0: they
	// exchange none.
	LinkLocal int

	// RTTs passes the round-trip times that acknowledgements give to the function of
	// Network.OnRTT.
	RTTs bool

	// AdjustHost and AdjustSwitch, if not nil, change the configuration of single nodes
	// after Build has filled it in. Names are those of the topology.
	AdjustHost   func(name string, c *hostnic.Config)
	AdjustSwitch func(name string, c *vswitch.Config)
}

// PFC describes priority flow control (IEEE 802.1Q clause 36), the same at
// switches and hosts.
type PFC struct {
	On      bool
	Classes uint8 // bitmap of lossless classes; 0 = that of Host.Class
	config.Pausing
}

// ECN describes marking at every egress queue.
type ECN struct {
	On bool
	// Thresholds are those of ports of the rate At. Ports of another rate scale them in
	// proportion, unless At is 0.
	config.ECN
	PI      *config.PI // in place of them, if set
	At      uint64
	Classes uint8 // bitmap of the classes that are marked; 0 = all
}

// INT describes in-band telemetry.
type INT struct {
	Mode           inband.Mode     // None: off
	Profile        *inband.Profile // nil: the one for the rates of the network
	intpoint.Stamp                 // what records say
}

// Host describes every host; a Flow may override Class, Transport and CC.
type Host struct {
	Class uint8 // of data, unless the flow names another

	// AckClass is the class of acknowledgements and NAKs. AckPauseClass is the class
	// whose pause stops them at the host.
	AckClass, AckPauseClass ClassChoice

	CNP       hostnic.CNPConfig
	Transport transport.Config
	Recovery  Recovery
	CC        Algorithm
	// LowClasses are the classes of the levels of Transport.Recursive.
	LowClasses []uint8

	Overshoot   bool   // see hostnic.Config
	InOrder     bool   // see hostnic.Config
	Turn        uint32 // see hostnic.Config
	First       func(next, best *hostnic.Waiting) bool
	MarkAbove   uint32     // see hostnic.Config
	QuenchAfter frame.Time // see hostnic.Config
	NoticeDelay frame.Time // see hostnic.Config
	Receive     hostnic.ReceiveConfig
	// Options returns the options of features for a NIC with configuration c. nil: no
	// feature has any.
	Options  func(c *hostnic.Config) (hostnic.Options, error)
	RTTNoise frame.Time // see hostnic.Config
	// PaceJitter is that of hostnic.Config.
	PaceJitter float64

	Writes bool // messages are RDMA Writes, see hostnic.QPConfig
	// Segment, SegmentRate, LazyPacing and KeepPlanned are those of hostnic.QPConfig.
	Segment                 uint32
	SegmentRate             uint64
	LazyPacing, KeepPlanned bool
}

// Algorithm makes the congestion control of queue pairs. The zero value is none: only the
// line rate and Transport.Cap limit senders.
type Algorithm struct {
	Name string // identifies state that can be reused: one name per set of options
	New  func(*cc.Env) cc.Algorithm
}

// ClassChoice is a class or, as the zero value, the default: the class of the data that
// is acknowledged.
type ClassChoice uint8

// InClass chooses class c, whatever class the data is in.
func InClass(c uint8) ClassChoice { return ClassChoice(c&7 + 1) }

// number is the value for hostnic.Config; -1 is the default.
func (c ClassChoice) number() int { return int(c) - 1 }

// Recovery says which parameters of loss recovery Build derives from the topology, see
// Network.Derived.
type Recovery struct {
	Cap  bool // Transport.Cap, where it is 0
	RTOs bool // Transport.RTOHigh, RTOLow and N, where they are 0
}
