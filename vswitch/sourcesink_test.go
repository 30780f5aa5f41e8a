package vswitch

import (
	"bytes"
	"strings"
	"testing"

	"gswitch/frame"
	inband "gswitch/int"
	"gswitch/wire"
	wt "gswitch/wire/wiretest"
)

// edge is a switch whose port 0 is a source and port 1 a sink.
func edge(t testing.TB, id uint16, source inband.Mode, ports []uint16, sink bool) *rig {
	cfg := telemetryConfig(id)
	cfg.Ports[0].Telemetry = PortTelemetry{Source: source, SourcePorts: ports}
	cfg.Ports[1].Telemetry.Sink = sink
	return newRigOf(t, cfg, 1, 256)
}

func rocePacket(op uint8, payload int, ip wt.Layer) []byte {
	build := func(icrc []byte) []byte {
		return wt.Packet(wt.Eth(hostMAC(2), hostMAC(1)), ip, wt.UDP(49152, wire.RoCEv2Port), wt.BTH(op, 7, 99),
			wt.Header(&wire.RETHFields{VA: 1, RKey: 2, Length: 3}), wt.Zeros(payload), wt.Payload(icrc))
	}
	b := build(make([]byte, wire.ICRCLen))
	m, _ := wt.Parse(b)
	wire.PutICRC(b, int(m.L3), wire.BTHOffset(&m, b))
	return build(b[len(b)-wire.ICRCLen:]) // the UDP checksum covers it
}

// A frame of a host that knows nothing of telemetry crosses three switches and
// arrives as it left, bit by bit; what the sink took out tells of all three.
func TestSourceToSink(t *testing.T) {
	ip4, ip6 := wt.IPv4("10.0.0.1", "10.0.0.2"), wt.IPv6("fd00::1", "fd00::2")
	dns := wt.Packet(wt.Eth(hostMAC(2), hostMAC(1)), ip4, wt.UDP(1000, 2000), wt.Payload(bytes.Repeat([]byte("odd"), 333)))
	for _, mode := range []inband.Mode{inband.HPCC, inband.HPCCGrow, inband.INTMD, inband.INTMDUDP} {
		first := edge(t, 0x123, mode, nil, false)
		if mode == inband.INTMD {
			first = edge(t, 0x123, mode, []uint16{wire.RoCEv2Port, 2000}, false)
		}
		middle := newRigOf(t, telemetryConfig(0x456), 1, 256)
		last := edge(t, 0x789, inband.None, nil, true)
		frames := [][]byte{rocePacket(wire.RCWriteOnly, 800, ip4), rocePacket(wire.RCWriteFirst, 801, ip6)}
		if mode == inband.INTMD {
			frames = append(frames, dns)
		}
		for i, sent := range frames {
			b := sent
			for j, r := range []*rig{first, middle, last} {
				r.advance(10 * frame.Microsecond)
				r.in(0, b)
				b = r.one(1)
				if j == 2 {
					break
				}
				m, why := wt.Parse(b)
				if why != frame.Keep || m.Flags&frame.HasINT == 0 {
					t.Fatalf("%v: behind switch %d: %v, flags %x", mode, j, why, m.Flags)
				}
				wt.Check(t, b, wt.Checksums())
				if bth := wire.BTHOffset(&m, b); bth != 0 && !wire.CheckICRC(b, int(m.L3), bth) {
					t.Errorf("%v: behind switch %d the invariant CRC does not hold", mode, j)
				}
			}
			if !bytes.Equal(b, sent) {
				t.Errorf("%v: frame %d arrives as\n% x\nwas\n% x", mode, i, b, sent)
			}
			recs := last.sw.Nodes[0].ReadSink(nil)
			if len(recs) != i+1 {
				t.Fatalf("%v: %d records of %d frames", mode, len(recs), i+1)
			}
			rec := recs[i]
			want := wire.UDP(sent[14+20:])
			if i == 1 {
				want = wire.UDP(sent[14+40:])
			}
			if rec.Port != 1 || rec.Path.N != 3 || rec.Path.Age != last.now || rec.SrcPort != want.SrcPort() || rec.DstPort != want.DstPort() {
				t.Errorf("%v: record %+v", mode, rec)
			}
			if mode != inband.INTMD && mode != inband.INTMDUDP && rec.Path.ID != 0x123^0x456^0x789 {
				t.Errorf("%v: path %03x", mode, rec.Path.ID)
			}
		}
		n := uint64(len(frames))
		if s, k := first.sw.Nodes[0].Counts(), last.sw.Nodes[0].Counts(); s.INTSourced != n || s.INTSunk != 0 || k.INTSourced != 0 || k.INTSunk != n {
			t.Errorf("%v: %d frames got a header, %d lost it, of %d", mode, s.INTSourced, k.INTSunk, n)
		}
	}
}

// What is no data, or cannot take a header, goes without.
func TestSourceLeavesOut(t *testing.T) {
	ip4 := wt.IPv4("10.0.0.1", "10.0.0.2")
	codec := inband.NewCodec(inband.HPCC, nil)
	for name, c := range map[string]struct {
		b       []byte
		skipped uint64
	}{
		"ack":          {rocePacket(wire.RCAcknowledge, 40, ip4), 0},
		"read request": {rocePacket(wire.RCReadRequest, 0, ip4), 0},
		"cnp":          {rocePacket(wire.RoCECongestionNotify, 40, ip4), 0},
		"other port":   {udp(hostMAC(2), hostMAC(1), "10.0.0.2", "10.0.0.1"), 0},
		"tunnel":       {wt.Frame(wt.Eth(hostMAC(2), hostMAC(1)), ip4, wt.GRE(0, 0, 0), ip4, wt.UDP(1, wire.RoCEv2Port), wt.BTH(wire.RCSendOnly, 1, 1), wt.Zeros(40)), 0},
		"too long":     {rocePacket(wire.RCWriteOnly, 1400, ip4), 1},
	} {
		r := edge(t, 5, inband.HPCC, nil, false)
		r.in(0, c.b)
		if got := r.one(1); !bytes.Equal(got, c.b) {
			t.Errorf("%s: changed", name)
		}
		if n := r.sw.Nodes[0].Counts(); n.INTSourced != 0 || n.INTSkipped != c.skipped {
			t.Errorf("%s: %d with a header, %d skipped", name, n.INTSourced, n.INTSkipped)
		}
	}
	// A host's own telemetry is not wrapped in another.
	r := edge(t, 5, inband.HPCC, nil, false)
	r.in(0, dataFrame(&codec, 100))
	if p := decode(t, &codec, r.one(1)); p.N != 1 {
		t.Errorf("%d hops", p.N)
	}
}

// The sink keeps the last records, and allocates nothing for them.
func TestSinkKeepsTheLast(t *testing.T) {
	r := edge(t, 5, inband.HPCC, nil, true)
	b := rocePacket(wire.RCWriteOnly, 100, wt.IPv4("10.0.0.1", "10.0.0.2"))
	for range SinkRecords + 10 {
		r.advance(frame.Microsecond)
		r.in(0, b)
		r.one(1)
	}
	recs := r.sw.Nodes[0].ReadSink(nil)
	if len(recs) != SinkRecords || recs[SinkRecords-1].Path.Age != r.now || recs[0].Path.Age != r.now-(SinkRecords-1)*frame.Microsecond {
		t.Errorf("%d records, from %d to %d, now is %d", len(recs), recs[0].Path.Age, recs[len(recs)-1].Path.Age, r.now)
	}
	cfg := telemetryConfig(9)
	cfg.Ports[0].Telemetry.Source, cfg.Ports[1].Telemetry.Sink = inband.HPCC, true
	cfg.Ports[0].Scheduler.Rate, cfg.Ports[1].Scheduler.Rate = 0, 0
	p := newPump(t, cfg, [][]byte{b})
	p.step(0, 1)
	if n := testing.AllocsPerRun(50, func() { p.step(0, 1) }); n != 0 {
		t.Errorf("%v allocations a vector", n)
	}
	p.free()
}

func TestEdgeConfigIsChecked(t *testing.T) {
	for want, set := range map[string]func(*Config){
		"telemetry is off": func(c *Config) { c.Telemetry.Enabled, c.Ports[1].Telemetry.Sink = false, true },
		"RoCEv2":           func(c *Config) { c.Ports[0].Telemetry = PortTelemetry{Source: inband.HPCC, SourcePorts: []uint16{53}} },
		"no telemetry fo":  func(c *Config) { c.Ports[0].Telemetry.Source = 99 },
	} {
		cfg := telemetryConfig(5)
		set(cfg)
		_, err := New(cfg, []*frame.Pool{frame.NewPool(frame.MustArena(64, 2048, 256))})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want an error about %q", err, want)
		}
	}
}
