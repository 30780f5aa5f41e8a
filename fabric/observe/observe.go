// Package observe is how systems enter runs of scenarios: what a network gets for
// them beyond what its document says, what is measured of it, and the names of that in
// results and expectations. Each registers itself; package all lists them.
package observe

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"gswitch/fabric/measure"
	"gswitch/fabric/results"
	"gswitch/fabric/scenario"
	"gswitch/fabric/view"
	"gswitch/fabric/vnet"
)

// System is what runs know of one.
type System struct {
	Name string
	On   func(d *scenario.Document) bool // whether a run has it; nil for one that only counts
	// Divided says why nodes of a run that has it cannot be in several processes, and
	// what to do; it is empty for one whose nodes can.
	Divided string
	// Virtual says in the same way why such a run is possible in virtual time only, and
	// OneWorker why one worker has to step all of its nodes on real frames.
	Virtual, OneWorker string
	// Unrecorded says that a run on real frames that has it cannot be recorded.
	Unrecorded bool
	Values     []measure.Key // that runs have with it
	// Configure, if not nil, changes what every network of such a run is built from:
	// that of a rehearsal or of a check as well. With real it stands on real frames.
	Configure func(r *scenario.Run, real bool, c *vnet.Config) error
	// Count, if not nil, adds to sums, by the names of values, what the nodes of a network
	// that are stepped here have counted. It is called in every run, and in each process of
	// one that is divided: the values of a run are the sums over its processes.
	Count func(n *vnet.Network, sums map[string]float64)
	// New returns what observes one run.
	New func(ctx context.Context, r *Run) (*Observer, error)
}

// Run is one that is about to be made.
type Run struct {
	*scenario.Run
	Real    bool   // on real frames
	Dir     string // where its results go, "" for nowhere
	Program string // version of the program that makes it
	// Rehearse makes the run in virtual time in a network that change may change
	// first. It fails if frames are lost.
	Rehearse func(ctx context.Context, change func(c *vnet.Config)) error
}

// Observer observes a run. It has those functions that it needs, called in this order.
type Observer struct {
	// Network changes what the network of this run alone is built from.
	Network func(c *vnet.Config)
	// Built is called when the network is there, and before the workload opens connections.
	Built func(n *vnet.Network)
	// Begin is called before time begins, and asks the engine for what is to follow.
	Begin func(n *vnet.Network, rec *measure.Recorder) error
	// Losses appends what links lost so far, by direction and cause, for those who look
	// at the run. It is called between events.
	Losses func(v []view.Loss) []view.Loss
	// Ways appends those of packets that are traced, the newest first, in the same way.
	Ways func(v []view.Way) []view.Way
	// Finish is called when the run is over, and writes what was measured.
	Finish func(n *vnet.Network, out *results.Run) error
}

var systems []*System // in the order of their names

// Register adds a system. It panics if there is one of that name.
func Register(s *System) {
	i, known := slices.BinarySearchFunc(systems, s.Name, func(x *System, name string) int { return strings.Compare(x.Name, name) })
	if known {
		panic(fmt.Sprintf("observe: %s is registered already", s.Name))
	}
	systems = slices.Insert(systems, i, s)
	measure.Register(s.Name, s.Values)
}

// Of returns the systems of a run, in the order of their names.
func Of(d *scenario.Document) (v []*System) {
	for _, s := range systems {
		if s.On != nil && s.On(d) {
			v = append(v, s)
		}
	}
	return v
}

// Counted returns the sums of what systems count, by the names of values.
func Counted(n *vnet.Network) map[string]float64 {
	sums := map[string]float64{}
	for _, s := range systems {
		if s.Count != nil {
			s.Count(n, sums)
		}
	}
	return sums
}

// Feature reports a registered feature of switches whether a document turns it on.
func Feature(name string) func(d *scenario.Document) bool {
	return func(d *scenario.Document) bool {
		return slices.ContainsFunc(d.Features(), func(f scenario.Feature) bool { return f.Name == name }) ||
			slices.ContainsFunc(d.Wholes(), func(w scenario.Whole) bool { return w.Name == name })
	}
}
