package rocc

import (
	"testing"

	"pgregory.net/rapid"

	"gswitch/frame"
)

func TestPeriodIsSent(t *testing.T) {
	for rate, want := range map[uint64]frame.Time{100e9: 40e3, 40e9: 40e3, 400e9: 40e3, 25e9: 80e3, 10e9: 160e3, 1e9: 2560e3, 100e6: 20480e3, 1: 40e3 << 15} {
		period := For(rate).Period
		n, r := Notice{Stretch: StretchOf(period)}, Reading{Stretch: StretchOf(period)}
		if n.Period() != want || r.Period() != want {
			t.Errorf("at %d bit/s, every %d ns, %d and %d ns are sent, want %d", rate, period, n.Period(), r.Period(), want)
		}
	}
}

// What is sent is never shorter than the period, and less than twice as long
// where that is between the published one and the longest.
func TestPeriodIsRoundedUp(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		period := frame.Time(rapid.Int64Range(int64(basePeriod), int64(basePeriod)<<maxStretch).Draw(rt, "period"))
		n := Notice{Stretch: StretchOf(period)}
		if n.Period() < period || n.Period() >= 2*period {
			rt.Fatalf("%d ns become %d", period, n.Period())
		}
	})
}
