package ipfix

import (
	"encoding/binary"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gswitch/capture"
	"gswitch/wire"
	wt "gswitch/wire/wiretest"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func flows(n int) (v []Flow) {
	for i := range n {
		v = append(v, Flow{Src: netip.MustParseAddr("10.0.0.1"), Dst: netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}), SrcPort: 1000, DstPort: uint16(i), Protocol: wire.ProtoTCP,
			Dropped: uint64(i + 1), First: now, Last: now.Add(time.Second), Status: Congestion, Where: "s1>s2"})
	}
	return v
}

// All flows are in messages of the length that is allowed, and the sequence counts
// records (RFC 7011, section 3.1).
func TestMessages(t *testing.T) {
	e := Encoder{Domain: 7, Most: LeastMessage}
	v := flows(100)
	for done, first := 0, true; done < len(v); first = false {
		b, n := e.Message(now, first, v[done:])
		if n == 0 || len(b) > LeastMessage || int(binary.BigEndian.Uint16(b[2:])) != len(b) || int(binary.BigEndian.Uint32(b[8:])) != done {
			t.Fatalf("%d flows of %d in %d bytes: %x", n, len(v)-done, len(b), b[:16])
		}
		done += n
	}
	long := flows(1)
	long[0].Where = strings.Repeat("x", 1000)
	if b, n := e.Message(now, true, long); n != 1 || len(b) > LeastMessage {
		t.Errorf("%d flows in %d bytes", n, len(b))
	}
}

// Wireshark reads what we write.
func TestTshark(t *testing.T) {
	tshark, err := exec.LookPath("tshark")
	if err != nil {
		if os.Getenv("GSWITCH_CI") != "" {
			t.Fatal(err)
		}
		t.Skip("no tshark here")
	}
	file := filepath.Join(t.TempDir(), "ipfix.pcapng")
	out, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	w := capture.NewWriter(out)
	if err := w.Section(""); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Interface("x", "", 0); err != nil {
		t.Fatal(err)
	}
	e := Encoder{Domain: 7, Most: 1400}
	for i := range 3 {
		b, _ := e.Message(now, i == 0, flows(2))
		f := wt.Frame(wt.Eth(wt.MAC(1), wt.MAC(2)), wt.IPv4("10.9.0.1", "10.9.0.2"), wt.UDP(5000, 4739), wt.Payload(b))
		if err := w.Packet(capture.Record{Time: now.UnixNano(), Wire: uint32(len(f))}, f); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	args := []string{"-r", file, "-T", "fields", "-E", "separator=|"}
	for _, f := range []string{"cflow.sequence", "cflow.od_id", "cflow.srcaddr", "cflow.dstaddr", "cflow.srcport", "cflow.dstport", "cflow.protocol", "cflow.drop_packets", "cflow.forwarding_status_drop_code", "cflow.if_name", "_ws.malformed", "_ws.expert"} {
		args = append(args, "-e", f)
	}
	text, err := exec.Command(tshark, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	rows := 0
	for line := range strings.Lines(string(text)) {
		if !strings.Contains(line, "|") {
			continue // what tshark says of being root
		}
		want := []string{"0|7|", "2|7|", "4|7|"}[rows] + "10.0.0.1,10.0.0.1|10.0.0.0,10.0.0.1|1000,1000|0,1|6,6|1,2|11,11|s1>s2,s1>s2||"
		if strings.TrimSpace(line) != want {
			t.Errorf("row %d: %q, want %q", rows, line, want)
		}
		rows++
	}
	if rows != 3 {
		t.Errorf("%d messages: %s", rows, text)
	}
}
