package scenario

import (
	"strings"
	"testing"
)

func TestQueuePolicyRefusals(t *testing.T) {
	for text, want := range map[string]string{
		"switch: {push_out: {port: 10B}}\n":                                                           "switch.push_out.port: holds no full frame",
		"switch: {push_out: {port: 1MB}, crossbar: {enabled: true}}\n":                                "switch.push_out: cannot stand beside crossbar",
		"switch: {push_out: {port: 1MB}, escape: {enabled: true}}\npfc: {enabled: true}\n":            "switch.push_out: cannot stand beside escape",
		"switch: {order: {kind: lifo}, voq: true}\n":                                                  "switch.order: cannot stand beside voq",
		"switch: {order: {kind: lifo}, escape: {enabled: true}}\npfc: {enabled: true}\n":              "switch.order: cannot stand beside escape",
		"switch: {admission: {kind: codel}, crossbar: {enabled: true}}\n":                             "switch.admission: cannot stand beside crossbar",
		"switch: {order: {kind: calendar}}\n":                                                         "switch.order.rate: is missing",
		"switch: {policy: {text: 'q1 = Queue(9KB); q2 = Queue(9KB); a = Port(q1); b = Port(q2);'}}\n": "switch.policy: has 2 ports, and switch ",
		"switch: {rank: dscp}\n":                                                                      "switch.rank: \"dscp\" is for nothing",
		"switch: {order: {kind: ranked}, rank: size, push_out: {queue: 1MB}}\n":                       "",
		"switch: {order: {kind: fq, target: 1ms}, push_out: {queue: 1MB}}\npfc: {enabled: true}\n":    "",
	} {
		_, err := Parse("s.yaml", []byte(small+text), Options{})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
