package gfabric

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gswitch/capture"
	"gswitch/capture/capturetest"
	runner "gswitch/fabric/run"
	"gswitch/fabric/scenario"
	"gswitch/wire"
	wt "gswitch/wire/wiretest"
)

// A run records its connections, which diagnose replays from its directory and says
// what went wrong; a file that was changed, or none, is an error that names it.
func TestDiagnose(t *testing.T) {
	s, err := scenario.Load("../../scenarios/deter/x1-delayed-ack.yaml", scenario.Options{Only: []string{"paper"}})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if _, err := runner.Scenario(t.Context(), s, runner.Options{Version: version, Jobs: 1, Out: dir}); err != nil {
		t.Fatal(err)
	}
	usual := diagnoseFlags{held: 20 * time.Millisecond, window: 0.5, to: 1 << 62}
	path := filepath.Join(dir, "connections")
	print := func(f diagnoseFlags) string {
		var out strings.Builder
		if err := f.run(&out, path); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	text := print(usual)
	for _, want := range []string{"tail-drop", "its receiver held an acknowledgement back for 32ms", "5 connections replayed, all packets identical"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in:\n%s", want, text)
		}
	}
	steps := usual
	steps.trace, steps.only, steps.from = true, "h4", 40*time.Millisecond
	if lines := strings.Split(print(steps), "\n"); len(lines) < 5 || len(lines) > 40 || !strings.Contains(lines[2], "timer") {
		t.Errorf("the end of the connection has %d lines: %q", len(lines), lines)
	}
	files, err := filepath.Glob(filepath.Join(path, "*.gtcp"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	b, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)/2] ^= 1
	if err := os.WriteFile(files[0], b, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := usual.run(&strings.Builder{}, path); err == nil || !strings.Contains(err.Error(), files[0]) {
		t.Errorf("a record that was changed: %v", err)
	}
	if err := usual.run(&strings.Builder{}, t.TempDir()); err == nil || !strings.Contains(err.Error(), "measure.connections") {
		t.Errorf("no records: %v", err)
	}
}

// Of a capture, what any TCP sent is found from its packets: those that were sent again,
// and where the window closed. A frame that was captured where it came and where it left
// counts once.
func TestDiagnoseCapture(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.pcapng")
	f := capturetest.Create(t, path, "a", "b")
	packet := func(at time.Duration, src, dst string, tags []wt.Layer, h wire.TCPFields, size int) {
		layers := append([]wt.Layer{wt.Eth(wt.MAC(2), wt.MAC(1))}, tags...)
		b := wt.Frame(append(layers, wt.IPv4(src, dst), wt.TCP(h), wt.Zeros(size))...)
		for iface, dir := range []capture.Dir{capture.DirIn, capture.DirOut} {
			f.Packet(capture.Record{Time: int64(at) + int64(iface), Iface: uint32(iface), Dir: dir}, b)
		}
	}
	const ack = 0x10
	for i, seq := range []uint32{0, 1000, 2000, 1000} {
		at := time.Duration(i) * time.Millisecond
		if i == 3 {
			at += time.Second
		}
		packet(at, "10.0.0.1", "10.0.0.2", nil, wire.TCPFields{SrcPort: 5000, DstPort: 80, Seq: seq, Flags: ack, Window: 9}, 1000)
		window := uint16(9)
		if i == 3 {
			window = 0
		}
		packet(at, "10.0.0.2", "10.0.0.1", []wt.Layer{wt.VLAN(7, 0)}, wire.TCPFields{SrcPort: 80, DstPort: 5000, Ack: 1000, Flags: ack, Window: window}, 0)
	}
	f.Close()
	var out strings.Builder
	if err := (&diagnoseFlags{}).run(&out, path); err != nil {
		t.Fatal(err)
	}
	var rows [][]string
	for line := range strings.Lines(out.String()) {
		rows = append(rows, strings.Fields(line))
	}
	tail := func(row int) string { return strings.Join(rows[row][4:], " ") }
	// PACKETS BYTES RETRANSMITTED TIMEOUTS LATE, DUPLICATE ACKS, ZERO WINDOWS
	if len(rows) != 4 || tail(1) != "4 4000 1 1 0 0 0" || tail(2) != "4 0 0 0 0 2 1" || !strings.Contains(out.String(), "an analysis") {
		t.Errorf("%s", out.String())
	}
	if err := (&diagnoseFlags{only: "10.0.0.7"}).run(&out, path); err == nil {
		t.Error("connections of 10.0.0.7 were found")
	}
}
