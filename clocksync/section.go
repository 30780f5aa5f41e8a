package clocksync

import (
	"fmt"

	"gswitch/frame"
	"gswitch/units"
)

// Uncertainty is by how much the bound of a clock grows: the keys that documents of
// switches, of hosts and scenarios have in common.
type Uncertainty struct {
	Hop   units.Duration `yaml:"hop" doc:"Uncertainty that each hop adds: how wrong stamps are, and how asymmetric a link is. If left out it is 5ns in scenarios; elsewhere it is measured, by a round trip with each message: then the bound holds however late frames are."`
	Drift int            `yaml:"drift" range:"1,100000" default:"200" doc:"Parts per million by which the uncertainty grows while no sync message is received."`
}

// Times are the keys of a clock in the documents of switches and hosts. A scenario
// chooses a scheme, and plans who follows whom: of these it has Uncertainty alone, its
// interval depends on the scheme, and it has a timeout of each of Sundial's stages.
type Times struct {
	Domain   int            `yaml:"domain" range:"0,127" default:"83" doc:"Domain of PTP. Messages of others are not looked at."`
	Interval units.Duration `yaml:"interval" default:"10ms" doc:"Between two messages of the root; the same in all clocks."`
	Timeout  units.Duration `yaml:"timeout" doc:"Time without a sync message after which the clock turns to the second port or, where it has none, counts as cut off. 185/90 of the interval if left out."`
	MostHops int            `yaml:"most_hops" range:"1,254" doc:"Hops from the root after any failure, by the second port where there is one. Two more than hops if left out."`
	Uncertainty
	Late units.Duration `yaml:"late" doc:"How late a message may be that came without a stamp of the kernel: so much is added to the uncertainty. Such messages are not used if left out."`
}

// Options returns those of a clock that is so many hops from the root by a port, and
// accepts a second one.
func (t *Times) Options(hops, accept, backup int) (Options, error) {
	most := t.MostHops
	if most == 0 {
		most = hops + 2
	}
	if most < hops {
		return Options{}, fmt.Errorf("%d hops after a failure are fewer than %d", most, hops)
	}
	c := Config{Hop: frame.Time(t.Hop), Measured: t.Hop == 0, Accept: accept, Backup: backup, Interval: frame.Time(t.Interval), Timeout1: frame.Time(t.Timeout), Drift: int64(t.Drift) * 1000,
		EpsBase: frame.Time(hops) * frame.Time(t.Hop), EpsBackup: frame.Time(most) * frame.Time(t.Hop)}
	if c.Timeout1 == 0 {
		c.Timeout1 = c.Interval * DefaultTimeout1 / DefaultInterval
	}
	o := Options{Config: c, Domain: uint8(t.Domain), Unstamped: frame.Time(t.Late), Answers: true}
	if t.Late == 0 {
		o.Unstamped = Forever
	}
	return o, nil
}
