package fault

import (
	"fmt"

	"gswitch/frame"
)

// Loss says why a link lost a frame.
type Loss uint8

const (
	LossNone   Loss = iota
	LossRandom      // Config.Loss
	LossBurst       // Config.Burst
	LossChosen      // Config.Drop
	LossFCS         // arrived corrupted: the receiver's port drops it by its check sequence
	LossLink        // the link went down while it was on it, or was down
	LossReboot      // the node at one end was restarting
	NumLosses
)

var lossNames = [NumLosses]string{"none", "random", "burst", "chosen", "fcs", "link-down", "reboot"}

func (l Loss) String() string {
	if l < NumLosses {
		return lossNames[l]
	}
	return "unknown"
}

// Burst is the loss model of Gilbert and Elliott (Elliott, "Estimates of error
// rates for codes on burst-noise channels", BSTJ 42, 1963): a chain with a
// good and a bad state, which each frame moves and which decides how likely
// the frame is lost. All are probabilities.
type Burst struct {
	ToBad, ToGood     float64 // of leaving the good state, and the bad one, at each frame
	LossGood, LossBad float64 // of losing a frame in that state
}

// Bursts returns the chain whose bad state loses everything, lasts length
// frames in the mean, and comes as often as the share of lost frames asks
// for. length is at least 1, share from 0 to below 1; above length/(length+1)
// the share is not reached, since a good frame lies between two bursts.
func Bursts(share, length float64) Burst {
	leave := 1 / length
	return Burst{ToGood: leave, ToBad: min(1, share*leave/(1-share)), LossBad: 1}
}

// Drop loses chosen frames: of those that match, the First (from 1) and then
// Count-1 more (0 = 1), or every Every-th after the first if Every > 0.
type Drop struct {
	// Match gets the materialised bytes, and of Meta what belongs to the frame
	// on a link: Len, Wire, Depart, Span. FiveTuple makes one. nil: every frame.
	Match        func(b []byte, m *frame.Meta) bool
	First, Count uint64
	Every        uint64
	// Share above 0 takes the place of these three: each frame that matches is
	// lost with this probability.
	Share float64
}

// Config is what goes wrong on one direction of a link. Shares are
// probabilities, drawn for each frame on its own. The zero value is a link
// without faults.
type Config struct {
	Loss    float64
	Burst   Burst
	Drop    []Drop
	Corrupt float64 // share that arrives damaged and is dropped by its check sequence
	// Flip is the share that is passed on to the node with FlipBits (0 = 1)
	// random bits of its headers inverted, as by a faulty memory behind the
	// check: what no check sequence finds.
	Flip     float64
	FlipBits int

	Reorder   float64    // share that is held back by ReorderBy and overtaken meanwhile
	ReorderBy frame.Time // ns
	Jitter    frame.Time // each frame takes up to so much longer, in order; ns
	Duplicate float64    // share that arrives twice

	// Slow > 1 lets each frame occupy the link so many times longer, as after
	// a rate change at one lane of several: the sender's port waits for it.
	// 0 or 1 = the port's own rate. Ports without a rate are not slowed.
	Slow float64
}

// Active reports whether anything can go wrong.
func (c *Config) Active() bool {
	return c.Loss > 0 || c.Burst != Burst{} || len(c.Drop) > 0 || c.Corrupt > 0 || c.Flip > 0 ||
		c.Reorder > 0 || c.Jitter > 0 || c.Duplicate > 0 || c.Slow > 1
}

// maxDelay keeps sums of instants and delays far from the end of time.
const maxDelay = 3600 * frame.Second

// Validate finds values that mean nothing.
func (c *Config) Validate() error {
	for _, p := range []struct {
		name string
		v    float64
	}{{"loss", c.Loss}, {"burst to bad", c.Burst.ToBad}, {"burst to good", c.Burst.ToGood}, {"burst loss in good", c.Burst.LossGood},
		{"burst loss in bad", c.Burst.LossBad}, {"corrupt", c.Corrupt}, {"flip", c.Flip}, {"reorder", c.Reorder}, {"duplicate", c.Duplicate}} {
		if !(p.v >= 0 && p.v <= 1) {
			return fmt.Errorf("%s %v is no probability: use 0 to 1", p.name, p.v)
		}
	}
	for i := range c.Drop {
		if p := c.Drop[i].Share; !(p >= 0 && p <= 1) {
			return fmt.Errorf("drop %v is no probability: use 0 to 1", p)
		}
	}
	switch {
	case c.ReorderBy < 0 || c.Jitter < 0:
		return fmt.Errorf("a delay is negative")
	case c.ReorderBy > maxDelay || c.Jitter > maxDelay:
		return fmt.Errorf("delays of %v and %v: use at most %v", c.ReorderBy.Duration(), c.Jitter.Duration(), maxDelay.Duration())
	case c.Reorder > 0 && c.ReorderBy == 0:
		return fmt.Errorf("reorder needs the time by which frames are held back")
	case c.FlipBits < 0 || c.FlipBits > 64:
		return fmt.Errorf("%d bits to flip: use 1 to 64", c.FlipBits)
	case c.Slow != 0 && !(c.Slow >= 1 && c.Slow <= 1e6):
		return fmt.Errorf("slow %v: use a factor from 1 to 1e6", c.Slow)
	}
	return nil
}
