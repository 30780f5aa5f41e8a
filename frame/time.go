package frame

import (
	"math"
	"time"
)

// Time is an instant in nanoseconds since the engine started, or a span of
// nanoseconds. Both engines use it: monotonic in the live one, virtual in the
// other.
type Time int64

// Spans.
const (
	Nanosecond  Time = 1
	Microsecond      = 1000 * Nanosecond
	Millisecond      = 1000 * Microsecond
	Second           = 1000 * Millisecond

	// Never is later than every instant: "no timer is pending".
	Never Time = math.MaxInt64
)

// Duration converts t for printing and for the standard library's timers.
func (t Time) Duration() time.Duration { return time.Duration(t) }

// Seconds returns t in seconds.
func (t Time) Seconds() float64 { return float64(t) / 1e9 }
