package feature

import (
	"fmt"
	"slices"
	"strings"
)

// ClockPlan is a node's part of a plan of which clock follows which, as a controller gives it to a
// node that keeps synchronised time. A plan comes in stages, so that no clock ever accepts
// a port by which no messages come.
type ClockPlan struct {
	Epoch  uint32 // of the plan: no two plans have the same, and later ones have higher ones
	Stage  ClockStage
	Root   bool // all others follow this clock
	Deputy bool // it becomes the root when it receives sync messages by neither parent
	Parent int  // port by which sync messages of the root are accepted; -1: none
	Second int  // port that it turns to; -1: none
	Send   []int
	// Hops is how far the root is by Parent, and MostHops after any failure.
	Hops, MostHops int
}

// ClockStage is one of the three steps by which a network comes to a plan.
type ClockStage uint8

// Every node of a plan is widened before the first takes it, and takes it behind its
// parent; none is narrowed before the last has taken it.
const (
	Widen  ClockStage = iota // send by the ports of this plan, too
	Take                     // follow the parents of this plan
	Narrow                   // send by no other ports
	numClockStages
)

var clockStageNames = [...]string{"widen", "take", "narrow"}

// String returns the stage in a word.
func (s ClockStage) String() string { return clockStageNames[s] }

// ParseClockStage is the inverse of String.
func ParseClockStage(s string) (ClockStage, error) {
	i := slices.Index(clockStageNames[:], s)
	if i < 0 {
		return 0, fmt.Errorf("%q is no stage of a plan; there are %s", s, strings.Join(clockStageNames[:], ", "))
	}
	return ClockStage(i), nil
}

// ClockView is what a node that keeps synchronised time reports to a controller.
type ClockView struct {
	Plan     ClockPlan // that it has taken last; Epoch 0: none
	Promised uint32    // the highest epoch of a plan of which it has had any stage: it takes no stage of a lower one
	Time     Time
	State    string // in a word
	Identity uint64
	Depth    int   // hops that the last message made
	Hop      int64 // uncertainty that a hop adds in ns; 0: it is measured
	Parent   int   // port that is accepted now; -1: none
	Turned   bool
	Awaits   bool // the configuration leaves the parent to a controller
}

// Planned is implemented by a Timekeeper that a controller may plan for. Like readers of
// a node's state these are called between two steps of it. now is the node's own time.
type Planned interface {
	Timekeeper
	// TakePlan carries out a stage of a plan, or says why not.
	TakePlan(now int64, p *ClockPlan) error
	View(now int64) ClockView
}
