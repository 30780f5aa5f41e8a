package point

import (
	"bytes"
	"maps"
	"net/netip"
	"strings"
	"testing"

	"gswitch/frame"
	"gswitch/mirror"
	"gswitch/pfc"
	"gswitch/scheduler"
	"gswitch/section"
	"gswitch/vswitch"
	st "gswitch/vswitch/switchtest"
	"gswitch/wire"
	wt "gswitch/wire/wiretest"
)

// router is st.Router without rates, with a collector, 10.0.2.9, behind port 2,
// and what a document says under watch.
func router(t testing.TB, watch string) *vswitch.Config {
	t.Helper()
	cfg := st.Router()
	cfg.Ports = append(cfg.Ports, vswitch.PortConfig{Name: "c", Enabled: true, Addresses: st.Prefixes("10.0.2.254/24")})
	cfg.Neighbors = append(cfg.Neighbors, vswitch.StaticNeighbor{Addr: netip.MustParseAddr("10.0.2.9"), MAC: st.HostMAC(9)})
	cfg.Loopbacks = []netip.Addr{netip.MustParseAddr("10.10.0.10")}
	for i := range cfg.Ports {
		cfg.Ports[i].Scheduler = scheduler.PortConfig{}
	}
	if watch != "" {
		cfg.Options = cfg.Options.With(Name, options(t, cfg, watch))
	}
	return cfg
}

func options(t testing.TB, cfg *vswitch.Config, watch string) any {
	t.Helper()
	o, err := parse(cfg, watch)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func parse(cfg *vswitch.Config, watch string) (any, error) {
	s := new(Section)
	if err := section.Parse("watch.yaml", []byte(watch), s).Err(); err != nil {
		return nil, err
	}
	section.Fill(s)
	return s.Options(cfg)
}

const everflow = "sessions: [{name: e, to: 10.0.2.9, everflow: {}}]"

var eth = wt.Eth(st.SelfMAC, st.HostMAC(1))

// packet is a TCP segment through the router.
func packet(flags uint8, opts ...wt.IPOption) []byte {
	return wt.Frame(eth, wt.IPv4("10.0.0.1", "10.0.1.2", append([]wt.IPOption{wt.IPv4With(func(f *wire.IPv4Fields) { f.ID = 0x1c46 })}, opts...)...), wt.TCP(wire.TCPFields{SrcPort: 40000, DstPort: 80, Flags: flags}), wt.Zeros(40))
}

// counted sums up a counter of a rig by its labels.
func counted(r *st.Rig, name string) map[string]float64 {
	out := map[string]float64{}
	for _, n := range r.Switch.Nodes {
		n.ReadFeatures(func(f *vswitch.Feature, c int, _ uint16, v float64, labels ...string) {
			if f.Counters[c].Name == name && v != 0 {
				out[strings.Join(labels, " ")] += v
			}
		})
	}
	return out
}

// A SYN goes on as ever, and its copy to the collector is what the session says,
// with the original as it came.
func TestCopies(t *testing.T) {
	r := st.New(t, router(t, everflow))
	syn, ack := packet(wire.TCPSyn), packet(wire.TCPAck)
	r.In(0, syn, ack)
	if out := r.Out(1); len(out) != 2 || wire.IPv4(out[0][14:]).TTL() != 63 {
		t.Fatalf("%d originals", len(out))
	}
	c := r.One(2)
	k, h, ok := mirror.Parse(c)
	if !ok || k.SrcPort != 40000 || h.TTL != 64 || h.Switch != netip.MustParseAddr("10.10.0.10") || h.At != r.Now || h.From != st.HostMAC(1) {
		t.Errorf("%+v %+v %t", k, h, ok)
	}
	if !bytes.Equal(c[len(c)-len(syn):], syn) || wire.Ethernet(c).Dst() != st.HostMAC(9) || wire.Ethernet(c).Src() != st.SelfMAC || !wire.IPv4(c[14:]).ChecksumOK() {
		t.Errorf("%x", c)
	}
	// The copy of another switch on its way through is not copied.
	through := append([]byte(nil), c...)
	copy(through, wt.Frame(wt.Eth(st.SelfMAC, st.HostMAC(2)))[:12])
	r.In(1, through)
	if got := r.One(2); len(got) != len(c) {
		t.Errorf("%d bytes", len(got))
	}
	if h := counted(r, "watch_matched_packets_total"); len(h) != 1 || h["e syn"] != 1 {
		t.Errorf("%v", h)
	}
}

// The debug bit has packets copied of hosts that may have traces, within tunnels, too. A
// host outside that sets it in all that it sends takes nothing of the session's rate:
// its packets are counted alone, and copied for other rules as ever.
func TestWhoMayAskForTraces(t *testing.T) {
	marked := wt.IPv4With(func(f *wire.IPv4Fields) { f.ID, f.TOS = 0x1c46, mirror.DebugDSCP<<2 })
	from := func(src string, flags uint8, outer ...wt.Layer) []byte {
		layers := append([]wt.Layer{eth}, outer...)
		return wt.Frame(append(layers, wt.IPv4(src, "10.0.1.2", marked), wt.TCP(wire.TCPFields{SrcPort: 40000, DstPort: 80, Flags: flags}), wt.Zeros(40))...)
	}
	cfg := router(t, "sessions: [{name: e, to: 10.0.2.9, rate: 1Mbps, burst: 2000B, everflow: {sample: 0, debug_from: [10.0.0.0/30, 10.9.0.0/24]}}]")
	r := st.New(t, cfg)
	for range 100 {
		r.In(0, from("10.0.0.200", wire.TCPAck))
	}
	if n := len(r.Out(2)); n != 0 {
		t.Fatalf("%d copies of packets that nobody may ask for", n)
	}
	r.In(0, from("10.0.0.1", wire.TCPAck), from("10.9.0.1", wire.TCPAck), from("10.0.0.200", wire.TCPSyn), from("10.9.0.1", wire.TCPAck, wt.IPv4("10.0.0.200", "10.0.1.2")))
	if n := len(r.Out(2)); n != 4 {
		t.Errorf("%d copies, want 4", n)
	}
	want := map[string]float64{"e debug": 1, "e debug-2": 2, "e debug-all": 104, "e syn": 1}
	if got := counted(r, "watch_matched_packets_total"); !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if n := counted(r, "watch_lost_copies_total"); len(n) != 0 {
		t.Errorf("the flood took the rate: %v", n)
	}
	if _, err := parse(router(t, ""), "sessions: [{name: e, to: 10.0.2.9, everflow: {debug_from: [\"2001:db8::/32\"]}}]"); err == nil || !strings.Contains(err.Error(), "debug_from[0]") {
		t.Errorf("a network of IPv6: %v", err)
	}
}

// Where a clock is kept copies have its time.
func TestCopiesAreSynchronised(t *testing.T) {
	r := st.New(t, router(t, everflow))
	r.Switch.Nodes[0].Lead(5000, true)
	r.In(0, packet(wire.TCPSyn))
	if _, h, ok := mirror.Parse(r.One(2)); !ok || h.At != r.Now+5000 {
		t.Errorf("%d, at %d of a clock that is 5000 ns ahead", h.At, r.Now)
	}
}

// Pauses are seen before the port uses them up, those of the switch itself as they
// leave, and what is dropped with the reason.
func TestPausesAndDrops(t *testing.T) {
	cfg := router(t, "sessions: [{name: e, to: 10.0.2.9, everflow: {}, own_pauses: true, drops: [all], match: [{name: web, dst_port: 80, protocol: tcp}]}]")
	cfg.PFC.Mode, cfg.PFC.Classes = pfc.PFC, 1<<3
	r := st.New(t, cfg)
	pause := wt.PFC(st.HostMAC(1), 8, 100)
	r.In(0, pause)
	if c := r.One(2); !bytes.HasSuffix(c, pause) {
		t.Errorf("%x", c)
	}
	lost := wt.Frame(eth, wt.IPv4("10.0.0.1", "10.77.0.1", wt.IPv4With(func(f *wire.IPv4Fields) { f.ID = 5 })), wt.UDP(1, 2), wt.Zeros(40)) // no route
	r.In(0, lost)
	c := r.One(2)
	_, h, ok := mirror.Parse(c)
	if !ok || h.Reason != frame.NoRoute || !bytes.HasSuffix(c, lost) {
		t.Errorf("%t %v: %x", ok, h.Reason, c)
	}
	if n := len(r.Out(0)); n != 1 {
		t.Errorf("%d ICMP errors about the lost packet, want 1", n)
	}
	// Matched and dropped: both are reported, and no error is sent about a copy.
	r.In(0, packet(wire.TCPAck, wt.TTL(1)))
	if n := len(r.Out(2)); n != 2 {
		t.Errorf("%d copies of a packet that matched and was dropped, want 2", n)
	}
}

// A pause that the switch itself sends is copied when a session says so, with the port that
// it leaves by.
func TestOwnPauses(t *testing.T) {
	for _, own := range []string{"false", "true"} {
		cfg := router(t, "")
		cfg.PFC.Mode, cfg.PFC.Classes = pfc.PFC, 1<<3
		cfg.Buffer.Size, cfg.Buffer.XOFF, cfg.Buffer.Headroom, cfg.Buffer.AllowLoss = 1<<20, 3000, 1<<16, true
		cfg.Ports[0].Trust = vswitch.TrustDSCP
		cfg.Options = cfg.Options.With(Name, options(t, cfg, "sessions: [{name: e, to: 10.0.2.9, everflow: {sample: 0}, own_pauses: "+own+"}]"))
		r := st.New(t, cfg)
		for range 4 { // nothing leaves by port 1 meanwhile
			r.In(0, wt.Frame(eth, wt.IPv4("10.0.0.1", "10.0.1.2", wt.TOS(3<<5)), wt.UDP(1, 2), wt.Zeros(1000)))
		}
		pauses := r.Out(0)
		if len(pauses) != 1 || !isMACControl(pauses[0]) {
			t.Fatalf("%d frames for who sent: %x", len(pauses), pauses)
		}
		copies := r.Out(2)
		if own == "false" && len(copies) == 0 {
			continue
		}
		if own == "false" || len(copies) != 1 {
			t.Fatalf("own_pauses %s: %d copies", own, len(copies))
		}
		if c, ok := mirror.Unwrap(copies[0]); !ok || !bytes.Equal(c.Original, pauses[0]) || !c.Info.Egress || c.Info.Port != 0 {
			t.Errorf("%+v of %x", c, pauses[0])
		}
	}
}

// Pauses are not copied as they are: the receiver of such a copy would pause.
func TestNoBarePauses(t *testing.T) {
	cfg := router(t, "sessions: [{name: span, port: c, one_in: 1, everflow: {}}]")
	cfg.PFC.Mode, cfg.PFC.Classes = pfc.PFC, 1<<3
	r := st.New(t, cfg)
	r.In(0, wt.PFC(st.HostMAC(1), 8, 100))
	if v := r.Out(2); len(v) != 0 {
		t.Errorf("%x", v)
	}
	r.In(0, packet(wire.TCPSyn))
	if n := len(r.Out(2)); n != 1 {
		t.Errorf("%d copies of another frame, want 1", n)
	}
	if n := counted(r, "watch_lost_copies_total")["span control"]; n == 0 {
		t.Error("the pause was not counted")
	}
}

// A session out of a port sends what it takes as it is; one in so many frames is
// one in so many; a session keeps to its rate; and all are accounted for.
func TestSessions(t *testing.T) {
	cfg := router(t, "sessions: [{name: span, port: c, snap: 128, one_in: 10}, {name: slow, to: 10.0.2.9, format: gre, rate: 8Mbps, burst: 2000B, match: [{name: ack, tcp_flags: [ack]}]}]")
	r := st.New(t, cfg)
	long := append(packet(wire.TCPPsh), make([]byte, 1000)...)
	wire.IPv4(long[14:]).SetTotalLen(uint16(len(long) - 14))
	wire.IPv4(long[14:]).UpdateChecksum()
	bare, gre := 0, 0
	take := func() {
		r.Out(1)
		for _, c := range r.Out(2) {
			if _, _, ok := mirror.Parse(c); ok {
				gre++
				continue
			}
			bare++
			if len(c) != 128 || !bytes.Equal(c, long[:128]) {
				t.Fatalf("%d bytes: %x", len(c), c)
			}
		}
	}
	for range 20_000 {
		r.In(0, long)
		take()
	}
	if bare < 1850 || bare > 2150 {
		t.Errorf("%d of 20000 frames were taken at random, want one in 10", bare)
	}
	none := router(t, "sessions: [{name: slow, to: 10.0.2.9, format: gre, rate: 8Mbps, burst: 2000B, match: [{name: ack, tcp_flags: [ack]}]}]")
	r.Apply(none)
	for range 1000 {
		r.In(0, packet(wire.TCPAck))
		r.Advance(10 * frame.Microsecond)
		take()
	}
	// 8 Mb/s for 10 ms, and the burst: 12 kB in copies of 132 bytes.
	copies, lost := counted(r, "watch_copies_total")["slow"], counted(r, "watch_lost_copies_total")["slow rate"]
	if gre < 90 || gre > 92 || int(copies) != gre || int(copies+lost) != 1000 {
		t.Errorf("%d came, %v were sent, %v not", gre, copies, lost)
	}
}

// Whatever becomes of copies is counted: too many for a vector, and without a
// way to the collector.
func TestLostCopies(t *testing.T) {
	r := st.New(t, router(t, "sessions: [{name: a, to: 10.0.2.9, one_in: 1}, {name: b, to: 10.99.0.1, one_in: 1}]"))
	v := make([][]byte, 64)
	for i := range v {
		v[i] = packet(wire.TCPAck)
	}
	r.In(0, v...)
	out := len(r.Out(2))
	copies, lost := counted(r, "watch_copies_total"), counted(r, "watch_lost_copies_total")
	if int(copies["a"]) != out || copies["a"]+lost["a burst"] != 64 {
		t.Errorf("%d came: %v, %v", out, copies, lost)
	}
	r.In(0, packet(wire.TCPAck))
	copies, lost = counted(r, "watch_copies_total"), counted(r, "watch_lost_copies_total")
	if copies["b"] != lost["b dropped"] || copies["b"] == 0 {
		t.Errorf("copies without a route: %v, %v", copies, lost)
	}
	if len(r.Out(1)) != 65 {
		t.Error("originals were lost")
	}
}

// One of 2^10 packets is taken by their identification, unless none is asked for.
func TestSample(t *testing.T) {
	for sample, want := range map[string]int{"{}": 1, "{sample: 9}": 2, "{sample: 0}": 0} {
		r := st.New(t, router(t, "sessions: [{name: e, to: 10.0.2.9, everflow: "+sample+"}]"))
		copies := 0
		for id := range uint16(1024) {
			r.In(0, wt.Frame(eth, wt.IPv4("10.0.0.1", "10.0.1.2", wt.IPv4With(func(f *wire.IPv4Fields) { f.ID = id })), wt.UDP(1, 2), wt.Zeros(40)))
			copies += len(r.Out(2))
			r.Out(1)
		}
		if copies != want {
			t.Errorf("%s: %d copies of 1024 packets, want %d", sample, copies, want)
		}
	}
}

// Two switches that sample towards each other make no copies of copies, which would
// multiply; a foreign tunnel is a packet like any other.
func TestCopiesAreNotSampled(t *testing.T) {
	r := st.New(t, router(t, "sessions: [{name: e, to: 10.0.2.9, one_in: 1}]"))
	inner := packet(wire.TCPSyn)
	for _, f := range []mirror.Format{mirror.ERSPAN3, mirror.ERSPAN2, mirror.GRE} {
		s := mirror.Session{ID: 1, Src: netip.MustParseAddr("10.0.0.1"), Dst: netip.MustParseAddr("10.0.1.2"), Format: f}
		b := make([]byte, 512)
		n, _ := s.Copy(b, inner, uint32(len(inner)), mirror.Info{})
		copy(b, inner[:12])
		r.In(0, b[:n])
		if copies := len(r.Out(2)); copies != 0 || len(r.Out(1)) != 1 {
			t.Errorf("format %d: %d copies of a copy", f, copies)
		}
	}
	r.In(0, wt.Frame(eth, wt.IPv4("10.0.0.1", "10.0.1.2"), wt.UDP(6343, mirror.SFlowPort), wt.Payload([]byte{0, 0, 0, 5}), wt.Zeros(40)))
	if copies := len(r.Out(2)); copies != 0 || len(r.Out(1)) != 1 {
		t.Errorf("%d copies of a datagram of sFlow", copies)
	}
	if n := counted(r, "watch_lost_copies_total")["e copy"]; n != 4 {
		t.Errorf("%v copies were counted", n)
	}
	r.In(0, wt.Frame(eth, wt.IPv4("10.0.0.1", "10.0.1.2", wt.IPv4With(func(f *wire.IPv4Fields) { f.Proto = wire.ProtoGRE })), wt.Payload([]byte{0, 0, 8, 0}), wt.Zeros(40)))
	if copies := len(r.Out(2)); copies != 1 {
		t.Errorf("%d copies of another tunnel", copies)
	}
}

// A session that another configuration has, too, counts its copies on: receivers
// know by the numbers what they missed.
func TestNumbersGoOn(t *testing.T) {
	r := st.New(t, router(t, everflow))
	for i := range uint32(3) {
		r.In(0, packet(wire.TCPSyn))
		c, ok := mirror.Unwrap(r.One(2))
		if !ok || !c.Numbered || c.Sequence != i {
			t.Errorf("copy %d has the number %d", i, c.Sequence)
		}
		r.Apply(router(t, "sessions: [{name: new, port: c, one_in: 1000000}, {name: e, id: 1, to: 10.0.2.9, everflow: {}}]"))
	}
	if n := counted(r, "watch_copies_total")["e"]; n != 3 {
		t.Errorf("%v copies are counted, want 3", n)
	}
}

// A switch learns to watch, changes its mind, and forgets it, under load.
func TestApply(t *testing.T) {
	off := router(t, "")
	r := st.New(t, off)
	sent := 0
	for i := range 40 {
		on := router(t, everflow)
		if i%4 == 1 {
			on = router(t, "sessions: [{name: other, to: 10.0.2.9, one_in: 3}, {name: e, to: 10.0.2.9, everflow: {sample: 4}}]")
		}
		if i%2 == 0 {
			on = router(t, "")
		}
		r.Apply(on)
		r.In(0, packet(wire.TCPSyn))
		sent += len(r.Out(1))
		copies := len(r.Out(2))
		if watched := i%2 == 1; watched != (copies > 0) {
			t.Errorf("step %d: %d copies", i, copies)
		}
	}
	if sent != 40 {
		t.Errorf("%d of 40 went on", sent)
	}
}

// What cannot be meant is refused, with the key.
func TestErrors(t *testing.T) {
	for watch, want := range map[string]string{
		"sessions: [{name: a, everflow: {}}]":                                                          "sessions[0]: say where",
		"sessions: [{name: a, to: 10.0.2.9, port: c, everflow: {}}]":                                   "sessions[0]: say where",
		"sessions: [{name: a, port: x, everflow: {}}]":                                                 "sessions[0].port: there is no port \"x\"",
		"sessions: [{name: a, to: 10.0.2.9}]":                                                          "takes no copies",
		"sessions: [{name: a, to: 10.0.2.9, snap: 100, one_in: 1}]":                                    "keep 128",
		"sessions: [{name: a, to: 10.0.2.9, format: sflow, drops: [all]}]":                             "sessions[0].format: sflow sends",
		"sessions: [{name: a, to: 10.0.2.9, format: sflow, one_in: 9, everflow: {}}]":                  "sessions[0].format: sflow sends",
		"sessions: [{name: a, port: c, format: sflow, one_in: 9}]":                                     "sessions[0].format: sflow sends",
		"sessions: [{name: a, port: c, own_pauses: true}]":                                             "sessions[0].own_pauses: copies that leave by a port",
		"sessions: [{name: a, port: c, match: [{name: p, mac_control: true}]}]":                        "sessions[0].match[0].mac_control: copies that leave by a port",
		"sessions: [{name: a, port: c, snap: 100, one_in: 1}]":                                         "sessions[0].snap",
		"sessions: [{name: a, to: \"fd00::1\", one_in: 1}]":                                            "IPv4",
		"sessions: [{name: a, to: 10.0.2.9, drops: [noroute]}]":                                        "is \"no-route\" meant",
		"sessions: [{name: a, to: 10.0.2.9, class: 3, one_in: 1}]":                                     "class 3 is lossless",
		"sessions: [{name: a, to: 10.0.2.9, match: [{name: x, mac_control: true, dst_port: 3}]}]":      "sessions[0].match[0]",
		"sessions: [{name: a, to: 10.0.2.9, match: [{name: x, src: \"fd00::/64\", protocol: tcp}]}]":   "only those of IPv4",
		"sessions: [{name: a, to: 10.0.2.9, one_in: 1}, {name: b, from: 1.1.1.1, to: 1.1.1.1, id: 0}]": "id",
		"sessions: [{name: a, to: 10.0.2.9, everflow: {sample: 17}}]":                                  "sample",
	} {
		cfg := router(t, "")
		cfg.PFC.Mode, cfg.PFC.Classes = pfc.PFC, 1<<3
		if _, err := parse(cfg, watch); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", watch, err, want)
		}
	}
	cfg := router(t, "")
	cfg.Class.DSCP[11] = 5
	if _, err := parse(cfg, everflow); err == nil || !strings.Contains(err.Error(), "DSCP 10 and 11") {
		t.Errorf("a debug bit that changes the class: %v", err)
	}
	cfg = router(t, "")
	cfg.Loopbacks, cfg.Ports = nil, cfg.Ports[:0]
	if _, err := parse(cfg, everflow); err == nil || !strings.Contains(err.Error(), "sessions[0].from") {
		t.Errorf("a switch without an address: %v", err)
	}
}

func TestAllocatesNothing(t *testing.T) {
	r := st.New(t, router(t, "sessions: [{name: e, to: 10.0.2.9, everflow: {}, drops: [all]}, {name: span, port: c, one_in: 3}, {name: s, to: 10.0.2.9, format: sflow, one_in: 2}]"))
	r.AllocatesNothing([][]byte{packet(wire.TCPSyn), packet(wire.TCPAck), wt.Frame(eth, wt.IPv4("10.0.0.1", "10.77.0.1"), wt.UDP(1, 2))})
}

// What watching costs a switch that has nothing to copy.
func BenchmarkWatch(b *testing.B) {
	proto := make([][]byte, st.Vector)
	for i := range proto {
		proto[i] = packet(wire.TCPAck)
	}
	pump := func(watch string) st.Passer { return st.NewPump(b, router(b, watch), proto) }
	st.BenchBeside(b, pump(""), pump(everflow))
}

// A switch that routes is a hop that traces can put in its place: the next one sees the time to
// live less by one, and the station of this one, of the first packet of a flow and of later ones.
func TestHopsAreInOrder(t *testing.T) {
	first, second := st.New(t, router(t, everflow)), st.New(t, router(t, everflow))
	for i := range 3 {
		first.In(0, packet(wire.TCPSyn))
		_, a, ok := mirror.Parse(first.One(2))
		on := first.One(1)
		copy(on[:6], st.SelfMAC[:]) // the second one is the host behind port 1
		second.In(0, on)
		second.Out(1)
		_, b, also := mirror.Parse(second.One(2))
		if !ok || !also || b.TTL != a.TTL-1 || b.From != st.SelfMAC || a.From != st.HostMAC(1) {
			t.Errorf("packet %d: %+v, then %+v", i, a, b)
		}
	}
}
