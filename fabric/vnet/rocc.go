package vnet

import (
	"cmp"

	"gswitch/rocc"
	roccpoint "gswitch/rocc/point"
	"gswitch/vswitch"
)

// RoCC makes the egress queues of every switch congestion points, which tell
// senders what rate is fair. Hosts obey with the congestion control of that
// name.
type RoCC struct {
	On      bool
	Classes uint8 // bitmap; 0 = that of Host.Class
	// Params returns the parameters of a port of the given rate; nil: rocc.For.
	Params func(rate uint64) rocc.Params
	// Table, PerTick and AtHosts are those of roccpoint.Config.
	Table   rocc.TableConfig
	PerTick int
	AtHosts bool
}

// roccOptions are those of a port.
func (c *Config) roccOptions(o vswitch.Options, rate uint64) vswitch.Options {
	r := &c.RoCC
	if !r.On {
		return o
	}
	params := r.Params
	if params == nil {
		params = rocc.For
	}
	return o.With(roccpoint.Name, roccpoint.Config{Queues: cmp.Or(r.Classes, 1<<c.Host.Class), Params: params(rate), Table: r.Table, PerTick: r.PerTick, AtHosts: r.AtHosts})
}
