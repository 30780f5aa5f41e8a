package config

import (
	"cmp"
	"time"

	"gswitch/buffer"
	"gswitch/pfc"
	"gswitch/units"
	"gswitch/vswitch"
)

// Reserved is the headroom of ports of a switch whose links are alike, and what it
// is computed from: no frame of a lossless class is lost while both ends of the
// link act on a pause within Response.
type Reserved struct {
	Switch   string
	Ports    []string
	Bytes    uint64 // of each lossless class of each of the ports
	Computed bool   // from rate, cable, largest frame and Response; otherwise it was given
	Rate     units.Rate
	Response time.Duration // how long both ends take, beyond cable and frames
}

// Reserves returns the headroom of all ports of the switches of a resolved document
// that have lossless classes, in the order of their ports. Switches with input
// queues have theirs in these, and are left out.
func (c *Config) Reserves() (v []Reserved) {
	for i := range c.Switches {
		s := &c.Switches[i]
		cfg := s.VSwitch(nil)
		if cfg.PFC.Mode == pfc.Off || s.inputQueued() {
			continue
		}
		first := len(v)
		for p := range cfg.Ports {
			if cfg.Ports[p].Name == "" {
				continue
			}
			link := cfg.Ports[p].Link(&cfg.Buffer)
			given := cmp.Or(uint64(cfg.Ports[p].Headroom), uint64(cfg.Buffer.Headroom))
			r := Reserved{Switch: s.Name, Bytes: cmp.Or(given, buffer.Headroom(link, 0).Total()), Computed: given == 0,
				Rate: units.Rate(link.Rate), Response: link.Response.Duration()}
			v = r.join(v, first, cfg.Ports[p].Name)
		}
	}
	return v
}

// join adds a port to those of v, from first on, that are like it.
func (r Reserved) join(v []Reserved, first int, port string) []Reserved {
	for i := first; i < len(v); i++ {
		if o := &v[i]; o.Bytes == r.Bytes && o.Computed == r.Computed && o.Rate == r.Rate {
			o.Ports = append(o.Ports, port)
			return v
		}
	}
	r.Ports = []string{port}
	return append(v, r)
}

// inputQueued reports whether frames wait in input queues, not in the shared buffer.
func (s *Switch) inputQueued() bool {
	for _, f := range vswitch.Features() {
		if f.InputQueued && s.Features.Get(f.Name) != nil {
			return true
		}
	}
	return false
}
