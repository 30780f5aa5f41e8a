package config

import (
	"strings"
	"testing"

	"gswitch/frame"
	"gswitch/qcn"
	"gswitch/qcn/point"
	"gswitch/scheduler"
)

// profiled is a switch of one port with a queue profile.
func profiled(profile, rest string) string {
	return "version: 1\nswitches:\n  - name: s1\n    ports:\n      - {interface: eth1, qos: q}\n    qos: {q: {" + profile + "}}\n" + rest
}

func TestQCNAndPI(t *testing.T) {
	c, err := Parse("", []byte(profiled("queues: [{queue: 3, pi: {ref: 100KB, a: 2e-7, b: 1e-7, period: 10us}}], qcn: {queues: [0, 4], weight: 0, sample: 75KB}", "")))
	if err != nil {
		t.Fatal(err)
	}
	port := c.Resolved().Switches[0].VSwitch(nil).Ports[0]
	if want := (point.Config{Queues: 0b10001, Params: qcn.Params{SetPoint: 26_000, Sample: 75_000}}); point.Of(&port) != want {
		t.Errorf("%+v, want %+v", point.Of(&port), want)
	}
	if got, want := port.Scheduler.Queues[3].ECN.PI, (scheduler.PI{Ref: 100_000, A: 2e-7, B: 1e-7, Max: 1, Period: 10 * frame.Microsecond}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestQCNAndPIRefusals(t *testing.T) {
	for name, tc := range map[string]struct{ doc, want string }{
		"no queues": {profiled("queues: [], qcn: {}", ""), "switches[0].qos.q.qcn.queues: is missing"},
		"samples":   {profiled("queues: [], qcn: {queues: [1], sample: 10B}", ""), "x.yaml:6:32: switches[0].qos.q.qcn: at port eth1: qcn: 10 bytes between two samples"},
		"set point": {profiled("queues: [], qcn: {queues: [1], set_point: 5GiB}", ""), "qcn.set_point: 5GiB is not between"},
		"lossless":  {profiled("queues: [], qcn: {queues: [1]}", "    pfc: {classes: [3, 7]}\n"), "switches[0].qos.q.qcn: notices at port eth1 travel in class 7, which is lossless"},
		"gains":     {profiled("queues: [{queue: 3, pi: {ref: 1KB, a: 1e-7, b: 1e-7, period: 1us}}]", ""), "switches[0].qos.q.queues[0].pi: ECN: gains"},
		"rocc too":  {strings.Replace(profiled("rocc: {queues: [2, 3]}, qcn: {queues: [3]}", ""), "eth1,", "eth1, rate: 1Gbps,", 1), "x.yaml:6:34: switches[0].qos.q.rocc.queues[1]: in queue 3 it cannot stand beside qcn, and senders can follow only one of the two"},
		"both":      {profiled("queues: [{queue: 3, ecn: {kmin: 1KB, kmax: 2KB}, pi: {ref: 1KB, a: 1e-7, period: 1us}}]", ""), "queues[0].pi: cannot stand beside ecn, in place of which it marks"},
	} {
		_, err := Parse("x.yaml", []byte(tc.doc))
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
}

// Where a number of a controller is refused by itself, nothing else is said of it.
func TestRefusedNumberOfPI(t *testing.T) {
	for name, pi := range map[string]string{
		"ref": "{ref: 4GiB, a: 2e-7, b: 1e-7, period: 10us}",
		"a":   "{ref: 1KB, a: 2, b: 1e-7, period: 10us}",
	} {
		_, err := Parse("x.yaml", []byte(profiled("queues: [{queue: 3, pi: "+pi+"}]", "")))
		if err == nil || !strings.Contains(err.Error(), "pi."+name+":") || strings.Contains(err.Error(), "ECN:") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
