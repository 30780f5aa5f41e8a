package transport

import (
	"fmt"

	"gswitch/frame"
)

// MaxFlight is the largest number of unacknowledged packets, whatever the recovery: it
// bounds the memory of a queue pair whose Cap is 0, and is far enough below 2^23 that 24
// bits of a sequence number are never ambiguous.
const MaxFlight = 1 << 20

// Config configures the recovery of one direction of a queue pair. It is shared: a Sender
// and a Receiver keep the pointer and never write.
type Config struct {
	Recovery *Kind // nil: GoBackN

	// RTOHigh is the retransmission timeout; 0 disables the timer, as is done with PFC,
	// whose pauses last longer. RTOLow is used instead while at most N packets are in
	// flight (IRN and its ablations; 0: always RTOHigh). With TCP, NewReno or DynamicRTO,
	// RTOHigh is the initial timeout and RTOLow the minimum.
	RTOLow, RTOHigh frame.Time

	// Recursive adds the second loop of RC3; nil: none. Both ends must agree.
	Recursive *Recursive

	// Own are the options of a scheme of another module; nil: it has none.
	Own *Own

	// RetransmitDelay delays each retransmission after the loss was detected, as if it
	// had to be fetched from the host's memory.
	RetransmitDelay frame.Time

	// For receivers that keep nothing out of order: they answer the first packet out of
	// order with a NAK, and again for the same gap after NakInterval (0: never again), or
	// every such packet with NakEvery.
	NakInterval frame.Time

	// Cap is the most packets in flight, IRN's BDP-FC: floor of the
	// bandwidth-delay product of the longest path by the packet's bytes on the
	// wire. 0: no cap but MaxFlight. Both ends must agree.
	Cap uint32

	N uint32 // see RTOLow

	// AckEvery is how many in-order packets share an ACK; 0 and 1: each has
	// its own. The last packet of a message, a duplicate and a packet that
	// fills a gap are always answered. It must be below the window.
	AckEvery uint32

	NakEvery bool // see NakInterval

	// RestartOnProgress restarts the timer of IRN and its ablations when the
	// cumulative acknowledgement moves, instead of with every acknowledgement.
	RestartOnProgress bool
	// TextRules makes IRN recover by the text of its paper instead of its
	// authors' code: see the option rules.
	TextRules bool

	// DynamicRTO derives the timeout from measured round trips (RFC 6298), with
	// exponential back-off. TCP and NewReno always do.
	DynamicRTO bool

	// NackThreshold is the number of packets above a gap that must have arrived before it
	// counts as a loss; 0 and 1: the first one counts. For TCP and NewReno 0 means 3.
	// Raise it if the network reorders.
	NackThreshold uint8

	// NoFastRetransmit makes NewReno ignore duplicate acknowledgements: only a timeout
	// reports a loss (DeTail, section 4.3.4: if each packet may take its own path,
	// packets out of order mean nothing).
	NoFastRetransmit bool

	// PartialAck retransmits at each cumulative step within a recovery that a
	// timeout began, so that the loss of a whole tail costs one timeout.
	PartialAck bool
}

// Own are options of a scheme of another module, in a type of its own. They do not change.
type Own struct{ Options any }

// Validate returns an error that names the field if c makes no sense.
func (c *Config) Validate() error {
	switch {
	case c.Cap > MaxFlight:
		return fmt.Errorf("transport: a cap of %d packets is above %d", c.Cap, MaxFlight)
	case c.RTOLow < 0 || c.RTOHigh < 0 || c.RetransmitDelay < 0 || c.NakInterval < 0:
		return fmt.Errorf("transport: a time is negative")
	case c.RTOHigh != 0 && c.RTOLow > c.RTOHigh:
		return fmt.Errorf("transport: RTOLow %v is above RTOHigh %v", c.RTOLow.Duration(), c.RTOHigh.Duration())
	case c.NoFastRetransmit && c.Kind() != NewReno:
		return fmt.Errorf("transport: %v without fast retransmit does not exist; only %v can do without", c.Kind(), NewReno)
	case c.NoFastRetransmit && c.RTOHigh == 0:
		return fmt.Errorf("transport: with neither fast retransmit nor a timeout no loss is ever repaired: set RTOHigh")
	case c.RTOHigh > maxRTO:
		return fmt.Errorf("transport: RTOHigh %v is above %v", c.RTOHigh.Duration(), maxRTO.Duration())
	}
	return c.Recursive.validate(c.Kind())
}

// Kind returns the scheme of recovery.
func (c *Config) Kind() *Kind {
	if c.Recovery == nil {
		return GoBackN
	}
	return c.Recovery
}

// limit returns the most packets in flight.
func (c *Config) limit() uint64 {
	if c.Cap == 0 {
		return MaxFlight
	}
	return uint64(c.Cap)
}

// threshold returns how many packets must have arrived above a lost one.
func (c *Config) threshold() int {
	if c.NackThreshold > 0 {
		return int(c.NackThreshold)
	}
	return max(1, c.Kind().DupThresh)
}

// dynamic reports whether the timeout depends on round trips.
func (c *Config) dynamic() bool { return c.DynamicRTO || c.Kind().Dynamic }
