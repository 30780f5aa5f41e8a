package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"gswitch/cc"
	"gswitch/frame"
)

func TestHalvesOncePerRoundTrip(t *testing.T) {
	build, err := cc.Factory("halving", map[string]string{"target": "10us", "step": "1Gbps"})
	if err != nil {
		t.Fatal(err)
	}
	a := build(&cc.Env{Rate: 100e9, BaseRTT: 8 * frame.Microsecond, MTU: 1048, Payload: 1000})
	for _, c := range []struct {
		now, rtt frame.Time
		want     float64
	}{
		{100, 20, 50e9}, // above the target
		{110, 20, 50e9}, // within the same round trip
		{120, 20, 25e9}, // the next
		{130, 9, 26e9},  // below
		{140, 0, 26e9},  // no sample
	} {
		a.OnAck(&cc.Feedback{Now: c.now * frame.Microsecond, RTT: c.rtt * frame.Microsecond})
		if a.Rate() != c.want {
			t.Fatalf("at %d us: %g bit/s, want %g", c.now, a.Rate(), c.want)
		}
	}
}

// The program is gfabric and has the algorithm.
func TestProgram(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "halving")
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if out, err := exec.Command(program, "cc", "show", "halving").CombinedOutput(); err != nil || !strings.Contains(string(out), "step") {
		t.Errorf("cc show: %v\n%s", err, out)
	}
	out, err := exec.Command(program, "run", "incast.yaml", "--out", filepath.Join(dir, "results")).CombinedOutput()
	if err != nil {
		t.Errorf("run: %v\n%s", err, out)
	}
	if _, err := os.Stat(filepath.Join(dir, "results", "report.html")); err != nil {
		t.Error(err)
	}
}
