package escape

import (
	"fmt"

	"gswitch/frame"
)

// Config says how much may escape by an egress port. The paper gives neither a
// number of places nor of flows; the defaults are this project's.
type Config struct {
	// Slots is how many frames have a place in the escape queue of a port.
	Slots int
	// Flows is how many flows of a port are known, the last ones.
	Flows int
	// PerFlow is how many tokens of a flow may be out at once. The paper bounds
	// them by the places alone, which is the default.
	PerFlow int
	// Reclaim is how long a token may stay out. It is longer than a token and
	// its frame take through the network, since frames that escape wait for
	// nobody. A flow whose tokens come to nothing waits ever longer for each
	// further one, up to 32 times.
	Reclaim frame.Time
	// Printed is algorithm 3 as it is printed, but for line 31. A round makes one
	// token for each flow, as soon as a pause is requested (lines 6 to 14); as
	// many flows are known, and tokens of one may be out, as there are places
	// (section 4.3.1); a token that finds no place is dropped before a frame is
	// looked for (line 16); frames that escaped pass all others where the token
	// began, too (section 4.3.3, 2 and 3); and in each Reclaim in which the pool
	// did not change one token comes back (section 4.3.3, 5). Flows whose tokens
	// come to nothing do not wait, and no switch asks for tokens, so that circles
	// of flows that are not known stay closed.
	Printed bool
}

// MaxReclaim keeps the longest rest of a flow far from the end of time.
const MaxReclaim = 3600 * frame.Second

// Default returns the configuration that is taken where nothing else is said.
func Default() Config {
	return Config{Slots: 64, Flows: 256, PerFlow: 64, Reclaim: 100 * frame.Microsecond}
}

// Leaves is how long the frames in all places of a port take to leave by a link
// of rate bit/s, with frames of so many bytes: a token may be out for as long
// before its frame comes, even between neighbours. 0 without a rate.
func Leaves(slots, frameBytes int, rate uint64) frame.Time {
	if rate == 0 {
		return 0
	}
	return frame.Time(float64(slots) * float64(frameBytes) * 8e9 / float64(rate))
}

// Validate reports the first setting that cannot be meant.
func (c *Config) Validate() error {
	switch {
	case c.Slots < 1 || c.Slots > 1<<16:
		return fmt.Errorf("escape: %d places at a port are not from 1 to %d", c.Slots, 1<<16)
	case c.Flows < 1 || c.Flows > 1<<16:
		return fmt.Errorf("escape: %d flows at a port are not from 1 to %d", c.Flows, 1<<16)
	case c.PerFlow < 1 || c.PerFlow > 1<<16:
		return fmt.Errorf("escape: %d tokens of a flow are not from 1 to %d", c.PerFlow, 1<<16)
	case c.Reclaim < frame.Microsecond || c.Reclaim > MaxReclaim:
		return fmt.Errorf("escape: tokens are reclaimed after %v, which is not from 1us to 1h", c.Reclaim.Duration())
	}
	return nil
}
