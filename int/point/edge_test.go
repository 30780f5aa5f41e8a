package point

import (
	"bytes"
	"strings"
	"testing"

	"gswitch/frame"
	inband "gswitch/int"
	"gswitch/vswitch"
	st "gswitch/vswitch/switchtest"
	"gswitch/wire"
	wt "gswitch/wire/wiretest"
)

// edge is a switch whose port 0 is a source and port 1 a sink.
func edge(t testing.TB, id uint16, source inband.Mode, ports []uint16, sink bool) *st.Rig {
	cfg := telemetryConfig(id)
	cfg.Ports[0].Options = vswitch.Options{Name: Edge{Source: source, SourcePorts: ports}}
	cfg.Ports[1].Options = vswitch.Options{Name: Edge{Sink: sink}}
	return st.NewOf(t, cfg, 1, 256)
}

// counted adds up what a switch counted at the edge, as it is read.
func counted(r *st.Rig) (c portCounts) {
	r.Switch.Nodes[0].ReadFeatures(func(f *vswitch.Feature, _ int, _ uint16, v float64, labels ...string) {
		switch labels[0] {
		case "source":
			c.sourced += uint64(v)
		case "sink":
			c.sunk += uint64(v)
		case "skipped":
			c.skipped += uint64(v)
		}
	})
	return c
}

func rocePacket(op uint8, payload int, ip wt.Layer) []byte {
	build := func(icrc []byte) []byte {
		return wt.Packet(wt.Eth(st.HostMAC(2), st.HostMAC(1)), ip, wt.UDP(49152, wire.RoCEv2Port), wt.BTH(op, 7, 99),
			wt.Header(&wire.RETHFields{VA: 1, RKey: 2, Length: 3}), wt.Zeros(payload), wt.Payload(icrc))
	}
	b := build(make([]byte, wire.ICRCLen))
	m, _ := wt.Parse(b)
	wire.PutICRC(b, int(m.L3), wire.BTHOffset(&m, b))
	return build(b[len(b)-wire.ICRCLen:]) // the UDP checksum covers it
}

// A frame of a host without telemetry crosses three switches and
// arrives as it left, bit by bit; what the sink took out reports of all three.
func TestSourceToSink(t *testing.T) {
	ip4, ip6 := wt.IPv4("10.0.0.1", "10.0.0.2"), wt.IPv6("fd00::1", "fd00::2")
	dns := wt.Packet(wt.Eth(st.HostMAC(2), st.HostMAC(1)), ip4, wt.UDP(1000, 2000), wt.Payload(bytes.Repeat([]byte("odd"), 333)))
	for _, mode := range []inband.Mode{inband.HPCC, inband.HPCCGrow, inband.INTMD, inband.INTMDUDP} {
		first := edge(t, 0x123, mode, nil, false)
		if mode == inband.INTMD {
			first = edge(t, 0x123, mode, []uint16{wire.RoCEv2Port, 2000}, false)
		}
		middle := st.NewOf(t, telemetryConfig(0x456), 1, 256)
		last := edge(t, 0x789, inband.None, nil, true)
		frames := [][]byte{rocePacket(wire.RCWriteOnly, 800, ip4), rocePacket(wire.RCWriteFirst, 801, ip6)}
		if mode == inband.INTMD {
			frames = append(frames, dns)
		}
		for i, sent := range frames {
			b := sent
			for j, r := range []*st.Rig{first, middle, last} {
				r.Advance(10 * frame.Microsecond)
				r.In(0, b)
				b = r.One(1)
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
			recs := ReadSink(last.Switch.Nodes[0], nil)
			if len(recs) != i+1 {
				t.Fatalf("%v: %d records of %d frames", mode, len(recs), i+1)
			}
			rec := recs[i]
			want := wire.UDP(sent[14+20:])
			if i == 1 {
				want = wire.UDP(sent[14+40:])
			}
			if rec.Port != 1 || rec.Path.N != 3 || rec.Path.Age != last.Now || rec.SrcPort != want.SrcPort() || rec.DstPort != want.DstPort() {
				t.Errorf("%v: record %+v", mode, rec)
			}
			if mode != inband.INTMD && mode != inband.INTMDUDP && rec.Path.ID != 0x123^0x456^0x789 {
				t.Errorf("%v: path %03x", mode, rec.Path.ID)
			}
		}
		n, bytes := uint64(len(frames)), uint64(0)
		for _, b := range frames {
			bytes += uint64(len(b))
		}
		if c := last.Counts(1).Tx; c.Frames != n || c.Bytes != bytes {
			t.Errorf("%v: the last switch sent %+v, want %d frames of %d bytes", mode, c, n, bytes)
		}
		if s, k := counted(first), counted(last); s.sourced != n || s.sunk != 0 || k.sourced != 0 || k.sunk != n {
			t.Errorf("%v: %d frames got a header, %d lost it, of %d", mode, s.sourced, k.sunk, n)
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
		"other port":   {st.UDP(st.HostMAC(2), st.HostMAC(1), "10.0.0.2", "10.0.0.1"), 0},
		"tunnel":       {wt.Frame(wt.Eth(st.HostMAC(2), st.HostMAC(1)), ip4, wt.GRE(0, 0, 0), ip4, wt.UDP(1, wire.RoCEv2Port), wt.BTH(wire.RCSendOnly, 1, 1), wt.Zeros(40)), 0},
		"too long":     {rocePacket(wire.RCWriteOnly, 1400, ip4), 1},
	} {
		r := edge(t, 5, inband.HPCC, nil, false)
		r.In(0, c.b)
		if got := r.One(1); !bytes.Equal(got, c.b) {
			t.Errorf("%s: changed", name)
		}
		if n := counted(r); n.sourced != 0 || n.skipped != c.skipped {
			t.Errorf("%s: %d with a header, %d skipped", name, n.sourced, n.skipped)
		}
	}
	// A host's own telemetry is not wrapped in another.
	r := edge(t, 5, inband.HPCC, nil, false)
	r.In(0, dataFrame(&codec, 100))
	if p := decode(t, &codec, r.One(1)); p.N != 1 {
		t.Errorf("%d hops", p.N)
	}
}

// The sink keeps the last records, and allocates nothing for them.
func TestSinkKeepsTheLast(t *testing.T) {
	r := edge(t, 5, inband.HPCC, nil, true)
	b := rocePacket(wire.RCWriteOnly, 100, wt.IPv4("10.0.0.1", "10.0.0.2"))
	for range SinkRecords + 10 {
		r.Advance(frame.Microsecond)
		r.In(0, b)
		r.One(1)
	}
	recs := ReadSink(r.Switch.Nodes[0], nil)
	if len(recs) != SinkRecords || recs[SinkRecords-1].Path.Age != r.Now || recs[0].Path.Age != r.Now-(SinkRecords-1)*frame.Microsecond {
		t.Errorf("%d records, from %d to %d, now is %d", len(recs), recs[0].Path.Age, recs[len(recs)-1].Path.Age, r.Now)
	}
	cfg := telemetryConfig(9)
	cfg.Ports[0].Options, cfg.Ports[1].Options = vswitch.Options{Name: Edge{Source: inband.HPCC}}, vswitch.Options{Name: Edge{Sink: true}}
	cfg.Ports[0].Scheduler.Rate, cfg.Ports[1].Scheduler.Rate = 0, 0
	p := st.NewPump(t, cfg, [][]byte{b})
	p.Step(0, 1)
	if n := testing.AllocsPerRun(50, func() { p.Step(0, 1) }); n != 0 {
		t.Errorf("%v allocations a vector", n)
	}
	p.Free()
}

func TestEdgeConfigIsChecked(t *testing.T) {
	for want, set := range map[string]func(*vswitch.Config){
		"telemetry is off": func(c *vswitch.Config) { c.Options, c.Ports[1].Options = nil, vswitch.Options{Name: Edge{Sink: true}} },
		"RoCEv2": func(c *vswitch.Config) {
			c.Ports[0].Options = vswitch.Options{Name: Edge{Source: inband.HPCC, SourcePorts: []uint16{53}}}
		},
		"no telemetry fo": func(c *vswitch.Config) { c.Ports[0].Options = vswitch.Options{Name: Edge{Source: 99}} },
	} {
		cfg := telemetryConfig(5)
		set(cfg)
		_, err := vswitch.New(cfg, []*frame.Pool{frame.NewPool(frame.MustArena(64, 2048, 256))})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want an error about %q", err, want)
		}
	}
}
