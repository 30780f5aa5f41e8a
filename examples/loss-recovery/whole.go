package main

import (
	"gswitch/frame"
	"gswitch/options"
	"gswitch/transport"
)

// own are the options of the scheme, in transport.Config.Own.
type own struct{ all uint32 }

// The name is what scenarios and flags write (hosts.transport.mode: whole, --recovery
// whole).
var whole = transport.Register(transport.Kind{
	Name:  "whole",
	Code:  transport.OwnCodes,
	Title: "A few packets in flight are sent again as a whole, more of them hole by hole",
	Paper: "an example, published nowhere",
	Cite:  "example",
	Params: []options.Param{
		{Name: "all", Unit: options.Count, Default: "8", Max: 1e6, Source: "example", Doc: "packets in flight up to which all are sent again"},
	},
	Keeps: true,
	Set: func(c *transport.Config, v *options.Values) {
		c.Own = &transport.Own{Options: own{all: uint32(v.Int("all"))}}
	},
	Nak:     nak,
	Step:    step,
	Expired: expired,
})

// nak is called with each NAK: a packet arrived, and the one at s.Cum() did not.
func nak(s *transport.Sender, now frame.Time, _ bool, r *transport.AckResult) {
	if s.InRecovery() {
		return // that packet was sent again, and others arrive that were sent before
	}
	few := s.InFlight() <= s.Config().Own.Options.(own).all
	if s.Enter(now, r); few {
		s.GoBack(now)
	}
}

// step is called when the cumulative acknowledgement has moved: where it stands now is the
// next hole.
func step(s *transport.Sender, now frame.Time, _ *transport.AckResult) {
	if !s.EndEpisode() {
		s.Resend(now)
	}
}

// expired is called after a timeout.
func expired(s *transport.Sender, now frame.Time) {
	s.Begin(now, true)
	s.GoBack(now)
}
