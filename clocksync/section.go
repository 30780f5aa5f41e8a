package clocksync

import (
	"fmt"

	"gswitch/frame"
	"gswitch/units"
)

// Times are what documents say of a clock, wherever it is.
type Times struct {
	Domain   int            // of PTP
	Interval units.Duration // between two messages of the root
	Timeout  units.Duration // without a sync message; 0: 185/90 of the interval
	Hops     int            // from the root, by the first parent
	MostHops int            // by the second parent, after any failure; 0: as many and two more
	Hop      units.Duration // uncertainty that a hop adds; 0: it is measured
	Drift    int            // parts in 10^6
	Late     units.Duration // of messages without a stamp; 0: they are not used
}

// Options returns those of a clock that accepts a port, and a second one.
func (t *Times) Options(accept, backup int) (Options, error) {
	most := t.MostHops
	if most == 0 {
		most = t.Hops + 2
	}
	if most < t.Hops {
		return Options{}, fmt.Errorf("%d hops after a failure are fewer than %d", most, t.Hops)
	}
	c := Config{Hop: frame.Time(t.Hop), Measured: t.Hop == 0, Accept: accept, Backup: backup, Interval: frame.Time(t.Interval), Timeout1: frame.Time(t.Timeout), Drift: int64(t.Drift) * 1000,
		EpsBase: frame.Time(t.Hops) * frame.Time(t.Hop), EpsBackup: frame.Time(most) * frame.Time(t.Hop)}
	if c.Timeout1 == 0 {
		c.Timeout1 = c.Interval * DefaultTimeout1 / DefaultInterval
	}
	o := Options{Config: c, Domain: uint8(t.Domain), Unstamped: frame.Time(t.Late), Answers: true}
	if t.Late == 0 {
		o.Unstamped = Forever
	}
	return o, nil
}
