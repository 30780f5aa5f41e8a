package run

import (
	"testing"

	"gswitch/fabric/scenario"
	"gswitch/fault"
	"gswitch/units"
)

// Faults of one direction add up, and one alone is itself to the bit.
func TestFaultsAddUp(t *testing.T) {
	var in injector
	var c fault.Config
	in.add(&c, &scenario.Fault{Kind: "loss", Share: 0.1}, 0)
	if c.Loss != 0.1 {
		t.Errorf("a loss of 0.1 is %v", c.Loss)
	}
	for _, f := range []scenario.Fault{{Kind: "loss", Share: 0.5}, {Kind: "loss", Share: 0.2, Burst: 4}, {Kind: "corrupt", Share: 0.5}, {Kind: "corrupt", Share: 1},
		{Kind: "slow", ToRate: 5 * units.Gbps}, {Kind: "slow", ToRate: 2 * units.Gbps}, {Kind: "slow", ToRate: 50 * units.Gbps}} {
		in.add(&c, &f, 10e9)
	}
	if d := c.Loss - 0.55; d > 1e-15 || d < -1e-15 || c.Burst != fault.Bursts(0.2, 4) || c.Corrupt != 1 || c.Slow != 5 {
		t.Errorf("together they are %+v", c)
	}
	if err := c.Validate(); err != nil {
		t.Error(err)
	}
}

// What waits for a link when that fails is lost by the fault: no switch wanted for room.
// What comes for the link later is dropped, since no route leads around it.
func TestFaultTakesWhatWaits(t *testing.T) {
	f := execute(t, `version: 1
topology: {generate: star(3), classes: {host: {rate: 10Gbps, delay: 1us}}}
switch: {buffer: {size: 10MB, alpha: 64}}
hosts: {cc: none, params: {window: none}, transport: {rto_low: 100us, rto_high: 100us}}
workload: [{kind: flows, flows: [{from: h1, to: h3, size: 200KB}, {from: h2, to: h3, size: 200KB}]}]
faults: [{kind: down, link: "s1:h3", start: 50us, stop: 200us}]
duration: 100ms
until: done
`, Options{Jobs: 1})
	v := f.Runs[0].Values
	if waited := v["drops_queue_flush"]; waited < 10 || v["faults_total"] < waited || v["drops_total"] != v["drops_egress_port_down"] || v["drops_total"] == 0 {
		t.Errorf("%v frames waited for the link, %v are lost by the fault; %v are dropped, %v of them while it was down",
			waited, v["faults_total"], v["drops_total"], v["drops_egress_port_down"])
	}
}
