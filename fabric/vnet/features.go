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

// Counted sums up what features counted at all ports of all switches, by
// vswitch.Counter.Keys; of a gauge it is the largest.
func (n *Network) Counted() map[string]float64 {
	sum := map[string]float64{}
	for _, sw := range n.Switches {
		sw.Nodes[0].ReadFeatures(func(f *vswitch.Feature, counter int, _ uint16, v float64, labels ...string) {
			c, kind := &f.Counters[counter], ""
			if c.Values != nil {
				kind = labels[len(labels)-1]
			}
			key := c.Key(kind)
			if c.Gauge {
				sum[key] = max(sum[key], v)
			} else {
				sum[key] += v
			}
		})
	}
	return sum
}
