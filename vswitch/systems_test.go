package vswitch_test

import (
	crossbarpoint "gswitch/crossbar/point"
	escapepoint "gswitch/escape/point"
	"gswitch/hull"
	"gswitch/hull/link"
	"gswitch/lstf"
	lstfpoint "gswitch/lstf/point"
	"gswitch/qcn"
	qcnpoint "gswitch/qcn/point"
	"gswitch/rocc"
	roccpoint "gswitch/rocc/point"
	"gswitch/vswitch"
)

// Damaged frames meet systems, too.
func init() {
	vswitch.Escapes = func(cfg *vswitch.Config) {
		cfg.Options = cfg.Options.With(escapepoint.Name, escapepoint.Config{Queue: 6})
		for i := range cfg.Ports {
			if i > 0 {
				cfg.Ports[i].Options = cfg.Ports[i].Options.With(escapepoint.Name, escapepoint.Neighbor{})
			}
		}
	}
	vswitch.WithCrossbar = func(cfg *vswitch.Config, c vswitch.Crossing) {
		cfg.Options = cfg.Options.With(crossbarpoint.Name, crossbarpoint.Config{Ingress: c.Ingress, Egress: c.Egress, Reserve: c.Reserve, TotalCap: c.TotalCap,
			SkipBlocked: true, Pause: c.Pause, Unpause: c.Unpause, Latency: c.Latency, Speedup: c.Speedup})
	}
	vswitch.Systems = func(cfg *vswitch.Config) {
		for i := range cfg.Ports {
			p := &cfg.Ports[i]
			p.Options = vswitch.Options{
				roccpoint.Name: roccpoint.Config{Queues: 0x0f, Params: rocc.For(10e9)},
				qcnpoint.Name:  qcnpoint.Config{Queues: 0xf0, Params: qcn.Params{SetPoint: 64, Weight: 2, Sample: 1500}},
				lstfpoint.Name: lstfpoint.Config{Queues: 0xff, Policy: lstf.Policy{Kind: lstf.Fair, Rate: 1e9}, Trusted: i%4 == 0},
			}
			if p.Scheduler.Rate != 0 {
				p.Options[link.Name] = link.Config{Queues: 0xff, Params: hull.Params{Drain: 0.1, Threshold: 100}}
			}
		}
	}
}
