package config

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWarnings(t *testing.T) {
	for doc, want := range map[string]string{
		profiled("queues: []", ""):                              "",
		fair("", "queues: []", "") + "    pfc: {clases: [3]}\n": "", // refused
		"version: 1\nswitches:\n  - name: s1\n    ports: [{interface: eth1, qos: a}]\n    qos:\n      a: {}\n      b: {}\n": "x.yaml:7:10: switches[0].qos.b: no port uses this profile; name it in ports[].qos, or take it out",
		crossbarDoc("{}", "{}", twoPorts) + "    buffer: {size: 1MB}\n":                                                     "x.yaml:7:20: switches[0].buffer.size: is for copies and what the switch itself sends: other frames wait in the queues of crossbar",
		"version: 1\nswitches:\n  - name: s1\n    pfc: {response: 5us}\n    ports: [{interface: eth1, lossless: {alpha: 0.5}}]\n": "x.yaml:4:21: switches[0].pfc.response: does nothing without lossless classes: name them in pfc.classes, or take it out\n" +
			"x.yaml:5:41: switches[0].ports[0].lossless: does nothing without lossless classes: name them in pfc.classes, or take it out",
		"version: 1\nswitches:\n  - name: s1\n    pfc: {response: 5us, classes: [3]}\n    ports: [{interface: eth1, lossless: {alpha: 0.5}}]\n": "",
		"version: 1\nswitches:\n  - name: s1\n    pfc: {err_disable: 1s}\n    ports: [{interface: eth1}]\n":                                     "x.yaml:4:24: switches[0].pfc.err_disable: does nothing without lossless classes: name them in pfc.classes, or take it out",
	} {
		if d := cmp.Diff(want, Warnings("x.yaml", []byte(doc)).Error()); d != "" {
			t.Errorf("%s: %s", doc, d)
		}
	}
	example, err := os.ReadFile("example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if w := Warnings("example.yaml", example); len(w) > 0 {
		t.Error(w)
	}
}
