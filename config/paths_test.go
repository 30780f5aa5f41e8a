package config

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gswitch/frame"
	"gswitch/pipeline"
	"gswitch/vswitch"
)

// spread is a switch with two uplinks and a VLAN.
func spread(paths, route string) string {
	return `version: 1
switches:
  - name: s1
    ports:
      - {interface: up1, address: [10.0.1.1/24]}
      - {interface: up2, address: [10.0.2.1/24]}
      - {interface: h1, vlan: {access: 7}}
    vlans: [{id: 7, address: [10.0.7.1/24]}]
    paths: {` + paths + `}
    routes:
      - {prefix: 20.0.0.0/8, ` + route + `}
`
}

const bothUplinks = "next_hops: [{via: 10.0.1.2}, {via: 10.0.2.2}]"

func TestPaths(t *testing.T) {
	c, err := Parse("", []byte(spread("choose: adaptive, thresholds: [8KiB, 1MB], exempt: [0, 6]", bothUplinks+", choose: flowlet")))
	if err != nil {
		t.Fatal(err)
	}
	sw := c.Resolved().Switches[0].VSwitch(nil)
	want := vswitch.PathsConfig{Choose: pipeline.ChooseAdaptive, Thresholds: []uint64{8192, 1_000_000}, Exempt: 0b1000001, FlowletGap: 500 * frame.Microsecond}
	if diff := cmp.Diff(want, sw.Paths); diff != "" {
		t.Error(diff)
	}
	if k := sw.Routes[0].Choose; k == nil || *k != pipeline.ChooseFlowlet {
		t.Errorf("the route chooses by %v", k)
	}
	c, err = Parse("", []byte(spread("times: [100us, 400us]", bothUplinks)))
	if err != nil {
		t.Fatal(err)
	}
	sw = c.Resolved().Switches[0].VSwitch(nil)
	if diff := cmp.Diff([]frame.Time{100_000, 400_000}, sw.Paths.Times); diff != "" || sw.Routes[0].Choose != nil || sw.Paths.Choose != pipeline.ChooseHash {
		t.Errorf("%+v, route %v", sw.Paths, sw.Routes[0].Choose)
	}
}

func TestPathsRefusals(t *testing.T) {
	for name, tc := range map[string]struct{ doc, want string }{
		"order":     {spread("thresholds: [8KiB, 8KiB]", bothUplinks), "x.yaml:9:12: switches[0].paths: threshold 2 of [8192 8192] is not above the one before it"},
		"both":      {spread("thresholds: [8KiB], times: [1us]", bothUplinks), "exclude each other"},
		"five":      {spread("times: [1us, 2us, 3us, 4us, 5us]", bothUplinks), "more than 4 thresholds"},
		"gap":       {spread("flowlet_gap: -1us", bothUplinks), "flowlet_gap"},
		"name":      {spread("choose: ecmp", bothUplinks), `"ecmp" is not one of hash, scatter`},
		"class":     {spread("exempt: [8]", bothUplinks), "8 is not between 0 and 7"},
		"VLAN":      {spread("choose: least", "next_hops: [{via: 10.0.1.2}, {via: 10.0.7.2}]"), "switches[0].routes[0].next_hops[1].via: 10.0.7.2 is behind a VLAN"},
		"same port": {spread("", "next_hops: [{via: 10.0.1.2}, {via: 10.0.1.3}], choose: adaptive"), "10.0.1.3 and 10.0.1.2 are both behind port up1"},
		"no choice": {spread("", "via: 10.0.1.2, choose: adaptive"), "switches[0].routes[0].choose: stands beside no next_hops"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Parse("x.yaml", []byte(tc.doc)); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}
