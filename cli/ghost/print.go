package ghost

import (
	"fmt"
	"io"
	"text/tabwriter"

	"gswitch/config"
	"gswitch/control/api"
	"gswitch/control/cli"
)

// columns aligns what is written to it with tabs between cells, to the right.
func columns(w io.Writer) *tabwriter.Writer {
	return tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
}

// leftColumns aligns to the left.
func leftColumns(w io.Writer) *tabwriter.Writer { return tabwriter.NewWriter(w, 0, 0, 2, ' ', 0) }

// size writes bytes with four digits.
func size(n uint64) string {
	units := []string{"B", "kB", "MB", "GB", "TB"}
	v, i := float64(n), 0
	for ; v >= 1000 && i < len(units)-1; i++ {
		v /= 1000
	}
	return fmt.Sprintf("%.4g%s", v, units[i])
}

// sizeFlag is a flag of bytes.
type sizeFlag config.Size

func (s *sizeFlag) Set(text string) error { return (*config.Size)(s).UnmarshalText([]byte(text)) }
func (s *sizeFlag) String() string        { return config.Size(*s).String() }
func (s *sizeFlag) Type() string          { return "size" }

// rateFlag is a flag of bits per second.
type rateFlag config.Rate

func (r *rateFlag) Set(text string) error { return (*config.Rate)(r).UnmarshalText([]byte(text)) }
func (r *rateFlag) String() string        { return config.Rate(*r).String() }
func (r *rateFlag) Type() string          { return "rate" }

// hopName names a hop as far as telemetry tells it.
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
