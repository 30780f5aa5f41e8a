package clocksync

import (
	"gswitch/feature"
	"gswitch/frame"
)

// ReadTime implements feature.Timekeeper.
func (n *Instance) ReadTime(now int64) feature.Time {
	t := feature.Time{Time: int64(n.At(frame.Time(now))), Eps: -1, Drift: n.drift, State: uint8(n.State()), Epoch: n.epoch, Root: n.rootID,
		SecondRoots: n.Counts.SecondRoot, Rival: n.rivals.last}
	if eps := n.Uncertainty(frame.Time(now)); eps != Forever {
		t.Eps = int64(eps)
	}
	if n.exact {
		t.Drift = 0
	}
	return t
}
