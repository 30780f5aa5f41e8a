package point_test

import (
	"strings"
	"testing"

	"gswitch/crossbar/point"
	"gswitch/pfc"
	"gswitch/vswitch"
	st "gswitch/vswitch/switchtest"
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
