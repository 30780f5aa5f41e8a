package vnet

import (
	"fmt"

	"gswitch/vswitch"
)

// Feature turns on a registered feature of switches at egress queues of every
// port.
type Feature struct {
	Name   string
	Queues uint8 // bitmap
	// Options returns vswitch.PortConfig.Options of the feature for a port whose
	// link has a rate in bit/s.
	Options func(queues uint8, rate uint64) (any, error)
}

// options are those of a port whose link has a rate.
func (c *Config) options(rate uint64) (o vswitch.Options, err error) {
	for i := range c.Features {
		f := &c.Features[i]
		v, err := f.Options(f.Queues, rate)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name, err)
		}
		o = o.With(f.Name, v)
	}
	return o, nil
}
