package ipfix

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"gswitch/capture/capturetest"
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
	e := Encoder{Domain: 7, Most: 1400}
	var frames [][]byte
	for i := range 3 {
		b, _ := e.Message(now, i == 0, flows(2))
		frames = append(frames, wt.Frame(wt.Eth(wt.MAC(1), wt.MAC(2)), wt.IPv4("10.9.0.1", "10.9.0.2"), wt.UDP(5000, 4739), wt.Payload(b)))
	}
	rows := capturetest.Dissect(t, frames, "cflow.sequence", "cflow.od_id", "cflow.srcaddr", "cflow.dstaddr", "cflow.srcport", "cflow.dstport", "cflow.protocol", "cflow.drop_packets", "cflow.forwarding_status_drop_code", "cflow.if_name", "_ws.malformed", "_ws.expert")
	var want []string
	for _, head := range []string{"0|7|", "2|7|", "4|7|"} {
		want = append(want, head+"10.0.0.1,10.0.0.1|10.0.0.0,10.0.0.1|1000,1000|0,1|6,6|1,2|11,11|s1>s2,s1>s2||")
	}
	if !slices.Equal(rows, want) {
		t.Errorf("%q, want %q", rows, want)
	}
}

// So does goflow2, a collector that people run.
func TestGoflow2(t *testing.T) {
	e := Encoder{Domain: 7, Most: 1400}
	var messages [][]byte
	for i := range 3 {
		b, _ := e.Message(now, i == 0, flows(2))
		messages = append(messages, b)
	}
	for i, f := range capturetest.Collect(t, "netflow", messages, 6) {
		want := map[string]any{"type": "IPFIX", "observation_domain_id": 7.0, "sequence_num": float64(i / 2 * 2), "src_addr": "10.0.0.1", "dst_addr": fmt.Sprintf("10.0.0.%d", i%2), "src_port": 1000.0, "dst_port": float64(i % 2),
			"proto": "TCP", "forwarding_status": float64(Congestion), "time_flow_start_ns": float64(now.UnixNano()), "time_flow_end_ns": float64(now.Add(time.Second).UnixNano())}
		for k, v := range want {
			if f[k] != v {
				t.Errorf("flow %d: %s is %v, want %v", i, k, f[k], v)
			}
		}
	}
}
