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
	// Printed leaves out what the printed algorithm does not have: that flows
	// whose tokens come to nothing wait and get fewer at once, and in a switch
	// requests for tokens. Circles of flows that are not known then stay closed.
	Printed bool
}

// MaxReclaim keeps the longest rest of a flow far from the end of time.
const MaxReclaim = 3600 * frame.Second

// Default returns the configuration that is taken where nothing else is said.
func Default() Config {
	return Config{Slots: 64, Flows: 256, PerFlow: 64, Reclaim: 100 * frame.Microsecond}
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
