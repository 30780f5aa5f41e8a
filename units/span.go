package units

import (
	"math"
	"time"
)

// Span reads a duration of a command, a request or a filter. It takes what documents have,
// such as 500 us or 10min, and what Go writes, such as 1h30m or -5m.
func Span(text string) (time.Duration, error) {
	ns, err := Time.Whole(text, math.MaxInt64)
	if err == nil {
		return time.Duration(ns), nil
	}
	if d, e := time.ParseDuration(text); e == nil {
		return d, nil
	}
	return 0, err
}
