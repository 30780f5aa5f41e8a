// Package escape says under which names reports show what switches count of Escape.
package escape

import "gswitch/fabric/results"

func init() {
	results.Register("deadlocks_total",
		results.Measure{Name: "tokens_total", Label: "tokens of Escape"},
		results.Measure{Name: "tokens_reclaimed_total", Label: "  that came to nothing"},
		results.Measure{Name: "escaped_total", Label: "  frames released"},
		results.Measure{Name: "escape_strays_total", Label: "  released without one"})
}
