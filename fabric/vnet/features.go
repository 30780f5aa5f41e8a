package vnet

import (
	"errors"
	"fmt"

	"gswitch/config"
	"gswitch/feature"
	"gswitch/hostnic"
	"gswitch/pfc"
	"gswitch/vswitch"
)

// Feature enables a registered feature of switches at egress queues of every port.
type Feature struct {
	Name   string
	Queues uint8 // bitmap
	// BothEnds leaves out ports to hosts, since the feature needs a neighbour that has it
	// too and hosts do not.
	BothEnds bool
	// Options returns the feature's entry of vswitch.PortConfig.Options for a port whose
	// link has the given rate in bit/s.
	Options func(queues uint8, rate uint64) (any, error)
}

// Whole enables a registered feature of a switch as a whole.
type Whole struct {
	Name    string
	Options func(cfg *vswitch.Config) (any, error)
}

// stages returns the last stage to which flow control slows neighbours, 0 if it pauses
// them. The switches' features determine it for hosts as well.
func (c *Config) stages() uint8 {
	var flow pfc.Config
	for _, w := range c.Wholes {
		d := c.document()
		d.PFC = config.PFC{Classes: []int{0}, Log: new(int)}
		cfg := d.VSwitch(nil)
		if f := vswitch.Find(w.Name); f != nil && f.FlowControl != nil {
			if v, err := w.Options(cfg); err == nil { // otherwise the switches reject it
				cfg.Options = cfg.Options.With(w.Name, v)
				f.FlowControl(cfg, &flow)
			}
		}
	}
	return flow.Stages
}

// passage returns what replaces the shared buffer of switches, nil if nothing does.
func (c *Config) passage() vswitch.Passage {
	for _, w := range c.Wholes {
		if f := vswitch.Find(w.Name); f != nil && f.InputQueued {
			if v, err := w.Options(new(vswitch.Config)); err == nil { // otherwise the switches reject it
				return v.(vswitch.Passage)
			}
		}
	}
	return nil
}

// FeatureError reports invalid options of a switch's feature, with the key of the option
// if the error is about one.
type FeatureError struct {
	Switch, Feature, Key string
	Err                  error
}

func (e *FeatureError) Error() string { return fmt.Sprintf("switch %s: %v", e.Switch, e.Err) }

func (e *FeatureError) Unwrap() error { return e.Err }

// wholes configures those features of a switch as a whole that wanted selects.
func (n *Network) wholes(c *vswitch.Config, wanted func(*vswitch.Feature) bool) error {
	for _, w := range n.cfg.Wholes {
		if f := vswitch.Find(w.Name); f == nil || !wanted(f) {
			continue
		}
		v, err := w.Options(c)
		if err != nil {
			wrong := &FeatureError{Switch: c.Name, Feature: w.Name, Err: err}
			if at := new(vswitch.KeyError); errors.As(err, &at) {
				wrong.Key, wrong.Err = at.Key, at.Err
			}
			return wrong
		}
		c.Options = c.Options.With(w.Name, v)
	}
	return nil
}

// options returns the options of a port with a link of the given rate and a host or a
// switch at its other end.
func (c *Config) options(rate uint64, host bool) (o vswitch.Options, err error) {
	for i := range c.Features {
		f := &c.Features[i]
		if f.BothEnds && host {
			continue
		}
		v, err := f.Options(f.Queues, rate)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name, err)
		}
		o = o.With(f.Name, v)
	}
	return o, nil
}

// Counted sums the counters of features over all ports of all switches and over all
// hosts, by feature.Counter.Keys. Of gauges it takes the largest value.
func (n *Network) Counted() map[string]float64 {
	sum := map[string]float64{}
	for _, sw := range n.Switches {
		sw.Nodes[0].ReadFeatures(func(f *vswitch.Feature, counter int, _ uint16, v float64, labels ...string) {
			f.Counters[counter].Sum(sum, v, labels)
		})
	}
	for _, h := range n.Hosts {
		h.ReadFeatures(func(f *hostnic.Feature, counter int, v float64, labels ...string) {
			f.Counters[counter].Sum(sum, v, labels)
		})
	}
	return sum
}

// AddCounted adds the counters of another part of the network to sum.
func AddCounted(sum, o map[string]float64) {
	add := func(counters []feature.Counter) {
		for i := range counters {
			for _, key := range counters[i].Keys() {
				if v, there := o[key]; there {
					counters[i].Add(sum, key, v)
				}
			}
		}
	}
	for _, f := range vswitch.Features() {
		add(f.Counters)
	}
	for _, f := range hostnic.Features() {
		add(f.Counters)
	}
}
