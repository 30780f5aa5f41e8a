package ghost

import (
	"fmt"

	"gswitch/control/api"
	"gswitch/control/cli"
	"gswitch/units"
)

// size writes bytes with four digits.
func size(n uint64) string { return units.Bytes.Brief(float64(n)) }

// sizeFlag is a flag of bytes.
type sizeFlag units.Size

func (s *sizeFlag) Set(text string) error { return (*units.Size)(s).UnmarshalText([]byte(text)) }
func (s *sizeFlag) String() string        { return units.Size(*s).String() }
func (s *sizeFlag) Type() string          { return "size" }

// rateFlag is a flag of bits per second.
type rateFlag units.Rate

func (r *rateFlag) Set(text string) error { return (*units.Rate)(r).UnmarshalText([]byte(text)) }
func (r *rateFlag) String() string        { return units.Rate(*r).String() }
func (r *rateFlag) Type() string          { return "rate" }

// hopName names a hop as far as telemetry names it.
func hopName(h *api.Hop) string {
	if h.Switch == 0 {
		return "-"
	}
	return fmt.Sprintf("switch %d port %d", h.Switch, h.Port)
}

// queueOf writes the queue of a hop, and how long it takes where that is known.
func queueOf(h *api.Hop) string {
	if h.Rate == 0 {
		return size(h.Queue)
	}
	return fmt.Sprintf("%s (%s)", size(h.Queue), cli.Span(h.QueueDelay))
}
