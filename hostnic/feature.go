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

// Feature is what a published system, or any other addition, does in a host's NIC besides
// its queue pairs: a synchronised clock, a meter, another protocol. Its package registers
// it; the NIC knows features only by their registration. A NIC whose configuration has no
// options of a feature does not have it, and pays nothing for it.
type Feature struct {
	// Name is the key of its options in Config.Options.
	Name string
	// Check reports what is wrong with a configuration that has options of the feature.
	Check func(cfg *Config) error
	// New makes the feature's state in a NIC when a configuration first has options of
	// it.
	New func(n *NIC) Instance
	// Takes lists the protocols whose arriving frames are for the feature alone: they are
	// passed to Instance.Receive. No two features may take the same frames.
	Takes []Protocol
	// Counters describe what Instance.Read reads. Their place is the host.
	Counters []feature.Counter

	// Section makes a section of documents with nothing set. Its key is Name, in the
	// document of a host and in hosts of a scenario. nil: documents cannot enable the
	// feature.
	Section func() Section
	// Decode is the inverse of Call.Encode; nil: the feature has no calls.
	Decode func(b []byte) (Call, error)

	// Unimaged says why no image can be taken of a host with the feature; "": one can.
	Unimaged string

	// Daemons says that the section exists only in documents of daemons: a scenario
	// enables the feature in another way, for all nodes together.
	Daemons bool
	// Stamps says that the feature needs Meta.Stamp in PTP frames.
	Stamps bool
	// Before is the largest number of bytes that Instance.Leaves puts in front of a
	// frame.
	Before int
	// Doc describes the section, in one sentence.
	Doc string
}

// Call is a program's request to a feature, between two steps of the host.
type Call = feature.Call

// Section is the form of a feature's options in documents: a pointer to a struct with the
// tags of package section.
type Section interface {
	// Options returns the options, after defaults have been filled in, for a NIC with
	// configuration cfg.
	Options(cfg *Config) (any, error)
}

// Protocol selects frames by what they carry. RoCEv2, flow control, and notices for queue
// pairs are excluded.
type Protocol struct {
	// EtherType selects frames to the NIC's own address or to a group. 0: IP packets to
	// the NIC's own addresses with protocol IP, not tunnelled and not fragmented.
	EtherType uint16
	IP        uint8
	Port      uint16 // destination port of TCP and UDP; 0: all
}

// Instance is the state of a feature in a NIC, as functions that the NIC calls; a nil
// function means that there is nothing to do. Functions about frames are called with a
// vector of them, in order.
type Instance struct {
	// State is the result of NIC.Feature, from which the feature's package derives what
	// it shows.
	State any
	// Adopt is called when a configuration is adopted, with the options of the feature,
	// or with nil when it no longer has any. It returns the stages that frames pass.
	// Advance is called next.
	Adopt func(options any) Stages
	// Receive is called with the frames of the protocols that the feature takes, which
	// are parsed, after the rest of their vector has been processed. The feature owns
	// them from then on.
	Receive func(now frame.Time, v []frame.Ref)
	// Unwrap is called with all frames as they arrive, before they are parsed: it may
	// remove what the neighbour put in front of them for the link alone. Arrives is
	// called next, with the same frames in the same order.
	Unwrap func(now frame.Time, v []frame.Ref)
	// Arrives is called with all frames that arrive, parsed, before they are processed.
	Arrives func(now frame.Time, v []frame.Ref)
	// Departs is called with the frames that the NIC sends, with Meta.Depart as on the
	// link. It may write into them, but must not change their length.
	Departs func(now frame.Time, v []frame.Ref)
	// Leaves is called with each frame that starts on the link at t, parsed, before its
	// length there is known: it may change the frame, and put something in front of it
	// for the link alone. The pacing of queue pairs does not count that.
	Leaves func(t frame.Time, r frame.Ref)
	// Ready returns the classes in which Next may have a frame, and Next the next frame
	// of the given classes, or Nil. They are called when the link is free: within a class
	// the frames alternate with data of queue pairs. The feature calls NIC.Offer if it
	// gets something to send outside the functions of the Instance.
	Ready func() uint8
	Next  func(now frame.Time, classes uint8) frame.Ref
	// Advance runs what is due, and returns when something is due next: frame.Never if
	// nothing is. It may be called early. NIC.Arm makes the NIC call it earlier than it
	// said.
	Advance func(now frame.Time) frame.Time
	// Link is called when the link went up or down.
	Link func(now frame.Time, up bool)
	// Read calls emit with the value of each counter; counter is its index in
	// Feature.Counters.
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

// Options are the options of features by name, each in a type of its package.
type Options = feature.Options

// features are the registered features by name, which is the order of their stages.
var features []*Feature

// maxFeatures is the number of bits in a set of features.
const maxFeatures = 32

// Register registers a feature. Packages call it when they are initialized.
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

// overlaps reports whether a frame can match both protocols.
func (p Protocol) overlaps(o Protocol) bool {
	return p.EtherType == o.EtherType && p.IP == o.IP && (p.Port == o.Port || p.Port == 0 || o.Port == 0)
}

// Features returns the registered features, ordered by name.
func Features() []*Feature { return features }

// checkFeatures reports what is wrong with the options of features.
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

// arc is the path of frames through the stages of features: for each stage a bitmap of
// the features that have it, by the index in NIC.features.
type arc struct {
	takes, arrives, departs, unwraps, leaves uint32
	taken                                    uint32     // have frames of the vector that arrives
	due                                      frame.Time // when Instance.Advance is called
	// shown is a copy of the vector for features, so that vectors of callers can stay on
	// their stacks.
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
			n.sources = append(n.sources, source{Instance: &r.Instance, since: frame.Never})
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

// takes sets aside a frame that is not RoCEv2 for the feature that takes it, if there is
// one.
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

// handOver passes the frames that were set aside to their features.
func (n *NIC) handOver(now frame.Time) {
	for m := n.arc.taken; m != 0; m &= m - 1 {
		f := &n.features[bits.TrailingZeros32(m)]
		f.Receive(now, f.taken)
		f.taken = f.taken[:0]
	}
	n.arc.taken = 0
	n.Offer(now)
}

// Arm makes the NIC call the features' Advance no later than at.
func (n *NIC) Arm(at frame.Time) { n.arc.due = min(n.arc.due, at) }

// advanceFeatures runs what is due in features.
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

// Feature returns the Instance.State of a feature, nil if the NIC never had options of
// it. Like all readers of a node's state it must be called between two steps of the node.
func (n *NIC) Feature(name string) any {
	for i := range n.features {
		if f := &n.features[i]; f.Feature != nil && f.Name == name {
			return f.State
		}
	}
	return nil
}

// Lead sets by how much synchronised time is ahead of the NIC's own, and whether it is
// known. The feature that keeps synchronised time calls it.
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

// Pool returns the pool from which the NIC allocates chunks.
func (n *NIC) Pool() *frame.Pool { return n.pool }

// Alloc takes memory for a frame that a feature makes, or returns frame.Nil, which is
// counted. The frame is empty.
func (n *NIC) Alloc() frame.Ref {
	r := n.pool.Alloc()
	if r == frame.Nil {
		n.Unmade(1)
		return r
	}
	n.arena.Reset(r)
	return r
}

// Unmade counts frames that a feature did not make for want of memory.
func (n *NIC) Unmade(frames uint64) { n.count.Drops[frame.ArenaExhausted] += frames }

// Drop counts a frame of a feature with a reason and frees it.
func (n *NIC) Drop(r frame.Ref, why frame.Reason) { n.drop(r, why) }
