package config

import (
	"strings"
	"testing"
	"time"
)

// What both ends of a link may take to act on a pause follows from what waits for whom, and
// from what the buffer has room for. The document that results is always valid.
func TestResponse(t *testing.T) {
	for name, v := range map[string]struct {
		rest string
		want time.Duration
	}{
		"workers share processors":    {"    ports: [{interface: a, rate: 200Mbps}, {interface: b, rate: 200Mbps}]\n", 20 * time.Millisecond},
		"half of 12 MiB for two":      {"    ports: [{interface: a, rate: 10Gbps}, {interface: b, rate: 10Gbps}]\n", 2500 * time.Microsecond},
		"as fast if nothing is said":  {"    ports: [{interface: a}, {interface: b}]\n", 2500 * time.Microsecond},
		"a class more":                {"    ports: [{interface: a}, {interface: b}]\n    pfc: {classes: [3, 4]}\n", 1250 * time.Microsecond},
		"a pause for all classes":     {"    ports: [{interface: a}, {interface: b}]\n    pfc: {pause: true}\n", 156250 * time.Nanosecond},
		"a small buffer":              {"    ports: [{interface: a}, {interface: b}]\n    buffer: {size: 1MB}\n", 156250 * time.Nanosecond},
		"that the threshold needs":    {"    ports: [{interface: a}, {interface: b}]\n    buffer: {size: 1MB, lossless: {xoff: 800KB}}\n", 50 * time.Microsecond},
		"nothing else fits":           {"    ports: [{interface: a}, {interface: b}]\n    buffer: {size: 300KB}\n", 50 * time.Microsecond},
		"headroom is given":           {"    ports: [{interface: a, rate: 200Mbps}]\n    buffer: {lossless: {headroom: 64KiB}}\n", 50 * time.Microsecond},
		"headroom of a port is given": {"    ports: [{interface: a, rate: 200Mbps, lossless: {headroom: 64KiB}}]\n", 50 * time.Microsecond},
		"said":                        {"    ports: [{interface: a, rate: 200Mbps}]\n    buffer: {lossless: {response: 3ms}}\n", 3 * time.Millisecond},
		"input queues":                {"    ports: [{interface: a}, {interface: b}]\n    crossbar: {ingress: 1MiB}\n", 50 * time.Microsecond},
		"workers spin":                {"    ports: [{interface: a, rate: 200Mbps}]\nworkers: [{cpu: 1, poll: spin}]\n", 50 * time.Microsecond},
		"anywhere":                    {"    ports: [{interface: a, rate: 200Mbps}]\nworkers: [{poll: spin}]\n", 20 * time.Millisecond},
		"but one of two":              {"    ports: [{interface: a, rate: 200Mbps}, {interface: b, rate: 200Mbps}]\nworkers: [{cpu: 1, poll: spin}, {cpu: 2}]\n", 20 * time.Millisecond},
	} {
		doc := "version: 1\nswitches:\n  - name: s1\n" + v.rest
		if !strings.Contains(v.rest, "pfc:") {
			doc = "version: 1\nswitches:\n  - name: s1\n    pfc: {classes: [3]}\n" + v.rest
		}
		c, err := Parse("s.yaml", []byte(doc))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		s := &c.Resolved().Switches[0]
		if got := time.Duration(s.Buffer.Lossless.Response); got != v.want {
			t.Errorf("%s: %v, want %v", name, got, v.want)
		}
	}
}
