package pipeline

import "fmt"

// Chooser is the method by which the next hop of a frame is chosen within a Group.
type Chooser uint8

const (
	ChooseHash     Chooser = iota // by flow: frames of one flow stay in order
	ChooseScatter                 // at random by weight, frame by frame (packet scatter)
	ChooseFlowlet                 // at random by weight, again after each pause of a flow (LetFlow)
	ChooseWeighted                // by flow, weights in proportion to the rates of the links
	ChooseAdaptive                // at random among the ports with the least load by tiers, frame by frame (DeTail)
	ChooseLeast                   // the port with the least load, frame by frame
	NumChoosers
)

var chooserNames = [NumChoosers]string{"hash", "scatter", "flowlet", "weighted", "adaptive", "least"}

func (c Chooser) String() string {
	if c < NumChoosers {
		return chooserNames[c]
	}
	return fmt.Sprintf("chooser(%d)", uint8(c))
}

// ParseChooser returns the Chooser with a name.
func ParseChooser(name string) (Chooser, error) {
	for c, n := range chooserNames {
		if n == name {
			return Chooser(c), nil
		}
	}
	return 0, fmt.Errorf("there is no way to choose a path called %q; there are %v", name, chooserNames)
}

// ByFlow reports whether all frames of a flow take one path as long as the group and the
// links do not change.
func (c Chooser) ByFlow() bool { return c == ChooseHash || c == ChooseWeighted }

// ByPort reports whether the choice depends on the ports of the next hops: every member
// must then have its own.
func (c Chooser) ByPort() bool { return c >= ChooseWeighted && c < NumChoosers }

// ByLoad reports whether the choice depends on the bytes that wait at the ports.
func (c Chooser) ByLoad() bool { return c == ChooseAdaptive || c == ChooseLeast }
