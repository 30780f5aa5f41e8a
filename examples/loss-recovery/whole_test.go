package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gswitch/frame"
	"gswitch/transport"
)

// lossOfFirst sends so many packets, of which the first is lost, and returns those that
// are sent again after the NAK for it.
func lossOfFirst(t *testing.T, packets uint64) (again []uint64) {
	t.Helper()
	cfg, err := whole.Configure(map[string]string{"all": "4"})
	if err != nil {
		t.Fatal(err)
	}
	cfg.RTOHigh = frame.Millisecond
	var s transport.Sender
	s.Init(&cfg)
	send := func() {
		for {
			seq, rtx, ok := s.Peek(0, packets)
			if !ok {
				return
			}
			if s.Sent(0, seq, 1000, rtx); rtx {
				again = append(again, seq)
			}
		}
	}
	send()
	for range packets - 1 { // each that arrives is answered
		s.Ack(0, transport.Ack{NAK: true})
		send()
	}
	if s.Ack(0, transport.Ack{Cum: packets}); s.InRecovery() || s.InFlight() != 0 {
		t.Errorf("%d packets: %d are in flight in the end", packets, s.InFlight())
	}
	return again
}

func TestFewAreSentAgainAsAWhole(t *testing.T) {
	if v := lossOfFirst(t, 4); !slices.Equal(v, []uint64{0, 1, 2, 3}) {
		t.Errorf("of four packets %v are sent again", v)
	}
	if v := lossOfFirst(t, 5); !slices.Equal(v, []uint64{0}) {
		t.Errorf("of five packets %v are sent again", v)
	}
}

// The program is gfabric and knows the scheme.
func TestProgram(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "whole")
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if out, err := exec.Command(program, "recovery", "show", "whole").CombinedOutput(); err != nil || !strings.Contains(string(out), "all are sent again") {
		t.Errorf("recovery show: %v\n%s", err, out)
	}
	if out, err := exec.Command(program, "run", "lossy.yaml", "--out", filepath.Join(dir, "results")).CombinedOutput(); err != nil {
		t.Errorf("run: %v\n%s", err, out)
	}
	// A name that is not registered is refused, with those that are.
	text, err := os.ReadFile("lossy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	wrong := filepath.Join(dir, "wrong.yaml")
	if err := os.WriteFile(wrong, []byte(strings.Replace(string(text), "transport.mode: whole", "transport.mode: whale", 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(program, "check", wrong).CombinedOutput(); err == nil || !strings.Contains(string(out), `did you mean "whole"`) {
		t.Errorf("check: %v\n%s", err, out)
	}
}
