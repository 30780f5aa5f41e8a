package run

import (
	"strings"
	"testing"

	"gswitch/clocksync"
	"gswitch/clocksync/ordinary"
	"gswitch/fabric/scenario"
	"gswitch/fabric/vnet"
	"gswitch/feature"
	"gswitch/frame"
	"gswitch/hostnic"
	"gswitch/vswitch"
)

const withoutClocks = `
version: 1
title: A switch
topology: {generate: star(2), classes: {host: {rate: 10Gbps, delay: 1us}}}
workload:
  - {kind: flows, flows: [{from: h1, to: h2, size: 1KB}]}
duration: 1ms
`

// A call that a switch refuses fails like any other command: it is an error, and with other
// settings it is counted.
func TestLoneNodeCountsRefusedCalls(t *testing.T) {
	s := load(t, withoutClocks, scenario.Options{})
	n, err := network(&s.Runs[0], nil)
	if err != nil {
		t.Fatal(err)
	}
	call := (&vswitch.CallFeature{Feature: "clock", Call: &feature.TakePlan{}}).Encode(nil)
	l := &Lone{Network: n, Node: n.Topology.Switches()[0]}
	if err := l.Do(0, call); err == nil || l.Refused != 0 {
		t.Errorf("%d counted, %v", l.Refused, err)
	}
	l.other = true
	if err := l.Do(0, call); err != nil || l.Refused != 1 || l.FirstRefused == nil || !strings.Contains(l.FirstRefused.Error(), "has no clock") {
		t.Errorf("%d counted, %v, %v", l.Refused, l.FirstRefused, err)
	}
}

// So does a call that a feature of a host refuses.
func TestLoneHostCountsRefusedCalls(t *testing.T) {
	s := load(t, withoutClocks, scenario.Options{})
	own := clocksync.Options{Config: clocksync.Config{Accept: 0, Backup: clocksync.NoPort, Interval: clocksync.DefaultInterval}}
	n, err := build(&s.Runs[0], nil, extras{change: []func(*vnet.Config){func(v *vnet.Config) {
		v.LinkLocal = clocksync.MaxPacket
		v.Host.Options = func(*hostnic.Config) (hostnic.Options, error) { return hostnic.Options{ordinary.Name: own}, nil }
	}}})
	if err != nil {
		t.Fatal(err)
	}
	l := &Lone{Network: n, Node: n.Topology.Hosts()[0], other: true}
	for interval, refused := range map[frame.Time]int{clocksync.DefaultInterval: 0, -1: 1} {
		l.Refused, l.FirstRefused = 0, nil
		o := own
		o.Interval = interval
		c := &hostnic.CallFeature{Feature: ordinary.Name, Call: &clocksync.Follow{Options: o}}
		if err := l.Do(0, c.Encode(nil)); err != nil || l.Refused != refused || refused > 0 && !strings.Contains(l.FirstRefused.Error(), "call of clock: clocksync.Follow: clock: ") {
			t.Errorf("an interval of %d: %d counted, %v, %v", interval, l.Refused, l.FirstRefused, err)
		}
	}
}
