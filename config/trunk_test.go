package config

import (
	"slices"
	"testing"
)

// A range of VLANs is all of them, as a list or alone.
func TestTrunkRanges(t *testing.T) {
	for text, want := range map[string][]uint16{
		"[10, 20]": {10, 20}, "10": {10}, "10-13": {10, 11, 12, 13}, "[1, 4090-4094]": {1, 4090, 4091, 4092, 4093, 4094},
	} {
		c, err := Parse("x.yaml", []byte("version: 1\nswitches: [{name: s1, ports: [{interface: eth1, vlan: {trunk: "+text+"}}]}]\n"))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		v := c.Resolved().Switches[0].VSwitch(nil)
		if got := v.Ports[0].Allowed; !slices.Equal(got, want) {
			t.Errorf("%s: VLANs %v, want %v", text, got, want)
		}
		var known []uint16
		for _, vlan := range v.VLANs {
			known = append(known, vlan.ID)
		}
		if !slices.Equal(known, want) {
			t.Errorf("%s: the switch has VLANs %v, want %v", text, known, want)
		}
		// What is written reads the same.
		again, err := Parse("again.yaml", c.YAML())
		if err != nil || !slices.Equal(again.Switches[0].Ports[0].VLAN.Trunk, c.Switches[0].Ports[0].VLAN.Trunk) {
			t.Errorf("%s: written as %s, which reads as something else: %v", text, c.YAML(), err)
		}
	}
}
