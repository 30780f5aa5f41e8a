package ordinary

import (
	"gswitch/clocksync"
	"gswitch/hostnic"
	"gswitch/units"
)

// Section is clock in documents of hosts.
type Section struct {
	Domain   int            `yaml:"domain" range:"0,127" default:"83" doc:"Domain of PTP. Messages of others are not looked at."`
	Interval units.Duration `yaml:"interval" default:"10ms" doc:"Between two messages of the root; the same in all clocks."`
	Timeout  units.Duration `yaml:"timeout" doc:"Time without a sync message after which the clock counts as cut off. 185/90 of the interval if left out."`
	Hops     int            `yaml:"hops" range:"1,254" default:"2" doc:"Hops from the root."`
	MostHops int            `yaml:"most_hops" range:"1,254" doc:"Hops from a root after any failure. Two more than hops if left out."`
	Hop      units.Duration `yaml:"hop" doc:"Uncertainty that each hop adds: how wrong stamps are, and how asymmetric a link is. If left out it is measured, by a round trip with each message: then the bound holds however late frames are."`
	Drift    int            `yaml:"drift" range:"1,100000" default:"200" doc:"Parts per million by which the uncertainty grows while no sync message is received."`
	Late     units.Duration `yaml:"late" doc:"How late a message may be that came without a stamp of the kernel: so much is added to the uncertainty. Such messages are not used if left out."`
}

// Options returns the clocksync.Options of a host.
func (s *Section) Options(*hostnic.Config) (any, error) {
	t := clocksync.Times{Domain: s.Domain, Interval: s.Interval, Timeout: s.Timeout, Hops: s.Hops, MostHops: s.MostHops, Hop: s.Hop, Drift: s.Drift, Late: s.Late}
	o, err := t.Options(0, clocksync.NoPort)
	if err != nil {
		return nil, err
	}
	if err := o.Validate(); err != nil {
		return nil, err
	}
	return o, nil
}
