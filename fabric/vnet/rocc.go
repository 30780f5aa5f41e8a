package vnet

import (
	"gswitch/rocc"
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
	// Table, PerTick and AtHosts are those of vswitch.RoCCConfig.
	Table   rocc.TableConfig
	PerTick int
	AtHosts bool
}

// roccAt is the configuration of a port.
func (c *Config) roccAt(rate uint64) vswitch.RoCCConfig {
	r := &c.RoCC
	if !r.On {
		return vswitch.RoCCConfig{}
	}
	queues, params := r.Classes, r.Params
	if queues == 0 {
		queues = 1 << c.Host.Class
	}
	if params == nil {
		params = rocc.For
	}
	return vswitch.RoCCConfig{Queues: queues, Params: params(rate), Table: r.Table, PerTick: r.PerTick, AtHosts: r.AtHosts}
}
