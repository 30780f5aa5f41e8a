package config

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"gswitch/crossbar/point"
	"gswitch/frame"
)

func crossbarDoc(crossbar, pfc, ports string) string {
	return "version: 1\nswitches:\n  - name: s1\n    crossbar: " + crossbar + "\n    pfc: " + pfc + "\n    ports: " + ports + "\n"
}

const (
	twoPorts  = "[{interface: eth0, rate: 1Gbps, delay: 5us}, {interface: eth1, rate: 1Gbps}]"
	fastPorts = "[{interface: eth0, rate: 100Gbps, delay: 5us}, {interface: eth1, rate: 100Gbps}]"
)

func TestCrossbar(t *testing.T) {
	c, err := Parse("x.yaml", []byte(crossbarDoc("{latency: 4us, cap: total, skip_blocked: false}", "{classes: [0, 7], shun: 1s}", twoPorts)))
	if err != nil {
		t.Fatal(err)
	}
	v := c.Resolved().Switches[0].VSwitch(nil)
	x, on := point.Of(v)
	if !on || x.Ingress != 128<<10 || x.Egress != 128<<10 || x.Speedup != 4 || !x.TotalCap || x.SkipBlocked || x.Latency != 4*frame.Microsecond || x.Pause != 0 || v.PFC.ErrDisable != frame.Second {
		t.Errorf("%+v, %+v", x, v.PFC)
	}
	if err := v.CheckBuffer(1); err != nil {
		t.Error(err)
	}
}

func TestCrossbarRefused(t *testing.T) {
	for _, c := range []struct{ doc, want string }{
		{crossbarDoc("{ingress: 1KiB}", "{}", twoPorts), "x.yaml:4:25: switches[0].crossbar.ingress: 1KiB is not from 2KiB"},
		{crossbarDoc("{unpause: 1KiB}", "{}", twoPorts), "stands without pause"},
		{crossbarDoc("{pause: 4KiB, unpause: 4KiB}", "{classes: [0]}", twoPorts), "cannot end at 4KiB"},
		{crossbarDoc("{latency: 2s}", "{}", twoPorts), "more than a second"},
		{crossbarDoc("{pause: 60KiB, unpause: 8KiB}", "{classes: [0, 7]}", twoPorts), "x.yaml:4:23: switches[0].crossbar.pause: port eth0: a pause at 61440 B is not safe"},
		{crossbarDoc("{pause: 60KiB, unpause: 8KiB}", "{classes: [0, 7]}", twoPorts), "allow_loss: true accepts the loss"},
		{crossbarDoc("{}", "{classes: [0, 7]}", fastPorts), "x.yaml:4:15: switches[0].crossbar.ingress: port eth0: "},
		{crossbarDoc("{}", "{classes: [0, 7]}", fastPorts), "too small for 2 lossless classes"},
		{crossbarDoc("{speedup: 65}", "{}", twoPorts), "65"},
		{crossbarDoc("{}\n    escape: {ports: [eth0]}", "{classes: [3]}", twoPorts), "x.yaml:4:15: switches[0].crossbar: cannot stand beside escape"},
	} {
		_, err := Parse("x.yaml", []byte(c.doc))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s\ngives %v, want %q", c.doc, err, c.want)
		}
	}
}

// The value that the refusal of a threshold names is the highest that is taken.
func TestCrossbarNamesTheSafePause(t *testing.T) {
	doc := func(pause string) string {
		return crossbarDoc("{pause: "+pause+", unpause: 1KiB}", "{classes: [0, 7]}", twoPorts)
	}
	_, err := Parse("x.yaml", []byte(doc("60KiB")))
	if err == nil {
		t.Fatal("60 KiB are taken")
	}
	m := regexp.MustCompile(`at most (\d+) B`).FindStringSubmatch(err.Error())
	if m == nil {
		t.Fatalf("%v names no value", err)
	}
	safe, err := strconv.Atoi(m[1])
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Parse("x.yaml", []byte(doc(fmt.Sprint(safe, "B")))); err != nil {
		t.Errorf("the value that is named safe: %v", err)
	}
	if _, err := Parse("x.yaml", []byte(doc(fmt.Sprint(safe+1, "B")))); err == nil {
		t.Errorf("%d B are taken, one more than what is named safe", safe+1)
	}
}
