package hostnic

import (
	"math/bits"

	"gswitch/frame"
)

// stageGaps holds the classes that the neighbour slows (Gentle Flow Control): in stage k
// each frame is followed by a gap, so that both together take 2^k times as long as the
// frame. During the gap the class counts as paused. With Config.Burst the link may catch
// up, and a gap then starts that much earlier.
type stageGaps struct {
	slow    uint8 // classes in a stage above 0
	classes uint8 // of these, those within a gap
	stage   [8]uint8
	at      [8]frame.Time // when the last frame left, since the class was slowed
	bytes   [8]uint32     // of that frame, 0 if there was none
	until   [8]frame.Time // of those within a gap
}

// stagesChanged adapts the gaps to the stages of the neighbour.
func (n *NIC) stagesChanged(now frame.Time) {
	x := &n.gaps
	for c := range x.stage {
		stage := n.flow.Stage(c)
		if stage != x.stage[c] {
			x.stage[c] = stage
			x.slow &^= 1 << c
			if stage != 0 {
				x.slow |= 1 << c
			} else {
				x.bytes[c] = 0
			}
			n.spread(now, c)
		}
	}
	n.paused |= x.classes
}

// beginGap begins the gap behind a frame that leaves at t.
func (n *NIC) beginGap(t frame.Time, class uint8, bytes uint32) {
	x := &n.gaps
	if x.slow>>class&1 == 0 {
		return
	}
	x.at[class], x.bytes[class] = t, bytes
	n.spread(t, int(class))
	n.paused |= x.classes
}

// spread works out the end of the gap of a class.
func (n *NIC) spread(now frame.Time, c int) {
	x := &n.gaps
	x.classes &^= 1 << c
	if x.stage[c] == 0 || x.bytes[c] == 0 {
		return
	}
	x.until[c] = x.at[c] + n.clock.Slowed(x.bytes[c], x.stage[c])
	if x.until[c] > now {
		x.classes |= 1 << c
		n.touch(x.until[c])
	}
}

// endGaps ends the gaps that are over.
func (n *NIC) endGaps(now frame.Time) {
	x := &n.gaps
	for m := x.classes; m != 0; m &= m - 1 {
		c := bits.TrailingZeros8(m)
		if x.until[c] > now {
			continue
		}
		x.classes &^= 1 << c
		n.paused &^= 1 << c
		n.classes[c].resumed = x.until[c] // a gap held it back, so a late caller missed nothing
	}
}

// gapWake returns when the first gap ends that something waits for.
func (n *NIC) gapWake() frame.Time {
	at, waits := frame.Never, n.ready[inTurn]|n.ready[behind]|n.replies.ready|n.offers()
	if n.plain.Len() > 0 {
		waits |= 1 << (n.arena.Meta(n.plain.Head()).Class & 7)
	}
	for m := n.gaps.classes; m != 0; m &= m - 1 {
		c := bits.TrailingZeros8(m)
		if waits>>c&1 != 0 || n.cfg.AckPauseClass == c && n.replies.ready != 0 {
			at = min(at, n.gaps.until[c])
		}
	}
	return at
}
