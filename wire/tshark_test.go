package wire_test

import (
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// What we write is what the field reads: tshark dissects one frame of every
// format without complaint.
func TestTsharkDissects(t *testing.T) {
	tshark, err := exec.LookPath("tshark")
	if err != nil {
		t.Skip("tshark is not installed")
	}
	path := filepath.Join(t.TempDir(), "formats.pcap")
	fs := formats()
	if err := os.WriteFile(path, pcap(fs), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(tshark, "-n", "-r", path,
		"-o", "ip.check_checksum:TRUE", "-o", "udp.check_checksum:TRUE", "-o", "tcp.check_checksum:TRUE", "-o", "ip.defragment:FALSE", "-o", "ipv6.defragment:FALSE",
		"-T", "fields", "-e", "frame.protocols", "-e", "_ws.malformed", "-e", "_ws.expert.message", "-e", "_ws.col.info")
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir())
	var complaints strings.Builder
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("tshark: %v\n%s", err, complaints.String())
	}
	lines := strings.Split(strings.TrimRight(string(out), "\n"), "\n")
	if len(lines) != len(fs) {
		t.Fatalf("tshark shows %d frames of %d:\n%s", len(lines), len(fs), out)
	}
	for i, f := range fs {
		col := strings.Split(lines[i], "\t")
		protocols := strings.TrimSuffix(strings.TrimSuffix(col[0], ":data"), ":vssmonitoring")
		if want := strings.TrimSuffix(f.tshark, ":data"); !strings.HasSuffix(protocols, want) {
			t.Errorf("%s: tshark sees %s, want ...%s", f.name, col[0], want)
		}
		for _, bad := range []string{"Malformed", "malformed", "checksum", "Checksum"} {
			if strings.Contains(lines[i], bad) {
				t.Errorf("%s: %s", f.name, lines[i])
			}
		}
	}
}

// pcap returns the frames as a capture file (pcap 2.4, link type Ethernet).
func pcap(fs []format) []byte {
	le := binary.LittleEndian
	b := le.AppendUint32(nil, 0xa1b2c3d4)
	b = le.AppendUint32(b, 2|4<<16)
	b = append(b, make([]byte, 8)...)
	b = le.AppendUint32(b, 65535)
	b = le.AppendUint32(b, 1)
	for i, f := range fs {
		b = le.AppendUint32(b, uint32(i))
		b = le.AppendUint32(b, 0)
		b = le.AppendUint32(b, uint32(len(f.b)))
		b = le.AppendUint32(b, uint32(len(f.b)))
		b = append(b, f.b...)
	}
	return b
}
