package vswitch

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"gswitch/buffer"
	"gswitch/feature"
	"gswitch/frame"
	"gswitch/pfc"
	"gswitch/scheduler"
	"gswitch/wire"
)

// Feature is what a published system, or any other addition, does in a switch. Its
// package registers it; the switch knows features only by their registration. A switch
// whose configuration has no options of a feature does not have it, and pays nothing for
// it.
type Feature struct {
	// Name is the key of its options in Config.Options and PortConfig.Options.
	Name string
	// Check reports what is wrong with a configuration that has options of the feature.
	Check func(cfg *Config) error
	// Divide may change a port's share of the shared buffer, for instance to set aside
	// room for the feature, if the configuration has options of it.
	Divide func(cfg *Config, p *PortConfig, b *buffer.PortConfig)
	// FlowControl may change the configuration of flow control at both ends of a link: at
	// the switch's ports, and at hosts behind them.
	FlowControl func(cfg *Config, f *pfc.Config)
	// New makes the feature's state on one worker when a configuration first has options
	// of it.
	New func(n *Node) Instance
	// Aliases are other names of the verb that shows the counters.
	Aliases []string
	// Counters describe what Instance.Read reads.
	Counters []Counter
	// Decode is the inverse of Call.Encode; nil: the feature has no calls. A call reaches
	// the feature's state on one worker, that of the ports: a configuration that has
	// options of the feature is refused if its ports are on several.
	Decode func(b []byte) (Call, error)

	// Whole makes the section, with nothing set, of documents about a switch as a whole,
	// in place of Section: its key in a switch is Name. nil: there is none.
	Whole func() WholeSection
	// Virtual makes that section for scenarios, if it differs.
	Virtual func() WholeSection

	// Section makes a section of documents with nothing set. Its key is Name, in a queue
	// profile and in the switches of a scenario, which say which queues it applies to.
	// nil: documents cannot enable the feature.
	Section func() Section
	// Daemons says that the section exists only in documents of daemons: a scenario
	// enables the feature in another way, for all nodes together.
	Daemons bool
	// Stamps says that the feature needs Meta.Stamp in PTP frames.
	Stamps bool
	// Doc describes the section, in one sentence.
	Doc string
	// Nowhere says, as a clause, why no port of a switch may have a Whole that is on.
	Nowhere string
	// Signals is what the queues signal to hosts, for congestion control that needs it
	// (cc.Info.Needs). 0: nothing.
	Signals feature.Signals
	// Notices says that the signals are separate messages, which must not wait behind the
	// congestion that they report.
	Notices bool
	// BothEnds says that the neighbour at a port must have the feature, too.
	BothEnds bool
	// Memory reports parts of a valid configuration that have too little room in a packet
	// memory with that many chunks, if ports belong to that many workers; nil: nothing to
	// check.
	Memory func(cfg *Config, workers, chunks int) error
	// InputQueued says that Instance.InputQueues replaces the shared buffer.
	InputQueued bool
}

// Section is the form of a feature's PortConfig.Options in documents: a pointer to a
// struct with the tags of package section.
type Section interface {
	// Options returns the options of a port for a bitmap of queues, after defaults have
	// been filled in. rate is that of the port's link in bit/s, 0 if it has none of its
	// own.
	Options(queues uint8, rate uint64) (any, error)
}

// WholeSection is the form of a feature's Config.Options in documents: a pointer to a
// struct with the tags of package section.
type WholeSection interface {
	// Options returns the options of a switch, after defaults have been filled in, and
	// may set those of its ports in cfg. In cfg, the ID, the loopbacks, the class maps,
	// buffer and flow control are set, and the ports' names, links, MTUs, workers and
	// addresses. A KeyError says which key it is about.
	Options(cfg *Config) (any, error)
}

// Paired is a WholeSection whose key ports names the ports whose neighbours are switches
// that have the feature, too.
type Paired interface{ Neighbors() []string }

// Reserver is a WholeSection that needs an egress queue without a class: if a document
// does not map classes to queues, the class with the queue's number is mapped to queue 7.
type Reserver interface{ Reserves() (queue int) }

// Resolver is a WholeSection with defaults that depend on links.
type Resolver interface {
	// Resolve fills in those defaults. In cfg, the names, rates and MTUs of ports are
	// set: those of a switch or, in scenarios, of all links between switches.
	Resolve(cfg *Config)
	// Warn reports what is possible but seldom meant, after Resolve was called; nil if
	// there is nothing.
	Warn() error
}

// KeyError is an error about a key within a section, such as sessions[0].port.
type KeyError struct {
	Key string
	Err error
}

func (e *KeyError) Error() string { return e.Key + ": " + e.Err.Error() }

// Checked is a Section whose options can harm the network that they are for: a daemon
// rejects such options, a scenario may show their effect.
type Checked interface {
	// CheckRate returns an error if they do so at a port whose link has a rate in bit/s.
	CheckRate(rate uint64) error
}

// Holder is a Section of a feature that keeps queues at a target depth. A queue that
// drops frames before it is that deep never gets there.
type Holder interface {
	// Depth returns the target in bytes at a port whose link has a rate in bit/s.
	Depth(rate uint64) uint64
}

// Instance is the state of a feature on one worker, as functions that the worker calls; a
// nil function means that there is nothing to do. Functions about frames are called with
// a vector of them.
type Instance struct {
	// State is the result of Node.Feature, from which the feature's package derives what
	// it shows.
	State any
	// Adopt is called when a configuration is adopted, before Port.
	Adopt func(now frame.Time)
	// Queues may change the configuration of the queues of a port of the worker when a
	// configuration is adopted. It is called before Port.
	Queues func(port uint16, c *PortConfig, s *scheduler.PortConfig)
	// Routed is called when routes may have changed, and when a configuration has
	// been adopted.
	Routed func()
	// Port is called for each port of the worker when a configuration is adopted. It
	// returns the stages that frames at this port pass.
	Port func(now frame.Time, port uint16, c *PortConfig) Stages
	// Dismiss is called when a port of the worker has been removed; its queues are empty.
	Dismiss func(port uint16)
	// Wrapped is called for each port of the switch, including those of other workers,
	// when a configuration is adopted. It reports whether frames that arrive through the
	// port pass Unwrap on this worker. nil: no port's do.
	Wrapped func(port uint16, c *PortConfig) bool
	// Unwrap is called with frames as they arrived at a port, before they are parsed: it
	// removes what the other end of the link put in front of them. Of Meta only the
	// geometry is valid.
	Unwrap func(now frame.Time, port uint16, v []frame.Ref)
	// Forwards is called with frames whose egress port, Meta.OutPort, has been decided,
	// on the worker that received them and before they ask for room in a queue. They are
	// as they will leave, except for congestion marks and telemetry: it may put something
	// in front of them. Frames for the slow path (frame.ToLocal) are passed when it
	// takes them, and one that waits there for a neighbour (frame.Routed, too) again, on
	// worker 0, when it leaves. Mirror copies and flow control are not passed.
	Forwards func(now frame.Time, v []frame.Ref)
	// Copies is called with mirror copies and frames of Send whose egress port has been
	// decided, before they ask for room in a queue: it may put something in front of them.
	Copies func(v []frame.Ref)
	// Listens is called for each port of the switch, including those of other workers,
	// when a configuration is adopted. It reports whether frames that arrive through the
	// port pass Arrives on this worker. nil: no port's do.
	Listens func(port uint16, c *PortConfig) bool
	// Arrives is called with frames as they arrived at a port, before anything is
	// checked: they are parsed, and include those that the parser found wrong
	// (Meta.Reason) and MAC control frames; Meta.InPort and Meta.Class are not yet set.
	// It returns, in place, those that continue, and must have passed the others to
	// Node.Consume.
	Arrives func(now frame.Time, port uint16, v []frame.Ref) []frame.Ref
	// Admits is Listens for Admitted.
	Admits func(port uint16, c *PortConfig) bool
	// Admitted is called with the frames that arrived at a port and passed its access
	// list, with VLAN and class set, before forwarding is decided. Those with a Reason
	// will not be routed.
	Admitted func(now frame.Time, port uint16, v []frame.Ref)
	// Control acts on a MAC control frame (IEEE 802.3 clause 31) that is neither
	// pause nor priority flow control, of an opcode that package wire knows, on the
	// worker that owns the port that it came in by, before any other frame of its
	// vector goes on. It returns false if the feature does not understand the frame.
	Control func(port uint16, c wire.MACControl) bool
	// Claims is called with a frame that the feature has marked frame.Claimed in Arrives,
	// when its egress port and queue are known and before it is charged to the buffer. It
	// returns true if it has charged and queued the frame itself (Node.Charge,
	// Node.Join), and false if the frame should continue like any other. It is called
	// frame by frame, since each may take the room that the next one needs.
	Claims func(r frame.Ref) bool
	// Paused is called when the neighbour at a port has paused or resumed classes, Pauses
	// when the switch may have asked the neighbour to.
	Paused, Pauses func(now frame.Time, port uint16)
	// Requests passes to the flow control of a port what the switch wants of the
	// neighbour there, in place of the usual pauses. If several features have the stage,
	// the first one is called.
	Requests func(port uint16, f *pfc.Port)
	// Queued is called with the frames that have joined egress queues, after the vector
	// in which they arrived has been processed and before any of them leaves. Frames of
	// ports without the stage may be among them. It must not queue or extract any.
	Queued func(v []Queued)
	// LinkLocal is called with frames to the addresses 01-80-C2-00-00-00 to 0F (IEEE
	// 802.1Q table 8-1), which bridges do not forward, on the worker that owns the
	// ingress port. It returns true if it understood the frame; frames that no feature
	// understands are dropped.
	LinkLocal func(now frame.Time, port uint16, r frame.Ref) bool
	// Departs is called with the frames that a port sends, in order, with Meta.Depart as
	// on the link, before congestion marks and telemetry are written: setting
	// frame.MarkCE on a frame with frame.IsECT marks it. Flow-control frames are among
	// them. A frame to which it assigns the Reason frame.QueueShed, at a port where the
	// feature also has the stage AtSheds, is dropped instead of being sent, although its
	// time on the link has been used.
	Departs func(port uint16, v []frame.Ref)
	// Sends is called with the frames that a port is certain to send, after congestion
	// marks have been written: it may change their contents.
	Sends func(port uint16, v []frame.Ref)
	// Left is called with frames that have left egress queues of one port, whether or not
	// they are sent. Their Meta says which. Flow-control frames are among them, though they
	// were in no queue.
	Left func(v []frame.Ref)
	// Released is called with frames that leave the switch through a port, or are dropped
	// from its queues: those of Left that are not queued again.
	Released func(port uint16, v []frame.Ref)
	// Dropped is called with the frames that the worker drops, before they are freed,
	// with Meta.InPort and Meta.Reason. They include frames that have served their
	// purpose (see frame.Reason.Loss). It must not send anything.
	Dropped func(v []frame.Ref)
	// InputQueues is called when a configuration has been adopted. It returns the
	// replacement of the shared buffer, nil if there is none.
	InputQueues func(now frame.Time) InputQueues
	// Advance runs what is due, and returns when something is due next: frame.Never if
	// nothing is. It may be called early. Node.Arm makes the worker call it earlier than
	// it said.
	Advance func(now frame.Time) frame.Time
	// Read calls emit with the value of each counter; counter is its index in
	// Feature.Counters.
	Read func(emit func(counter int, port uint16, value float64, labels ...string))
}

// Stages are the stages of a feature that frames at a port pass.
type Stages uint16

const (
	AtQueued    Stages = 1 << iota // Instance.Queued
	AtLeft                         // Instance.Left
	AtDeparts                      // Instance.Departs
	AtClaims                       // Instance.Claims
	AtReleased                     // Instance.Released
	AtPaused                       // Instance.Paused
	AtPauses                       // Instance.Pauses
	AtLinkLocal                    // Instance.LinkLocal
	AtRequests                     // Instance.Requests
	AtSends                        // Instance.Sends
	AtSheds                        // Instance.Departs drops frames
	AtControl                      // Instance.Control
)

// Counter is a counter or gauge of a feature, per port.
type Counter = feature.Counter

// Call is a request of the control plane to a feature, between two steps of the switch.
type Call = feature.Call

// Options are the options of features by name, each in a type of its package.
type Options = feature.Options

// features are the registered features by name, which is the order of their stages.
var features []*Feature

// maxFeatures is the number of bits in an arc.
const maxFeatures = 32

// Register registers a feature. Packages call it when they are initialized.
func Register(f Feature) {
	at, dup := slices.BinarySearchFunc(features, f.Name, func(f *Feature, name string) int { return cmp.Compare(f.Name, name) })
	if dup {
		panic("vswitch: two features are named " + f.Name)
	}
	if features = slices.Insert(features, at, &f); len(features) > maxFeatures {
		panic("vswitch: there are more than 32 features")
	}
}

// marks are the bits of Meta.Marks that have been assigned.
var marks uint8

// NewMark reserves a bit of Meta.Marks for a feature. Only that feature sets and reads
// it, to remember something about a frame until it leaves. Packages call it when they are
// initialized.
func NewMark() uint8 {
	m := (marks + 1) &^ marks
	if m == 0 {
		panic("vswitch: features want more than 8 marks")
	}
	marks |= m
	return m
}

// Features returns the registered features, ordered by name.
func Features() []*Feature { return features }

// Find returns the feature with a name, nil if there is none.
func Find(name string) *Feature {
	for _, f := range features {
		if f.Name == name {
			return f
		}
	}
	return nil
}

// uses reports whether a configuration has options of a feature.
func (cfg *Config) uses(f *Feature) bool {
	if _, ok := cfg.Options[f.Name]; ok {
		return true
	}
	for i := range cfg.Ports {
		if _, ok := cfg.Ports[i].Options[f.Name]; ok {
			return true
		}
	}
	return false
}

// checkFeatures reports what is wrong with the options of features.
func (cfg *Config) checkFeatures() error {
	known := func(o Options) error {
		for _, name := range slices.Sorted(maps.Keys(o)) {
			if Find(name) == nil {
				return fmt.Errorf("there are options of %q, which is not part of this program", name)
			}
		}
		return nil
	}
	if err := known(cfg.Options); err != nil {
		return err
	}
	for i := range cfg.Ports {
		if err := known(cfg.Ports[i].Options); err != nil {
			return fmt.Errorf("port %s: %w", cfg.Ports[i].Name, err)
		}
	}
	for _, f := range features {
		if f.Check != nil && cfg.uses(f) {
			if err := f.Check(cfg); err != nil {
				return err
			}
		}
	}
	return nil
}

// Arm makes the worker call the features' Advance no later than at.
func (n *Node) Arm(at frame.Time) { n.stages.due = min(n.stages.due, at) }

// advanceFeatures runs what is due in features.
func (n *Node) advanceFeatures(now frame.Time) {
	n.stages.due = frame.Never
	for i := range n.stages.features {
		if f := &n.stages.features[i]; f.Advance != nil {
			n.Arm(f.Advance(now))
		}
	}
	if n.routed.n > 0 { // frames that they sent
		n.route(now)
	}
}

// QueueOf returns the egress queue of a traffic class.
func (n *Node) QueueOf(class uint8) uint8 { return n.prog.class.Queue[class&7] & 7 }

// Feature returns the Instance.State of a feature, nil if the worker never had options of
// it. Like all readers of a node's state it must be called between two steps of the node.
func (n *Node) Feature(name string) any {
	for i := range n.stages.features {
		if f := &n.stages.features[i]; f.State != nil && f.Name == name {
			return f.State
		}
	}
	return nil
}

// Synchronised converts the node's time to synchronised time, for stamps that are
// compared with those of other nodes. If no feature keeps synchronised time it returns t.
// When the clock is set back, the result continues at half speed and never goes back.
func (n *Node) Synchronised(t frame.Time) frame.Time { return frame.Time(n.lead.Stamp(int64(t))) }

// Lead sets by how much synchronised time is ahead of the node's own, and whether it is
// known. The feature that keeps synchronised time calls it.
func (n *Node) Lead(by frame.Time, known bool) {
	switch {
	case !known:
		n.lead, n.leads = feature.Slew{}, false
	case !n.leads:
		n.lead.Step(int64(by))
		n.leads = true
	default:
		n.lead.Set(int64(n.now), int64(by))
	}
}

// Timekeeper returns the feature that keeps synchronised time, nil if none does.
func (n *Node) Timekeeper() feature.Timekeeper {
	for i := range n.stages.features {
		if k, ok := n.stages.features[i].State.(feature.Timekeeper); ok {
			return k
		}
	}
	return nil
}

// ReadFeatures calls emit with all counters of features, by feature.
func (n *Node) ReadFeatures(emit func(f *Feature, counter int, port uint16, value float64, labels ...string)) {
	for i := range n.stages.features {
		if f := &n.stages.features[i]; f.Read != nil {
			f.Read(func(counter int, port uint16, value float64, labels ...string) {
				emit(f.Feature, counter, port, value, labels...)
			})
		}
	}
}
