package e2e

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// captureConfig drops what goes to UDP port 7777.
func captureConfig(l *lab) string {
	return fmt.Sprintf(`version: 1
switches:
  - name: s1
    ports:
      - {name: left, interface: d0, netns: %[1]s, acl: edge}
      - {name: right, interface: d1, netns: %[1]s}
    acls: {edge: [{seq: 10, match: {protocol: udp, dst_port: 7777}, action: drop}]}
    fdb: {static: [{mac: "%[2]s", port: left}, {mac: "%[3]s", port: right}]}
`, l.sw, l.hosts[0].mac, l.hosts[1].mac)
}

// Everything that happens to frames is in the capture: where they came in,
// where they left, and why they did not.
func TestCapture(t *testing.T) {
	l := newLab(t, 2, labOptions{})
	d, _ := runConfig(t, captureConfig(l))
	dump := d.capture("--in", "--out", "--drops")
	file := dump.file
	s := startStream(t, l.hosts[0], l.hosts[1], flow{dstIP: [4]byte{10, 0, 0, 2}, srcIP: [4]byte{10, 0, 0, 1}, dstPort: 9008, size: 500}, 5000)
	s.flowing(500)
	from := l.hosts[0].raw(t, etherTest)
	dropped := flow{dst: l.hosts[1].mac, src: l.hosts[0].mac, srcIP: [4]byte{10, 0, 0, 1}, dstIP: [4]byte{10, 0, 0, 2}, dstPort: 7777, size: 100}
	const drops = 100
	for n := range uint64(drops) {
		if err := from.send(dropped.frame(n)); err != nil {
			t.Fatal(err)
		}
	}
	s.flowing(1000)
	s.perfect(d)
	if got := d.drops()["acl"]; got != drops {
		t.Errorf("%d drops by the access list, want %d", got, drops)
	}
	// The capture is behind by no more than what it buffers, for a moment.
	frames := 2*int(s.sent.Load()) + 2*drops
	eventually(t, "the capture is whole", func() error {
		if n := size(file); n < int64(frames)*100 {
			return fmt.Errorf("%d bytes", n)
		}
		return nil
	})
	eventually(t, "the capture is whole", func() error {
		before := size(file)
		if n := len(tshark(t, file, "frame.number")); n < frames || size(file) != before {
			return fmt.Errorf("%d frames of %d", n, frames)
		}
		return nil
	})
	dump.end()
	count := map[string]int{}
	for _, r := range tshark(t, file, "frame.interface_name", "frame.packet_flags_direction", "frame.comment", "udp.dstport", "_ws.malformed") {
		count[fmt.Sprintf("%s %s %s %s %s", r[0], r[1], r[2], r[3], r[4])]++
	}
	in, out := "0x00000001", "0x00000002"
	want := map[string]int{
		"s1/left " + in + "  9008 ":          int(s.sent.Load()),
		"s1/right " + out + "  9008 ":        int(s.sent.Load()),
		"s1/left " + in + "  7777 ":          drops,
		"s1/left " + in + " drop: acl 7777 ": drops,
	}
	if fmt.Sprint(count) != fmt.Sprint(want) {
		t.Errorf("captured %v\nwant %v", count, want)
	}
	d.stop(l.sw)
}

// A capture without a reader holds up nothing, and counts what it lost.
func TestCaptureThatNobodyReads(t *testing.T) {
	l := newLab(t, 2, labOptions{})
	d, _ := runConfig(t, captureConfig(l))
	dump := exec.Command(gswitch, "--socket", d.socket, "capture", "--in", "--out", "-w", "-")
	pipe, err := dump.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := dump.Start(); err != nil {
		t.Fatal(err)
	}
	header := make([]byte, 8)
	if _, err := io.ReadFull(pipe, header); err != nil {
		t.Fatal(err)
	}
	s := startStream(t, l.hosts[0], l.hosts[1], flow{dstIP: [4]byte{10, 0, 0, 2}, srcIP: [4]byte{10, 0, 0, 1}, dstPort: 9009, size: 1400}, 8000)
	// 36 MB: more than the rings, the sockets and the pipe between hold.
	s.flowing(12_000)
	s.perfect(d)
	// Now it is read, first what has piled up, then the end that the
	// daemon's end brings.
	var all syncBuffer
	all.Write(header)
	done := make(chan struct{})
	go func() { io.Copy(&all, pipe); close(done) }()
	last := 0
	eventually(t, "all that piled up is read", func() error {
		time.Sleep(200 * time.Millisecond)
		before := last
		if last = len(all.String()); last != before {
			return fmt.Errorf("%d bytes, and more come", last)
		}
		return nil
	})
	d.stop(l.sw)
	<-done
	dump.Wait()
	packets, dropped, statistics := pcapngCounts(t, []byte(all.String()))
	sent := s.sent.Load()
	t.Logf("%d frames, each captured twice: %d captured, %d lost to the reader", sent, packets, dropped)
	if dropped == 0 || packets == 0 || statistics == 0 || packets+dropped != 2*sent {
		t.Errorf("%d captured, %d dropped, want %d together", packets, dropped, 2*sent)
	}
	file := filepath.Join(t.TempDir(), "slow.pcapng")
	if err := os.WriteFile(file, []byte(all.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	if n := len(tshark(t, file, "frame.number")); uint64(n) != packets {
		t.Errorf("tshark reads %d frames, want %d", n, packets)
	}
}

// pcapngCounts reads the blocks of a file: how many packets there are, how
// many the statistics say were dropped (draft-ietf-opsawg-pcapng sections 4.3
// and 4.6), and how many statistics there are.
func pcapngCounts(t testing.TB, b []byte) (packets, dropped, statistics uint64) {
	t.Helper()
	le := binary.LittleEndian
	for len(b) >= 12 {
		n := int(le.Uint32(b[4:]))
		if n < 12 || n > len(b) || !bytes.Equal(b[4:8], b[n-4:n]) {
			t.Fatalf("a block of %d bytes, with %d left", n, len(b))
		}
		switch le.Uint32(b) {
		case 6:
			packets++
		case 5:
			statistics++
			for o := b[20 : n-4]; len(o) >= 4; {
				code, length := le.Uint16(o), int(le.Uint16(o[2:]))
				if code == 5 { // isb_ifdrop
					dropped += le.Uint64(o[4:])
				}
				o = o[4+(length+3)&^3:]
			}
		}
		b = b[n:]
	}
	if len(b) > 0 {
		t.Fatalf("%d bytes of a block cut off", len(b))
	}
	return packets, dropped, statistics
}
