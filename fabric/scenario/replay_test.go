package scenario

import (
	"strings"
	"testing"
)

func TestReplayIsRefused(t *testing.T) {
	base := "version: 1\ntopology: {generate: star(3), classes: {host: {rate: 1Gbps}}}\nduration: 1ms\n"
	for text, want := range map[string]string{
		"switch: {replay: true}\nworkload: [{kind: poisson, size: 1KB, load: 0.1, persistent: true}]\n":                                                         "switch.replay: goes by slack",
		"switch: {replay: true, lstf: {enabled: true}}\nhosts: {cc: dctcp}\nworkload: [{kind: poisson, size: 1KB, load: 0.1, persistent: true}]\n":              "switch.replay: needs hosts that send the same",
		"switch: {replay: true, lstf: {enabled: true}}\nworkload: [{kind: poisson, size: 1KB, load: 0.1}]\n":                                                    "workload[0].persistent: switch.replay knows packets",
		"switch: {replay_priority: true}\nworkload: [{kind: poisson, size: 1KB, load: 0.1}]\n":                                                                  "switch.replay_priority: is about",
		"switch: {replay: true, lstf: {enabled: true}}\nhosts: {params: {window: none}}\nworkload: [{kind: poisson, size: 1KB, load: 0.1, persistent: true}]\n": "",
	} {
		_, err := Parse("s.yaml", []byte(base+text), Options{})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
