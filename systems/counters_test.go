package systems_test

import (
	"slices"
	"testing"

	"gswitch/config"
	"gswitch/frame"
	"gswitch/vswitch"
)

// reading is what a feature of a switch reports.
type reading struct {
	counters map[int]bool // by their number
	ports    map[uint16]bool
}

func read(t *testing.T, sw *vswitch.Switch, name string) reading {
	t.Helper()
	r := reading{map[int]bool{}, map[uint16]bool{}}
	for _, n := range sw.Nodes {
		n.ReadFeatures(func(f *vswitch.Feature, c int, port uint16, _ float64, labels ...string) {
			switch {
			case f.Name != name:
			case c < 0 || c >= len(f.Counters):
				t.Errorf("%s reads counter %d of %d", name, c, len(f.Counters))
			case len(labels) != len(f.Counters[c].Labels):
				t.Errorf("%s reads %s with labels %q, and lists %q", name, f.Counters[c].Name, labels, f.Counters[c].Labels)
			default:
				r.counters[c], r.ports[port] = true, true
			}
		})
	}
	return r
}

// Each system of a switch reads the counters that it lists, with their labels, and forgets
// a port that goes.
func TestSystemsReadTheirCounters(t *testing.T) {
	tried := 0
	for _, f := range vswitch.Features() {
		if _, ok := texts[f.Name]; !ok || len(f.Counters) == 0 {
			continue
		}
		tried++
		t.Run(f.Name, func(t *testing.T) {
			c, err := config.Parse("x.yaml", []byte(daemon(f.Name)))
			if err != nil {
				t.Fatal(err)
			}
			cfg := c.Resolved().Switches[0].VSwitch(nil)
			sw, err := vswitch.New(cfg, []*frame.Pool{frame.NewPool(frame.MustArena(8192, 2048, frame.DefaultHeadroom))})
			if err != nil {
				t.Fatal(err)
			}
			now := frame.Second
			adopt := func() {
				for range 3 {
					now += frame.Millisecond
					sw.Nodes[0].Advance(now)
				}
			}
			for i := range cfg.Ports {
				sw.Nodes[0].SetLink(now, uint16(i), true)
			}
			adopt()
			before := read(t, sw, f.Name)
			for i := range f.Counters {
				if !before.counters[i] && !slices.Contains(onceThere, f.Counters[i].Name) {
					t.Errorf("%s is not read", f.Counters[i].Name)
				}
			}
			gone := *cfg
			gone.Ports = slices.Clone(cfg.Ports)
			gone.Ports[0] = vswitch.PortConfig{}
			if err := sw.Apply(&gone); err != nil {
				t.Fatal(err)
			}
			adopt()
			if after := read(t, sw, f.Name); after.ports[0] && !slices.Contains(ofSwitch, f.Name) {
				t.Error("a port that is gone is read")
			}
		})
	}
	if tried < 10 {
		t.Errorf("%d systems were tried", tried)
	}
}

// ofSwitch are systems whose counters are of a switch, or of sessions, and of no port.
var ofSwitch = []string{"clock", "flowradar", "watch"}

// onceThere are counters of what must have come, or be asked for.
var onceThere = []string{"lldp_ttl_seconds", "loops_shut_seconds", "watch_matched_packets_total", "watch_reshuffled_copies_total", "watch_refused_copies_total",
	"watch_strange_copies_total", "watch_probes_total", "watch_ended_probes_total", "watch_refused_probes_total"}
