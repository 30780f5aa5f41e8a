package config

import (
	"strings"
	"testing"

	"gswitch/rocc/point"

	"gswitch/frame"
	"gswitch/rocc"
)

// fair is a switch of one port with a queue profile.
func fair(port, profile, rest string) string {
	return "version: 1\nswitches:\n  - name: s1\n    ports:\n      - {interface: eth1, qos: q" + port + "}\n    qos: {q: {queues: [], rocc: {" + profile + "}}}\n" + rest
}

func TestRoCC(t *testing.T) {
	c, err := Parse("", []byte(fair(", rate: 1Gbps", "queues: [0, 3], qref: 75KB, cut: half, per_tick: 5, table: trap, age: 7, compute: hosts", "")))
	if err != nil {
		t.Fatal(err)
	}
	got := point.Of(&c.Resolved().Switches[0].VSwitch(nil).Ports[0])
	p := rocc.For(1e9)
	p.QRef, p.QMid, p.QMax, p.First, p.Regions = 75_000, 150_000, 180_000, rocc.CutToHalf, 6
	want := point.Config{Queues: 0b1001, Params: p, Table: rocc.TableConfig{Kind: rocc.Trap, Age: 7, Sample: 8, Shadow: 1024}, PerTick: 5, AtHosts: true}
	if got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if p.Period != 1600*frame.Microsecond {
		t.Errorf("the period at 1 Gb/s is %d", p.Period)
	}
}

// The length that is held must fit, where a limit counts.
func TestRoCCReferenceFits(t *testing.T) {
	for _, rest := range []string{"    buffer: {limit: 150KB}\n", "    buffer: {size: 300KB}\n", "    buffer: {limit: 100KB, reserve: 50KB}\n", "    buffer: {limit: 100KB, size: 32MB}\n    pfc: {classes: [3]}\n"} {
		if _, err := Parse("x.yaml", []byte(fair(", rate: 1Gbps", "queues: [3]", rest))); err != nil {
			t.Errorf("%s: %v", rest, err)
		}
	}
}

func TestRoCCRefusals(t *testing.T) {
	for name, tc := range map[string]struct{ doc, want string }{
		"no rate":       {fair("", "queues: [3]", ""), "x.yaml:6:33: switches[0].qos.q.rocc: at port eth1: a port without a rate has none of which flows could have a share"},
		"no queues":     {fair(", rate: 1Gbps", "qref: 1MB", ""), "switches[0].qos.q.rocc.queues: is missing"},
		"no such queue": {fair(", rate: 1Gbps", "queues: [8]", ""), "switches[0].qos.q.rocc.queues[0]: 8 is not between 0 and 7"},
		"order":         {fair(", rate: 1Gbps", "queues: [3], qmid: 100KB", ""), "x.yaml:6:33: switches[0].qos.q.rocc: at port eth1 of 1Gbps: rocc: queue lengths 150000, 100000, 360000"},
		"least rate":    {fair(", rate: 1Gbps", "queues: [3], fmin: 1Gbps", ""), "the fair rate from 4000 to 4000"},
		"too long":      {fair(", rate: 1Gbps", "queues: [3], qref: 5GiB", ""), "switches[0].qos.q.rocc.qref: 5GiB is not between 0B and 4294967295B"},
		"cut":           {fair(", rate: 1Gbps", "queues: [3], cut: halve", ""), `"halve" is not one of fmin, half, eighth`},
		"unknown key":   {fair(", rate: 1Gbps", "queues: [3], period_us: 4", ""), "switches[0].qos.q.rocc.period_us: unknown key"},
		"limit":         {fair(", rate: 1Gbps", "queues: [3]", "    buffer: {limit: 100KB}\n"), "x.yaml:6:33: switches[0].qos.q.rocc: at port eth1 of 1Gbps: queue 3 is to be held at 150kB, and buffer.limit drops beyond 100kB"},
		"share":         {fair(", rate: 1Gbps", "queues: [3]", "    buffer: {size: 280KB}\n"), "of a buffer of 280kB with alpha 1 it gets no more than 140kB"},
		"lossless":      {fair(", rate: 1Gbps", "queues: [3]", "    pfc: {classes: [3, 7]}\n"), "switches[0].qos.q.rocc: notices at port eth1 travel in class 7, which is lossless"},
		"lossless too":  {fair(", rate: 1Gbps", "queues: [3]", "    pfc: {classes: [3]}\n    classes: {dscp: {56: 3}}\n"), "travel in class 3"},
	} {
		_, err := Parse("x.yaml", []byte(tc.doc))
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %s", name, err, tc.want)
		}
	}
}

// What several ports have in common is said once, with the ports.
func TestRoCCNamesPortsOnce(t *testing.T) {
	doc := func(profile, pfc string) string {
		return "version: 1\nswitches:\n  - name: s1\n    ports:\n      - {interface: a, rate: 1Gbps, qos: q}\n      - {interface: b, rate: 1Gbps, qos: q}\n      - {interface: c, rate: 1Gbps}\n    qos: {q: {rocc: {" + profile + "}}}\n" + pfc
	}
	for _, tc := range []struct{ doc, want string }{
		{doc("queues: [3]", ""), ""},
		{doc("queues: [3], qmid: 100KB", ""), "x.yaml:8:21: switches[0].qos.q.rocc: at ports a, b of 1Gbps: rocc: queue lengths"},
		{doc("queues: [3]", "    pfc: {classes: [3, 7]}\n"), "x.yaml:8:21: switches[0].qos.q.rocc: notices at ports a, b travel in class 7"},
		{strings.ReplaceAll(doc("queues: [3]", ""), ", rate: 1Gbps", ""), "x.yaml:8:21: switches[0].qos.q.rocc: at ports a, b: a port without a rate"},
	} {
		_, err := Parse("x.yaml", []byte(tc.doc))
		if tc.want == "" {
			if err != nil {
				t.Errorf("queues of the profile left out: %v", err)
			}
		} else if err == nil || !strings.HasPrefix(err.Error(), tc.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v, want one line with %s", err, tc.want)
		}
	}
}
