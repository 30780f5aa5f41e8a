package run

import (
	"path/filepath"
	"strings"
	"testing"

	"gswitch/fabric/scenario"
)

// A buffer that loses frames of lossless classes is refused at its place, with
// what is safe; what is safe then passes, and builds.
func TestUnsafeBuffers(t *testing.T) {
	const doc = `version: 1
topology: {generate: star(3), classes: {host: {rate: 10Gbps, delay: 1us}}}
pfc: {enabled: true}
switch:
  buffer: BUFFER
workload: [{kind: incast, from: [h2, h3], to: [h1], size: 10KB}]
duration: 1ms
`
	for _, v := range []struct{ buffer, want string }{
		// Frames of 1514 as MTU and tag allow, twice; 84 of pause frame; 2500 of cable.
		{"{size: 1MB, headroom: 7137B}", "t.yaml:5:33: switch.buffer.headroom: switch s1, port to h1: buffer: port 0 class 0: headroom of 7137 B is not safe"},
		{"{size: 1MB, headroom: 7138B}", ""},
		{"{size: 1MB, headroom: 1B, allow_loss: true}", ""},
		{"{size: 20KB}", "t.yaml:5:18: switch.buffer.size: switch s1: buffer of 20000 B is too small"},
		{"{size: 1MB, xoff: 999KB}", "t.yaml:5:29: switch.buffer.xoff: switch s1, port to h1: buffer: port 0 class 0: XOFF threshold of 999000 B is above the shared pool"},
		{"{size: 1MB, headroom_delays: 1}", "t.yaml:5:40: switch.buffer.headroom_delays: switch s1"},
	} {
		s := load(t, strings.Replace(doc, "BUFFER", v.buffer, 1), scenario.Options{})
		s.File = "t.yaml"
		err := Check(s)
		if (err == nil) != (v.want == "") || err != nil && !strings.Contains(err.Error(), v.want) {
			t.Errorf("%s: %v\nwant %s", v.buffer, err, v.want)
		}
		n, wrong := network(&s.Runs[0], nil)
		if (wrong == nil) != (err == nil) {
			t.Errorf("%s: checked %v, built %v", v.buffer, err, wrong)
		}
		if n != nil {
			n.Engine.Close()
		}
	}
}

// The thresholds of a crossbar are held against what whole frames need.
func TestUnsafeCrossbar(t *testing.T) {
	const doc = `version: 1
topology: {generate: star(3), classes: {host: {rate: 1Gbps, delay: 5us}}}
pfc: {enabled: true, classes: [0, 1, 2, 3, 4, 5, 6, 7]}
switch:
  buffer: {allow_loss: LOSS}
  crossbar: CROSSBAR
workload: [{kind: incast, from: [h2, h3], to: [h1], size: 10KB}]
duration: 1ms
`
	for _, v := range []struct{ crossbar, loss, want string }{
		{"{enabled: true}", "false", ""},
		{"{enabled: true, pause: 8KiB, unpause: 4557B}", "false", ""},
		{"{enabled: true, pause: 12KiB, unpause: 4557B}", "false", "t.yaml:6:36: switch.crossbar.pause: switch s1: port h1: a pause at 12288 B is not safe"},
		{"{enabled: true, pause: 12KiB, unpause: 4557B}", "true", ""},
		{"{enabled: true, ingress: 20KB}", "false", "t.yaml:6:38: switch.crossbar.ingress: switch s1: port h1: a queue of 20000 B is too small for 8 lossless classes"},
	} {
		s := load(t, strings.NewReplacer("CROSSBAR", v.crossbar, "LOSS", v.loss).Replace(doc), scenario.Options{})
		s.File = "t.yaml"
		err := Check(s)
		if (err == nil) != (v.want == "") || err != nil && !strings.Contains(err.Error(), v.want) {
			t.Errorf("%s: %v\nwant %s", v.crossbar, err, v.want)
		}
	}
}

// Every scenario of this project must pass, in full and in short.
func TestBuffersOfAllScenarios(t *testing.T) {
	files, err := filepath.Glob("../../scenarios/*/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		for _, short := range []bool{true, false} {
			s, err := scenario.Load(file, scenario.Options{Short: short})
			if err == nil {
				err = Check(s)
			}
			if err != nil {
				t.Errorf("%s, short %v: %v", file, short, err)
			}
		}
	}
}
