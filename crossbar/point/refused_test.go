package point_test

import (
	"strings"
	"testing"

	"gswitch/crossbar/point"
	"gswitch/pfc"
	"gswitch/vswitch"
	st "gswitch/vswitch/switchtest"
	"gswitch/wire"
)

func config(o point.Config) *vswitch.Config {
	cfg := st.Rated(st.Base(2), 1_000_000_000)
	cfg.PFC = vswitch.PFCConfig{Mode: pfc.PFC, Classes: 0xff}
	cfg.Options = cfg.Options.With(point.Name, o)
	return cfg
}

// What cannot be meant, or would lose frames, is refused.
func TestRefusedConfigs(t *testing.T) {
	unsafe := point.Config{Pause: 14_000, Unpause: 4557}
	for _, c := range []struct {
		want    string
		options point.Config
		change  func(*vswitch.Config)
	}{
		{"is not safe", unsafe, nil},
		{"port b: ", unsafe, func(c *vswitch.Config) { c.Ports[0].Name = "" }},
		{"cannot end at", point.Config{Pause: 8192, Unpause: 8192}, nil},
		{"speed-up", point.Config{Speedup: -1}, nil},
		{"too small for 8", point.Config{Ingress: 20_000}, nil},
		{"at most 64", point.Config{}, func(c *vswitch.Config) { c.Ports = append(c.Ports, make([]vswitch.PortConfig, 63)...) }},
		{"at most 1073741824", point.Config{Ingress: 1 << 31}, func(c *vswitch.Config) { c.PFC = vswitch.PFCConfig{} }},
		{"", unsafe, func(c *vswitch.Config) { c.Buffer.AllowLoss = true }},
	} {
		cfg := config(c.options)
		if c.change != nil {
			c.change(cfg)
		}
		err := cfg.CheckBuffer(1)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
}

// Broadcasts wait in the shared buffer, where nothing is set aside for lossless classes. Those of
// such a class for which it has no room are counted as losses, those of others are not.
func TestRefusedBroadcastsAreCounted(t *testing.T) {
	for _, classes := range []uint8{0, 0xff} {
		cfg := st.Rated(st.Base(3), 1_000_000_000)
		cfg.Buffer.Size = 64 << 10
		if classes != 0 {
			cfg.PFC = vswitch.PFCConfig{Mode: pfc.PFC, Classes: classes}
		}
		cfg.Options = cfg.Options.With(point.Name, point.Config{Ingress: 1 << 20})
		r := st.New(t, cfg)
		everybody := append(st.L2(2, 1), make([]byte, 1000-len(st.L2(2, 1)))...)
		copy(everybody, wire.BroadcastMAC[:])
		for range 200 {
			r.In(0, everybody)
		}
		lost, counted := uint64(0), 0.0
		for reason, n := range r.Drops() {
			if reason != "queue-tail" && reason != "buffer-full" && reason != "ingress-limit" {
				t.Errorf("%d drops for %s", n, reason)
			}
			lost += n
		}
		r.Switch.Nodes[0].ReadFeatures(func(f *vswitch.Feature, c int, port uint16, v float64, labels ...string) {
			if f.Counters[c].Name == "crossbar_refused_packets_total" && v != 0 {
				if port != 0 || labels[0] != "copied" {
					t.Errorf("port %d: %v %v", port, v, labels)
				}
				counted += v
			}
		})
		if want := float64(lost); lost == 0 || classes == 0 && counted != 0 || classes != 0 && counted != want {
			t.Errorf("lossless classes %08b: %d copies were dropped, %v counted", classes, lost, counted)
		}
	}
}

// What waits, crossed and was refused is counted at the port that it is about.
func TestCounters(t *testing.T) {
	cfg := config(point.Config{Ingress: 4000, Egress: 2000, TotalCap: true})
	cfg.PFC = vswitch.PFCConfig{}
	cfg.FDB.Static = []vswitch.StaticMAC{{VLAN: 1, MAC: st.HostMAC(2), Port: 1}}
	r := st.New(t, cfg)
	for range 10 {
		r.In(0, append(st.L2(2, 1), make([]byte, 1000-len(st.L2(2, 1)))...))
	}
	r.Advance(1_000_000)
	got := map[string]float64{}
	r.Switch.Nodes[0].ReadFeatures(func(f *vswitch.Feature, c int, port uint16, v float64, labels ...string) {
		if v != 0 {
			got[f.Counters[c].Name+" "+string('0'+rune(port))+" "+strings.Join(labels, " ")] = v
		}
	})
	refused := float64(r.Drops()["ingress-queue"])
	for key, want := range map[string]float64{
		"crossbar_watermark_bytes 0 ingress": 4000, "crossbar_watermark_bytes 1 egress": 2000, "crossbar_packets_total 1 crossed": 2,
		"crossbar_drain_bytes 1 0 egress": 2000, "crossbar_drain_bytes 0 0 ingress": 2000, "crossbar_refused_packets_total 0 lossy": refused,
	} {
		if got[key] != want || want == 0 {
			t.Errorf("%s is %v, want %v: %v", key, got[key], want, got)
		}
	}
}
