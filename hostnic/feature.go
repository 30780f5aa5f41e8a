package hostnic

import (
	"cmp"
	"fmt"
	"maps"
	"math/bits"
	"slices"

	"gswitch/feature"
	"gswitch/frame"
	"gswitch/wire"
)

// Feature is what a published system, or any other addition, does in a host's
// NIC beside its queue pairs: a clock that is kept, a meter, another protocol.
// Its package registers it; the NIC knows features by their registration alone. A
// NIC whose configuration has no options of a feature does not have it, and pays
// nothing for it.
type Feature struct {
	// Name names its options in Config.Options.
	Name string
	// Check reports what stands against a configuration with options of the
	// feature.
	Check func(cfg *Config) error
	// New makes the feature's state in a NIC, when a configuration has options of
	// it for the first time.
	New func(n *NIC) Instance
	// Takes are the frames that arrive for the feature alone: Instance.Receive
	// gets them. No two features take the same.
	Takes []Protocol
	// Counters are what Instance.Read reads. Their place is the host.
	Counters []feature.Counter

	// Section makes a section of documents with nothing set. It stands under Name
	// in the document of a host, and in hosts of a scenario. nil: documents cannot
	// turn the feature on.
	Section func() Section
	// Decode is the inverse of Call.Encode; nil: the feature has no calls.
	Decode func(b []byte) (Call, error)

	// Unimaged is why no image of a host that has the feature can be taken; empty: one can.
	Unimaged string

	// Daemons says that the section stands in documents of daemons alone: a scenario
	// turns the feature on in another way, for all nodes together.
	Daemons bool
	// Stamps says that the feature wants frames of PTP to bear Meta.Stamp.
	Stamps bool
	// Before is how many bytes Instance.Leaves puts before a frame at most.
	Before int
	// Doc describes the section, in one sentence.
	Doc string
}

// Call is what a program asks of a feature, between two steps of the host. What it does
// follows from what Encode writes, so that a record of the host holds it.
type Call interface {
	Encode(b []byte) []byte
	// Do carries it out; state is Instance.State.
	Do(now frame.Time, state any)
}

// Section is how documents write the options of a feature: a pointer to a struct
// with the tags of package section.
type Section interface {
	// Options returns the options for a NIC that has been configured otherwise,
	// once what was left out has its default.
	Options(cfg *Config) (any, error)
}

// Protocol is frames by what they carry. RoCEv2, flow control, and notices that
// concern queue pairs are not among them.
type Protocol struct {
	// EtherType is of frames to the NIC's own address or to a group. 0: IP packets
	// to the NIC's own addresses, of the protocol IP, without tunnel and not in
	// fragments.
	EtherType uint16
	IP        uint8
	Port      uint16 // destination port of TCP and UDP; 0: all
}

// Instance is the state of a feature in a NIC, as functions that the NIC calls:
// nil where there is nothing to do. What concerns frames is called for a vector
// of them, in their order.
type Instance struct {
	// State is what NIC.Feature returns: what the feature's package reads its views
	// from.
	State any
	// Adopt is called with the options of the feature when a configuration is
	// adopted, with nil when it has none any more, and says which stages frames
	// pass. Advance follows.
	Adopt func(options any) Stages
	// Receive gets the frames of the protocols that the feature takes, which are
	// parsed, and are its own from then on. Their vector has been dealt with.
	Receive func(now frame.Time, v []frame.Ref)
	// Unwrap is shown all frames as they arrive, before they are parsed: it may take off
	// what the neighbour put before them for the link alone. Arrives is shown the same
	// ones next, in the same order.
	Unwrap func(now frame.Time, v []frame.Ref)
	// Arrives is shown all frames that arrive, parsed, before they are dealt with.
	Arrives func(now frame.Time, v []frame.Ref)
	// Departs is shown the frames that the NIC sends, with Meta.Depart as the link
	// has it. What it writes into them leaves with them, their length stays.
	Departs func(now frame.Time, v []frame.Ref)
	// Leaves is shown each frame that starts on the link at t, parsed, before its length
	// there is known: it may change it, and put something before it for the link alone.
	// Paces of queue pairs do not count that.
	Leaves func(t frame.Time, r frame.Ref)
	// Ready returns the classes of which Next may have a frame, and Next the next
	// one of given classes, or Nil. They are asked when the link is free: of a class
	// the frames leave in turn with data of queue pairs. NIC.Offer says that there
	// is something, where no other function of the Instance was called.
	Ready func() uint8
	Next  func(now frame.Time, classes uint8) frame.Ref
	// Advance runs what is due, and returns when something is the next time:
	// frame.Never if nothing is. It may be called early. NIC.Arm has it called
	// earlier than it said.
	Advance func(now frame.Time) frame.Time
	// Link is called when the link went up or down.
	Link func(now frame.Time, up bool)
	// Read calls emit with what was counted, by the index in Feature.Counters.
	Read func(emit func(counter int, value float64, labels ...string))
}

// Stages are the stages of a feature that frames pass.
type Stages uint8

const (
	AtArrives Stages = 1 << iota // Instance.Arrives
	AtDeparts                    // Instance.Departs
	AtUnwrap                     // Instance.Unwrap
	AtLeaves                     // Instance.Leaves
)

// Options are the options of features, by the name of each, in a type of its
// package.
type Options = feature.Options

// features are those that are registered, by name: the order of their stages.
var features []*Feature

// maxFeatures is how many features there can be: bits of a set of them.
const maxFeatures = 32

// Register makes a feature known. Packages call it when they are initialized.
func Register(f Feature) {
	at, dup := slices.BinarySearchFunc(features, f.Name, func(f *Feature, name string) int { return cmp.Compare(f.Name, name) })
	if dup {
		panic("hostnic: two features are named " + f.Name)
	}
	for _, other := range features {
		for _, p := range f.Takes {
			if slices.ContainsFunc(other.Takes, p.overlaps) {
				panic("hostnic: " + f.Name + " takes frames of " + other.Name)
			}
		}
	}
	if features = slices.Insert(features, at, &f); len(features) > maxFeatures {
		panic("hostnic: there are more than 32 features")
	}
}

// overlaps reports whether a frame can be of both.
func (p Protocol) overlaps(o Protocol) bool {
	return p.EtherType == o.EtherType && p.IP == o.IP && (p.Port == o.Port || p.Port == 0 || o.Port == 0)
}

// Features returns what is registered, by name.
func Features() []*Feature { return features }

// checkFeatures reports what stands against the options of features.
func (c *Config) checkFeatures() error {
	for _, name := range slices.Sorted(maps.Keys(c.Options)) {
		if !slices.ContainsFunc(features, func(f *Feature) bool { return f.Name == name }) {
			return fmt.Errorf("nic %s: there are options of %q, which is not part of this program", c.Name, name)
		}
	}
	for _, f := range features {
		if _, on := c.Options[f.Name]; on && f.Check != nil {
			if err := f.Check(c); err != nil {
				return fmt.Errorf("nic %s: %s: %w", c.Name, f.Name, err)
			}
		}
	}
	return nil
}

// running is a feature in a NIC. Without options it never had State.
type running struct {
	*Feature
	Instance
	on    bool
	taken []frame.Ref // of the vector that arrives
}

// arc is the way of frames through the stages of features: a bit for the index
// of each feature that has them in NIC.features.
type arc struct {
	takes, arrives, departs, unwraps, leaves uint32
	taken                                    uint32     // have frames of the vector that arrives
	due                                      frame.Time // when Instance.Advance is called
	// shown is a copy of what features are shown, so that the vectors of callers
	// stay on their stacks.
	shown []frame.Ref
}

// adoptFeatures brings the features in line with the configuration.
func (n *NIC) adoptFeatures() {
	n.arc, n.sources = arc{due: frame.Never, shown: n.arc.shown}, n.sources[:0]
	if n.features == nil && len(n.cfg.Options) == 0 {
		return
	}
	if n.features == nil {
		n.features = make([]running, len(features))
	}
	n.arc.due = 0
	for i, f := range features {
		r, bit := &n.features[i], uint32(1)<<i
		options, on := n.cfg.Options[f.Name]
		if r.Feature == nil && !on {
			continue
		}
		if r.Feature == nil {
			*r = running{Feature: f, Instance: f.New(n)}
		}
		if r.on = on; on && r.Receive != nil && len(f.Takes) > 0 {
			n.arc.takes |= bit
		}
		if on && r.Ready != nil {
			n.sources = append(n.sources, sending{Instance: &r.Instance, since: frame.Never})
		}
		if r.Adopt == nil {
			continue
		}
		stages := r.Adopt(options)
		if stages&AtArrives != 0 {
			n.arc.arrives |= bit
		}
		if stages&AtDeparts != 0 {
			n.arc.departs |= bit
		}
		if stages&AtUnwrap != 0 {
			n.arc.unwraps |= bit
		}
		if stages&AtLeaves != 0 {
			n.arc.leaves |= bit
		}
	}
}

// unwrap shows features a vector as it arrives.
func (n *NIC) unwrap(now frame.Time, v []frame.Ref) {
	n.arc.shown = append(n.arc.shown[:0], v...)
	for m := n.arc.unwraps; m != 0; m &= m - 1 {
		n.features[bits.TrailingZeros32(m)].Unwrap(now, n.arc.shown)
	}
}

// showLeaving shows features a frame that starts on the link at t.
func (n *NIC) showLeaving(t frame.Time, r frame.Ref) {
	n.arc.shown = append(n.arc.shown[:0], r)
	n.parser.Parse(n.arena, n.arc.shown)
	for m := n.arc.leaves; m != 0; m &= m - 1 {
		n.features[bits.TrailingZeros32(m)].Leaves(t, r)
	}
}

// showArriving shows features a vector that arrives.
func (n *NIC) showArriving(now frame.Time, v []frame.Ref) {
	n.arc.shown = append(n.arc.shown[:0], v...)
	for m := n.arc.arrives; m != 0; m &= m - 1 {
		n.features[bits.TrailingZeros32(m)].Arrives(now, n.arc.shown)
	}
}

// showDeparting shows features what leaves.
func (n *NIC) showDeparting(now frame.Time, v []frame.Ref) {
	n.arc.shown = append(n.arc.shown[:0], v...)
	for m := n.arc.departs; m != 0 && len(v) > 0; m &= m - 1 {
		n.features[bits.TrailingZeros32(m)].Departs(now, n.arc.shown)
	}
}

// takes puts a frame that is not of RoCEv2 aside for the feature that takes it,
// if there is one.
func (n *NIC) takes(r frame.Ref, m *frame.Meta, b []byte) bool {
	for set := n.arc.takes; set != 0; set &= set - 1 {
		i := bits.TrailingZeros32(set)
		f := &n.features[i]
		for _, p := range f.Takes {
			if n.isOf(p, m, b) {
				f.taken = append(f.taken, r)
				n.arc.taken |= 1 << i
				return true
			}
		}
	}
	return false
}

// isOf reports whether a frame is of a protocol, and for this NIC.
func (n *NIC) isOf(p Protocol, m *frame.Meta, b []byte) bool {
	own := wire.Ethernet(b).DstUint64() == n.mac
	if p.EtherType != 0 {
		return m.EtherType == p.EtherType && (own || m.Flags&frame.IsMulticast != 0)
	}
	const wrong = frame.HasTunnel | frame.IsFragment | frame.Chained
	if !own || m.Proto != p.IP || p.Port != 0 && m.DstPort != p.Port || m.Flags&wrong != 0 || m.L4 == 0 {
		return false
	}
	if n.addr.v4 {
		return m.Flags&frame.HasIPv4 != 0 && n.addr.is(b[m.L3+16:])
	}
	return m.Flags&frame.HasIPv6 != 0 && n.addr.is(b[m.L3+24:])
}

// handOver gives features the frames that were put aside for them.
func (n *NIC) handOver(now frame.Time) {
	for m := n.arc.taken; m != 0; m &= m - 1 {
		f := &n.features[bits.TrailingZeros32(m)]
		f.Receive(now, f.taken)
		f.taken = f.taken[:0]
	}
	n.arc.taken = 0
	n.Offer(now)
}

// Arm has the features' Advance called at an instant, if not before.
func (n *NIC) Arm(at frame.Time) { n.arc.due = min(n.arc.due, at) }

// advanceFeatures runs what is due of features.
func (n *NIC) advanceFeatures(now frame.Time) {
	n.arc.due = frame.Never
	for i := range n.features {
		if f := &n.features[i]; f.Instance.Advance != nil {
			n.Arm(f.Instance.Advance(now))
		}
	}
	n.Offer(now)
}

// linkFeatures calls Link of the features.
func (n *NIC) linkFeatures(now frame.Time, up bool) {
	for i := range n.features {
		if f := &n.features[i]; f.Link != nil {
			f.Link(now, up)
		}
	}
}

// Feature returns the Instance.State of a feature, nil if the NIC never had
// options of it. Like every reader of a node's state it is called between two
// steps of it.
func (n *NIC) Feature(name string) any {
	for i := range n.features {
		if f := &n.features[i]; f.Feature != nil && f.Name == name {
			return f.State
		}
	}
	return nil
}

// Lead says by how much synchronised time is ahead of the NIC's own, and whether it is
// known. The feature that keeps it calls it.
func (n *NIC) Lead(by frame.Time, known bool) { n.lead, n.synced = by, known }

// Timekeeper returns the feature that keeps synchronised time, nil if none does.
func (n *NIC) Timekeeper() feature.Timekeeper {
	for i := range n.features {
		if k, ok := n.features[i].State.(feature.Timekeeper); ok {
			return k
		}
	}
	return nil
}

// ReadFeatures calls emit with all counters of features, by feature.
func (n *NIC) ReadFeatures(emit func(f *Feature, counter int, value float64, labels ...string)) {
	for i := range n.features {
		if f := &n.features[i]; f.Feature != nil && f.Read != nil {
			f.Read(func(counter int, value float64, labels ...string) { emit(f.Feature, counter, value, labels...) })
		}
	}
}

// Arena returns the memory of the NIC's frames.
func (n *NIC) Arena() *frame.Arena { return n.arena }

// Pool returns the pool that the NIC takes chunks from.
func (n *NIC) Pool() *frame.Pool { return n.pool }

// Drop counts a frame of a feature under a reason and frees it.
func (n *NIC) Drop(r frame.Ref, why frame.Reason) { n.drop(r, why) }
