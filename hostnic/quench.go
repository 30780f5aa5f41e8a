package hostnic

import (
	"math/bits"

	"gswitch/frame"
)

// quench watches how long classes are paused.
type quench struct {
	since   [8]frame.Time // of each class that is paused
	counted uint8         // classes whose pause has been counted
	due     frame.Time    // earliest time at which the next pause has lasted too long
}

// watchQuenches restarts with the classes that are paused after a change of QuenchAfter.
func (n *NIC) watchQuenches(now frame.Time) {
	n.quench = quench{due: frame.Never}
	if n.cfg.QuenchAfter != 0 {
		n.quenched(now, 0)
	}
}

// quenched processes a change of what the neighbour pauses.
func (n *NIC) quenched(now frame.Time, before uint8) {
	z := &n.quench
	for m := n.paused &^ before; m != 0; m &= m - 1 {
		z.since[bits.TrailingZeros8(m)] = now
		z.due = min(z.due, now+n.cfg.QuenchAfter)
	}
	z.counted &= n.paused
}

// countQuenched counts the classes whose pause has lasted too long.
func (n *NIC) countQuenched(now frame.Time) {
	z := &n.quench
	z.due = frame.Never
	for m := n.paused &^ z.counted; m != 0; m &= m - 1 {
		c := bits.TrailingZeros8(m)
		if over := z.since[c] + n.cfg.QuenchAfter; over > now {
			z.due = min(z.due, over)
			continue
		}
		z.counted |= 1 << c
		n.count.Quenches++
	}
}

// Quenched returns the classes that the neighbour has paused for longer than
// Config.QuenchAfter. Their senders may want to send less, or elsewhere.
func (n *NIC) Quenched() uint8 { return n.quench.counted }
