package vnet

import (
	"gswitch/escape"
	"gswitch/escape/point"
	"gswitch/frame"
	"gswitch/vswitch"
)

// Escape lets frames of lossless classes out of paused queues, on every link
// between two switches.
type Escape struct {
	On bool
	escape.Config
	Period frame.Time
}

func (e Escape) wholes() []Whole {
	if !e.On {
		return nil
	}
	return []Whole{{Name: point.Name, Options: func(c *vswitch.Config) (any, error) {
		return point.Among(c, point.Config{Config: e.Config, Period: e.Period}), nil
	}}}
}

// escapes returns what the switches of a network have of it.
func (n *Network) escapes() (point.Config, bool) { return point.Of(n.Switches[0].Program().Config) }
