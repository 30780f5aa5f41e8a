package systems

import (
	"flag"
	"math/rand/v2"
	"net/netip"
	"testing"

	"gswitch/feature"
	"gswitch/mirror"
	watch "gswitch/mirror/point"
	"gswitch/scheduler"
	"gswitch/section"
	flows "gswitch/telemetry/flowradar/point"
	losses "gswitch/telemetry/lossradar/point"
	"gswitch/vswitch"
	st "gswitch/vswitch/switchtest"
	"gswitch/wire"
	wt "gswitch/wire/wiretest"
)

var mutations = flag.Int("mutations", 50_000, "frames that TestMutatedFrames sends through a switch that reports all")

// observed is a router between metered ports 0 and 1 that counts flows and copies what
// matters to a collector behind port 2.
func observed(t *testing.T) *vswitch.Config {
	t.Helper()
	cfg := st.Router()
	cfg.Ports = append(cfg.Ports, vswitch.PortConfig{Name: "c", Enabled: true, Addresses: st.Prefixes("10.0.2.254/24")})
	cfg.Neighbors = append(cfg.Neighbors, vswitch.StaticNeighbor{Addr: netip.MustParseAddr("10.0.2.9"), MAC: st.HostMAC(9)})
	cfg.Loopbacks = []netip.Addr{netip.MustParseAddr("10.10.0.10")}
	for i := range cfg.Ports {
		cfg.Ports[i].Scheduler = scheduler.PortConfig{}
	}
	whole := func(name, text string) {
		s := vswitch.Find(name).Whole()
		if err := section.Parse(name, []byte(text), s).Err(); err != nil {
			t.Fatal(err)
		}
		section.Fill(s)
		o, err := s.Options(cfg)
		if err != nil {
			t.Fatal(err)
		}
		cfg.Options = cfg.Options.With(name, o)
	}
	whole(watch.Name, "sessions: [{name: e, to: 10.255.0.1, everflow: {sample: 2}, drops: [all]}, {name: s, to: 10.0.2.9, format: sflow, one_in: 5}]\nreshuffle: [{vip: 10.255.0.1, to: [10.0.2.9]}]")
	whole(flows.Name, "mode: both\nflows: 200\nslot: 10ms")
	for i := range 2 {
		s := vswitch.Find(losses.Name).Section()
		section.Fill(s)
		o, err := s.Options(0xff, 0)
		if err != nil {
			t.Fatal(err)
		}
		cfg.Ports[i].Options = cfg.Ports[i].Options.With(losses.Name, o)
	}
	return cfg
}

// Damaged frames meet a switch with Everflow, FlowRadar and LossRadar: no frame is
// forgotten (the rig counts them), every copy that it says it made came or is counted as
// lost, and every report can be taken.
func TestMutatedFrames(t *testing.T) {
	r := st.New(t, observed(t))
	eth := wt.Eth(st.SelfMAC, st.HostMAC(1))
	syn := []wt.Layer{wt.IPv4("10.0.0.1", "10.0.1.2"), wt.TCP(wire.TCPFields{SrcPort: 1, DstPort: 179, Flags: wire.TCPSyn}), wt.Zeros(20)}
	kinds := [][]byte{wt.Frame(append([]wt.Layer{eth}, syn...)...), wt.Frame(append([]wt.Layer{eth, wt.IPv4("10.0.0.1", "10.0.1.2")}, syn...)...),
		wt.Frame(eth, wt.IPv6("fd00::1", "fd01::2"), wt.UDP(1, 2), wt.Zeros(20)), wt.PFC(st.HostMAC(1), 8, 9),
		wt.Frame(eth, wt.IPv4("10.0.0.1", "10.0.1.2"), wt.UDP(9, wire.RoCEv2Port), wt.BTH(wire.RCAcknowledge, 1, 2), wt.Payload([]byte{0x60, 0, 0, 0}), wt.Zeros(8))}
	// From an address that no few bits make the switch's own.
	copies := mirror.Session{ID: 1, Src: netip.MustParseAddr("172.21.255.245"), Dst: netip.MustParseAddr("10.255.0.1")}
	b := make([]byte, 400)
	n, _ := copies.Copy(b, kinds[0], uint32(len(kinds[0])), mirror.Info{})
	copy(b, kinds[0][:12])
	kinds = append(kinds, b[:n:n])
	for _, k := range kinds[:5] { // with the tag of the other end of the link
		kinds = append(kinds, append(append(append([]byte(nil), k[:12]...), 0x88, 0xb6, 0x40, 1, 0, 0, 0, 1), k[12:]...))
	}
	rng := rand.New(rand.NewPCG(3, 17))
	own, taken, body := 0.0, 0, []byte(nil)
	for sent := 0; sent < *mutations; {
		v := make([][]byte, 1+rng.IntN(16))
		sent += len(v)
		for i := range v {
			f := append([]byte(nil), kinds[rng.IntN(len(kinds))]...)
			for range rng.IntN(4) {
				f[rng.IntN(len(f))] ^= 1 << rng.IntN(8)
			}
			v[i] = f[:len(f)-rng.IntN(2)*rng.IntN(len(f)-14)]
		}
		r.In(uint16(rng.IntN(2)), v...)
		r.Advance(20_000)
		r.Out(0)
		r.Out(1)
		for _, f := range r.Out(2) {
			if c, ok := mirror.Unwrap(f); ok && c.Switch == netip.MustParseAddr("10.10.0.10") {
				own++
			}
		}
		for _, name := range []string{flows.Name, losses.Name} {
			s := r.Switch.Nodes[0].Feature(name).(feature.Reporter)
			for ok, n := true, 0; ok; taken++ {
				if n++; n > 10_000 {
					t.Fatalf("%s has reports for ever", name)
				}
				body, ok = s.TakeReport(body[:0])
			}
		}
	}
	made := 0.0
	r.Switch.Nodes[0].ReadFeatures(func(f *vswitch.Feature, c int, _ uint16, v float64, labels ...string) {
		switch name := f.Counters[c].Name; {
		case name == "watch_copies_total" && labels[0] == "e":
			made += v
		case name == "watch_lost_copies_total" && labels[0] == "e" && labels[1] == "dropped":
			made -= v
		}
	})
	if own != made || own < float64(*mutations)/10 || taken < *mutations/200 {
		t.Errorf("%v copies came of %v, and %d reports were taken, of %d frames", own, made, taken, *mutations)
	}
}
