package point

import (
	"fmt"
	"testing"

	"gswitch/frame"
	inband "gswitch/int"
	"gswitch/pipeline"
	"gswitch/scheduler"
	"gswitch/vswitch"
	st "gswitch/vswitch/switchtest"
	"gswitch/wire"
	wt "gswitch/wire/wiretest"
)

const rate100G = 100_000_000_000

// telemetryConfig is a bridge of three 100 Gb/s ports that stamps.
func telemetryConfig(id uint16) *vswitch.Config {
	cfg := st.Rated(st.Base(3), rate100G)
	cfg.ID, cfg.MAC = id, wire.MAC{2, 0xbb, 0, 0, byte(id >> 8), byte(id)}
	cfg.Options = vswitch.Options{Name: Config{}}
	cfg.FDB.Static = []vswitch.StaticMAC{{VLAN: 1, MAC: st.HostMAC(2), Port: 1}, {VLAN: 1, MAC: st.HostMAC(1), Port: 0}}
	return cfg
}

// dataFrame is a data frame of the mode with an empty telemetry header.
func dataFrame(codec *inband.Codec, payload int, ip ...wt.Layer) []byte {
	h := make([]byte, codec.HeaderLen())
	codec.Init(h)
	if ip == nil {
		ip = []wt.Layer{wt.IPv4("10.0.0.1", "10.0.0.2")}
	}
	l := append([]wt.Layer{wt.Eth(st.HostMAC(2), st.HostMAC(1))}, ip...)
	return wt.Frame(append(l, wt.UDP(49152, codec.Mode().Port()), wt.Payload(h), wt.BTH(wire.RCSendMiddle, 7, 99), wt.Zeros(payload))...)
}

func decode(t *testing.T, codec *inband.Codec, b []byte) (p inband.Path) {
	t.Helper()
	m, why := wt.Parse(b)
	if why != frame.Keep || m.Flags&frame.HasINT == 0 {
		t.Fatalf("no telemetry: %v", why)
	}
	if _, why := codec.Decode(b[m.INT:], &p); why != frame.Keep {
		t.Fatal(why)
	}
	wt.Check(t, b, wt.Checksums())
	return p
}

// Frames pass chains of 1 to 16 switches, over IPv4 and IPv6, tagged or not.
func TestTelemetryThroughChains(t *testing.T) {
	const most = 16
	var rigs [most]*st.Rig
	for i := range rigs {
		rigs[i] = st.NewOf(t, telemetryConfig(uint16(i+1)), 1, 256)
	}
	for _, mode := range []inband.Mode{inband.HPCC, inband.HPCCGrow, inband.INTMD} {
		var rates inband.RateTable
		for i := range uint32(most) {
			rates.Set(i+1, 1, rate100G)
		}
		codec := inband.NewCodec(mode, nil).WithRates(&rates)
		limit := inband.MaxHops
		if mode == inband.HPCC {
			limit = wire.HPCCSlots
		}
		for _, ip := range [][]wt.Layer{{wt.IPv4("10.0.0.1", "10.0.0.2")}, {wt.VLAN(7, 3), wt.IPv6("fd00::1", "fd00::2")}} {
			b := dataFrame(&codec, 1000, ip...)
			for i, r := range rigs {
				r.Advance(frame.Microsecond)
				r.In(0, b)
				b = r.One(1)
				p := decode(t, &codec, b)
				n := min(i+1, limit)
				if p.N != n {
					t.Fatalf("%v: %d hops behind %d switches", mode, p.N, i+1)
				}
				h := p.Hops[n-1]
				full := i+1 > limit
				if h.Rate != rate100G || h.Q != 0 || !full && h.TS != uint64(r.Now)%codec.Range().TS {
					t.Errorf("%v: switch %d at %d ns stamped %+v", mode, i+1, r.Now, h)
				}
				if mode == inband.INTMD && (h.Node != uint32(n) || h.Port != 1) {
					t.Errorf("%v: switch %d calls itself %d port %d", mode, i+1, h.Node, h.Port)
				}
				if c := Records(r.Switch.Nodes[0]); full && c[inband.Full] == 0 || !full && c[inband.Ready] == 0 {
					t.Errorf("%v: switch %d counted %v", mode, i+1, c)
				}
			}
		}
	}
}

// Depth, bytes and instants of a queue that drains, frame by frame.
func TestTelemetryHasQueueAndTime(t *testing.T) {
	codec := inband.NewCodec(inband.INTMD, nil)
	for _, c := range []struct {
		name  string
		set   func(*vswitch.Config)
		q, tx func(i int, wireLen, link uint64) uint64
	}{
		{"queue, tx", func(*vswitch.Config) {},
			func(i int, w, _ uint64) uint64 { return uint64(4-i) * w },
			func(i int, _, l uint64) uint64 { return uint64(i) * l }},
		{"port, tx", func(c *vswitch.Config) { c.Options = vswitch.Options{Name: Config{WholePort: true}} },
			func(i int, w, _ uint64) uint64 { return uint64(4-i) * w },
			func(i int, _, l uint64) uint64 { return uint64(i) * l }},
		{"queue, rx", func(c *vswitch.Config) { c.Options = vswitch.Options{Name: Config{Signal: inband.RxBytes}} },
			func(i int, w, _ uint64) uint64 { return uint64(4-i) * w },
			func(_ int, _, l uint64) uint64 { return 4 * l }},
	} {
		cfg := telemetryConfig(9)
		cfg.Ports[1].Scheduler.Burst = frame.Millisecond // a late worker catches up: several in one vector
		c.set(cfg)
		r := st.New(t, cfg)
		b := dataFrame(&codec, 1000)
		for range 5 {
			r.In(0, b)
		}
		r.Advance(frame.Millisecond / 2)
		out := r.Out(1)
		if len(out) != 5 {
			t.Fatalf("%s: %d frames", c.name, len(out))
		}
		w := uint64(len(out[0]))
		link := w + uint64(cfg.Ports[1].Scheduler.Overhead)
		var first uint64
		for i, b := range out {
			h := decode(t, &codec, b).Hops[0]
			if i == 0 {
				first = h.TS
			}
			if h.Q != c.q(i, w, link) || h.Tx != c.tx(i, w, link) {
				t.Errorf("%s: frame %d: %d queued, %d bytes, want %d and %d", c.name, i, h.Q, h.Tx, c.q(i, w, link), c.tx(i, w, link))
			}
			if want := uint64(i) * link * 8 / 100; h.TS-first != want && h.TS-first != want+1 {
				t.Errorf("%s: frame %d leaves %d ns after the first, want %d", c.name, i, h.TS-first, want)
			}
		}
	}
}

// Where a clock is kept records have its time: a lead of 1 ms is seen.
func TestTelemetryIsSynchronised(t *testing.T) {
	codec := inband.NewCodec(inband.INTMD, nil)
	var stamps [2]uint64
	for i, lead := range []frame.Time{0, frame.Millisecond} {
		r := st.New(t, telemetryConfig(9))
		r.Switch.Nodes[0].Lead(lead, true)
		r.In(0, dataFrame(&codec, 1000))
		r.Advance(frame.Millisecond / 2)
		stamps[i] = decode(t, &codec, r.One(1)).Hops[0].TS
	}
	if d := (stamps[1] - stamps[0]) & (codec.Range().TS - 1); d != uint64(frame.Millisecond) {
		t.Errorf("stamps of a clock that is 1 ms ahead are %d ns later", d)
	}
}

// Other queues of the port count only where they are asked for.
func TestTelemetryOfSeveralQueues(t *testing.T) {
	codec := inband.NewCodec(inband.INTMD, nil)
	for _, whole := range []bool{false, true} {
		cfg := telemetryConfig(9)
		cfg.Options = vswitch.Options{Name: Config{WholePort: whole}}
		r := st.New(t, cfg)
		urgent := dataFrame(&codec, 100, wt.VLAN(0, 7), wt.IPv4("10.0.0.1", "10.0.0.2"))
		r.In(0, dataFrame(&codec, 1000), dataFrame(&codec, 1000), urgent)
		h := decode(t, &codec, r.One(1)).Hops[0] // the urgent one
		want := uint64(0)
		if whole {
			want = 2 * uint64(len(dataFrame(&codec, 1000))+24) // each grew by a hop
		}
		if h.Q != want {
			t.Errorf("whole port %v: %d bytes, want %d", whole, h.Q, want)
		}
	}
}

// What has no telemetry stays as it is; so does all where none is turned on,
// and an acknowledgement's echo anywhere.
func TestTelemetryLeavesOthersAlone(t *testing.T) {
	echo := make([]byte, wire.HPCCLen)
	echo[0] = 0x21
	ack := wt.Frame(wt.Eth(st.HostMAC(2), st.HostMAC(1)), wt.IPv4("10.0.0.2", "10.0.0.1"), wt.UDP(49152, wire.RoCEv2Port),
		wt.BTH(wire.RCAcknowledge, 7, 99), wt.Header(&wire.AETHFields{MSN: 3}), wt.Payload(echo), wt.Zeros(4))
	hpcc := inband.NewCodec(inband.HPCC, nil)
	r := st.New(t, telemetryConfig(9))
	off := telemetryConfig(9)
	off.Options = nil
	o := st.New(t, off)
	for name, c := range map[string]struct {
		r *st.Rig
		b []byte
	}{"ack": {r, ack}, "udp": {r, st.L2(2, 1)}, "ack, off": {o, ack}, "data, off": {o, dataFrame(&hpcc, 100)}} {
		c.r.Advance(frame.Microsecond)
		c.r.In(0, c.b)
		if got := c.r.One(1); string(got) != string(c.b) {
			t.Errorf("%s: changed:\n% x\n% x", name, c.b, got)
		}
	}
	if c := Records(o.Switch.Nodes[0]); c != [inband.NumOutcomes]uint64{} {
		t.Errorf("counted while off: %v", c)
	}
}

// Copies: each member of a flood is stamped for its own port, a mirror copy not
// at all.
func TestTelemetryOfCopies(t *testing.T) {
	cfg := telemetryConfig(9)
	cfg.FDB.Static = nil
	mirror := pipeline.Action{Ops: pipeline.OpPermit | pipeline.OpMirror}
	cfg.ACLs = []vswitch.ACL{{Name: "mirror", Default: mirror}}
	cfg.Mirrors = []vswitch.Mirror{{Name: "m", Port: 3}}
	cfg.VLANs = []vswitch.VLANConfig{{ID: 99}}
	cfg.Ports = append(cfg.Ports, vswitch.PortConfig{Name: "tap", Enabled: true, VLANMode: vswitch.VLANAccess, PVID: 99})
	cfg.Ports[0].ACL = "mirror"
	r := st.New(t, cfg)
	codec := inband.NewCodec(inband.INTMD, nil)
	r.In(0, dataFrame(&codec, 100))
	for port := uint16(1); port <= 2; port++ {
		if p := decode(t, &codec, r.One(port)); p.N != 1 || p.Hops[0].Port != port {
			t.Errorf("port %d: %d hops, the first by port %d", port, p.N, p.Hops[0].Port)
		}
	}
	if p := decode(t, &codec, r.One(3)); p.N != 0 {
		t.Errorf("the mirror copy: %d hops", p.N)
	}
}

// Telemetry turned off while frames wait: what was prepared is finished.
func TestTelemetryTurnedOff(t *testing.T) {
	cfg := telemetryConfig(9)
	r := st.New(t, cfg)
	codec := inband.NewCodec(inband.INTMD, nil)
	r.In(0, dataFrame(&codec, 100))
	off := *cfg
	off.Options = nil
	for range 2 { // and stays possible over programs without
		if err := r.Switch.Apply(&off); err != nil {
			t.Fatal(err)
		}
		r.RunIdle()
	}
	if p := decode(t, &codec, r.One(1)); p.N != 1 || p.Hops[0].Node != 9 {
		t.Errorf("%+v", p.Hops[:p.N])
	}
	r.Advance(frame.Microsecond)
	r.In(0, dataFrame(&codec, 100))
	if p := decode(t, &codec, r.One(1)); p.N != 0 {
		t.Errorf("a frame after that: %d hops", p.N)
	}
}

func TestTelemetryConfigIsChecked(t *testing.T) {
	for _, id := range []uint16{0, 4096} {
		cfg := telemetryConfig(1)
		cfg.ID = id
		if _, err := vswitch.New(cfg, []*frame.Pool{frame.NewPool(frame.MustArena(64, 2048, 256))}); err == nil {
			t.Errorf("identifier %d passed", id)
		}
	}
}

func TestTelemetryAllocatesNothing(t *testing.T) {
	for _, mode := range []inband.Mode{inband.HPCC, inband.HPCCGrow, inband.INTMD} {
		p := telemetryPump(t, mode)
		p.Step(0, 1)
		if n := testing.AllocsPerRun(50, func() { p.Step(0, 1) }); n != 0 {
			t.Errorf("%v: %v allocations a vector", mode, n)
		}
		p.Free()
	}
}

func telemetryPump(tb testing.TB, mode inband.Mode) *st.Pump {
	cfg := telemetryConfig(9)
	for i := range cfg.Ports {
		cfg.Ports[i].Scheduler = scheduler.PortConfig{}
	}
	codec := inband.NewCodec(mode, nil)
	b := dataFrame(&codec, 1000)
	wire.UDP(b[34:]).SetChecksum(0)
	return st.NewPump(tb, cfg, [][]byte{b})
}

func BenchmarkTelemetry(b *testing.B) {
	for _, mode := range []inband.Mode{inband.HPCC, inband.HPCCGrow, inband.INTMD} {
		b.Run(fmt.Sprint(mode), func(b *testing.B) { telemetryPump(b, mode).Bench(b) })
	}
}
