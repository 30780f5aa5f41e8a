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
