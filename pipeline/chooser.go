package pipeline

import "fmt"

// Chooser says how the next hop of a frame is chosen among those of a Group.
type Chooser uint8

const (
	ChooseHash     Chooser = iota // by flow: frames of one flow stay in order
	ChooseScatter                 // at random by weight, frame by frame (packet scatter)
	ChooseFlowlet                 // at random by weight, anew after each pause of a flow (LetFlow)
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

// ParseChooser returns the Chooser of a name.
func ParseChooser(name string) (Chooser, error) {
	for c, n := range chooserNames {
		if n == name {
			return Chooser(c), nil
		}
	}
	return 0, fmt.Errorf("there is no way to choose a path called %q; there are %v", name, chooserNames)
}

// ByFlow reports whether all frames of a flow go one way as long as the group
// and the links stay as they are.
func (c Chooser) ByFlow() bool { return c == ChooseHash || c == ChooseWeighted }

// ByPort reports whether the choice looks at the ports of the next hops: every
// member needs one of its own then.
func (c Chooser) ByPort() bool { return c >= ChooseWeighted && c < NumChoosers }

// ByLoad reports whether the choice looks at what waits at the ports.
func (c Chooser) ByLoad() bool { return c == ChooseAdaptive || c == ChooseLeast }
