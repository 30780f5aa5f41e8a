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

// Feature is what a published system, or any other addition, does in a switch.
// Its package registers it; the switch knows features by their registration
// alone. A switch whose configuration has no options of a feature does not have
// it, and pays nothing for it.
type Feature struct {
	// Name names its options in Config.Options and PortConfig.Options.
	Name string
	// Check reports what stands against a configuration with options of the
	// feature.
	Check func(cfg *Config) error
	// Divide may change what a port has of the shared buffer, such as set aside room
	// for the feature, when the configuration has options of it.
	Divide func(cfg *Config, p *PortConfig, b *buffer.PortConfig)
	// FlowControl may change what the flow control of both ends of a link is made
	// from: of the switch's ports, and of hosts behind them.
	FlowControl func(cfg *Config, f *pfc.Config)
	// New makes the feature's state of one worker, when a configuration has
	// options of it for the first time.
	New func(n *Node) Instance
	// Aliases are other names of the verb that shows the counters.
	Aliases []string
	// Counters are what Instance.Read reads.
	Counters []Counter

	// Whole makes a section of documents about a switch as a whole, with nothing
	// set, in place of Section: it stands under Name in a switch. nil: there is none.
	Whole func() WholeSection
	// Virtual makes that of scenarios, where it is another one.
	Virtual func() WholeSection
	// OnePort says, as a clause, that the feature needs the frames of a flow to leave
	// by one port; "": it does not. A Whole that has it is Paired.
	OnePort string

	// Section makes a section of documents with nothing set. It stands under Name
	// in a queue profile and in the switches of a scenario, which say which queues
	// it is for. nil: documents cannot turn the feature on.
	Section func() Section
	// Daemons says that the section stands in documents of daemons alone: a scenario
	// turns the feature on in another way, for all nodes together.
	Daemons bool
	// Stamps says that the feature wants frames of PTP to bear Meta.Stamp.
	Stamps bool
	// Doc describes the section, in one sentence.
	Doc string
	// Nowhere says, as a clause, why no port of a switch may have a Whole that is on.
	Nowhere string
	// Signals is what the queues signal to hosts, for congestion control that needs
	// it (cc.Info.Needs). 0: nothing.
	Signals feature.Signals
	// Notices says that this goes by messages of their own, which must not wait
	// behind the congestion that they report.
	Notices bool
	// BothEnds says that the neighbour at a port must have it, too.
	BothEnds bool
	// Memory reports what of a configuration that is possible has too little room where the
	// packet memory has so many chunks and ports belong to so many workers; nil: nothing.
	Memory func(cfg *Config, workers, chunks int) error
	// InputQueued says that Instance.InputQueues takes the place of the shared
	// buffer.
	InputQueued bool
}

// Section is how documents write PortConfig.Options of a feature: a pointer to a
// struct with the tags of package section.
type Section interface {
	// Options returns the options of a port for the queues of a bitmap, once what
	// was left out has its default. rate is that of the port's link in bit/s, 0 if
	// it has none of its own.
	Options(queues uint8, rate uint64) (any, error)
}

// WholeSection is how documents write Config.Options of a feature: a pointer to a
// struct with the tags of package section.
type WholeSection interface {
	// Options returns the options of a switch, once what was left out has its
	// default, and may set those of its ports in cfg. Of cfg the ID, the loopbacks, the class maps, buffer and flow control,
	// and the ports' names, links, MTUs, workers and addresses are known. An error that
	// is a KeyError says which key it is about.
	Options(cfg *Config) (any, error)
}

// Paired is a WholeSection that names, under its key ports, the ports whose
// neighbours are switches that have the feature, too.
type Paired interface{ Neighbors() []string }

// Reserver is a WholeSection that wants an egress queue to be of no class: where a
// document does not say which class goes to which, that of its number goes to 7.
type Reserver interface{ Reserves() (queue int) }

// Resolver is a WholeSection of which something that was left out follows from
// links.
type Resolver interface {
	// Resolve fills that in. Of cfg the names of ports, their rates and MTUs are
	// known: those of a switch, or in scenarios of all links between switches.
	Resolve(cfg *Config)
	// Warn returns what is possible, and seldom meant, once Resolve was called; nil
	// if nothing is.
	Warn() error
}

// KeyError is about a key within a section, such as sessions[0].port.
type KeyError struct {
	Key string
	Err error
}

func (e *KeyError) Error() string { return e.Key + ": " + e.Err.Error() }

// Checked is a Section with options that can hurt the network that they are
// for: a daemon refuses them, a scenario may show what comes of them.
type Checked interface {
	// CheckRate is an error if they do at a port whose link has a rate in bit/s.
	CheckRate(rate uint64) error
}

// Holder is a Section of a feature that holds queues at a depth. One that drops
// before would never be there.
type Holder interface {
	// Depth returns the bytes at a port whose link has a rate in bit/s.
	Depth(rate uint64) uint64
}

// Instance is the state of a feature on one worker, as functions that the worker
// calls: nil where there is nothing to do. What concerns frames is called for a
// vector of them.
type Instance struct {
	// State is what Node.Feature returns: what the feature's package reads its
	// views from.
	State any
	// Adopt is called when a configuration is adopted, before Port.
	Adopt func(now frame.Time)
	// Queues may change what the queues of a port of the worker are made from, when
	// a configuration is adopted. It is called before Port.
	Queues func(port uint16, c *PortConfig, s *scheduler.PortConfig)
	// Routed is called when routes may have changed, and when a configuration has
	// been adopted.
	Routed func()
	// Port is called for each port of the worker when a configuration is adopted,
	// and says which stages frames at this port pass.
	Port func(now frame.Time, port uint16, c *PortConfig) Stages
	// Dismiss is called when a port of the worker is gone; its queues are empty.
	Dismiss func(port uint16)
	// Wrapped is called for each port of the switch, those of other workers too,
	// when a configuration is adopted, and says whether frames that come in by it
	// pass Unwrap on this worker. nil: no port's do.
	Wrapped func(port uint16, c *PortConfig) bool
	// Unwrap is shown frames as they came in by a port, before they are parsed: it
	// takes off what the other end of the link put before them. Nothing of Meta but
	// the geometry is good.
	Unwrap func(now frame.Time, port uint16, v []frame.Ref)
	// Forwards is shown the frames whose way out, Meta.OutPort, is decided, as they
	// will leave but for congestion marks and telemetry, on the worker that they came
	// to, before they ask for a place in a queue: it may put something before them.
	// Those that the switch keeps for itself (frame.ToLocal) are shown when it takes
	// them. Copies for a mirror, and flow control, are not.
	Forwards func(now frame.Time, v []frame.Ref)
	// Copies is shown each copy for a mirror whose way out is decided, and each frame of
	// Send for a port: it may put something before it.
	Copies func(r frame.Ref)
	// Listens is called for each port of the switch, those of other workers too,
	// when a configuration is adopted, and says whether frames that come in by it
	// pass Arrives on this worker. nil: no port's do.
	Listens func(port uint16, c *PortConfig) bool
	// Arrives is shown frames as they came in by a port, before anything is asked
	// of them: they are parsed, those that the parser found wrong (Meta.Reason) and
	// MAC control frames are among them, and Meta.InPort and Meta.Class are not set
	// yet. It returns, in place, those that go on; it has given Node.Consume the
	// others.
	Arrives func(now frame.Time, port uint16, v []frame.Ref) []frame.Ref
	// Admits is Listens for Admitted.
	Admits func(port uint16, c *PortConfig) bool
	// Admitted is shown the frames that came in by a port and passed its access list,
	// with VLAN and class, before their way out is sought. Those with a Reason will
	// not be routed.
	Admitted func(now frame.Time, port uint16, v []frame.Ref)
	// Control acts on a MAC control frame (IEEE 802.3 clause 31) that is neither
	// pause nor priority flow control, of an opcode that package wire knows, on the
	// worker that owns the port that it came in by, before any other frame of its
	// vector goes on. It returns false if the feature does not understand the frame
	// at this port.
	Control func(port uint16, c wire.MACControl) bool
	// Claims is asked for a frame that the feature has given frame.Claimed in
	// Arrives, when its egress port and queue are known and before it is charged to
	// the buffer. It returns true if it has charged and queued the frame itself
	// (Node.Charge, Node.Join), false if that is to go on like any other.
	Claims func(r frame.Ref) bool
	// Paused is called when the neighbour at a port has paused or resumed classes,
	// Pauses when the switch may have asked it to.
	Paused, Pauses func(now frame.Time, port uint16)
	// Requests passes to the flow control of a port what the switch wants of the
	// neighbour there, in place of the pauses that it would ask for. Of several
	// features with the stage the first is asked.
	Requests func(port uint16, f *pfc.Port)
	// Queued is shown the frames that joined egress queues, when the vector that
	// they came in has been dealt with, before any of them leaves. Frames of ports
	// that do not have the stage may be among them.
	Queued func(v []Queued)
	// LinkLocal is given frames to the addresses 01-80-C2-00-00-00 to 0F (IEEE
	// 802.1Q table 8-1), which bridges do not forward, by the worker that owns the
	// port that they came in by. It returns true if it understood the frame; what
	// no feature understands is dropped.
	LinkLocal func(now frame.Time, port uint16, r frame.Ref) bool
	// Departs is shown the frames that a port sends, in their order, with
	// Meta.Depart as the link has it, before congestion marks and telemetry are
	// written: what sets frame.MarkCE on a frame with frame.IsECT marks it. Frames
	// of flow control are among them. One that it gives the Reason frame.QueueShed,
	// at a port where it has the stage AtSheds, too, is dropped in place of sent,
	// though its time on the link is spent.
	Departs func(port uint16, v []frame.Ref)
	// Sends is shown the frames that a port sends, when nothing keeps them from it any
	// more and congestion marks are written: it may change what is in them.
	Sends func(port uint16, v []frame.Ref)
	// Left is called with frames that have left egress queues of one port, sent or
	// not. Their Meta says which.
	Left func(v []frame.Ref)
	// Released is called with frames that leave the switch by a port, or are dropped
	// from its queues: of those of Left that are not queued again.
	Released func(port uint16, v []frame.Ref)
	// Dropped is shown the frames that the worker drops, before they are freed,
	// with Meta.InPort and Meta.Reason: those that did their work among them
	// (see frame.Reason.Loss). It sends nothing.
	Dropped func(v []frame.Ref)
	// InputQueues is called when a configuration has been adopted, and returns what
	// takes the place of the shared buffer; nil if nothing does.
	InputQueues func(now frame.Time) InputQueues
	// Advance runs what is due, and returns when something is the next time:
	// frame.Never if nothing is. It may be called early. Node.Arm has it called
	// earlier than it said.
	Advance func(now frame.Time) frame.Time
	// Read calls emit with what was counted, by the index in Feature.Counters.
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
)

// Counter is a number that a feature counts, or a measure that it takes, of a
// port.
type Counter = feature.Counter

// Options are the options of features, by the name of each, in a type of its
// package.
type Options = feature.Options

// features are those that are registered, by name: the order of their stages.
var features []*Feature

// maxFeatures is how many features there can be: bits of an arc.
const maxFeatures = 32

// Register makes a feature known. Packages call it when they are initialized.
func Register(f Feature) {
	at, dup := slices.BinarySearchFunc(features, f.Name, func(f *Feature, name string) int { return cmp.Compare(f.Name, name) })
	if dup {
		panic("vswitch: two features are named " + f.Name)
	}
	if features = slices.Insert(features, at, &f); len(features) > maxFeatures {
		panic("vswitch: there are more than 32 features")
	}
}

// marks are the bits of Meta.Marks that have been handed out.
var marks uint8

// NewMark returns a bit of Meta.Marks for a feature, which alone sets it in frames
// and reads it, for what it must know of a frame until that leaves. Packages call it
// when they are initialized.
func NewMark() uint8 {
	m := (marks + 1) &^ marks
	if m == 0 {
		panic("vswitch: features want more than 8 marks")
	}
	marks |= m
	return m
}

// Features returns what is registered, by name.
func Features() []*Feature { return features }

// Find returns the feature of a name, nil if none is registered.
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

// checkFeatures reports what stands against the options of features.
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

// Arm has the features' Advance called at an instant, if not before.
func (n *Node) Arm(at frame.Time) { n.featuresDue = min(n.featuresDue, at) }

// advanceFeatures runs what is due of features.
func (n *Node) advanceFeatures(now frame.Time) {
	n.featuresDue = frame.Never
	for i := range n.features {
		if f := &n.features[i]; f.Advance != nil {
			n.Arm(f.Advance(now))
		}
	}
	if n.routeN > 0 { // what they sent
		n.route(now)
	}
}

// QueueOf returns the egress queue of a traffic class.
func (n *Node) QueueOf(class uint8) uint8 { return n.prog.class.Queue[class&7] & 7 }

// Feature returns the Instance.State of a feature, nil if the worker never had
// options of it. Like every reader of a node's state it is called between two
// steps of it.
func (n *Node) Feature(name string) any {
	for i := range n.features {
		if f := &n.features[i]; f.State != nil && f.Name == name {
			return f.State
		}
	}
	return nil
}

// Synchronised returns what synchronised time is at an instant of the node's own, which it
// is itself where no feature keeps it: what stamps say that are compared with those of
// others. Where the clock is set back it goes on at half the speed, and never back.
func (n *Node) Synchronised(t frame.Time) frame.Time { return frame.Time(n.lead.Stamp(int64(t))) }

// Lead says by how much synchronised time is ahead of the node's own, and whether it is
// known. The feature that keeps it calls it.
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
	for i := range n.features {
		if k, ok := n.features[i].State.(feature.Timekeeper); ok {
			return k
		}
	}
	return nil
}

// ReadFeatures calls emit with all counters of features, by feature.
func (n *Node) ReadFeatures(emit func(f *Feature, counter int, port uint16, value float64, labels ...string)) {
	for i := range n.features {
		if f := &n.features[i]; f.Read != nil {
			f.Read(func(counter int, port uint16, value float64, labels ...string) {
				emit(f.Feature, counter, port, value, labels...)
			})
		}
	}
}
