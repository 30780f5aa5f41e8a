package config

import (
	"strings"
	"testing"

	"gswitch/frame"
	"gswitch/mirror/point"
)

// watcher is a router of two ports, of which nothing is said that has a default.
func watcher(watch, rest string) string {
	return "version: 1\nswitches:\n  - name: s1\n    ports:\n      - {name: a, interface: eth1, address: [10.0.0.1/24]}\n      - {name: b, interface: eth2}\n    watch: {sessions: [" + watch + "]}\n" + rest
}

func TestWatch(t *testing.T) {
	for _, rest := range []string{"", "    classes: {dscp: {46: 5, 47: 5}}\n", "    loopback: [10.9.9.9]\n    pfc: {classes: [3]}\n    buffer: {size: 4MB}\n"} {
		c, err := Parse("", []byte(watcher("{name: e, to: 10.0.0.9, everflow: {}}, {name: span, port: b, one_in: 10, class: 1}", rest)))
		if err != nil {
			t.Fatalf("%s: %v", rest, err)
		}
		got := c.Resolved().Switches[0].VSwitch(nil).Options[point.Name].(point.Config)
		src := "10.0.0.1"
		if strings.Contains(rest, "loopback") {
			src = "10.9.9.9"
		}
		if len(got.Sessions) != 2 || got.Sessions[0].Wrap.Src.String() != src || got.Sessions[0].Wrap.Switch != 1 || got.Sessions[0].Port != frame.NoPort || got.Sessions[1].Port != 1 || got.Sessions[1].OneIn != 10 {
			t.Errorf("%s: %+v", rest, got.Sessions)
		}
	}
}

// What is wrong is reported at its line, once, also beside other mistakes.
func TestWatchErrors(t *testing.T) {
	for _, c := range []struct{ watch, rest, want string }{
		{"{name: e, port: x, everflow: {}}", "", "switches[0].watch.sessions[0].port: there is no port \"x\""},
		{"{name: e, to: 10.0.0.9, drops: [noroute]}", "", "is \"no-route\" meant?"},
		{"{name: e, to: 10.0.0.9, one_in: 1, class: 3}", "    pfc: {classes: [3]}\n    buffer: {size: 4MB}\n", "class 3 is lossless"},
		{"{name: e, to: 10.0.0.9, everflow: {}}", "    classes: {dscp: {46: 3}}\n", "DSCP 46 and 47"},
		{"{name: e, to: 10.0.0.9, everflow: {}}", "    classes: {pcp: [1], queue: [1, 2]}\n", "classes.pcp"},
	} {
		_, err := Parse("w.yaml", []byte(watcher(c.watch, c.rest)))
		if err == nil || strings.Count(err.Error(), c.want) != 1 {
			t.Errorf("%s: %v, want %q once", c.watch, err, c.want)
		}
	}
}
