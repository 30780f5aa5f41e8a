package vswitch

import (
	"net/netip"

	"gswitch/frame"
	"gswitch/pfc"
	"gswitch/pipeline"
	"gswitch/scheduler"
	"gswitch/wire"
)

// Trust is the field of an arriving frame that determines its traffic class.
type Trust uint8

const (
	TrustPCP  Trust = iota // 802.1Q priority; DSCP if there is no tag
	TrustDSCP              // DSCP; PCP if it is not IP
	TrustNone              // always the port's default class
)

// VLANMode is how a port treats VLAN tags.
type VLANMode uint8

const (
	// VLANTransparent passes tags through untouched: every frame belongs to
	// VLAN 1 inside the switch, whatever tags it carries. The default.
	VLANTransparent VLANMode = iota
	// VLANAccess accepts untagged (and priority-tagged) frames of one VLAN.
	VLANAccess
	// VLANTrunk accepts tagged frames of the allowed VLANs, and untagged ones if a native
	// VLAN is set.
	VLANTrunk
)

// Config describes a switch completely, in base units (bits per second,
// bytes, nanoseconds). Package config reads it from a file.
type Config struct {
	Name string
	ID   uint16   // 12-bit switch identifier, for telemetry
	MAC  wire.MAC // base address; routed interfaces and control frames use it
	Seed uint64   // of the flow hash and of every random choice
	// Secret determines the positions of addresses in the tables that frames fill, the
	// forwarding database and the neighbour table: an attacker who knows it can make them
	// collide. It is fixed when a switch is made; 0 gives the same positions in every
	// switch.
	Secret uint64
	// SymmetricHash gives both directions of a flow the same hash.
	SymmetricHash bool
	// HashFields are the fields that distinguish flows. 0: all of them.
	HashFields wire.HashFields

	// Epoch is the wall clock's time at the switch's time 0, in nanoseconds since 1970
	// (UTC); 0: unknown.
	Epoch int64

	// Workers lists the engine's workers that run the switch's workers, in the order of
	// the pools; nil: the first ones. It cannot change.
	Workers []int

	Ports  []PortConfig // index = port number; a port without Name does not exist
	VLANs  []VLANConfig // none: all ports are in VLAN 1
	Class  ClassMaps
	Buffer BufferConfig
	// MaxFrames bounds the frames in all queues, whatever their size: each occupies a
	// chunk that ports need to receive into. 0 = half of the arena, divided evenly among
	// the number of switches in Sharing; Sharing 0 = this switch has it alone.
	MaxFrames int
	Sharing   int
	PFC       PFCConfig
	Options   Options // of features: see Register

	FDB       FDBConfig
	Loopbacks []netip.Addr // addresses of the switch itself
	Routes    []Route
	Paths     PathsConfig // of routes with several next hops
	Neighbors []StaticNeighbor
	ACLs      []ACL
	Mirrors   []Mirror
	Strict    bool // drop frames with malformed upper headers even if they are only bridged

	// ShareOwn limits the frames that the switch sends by itself (notices, neighbour
	// requests) to an eighth of each link.
	ShareOwn bool

	// NoRedirects keeps the switch from redirecting senders to a better first hop.
	NoRedirects bool

	// ICMPRate limits the ICMP errors that the switch sends, per second.
	// 0 takes the default of 1000.
	ICMPRate uint32
}

// Hasher returns the hasher of the switch's flows.
func (c *Config) Hasher() wire.Hasher {
	h := wire.NewHasher(c.Seed, c.SymmetricHash)
	if c.HashFields != 0 {
		h = h.Only(c.HashFields)
	}
	return h
}

// PortConfig describes one port.
type PortConfig struct {
	Name    string
	Enabled bool
	Worker  int // index of the worker that owns the port's egress queues
	MTU     int // largest payload after the Ethernet header and tags, in bytes; 0 = 1500
	// MinFrame is the smallest frame that is accepted, in bytes without FCS: 60 on a real
	// wire. 0 accepts any frame with an Ethernet header, since hosts on virtual links do
	// not pad.
	MinFrame int

	Scheduler scheduler.PortConfig
	// NominalRate in bit/s determines pause quanta and headroom if Scheduler.Rate is
	// unlimited. 0 = 10 Gb/s.
	NominalRate uint64
	// CableDelay is the one-way delay of the link, for headroom.
	CableDelay frame.Time
	// LosslessAlpha and Headroom replace those of BufferConfig for frames that arrive at
	// this port; 0 keeps them.
	LosslessAlpha float64
	Headroom      uint32

	// Watchdog, if not nil, replaces that of Config.PFC for this port.
	Watchdog *pfc.Watchdog

	// Options are those of features.
	Options Options

	Trust        Trust
	DefaultClass uint8

	VLANMode VLANMode
	PVID     uint16   // access VLAN, or native VLAN of a trunk; 0 = none
	Allowed  []uint16 // VLANs of a trunk; nil = all that are configured
	Isolated bool     // isolated ports do not forward to each other

	Storm StormControl
	// Addresses make the port a routed interface: it does not bridge.
	Addresses []netip.Prefix
	// ACL names the access list for frames that arrive here. "" = none.
	ACL string
	// Edge says that the neighbour is a host: frames that only switches send, that is,
	// notices and frames with telemetry records, are dropped on arrival.
	Edge bool
	// LearnDisabled stops MAC learning on the port.
	LearnDisabled bool
	// NoFlood are the kinds of frames that are not flooded to the port.
	NoFlood Flooded
	// Twin makes the port lead to the interface of a routed port in a kernel (see Twin).
	Twin *Twin
}

// Flooded selects kinds of flooded frames.
type Flooded struct {
	Broadcast, Multicast, UnknownUnicast bool
}

// StormControl limits flooded traffic that arrives at a port, in bit/s. 0 = no limit.
type StormControl struct {
	Broadcast, Multicast, UnknownUnicast uint64
}

// VLANConfig describes one VLAN and, if it has addresses, the routed
// interface on it.
type VLANConfig struct {
	ID        uint16
	Name      string
	Addresses []netip.Prefix
}

// ClassMaps map priorities on the wire to traffic classes and back.
type ClassMaps struct {
	PCP   [8]uint8  // class of each 802.1Q priority
	DSCP  [64]uint8 // class of each DSCP
	Queue [8]uint8  // egress queue of each class
}

// DefaultClassMaps maps PCP p to class p, DSCP d to class d/8, class c to
// queue c.
func DefaultClassMaps() ClassMaps {
	var m ClassMaps
	for i := range m.PCP {
		m.PCP[i], m.Queue[i] = uint8(i), uint8(i)
	}
	for i := range m.DSCP {
		m.DSCP[i] = uint8(i / 8)
	}
	return m
}

// BufferConfig describes the shared packet buffer.
type BufferConfig struct {
	Size         uint64  // bytes; 0 = 12 MiB, or half of the arena if that is less
	Alpha        float64 // dynamic threshold of an egress queue: alpha * free shared bytes; 0 = 1
	QueueReserve uint32  // guaranteed bytes per egress queue
	QueueLimit   uint32  // static limit per egress queue in bytes; 0 = none
	IngressLimit uint32  // static limit per ingress port and lossy class in bytes, as in an input-queued switch; 0 = none

	LosslessAlpha float64 // XOFF threshold of a lossless (port, class): alpha * free shared bytes
	XOFF          uint32  // static XOFF threshold in bytes; 0 = dynamic by LosslessAlpha
	XONOffset     uint32  // XON = XOFF - XONOffset
	Headroom      uint32  // bytes per lossless (port, class); 0 = computed from rate, cable and MTU
	GroupReserve  uint32  // guaranteed bytes per lossless (port, class)
	// Response is the time until a pause acts, beyond cable and frames: the loops of both
	// ends. It is part of the headroom.
	Response frame.Time
	// Lateness is how much longer a pause may take because nodes run late: a property of
	// the engine, not of the link. Only headroom, stages and input queues allow for it.
	Lateness frame.Time
	// AllowLoss accepts a Headroom that is too small, for experiments.
	AllowLoss bool
	// OwnFrames: see buffer.Config.
	OwnFrames bool
	// FloodShare bounds copies of floods (unknown unicast, broadcast, multicast) at an
	// egress port. While the port is backed up and frames for this port alone wait there,
	// copies are at most this share of what it sends; they may hold at most half of the
	// memory that a port may always hold. 0 = treated like other frames. Off in virtual
	// time.
	FloodShare float64
	// Chunks counts the chunks of memory in addition to bytes, with the same alphas: if
	// frames lie in chunks, small ones exhaust them long before the bytes. Off in virtual
	// time, where buffers are counted in bytes, as in the papers.
	Chunks bool
}

// PFCConfig describes flow control on all ports.
type PFCConfig struct {
	Mode     pfc.Mode
	Classes  uint8  // bitmap of lossless classes
	Quanta   uint16 // pause time to request; 0 = the longest
	Watchdog pfc.Watchdog
	Log      PauseLog
	// Response is the time from a pause's arrival until it takes effect here.
	Response frame.Time
	// ErrDisable is how long a port is disabled if its neighbour keeps sending although
	// it was asked to pause, and asked again Resends times (0 = 3). 0: not checked. Grace
	// is the time for a pause to act; 0 computes it.
	ErrDisable, Grace frame.Time
	Resends           int
}

// FDBConfig describes the forwarding database.
type FDBConfig struct {
	Size    int        // entries; 0 = 65536
	PerPort int        // most entries learned at one port; 0 = half of Size
	Ageing  frame.Time // 0 = 300 s (IEEE 802.1Q 8.8.3 default)
	Static  []StaticMAC
}

// StaticMAC binds an address to a port.
type StaticMAC struct {
	VLAN uint16 // 1 on ports without VLANs
	MAC  wire.MAC
	Port uint16
}

// Route is a prefix with its next hops.
type Route struct {
	Prefix   netip.Prefix
	NextHops []NextHop         // several: ECMP
	Choose   *pipeline.Chooser // among several; nil: as PathsConfig says
	Refuse   Refusal           // without next hops
}

// Refusal is the treatment of frames whose route has no next hop.
type Refusal uint8

const (
	Accept      Refusal = iota // the route has next hops
	Blackhole                  // dropped without an answer
	Unreachable                // answered by ICMP host unreachable, ICMPv6 no route to destination
	Prohibit                   // answered by ICMP and ICMPv6 administratively prohibited
	numRefusals
)

var refusalNames = [numRefusals]string{"", "blackhole", "unreachable", "prohibit"}

// String returns the name of the refusal in a document.
func (r Refusal) String() string { return refusalNames[r] }

// NextHop is one next hop of a route.
type NextHop struct {
	Via    netip.Addr // neighbour on a connected network
	Weight uint32     // 0 = 1
}

// StaticNeighbor binds an address to a MAC.
type StaticNeighbor struct {
	Addr netip.Addr
	MAC  wire.MAC
}

// ACL is a list of rules; the first match in order of Priority wins.
type ACL struct {
	Name  string
	Rules []ACLRule
	// Default is applied if no rule matches.
	Default pipeline.Action
}

// ACLRule is one rule of an access list.
type ACLRule struct {
	Name     string
	Text     string // the rule as written, for display
	Priority int    // higher wins; equal: earlier wins
	Match    pipeline.Match
	Action   pipeline.Action // its Meter is set by Police, its Port and Session by the caller
	Police   *Police         // token bucket of OpPolice
}

// Police is a token bucket: committed rate and burst. Each worker has its own.
type Police struct {
	Rate  int64 // bit/s
	Burst int64 // bytes
}

// Mirror is a session to which access-list entries copy frames; its index in
// Config.Mirrors is Action.Session.
type Mirror struct {
	Name     string
	Port     uint16 // egress port of the copies
	Truncate int    // bytes kept of a copy, 0 = all
}
