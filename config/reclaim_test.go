package config

import (
	"fmt"
	"strings"
	"testing"

	"gswitch/escape/point"
	"gswitch/units"
)

// Left out, reclaim is longer than what waits in all places of the slowest port
// takes to leave; given and too short, it is warned of.
func TestReclaimFollowsTheRate(t *testing.T) {
	doc := func(rate, keys string) []byte {
		return []byte(fmt.Sprintf("version: 1\nswitches:\n  - name: s1\n    ports: [{interface: eth1, rate: 1Gbps}, {interface: eth2%s}]\n    escape: {ports: [eth1, eth2]%s}\n%s", rate, keys, lossless3))
	}
	for rate, want := range map[string]units.Duration{
		"":               5 * units.Millisecond,
		", rate: 40Gbps": 5 * units.Millisecond,
		", rate: 10Mbps": 2 * 64 * 1538 * 8 * 100, // ns: 100 a bit
	} {
		c, err := Parse("x.yaml", doc(rate, ""))
		if err != nil {
			t.Fatal(err)
		}
		got := c.Resolved().Switches[0].Features.Get(point.Name).(*point.Section).Reclaim
		if got != want {
			t.Errorf("rate%s: %s, want %s", rate, got, want)
		}
		if w := Warnings("x.yaml", doc(rate, "")); len(w) > 0 {
			t.Errorf("rate%s: %v", rate, w)
		}
	}
	w := Warnings("x.yaml", doc(", rate: 10Mbps", ", reclaim: 5ms")).Error()
	if !strings.Contains(w, "x.yaml:5:") || !strings.Contains(w, "switches[0].escape.reclaim: tokens count as lost after 5ms") {
		t.Error(w)
	}
	if w := Warnings("x.yaml", doc(", rate: 10Gbps", ", reclaim: 5ms")); len(w) > 0 {
		t.Error(w)
	}
}
