package pfc

import (
	"fmt"

	"gswitch/frame"
	"gswitch/wire"
)

// Mode is how a port controls flow.
type Mode uint8

const (
	Off   Mode = iota // nothing is sent, what is received is counted and ignored
	PFC               // class by class
	Pause             // the whole link, 802.3x
)

// String returns the name of the mode.
func (m Mode) String() string {
	switch m {
	case PFC:
		return "pfc"
	case Pause:
		return "pause"
	}
	return "off"
}

// Action is what the watchdog does to a class in a storm.
type Action uint8

const (
	Drop    Action = iota // drop what waits and what comes
	Forward               // ignore the pause and send
	Alert                 // honour the pause and report
)

// String returns the name of the action.
func (a Action) String() string {
	switch a {
	case Forward:
		return "forward"
	case Alert:
		return "alert"
	}
	return "drop"
}

// Watchdog configures the storm watchdog.
type Watchdog struct {
	Detect  frame.Time // 0 = off
	Restore frame.Time // 0 = 2*Detect
	Action  Action
}

// DefaultQuanta asks for the longest pause: pauses are ended by XON, and
// expire only if the neighbour that asked for them is gone.
const DefaultQuanta = 0xffff

// DefaultRate is the nominal rate of a link without a rate of its own.
const DefaultRate = 10_000_000_000

// Config configures a port.
type Config struct {
	Mode       Mode
	Enable     uint8          // classes under flow control, one bit each; others are never paused nor asked to pause
	Rate       uint64         // bit/s of the link: a quantum is 512 bit times; 0 = DefaultRate
	Quanta     uint16         // pause time to ask for; 0 = DefaultQuanta
	Source     wire.MAC       // MAC address of the port
	Watchdog   Watchdog       // storm watchdog
	Violations ViolationLimit // watch for a neighbour that does not pause
	// Response is how long after its arrival a frame of flow control takes
	// effect here. What the machine takes by itself comes on top.
	Response frame.Time
	// Stages, if not 0, is the last stage of Gentle Flow Control, which then
	// takes the place of on and off (RequestStages, Stage).
	Stages uint8
}

// Validate reports the first setting that cannot be meant.
func (c *Config) Validate() error {
	span := Span(c.quanta(), c.rate())
	switch {
	case c.Mode > Pause:
		return fmt.Errorf("flow control mode %d is unknown", c.Mode)
	case c.Watchdog.Action > Alert:
		return fmt.Errorf("watchdog action %d is unknown", c.Watchdog.Action)
	case c.Watchdog.Detect < 0 || c.Watchdog.Restore < 0:
		return fmt.Errorf("watchdog times %v and %v must not be negative", c.Watchdog.Detect.Duration(), c.Watchdog.Restore.Duration())
	case c.Violations.Grace < 0 || c.Violations.Resends < 0:
		return fmt.Errorf("grace %v and %d resends for an unresponsive neighbour must not be negative", c.Violations.Grace.Duration(), c.Violations.Resends)
	case c.Response < 0 || c.Response >= span:
		return fmt.Errorf("response %v is not within 0 and the pause time %v", c.Response.Duration(), span.Duration())
	case c.Stages > MaxStages:
		return fmt.Errorf("neighbours are slowed by at most %d stages, not %d", MaxStages, c.Stages)
	case c.Stages != 0 && c.Mode != PFC:
		return fmt.Errorf("stages slow classes, which needs pfc, not mode %v", c.Mode)
	case c.Mode == PFC && c.Enable == 0:
		return fmt.Errorf("pfc without a class: enable at least one, or turn it off")
	}
	return nil
}

func (c *Config) rate() uint64 {
	if c.Rate == 0 {
		return DefaultRate
	}
	return c.Rate
}

func (c *Config) quanta() uint16 {
	if c.Quanta == 0 {
		return DefaultQuanta
	}
	return c.Quanta
}

func (c *Config) restore() frame.Time {
	if c.Watchdog.Restore == 0 {
		return 2 * c.Watchdog.Detect
	}
	return c.Watchdog.Restore
}

// Span returns how long a pause of the given quanta lasts at rate bit/s,
// rounded up to a nanosecond (IEEE 802.3 31B.2: a quantum is 512 bit times).
func Span(quanta uint16, rate uint64) frame.Time {
	const nsBits = wire.QuantumBits * 1e9
	return frame.Time((uint64(quanta)*nsBits + rate - 1) / rate)
}
