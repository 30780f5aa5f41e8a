package pfc_test

import (
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"gswitch/pfc"
	"gswitch/wire"
)

// What we send reads as flow control to an independent dissector.
func TestTsharkDissects(t *testing.T) {
	tshark, err := exec.LookPath("tshark")
	if err != nil {
		t.Skip("tshark is not installed")
	}
	// A pcap file by hand: header of version 2.4 for Ethernet, then records.
	le := binary.LittleEndian
	file := le.AppendUint32(nil, 0xa1b2c3d4)
	file = le.AppendUint16(le.AppendUint16(file, 2), 4)
	for _, v := range []uint32{0, 0, 65535, 1} {
		file = le.AppendUint32(file, v)
	}
	for _, mode := range []pfc.Mode{pfc.PFC, pfc.Pause} {
		p := pfc.NewPort(pfc.Config{Mode: mode, Enable: 0x18, Quanta: 1000, Source: wire.MAC{2, 0, 0, 0, 0, 7}})
		b := make([]byte, 60)
		for _, want := range []uint8{0x18, 0x10, 0} {
			p.Request(want)
			if n := p.NextFrame(0, b); n > 0 {
				for _, v := range []uint32{1, 0, uint32(n), uint32(n)} {
					file = le.AppendUint32(file, v)
				}
				file = append(file, b[:n]...)
			}
		}
	}
	name := filepath.Join(t.TempDir(), "pause.pcap")
	if err := os.WriteFile(name, file, 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := exec.Command(tshark, "-r", name, "-T", "fields", "-e", "eth.dst", "-e", "frame.len", "-e", "macc.opcode",
		"-e", "macc.cbfc.enbv", "-e", "macc.cbfc.pause_time.c3", "-e", "macc.cbfc.pause_time.c4", "-e", "macc.pause_time",
		"-e", "_ws.expert.message").Output()
	if err != nil {
		t.Fatal(err)
	}
	want := "01:80:c2:00:00:01\t60\t0x0101\t0x0018\t1000\t1000\t\t\n" +
		"01:80:c2:00:00:01\t60\t0x0101\t0x0018\t0\t1000\t\t\n" +
		"01:80:c2:00:00:01\t60\t0x0101\t0x0010\t0\t0\t\t\n" +
		"01:80:c2:00:00:01\t60\t0x0001\t\t\t\t1000\t\n" +
		"01:80:c2:00:00:01\t60\t0x0001\t\t\t\t0\t\n"
	if string(got) != want {
		t.Fatalf("tshark reads\n%s\nwant\n%s", got, want)
	}
}
