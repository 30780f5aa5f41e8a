package scenario

import (
	"math"
	"strings"
	"testing"

	"gswitch/frame"
)

// The load of requests is what their clients offer, of their own links or of another.
func TestLoadOfRequests(t *testing.T) {
	for load, want := range map[string]float64{ // Gb/s of payload
		"load: 0.5":                     150, // three links of 100 Gb/s
		"load: 0.5, load_on: \"s1:h4\"": 50,
	} {
		s := parse(t, head+"workload:\n  - {kind: requests, from: [h1..h3], to: [h4], size: 2KB, outstanding: 1000, "+load+"}\n", Options{})
		d := s.Runs[0].Doc
		q, err := d.Workload[0].Source(d, s.Runs[0].Topology, ".", 1)
		if err != nil {
			t.Fatal(err)
		}
		bytes := 0.0
		for q.Peek() != frame.Never {
			f := q.Pop()
			q.Done(f.At, &f)
			bytes += float64(f.Bytes)
		}
		if got := bytes * 8 / 1e-3 / 1e9; math.Abs(got/want-1) > 0.08 { // four standard deviations
			t.Errorf("%s: %.1f Gb/s in the millisecond of the run, want %v", load, got, want)
		}
	}
}

func TestLoadOfRequestsIsRefused(t *testing.T) {
	for keys, want := range map[string]string{
		"load: 0":                       "s.yaml:7:65: workload[0].load: must be above zero",
		"load: 0.5, think: 1us":         "s.yaml:7:77: workload[0].think: means nothing with load",
		"load_on: \"s1:h4\"":            "s.yaml:7:68: workload[0].load_on: means nothing without load",
		"load: 0.5, load_on: \"s1:h9\"": `s.yaml:7:79: workload[0].load_on: "s1:h9": there is no node "h9"`,
		"load: 0.5, load_on: \"h4:s1\"": "s.yaml:7:5: workload[0]: no flow between these hosts passes h4:s1",
	} {
		_, err := Parse("s.yaml", []byte(head+"workload:\n  - {kind: requests, from: [h1..h3], to: [h4], size: 1KB, "+keys+"}\n"), Options{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", keys, err, want)
		}
	}
}
