package run

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/gswitch/gswitch/fabric/scenario"
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
