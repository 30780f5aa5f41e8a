package mirror

import (
	"encoding/hex"
	"net/netip"
	"strings"
	"testing"

	"gswitch/capture/capturetest"
	"gswitch/wire"
	wt "gswitch/wire/wiretest"
)

func sflowSession() *Session {
	return &Session{ID: 3, Src: netip.MustParseAddr("10.10.0.10"), Dst: netip.MustParseAddr("10.255.0.1"), Format: SFlow, Snap: 128, sequence: 41}
}

// The bytes of a datagram with a sample of 61 bytes, word by word.
func TestSFlowVector(t *testing.T) {
	s := sflowSession()
	g := NewSamples(s, 0x30001, 1500)
	packet := wt.Frame(eth, wt.IPv4("10.0.1.2", "10.0.9.2"), wt.UDP(7, 9), wt.Payload([]byte{0xab}), wt.Zeros(18))
	g.Add(Sample{Port: 4, Sequence: 9, OneIn: 64, Pool: 600, Drops: 2, Wire: 1000}, packet)
	b := make([]byte, 300)
	n := g.Write(b, s, 1234)
	want := "0000000000000000000000000800" + "450000b8000040004011" + "2522" + "0a0a000a0aff0001" +
		"18c718c7" + "00a40000" +
		"00000005" + "00000001" + "0a0a000a" + "00030001" + "00000029" + "000004d2" + "00000001" +
		"00000001" + "00000078" + "00000009" + "00000005" + "00000040" + "00000258" + "00000002" + "00000005" + "00000000" + "00000001" +
		"00000001" + "00000050" + "00000001" + "000003ec" + "00000004" + "0000003d" + hex.EncodeToString(packet) + "000000"
	if got := hex.EncodeToString(b[:n]); len(packet) != 61 || got != want {
		t.Errorf("%d bytes:\n%s\n%s", len(packet), got, want)
	}
	if s.Sequence() != 42 || s.Made(b[:n], s.Dst) != 1 || !IsCopy(b[:n], 14) || len(g.Ports()) != 0 {
		t.Error("a datagram that was written is not known as such")
	}
	if other := (&Session{Src: s.Src, Dst: s.Dst}); other.Made(b[:n], s.Dst) != 0 || s.Made(packet, s.Dst) != 0 || s.Made(b[:60], s.Dst) != 0 || s.Made(b[:n], s.Src) != 0 {
		t.Error("what the session did not make is taken for its own")
	}
}

// A datagram is no longer than an IP packet may be, and no longer than 1400 bytes;
// samples are cut at the session's length, or at what there is room for.
func TestSFlowBounds(t *testing.T) {
	for mtu, most := range map[int]int{576: 576, 1400: 1400, 9000: 1428} {
		for _, snap := range []int{0, 128, 130, 1000} {
			s := sflowSession()
			s.Snap = snap
			g := NewSamples(s, 1, mtu)
			b, packet := make([]byte, 2000), make([]byte, 1800)
			for size := range len(packet) / 7 {
				packet := packet[:14+7*size%(len(packet)-14)]
				for !g.Fits(packet) {
					if len(g.Ports()) == 0 {
						t.Fatalf("an empty datagram has no room for %d bytes", len(packet))
					}
					if n := g.Write(b, s, 0); n > 14+most || n == 0 || int(wire.IPv4(b[14:]).TotalLen()) != n-14 {
						t.Fatalf("MTU %d, %d bytes of a packet: a frame of %d bytes", mtu, snap, n)
					}
				}
				g.Add(Sample{}, packet)
			}
			if g.Write(b[:100], s, 0) != 0 || len(g.Ports()) != 0 {
				t.Error("a datagram was written where there is no room for it")
			}
		}
	}
}

// Wireshark reads the datagrams, and the packets in them, without a complaint.
func TestTsharkDissectsSFlow(t *testing.T) {
	s := sflowSession()
	g := NewSamples(s, 0x30000, 1500)
	var frames [][]byte
	for i := range 2 {
		for k := range 3 {
			packet := wt.Frame(eth, wt.IPv4("10.0.1.2", "10.0.9.2"), wt.UDP(uint16(40000+k), 9), wt.Zeros(k*301))
			g.Add(Sample{Port: uint16(k), Sequence: uint32(i + 1), OneIn: 64, Pool: uint32(100*i + k), Drops: 7, Wire: uint32(len(packet))}, packet)
		}
		b := make([]byte, 1500)
		n := g.Write(b, s, 99)
		copy(b[6:], []byte{2, 0, 0, 0, 0, 9})
		frames = append(frames, b[:n])
	}
	lines := capturetest.Dissect(t, frames, "sflow_245.version", "sflow_245.agent", "sflow_245.sub_agent_id", "sflow_245.sequence_number", "sflow_245.sysuptime", "sflow_245.numsamples", "sflow.flow_sample.sequence_number", "sflow.flow_sample.index",
		"sflow.flow_sample.sampling_rate", "sflow.flow_sample.sample_pool", "sflow.flow_sample.dropped_packets", "sflow.flow_sample.input_interface", "sflow_245.header.frame_length", "sflow_245.header.payload_stripped", "udp.srcport", "ip.dst", "_ws.malformed", "_ws.expert.message")
	want := []string{"41|99|3|1,1,1|", "42|99|3|2,2,2|"}
	for i, pool := range []string{"0,1,2", "100,101,102"} {
		line := "5|10.10.0.10|196608|" + want[i] + "1,2,3|64,64,64|" + pool + "|7,7,7|1,2,3|64,347,648|4,4,4|6343,40000,40001,40002|10.255.0.1,10.0.9.2,10.0.9.2,10.0.9.2||"
		if i >= len(lines) || lines[i] != line {
			t.Errorf("datagram %d of %d:\n%s\n%s", i, len(lines), lines, line)
		}
	}
}

// Wireshark reads counters samples, beside flow samples in datagrams of the same
// session, and as many fit as there is room for.
func TestTsharkDissectsCounters(t *testing.T) {
	s := sflowSession()
	g := NewSamples(s, 0x30000, 1500)
	n := uint16(0)
	for ; g.FitsCounters(); n++ {
		g.AddCounters(&Interface{Port: n, Sequence: 5, Speed: 10e9, Up: n == 0, InOctets: 1 << 40, OutOctets: 77, InFrames: 11, OutFrames: 12, InDiscards: 13, OutDiscards: 14, InErrors: 15, TooLong: 16})
	}
	b := make([]byte, 1500)
	size := g.Write(b, s, 99)
	if n != 7 || len(g.Ports()) != 0 || size > 14+1428 {
		t.Fatalf("%d samples in a frame of %d bytes", n, size)
	}
	copy(b[6:], []byte{2, 0, 0, 0, 0, 9})
	lines := capturetest.Dissect(t, [][]byte{b[:size]}, "sflow_245.numsamples", "sflow.counters_sample.sequence_number", "sflow.counters_sample.source_id_index", "sflow_245.ifindex", "sflow_245.iftype", "sflow_245.ifspeed",
		"sflow_245.ifdirection", "sflow_245.ifadmin_status", "sflow_245.ifoper_status", "sflow_245.ifinoct", "sflow_245.ifinpkt", "sflow_245.ifindisc", "sflow_245.ifinerr", "sflow_245.ifoutoct", "sflow_245.ifoutpkt", "sflow_245.ifoutdisc",
		"sflow_245.dot3StatsFrameTooLongs", "sflow_245.ifinmcast", "_ws.malformed", "_ws.expert.message")
	many := func(v string) string { return strings.TrimSuffix(strings.Repeat(v+",", 7), ",") }
	want := strings.Join([]string{"7", many("5"), "1,2,3,4,5,6,7", "1,2,3,4,5,6,7", many("6"), many("10000000000"), many("1"), many("1"), "1," + strings.TrimSuffix(strings.Repeat("0,", 6), ","), many("1099511627776"), many("11"), many("13"), many("15"), many("77"), many("12"), many("14"),
		many("16"), many("4294967295"), "", ""}, "|")
	if len(lines) != 1 || lines[0] != want {
		t.Errorf("\n%s\n%s", lines, want)
	}
}

// goflow2, a collector that people run, finds the packets in the datagrams.
func TestGoflow2ReadsSFlow(t *testing.T) {
	s := sflowSession()
	g := NewSamples(s, 0x30000, 1500)
	for k := range 3 {
		packet := wt.Frame(eth, wt.IPv4("10.0.1.2", "10.0.9.2"), wt.UDP(uint16(40000+k), 9), wt.Zeros(k*301))
		g.Add(Sample{Port: uint16(k), Sequence: 1, OneIn: 64, Pool: 64, Wire: uint32(len(packet))}, packet)
	}
	b := make([]byte, 1500)
	n := g.Write(b, s, 99)
	const headers = 14 + 20 + 8
	for k, f := range capturetest.Collect(t, "sflow", [][]byte{b[headers:n]}, 3) {
		want := map[string]any{"type": "SFLOW_5", "sampler_address": "10.10.0.10", "sequence_num": 41.0, "sampling_rate": 64.0, "src_addr": "10.0.1.2", "dst_addr": "10.0.9.2",
			"src_port": float64(40000 + k), "dst_port": 9.0, "proto": "UDP", "in_if": float64(k + 1), "bytes": []float64{64, 347, 648}[k]}
		for key, v := range want {
			if f[key] != v {
				t.Errorf("packet %d: %s is %v, want %v", k, key, f[key], v)
			}
		}
	}
}
