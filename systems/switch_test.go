package systems_test

import (
	"strings"
	"testing"

	crossbarpoint "gswitch/crossbar/point"
	"gswitch/escape/point"
	"gswitch/frame"
	gfcpoint "gswitch/gfc/point"
	"gswitch/pfc"
	"gswitch/scheduler"
	"gswitch/scheduler/orders"
	"gswitch/telemetry/lossradar"
	losspoint "gswitch/telemetry/lossradar/point"
	"gswitch/vswitch"
	st "gswitch/vswitch/switchtest"
)

// turnOn is what a switch gets by each key of an exclusion.
var turnOn = map[string]func(*vswitch.Config){
	"admission": func(c *vswitch.Config) {
		c.Ports[1].Scheduler.Queues[2].Admission = orders.CoDel{Target: 5 * frame.Millisecond, Interval: 100 * frame.Millisecond}
	},
	"order":          func(c *vswitch.Config) { c.Ports[1].Scheduler.Queues[2].Order = orders.VOQ{} },
	vswitch.Dropping: func(c *vswitch.Config) { c.Ports[1].Scheduler.Queues[2].Order = orders.PACKS{Queues: 4} },
	"push_out":       func(c *vswitch.Config) { c.Ports[1].Scheduler.PushOut.Port = 1e6 },
	"ecn": func(c *vswitch.Config) {
		c.Ports[1].Scheduler.Queues[2].ECN.KMin, c.Ports[1].Scheduler.Queues[2].ECN.KMax = 1000, 1000
	},
	"pi": func(c *vswitch.Config) {
		c.Ports[1].Scheduler.Queues[2].ECN.PI = scheduler.PI{Ref: 3000, A: 2e-5, B: 1e-5, Period: frame.Microsecond}
	},
	"crossbar":    func(c *vswitch.Config) { c.Options = c.Options.With(crossbarpoint.Name, crossbarpoint.Config{}) },
	"gfc":         func(c *vswitch.Config) { c.Options = c.Options.With(gfcpoint.Name, gfcpoint.Config{Stages: 6}) },
	"err_disable": func(c *vswitch.Config) { c.PFC.ErrDisable = frame.Second },
	"watchdog":    func(c *vswitch.Config) { c.Ports[1].Watchdog = &pfc.Watchdog{Detect: frame.Second} },
	"lossradar": func(c *vswitch.Config) {
		c.Ports[1].Options = c.Ports[1].Options.With(losspoint.Name, losspoint.Config{Queues: 1, Config: lossradar.Config{Shape: lossradar.Shape{Cells: 64, Hashes: 3},
			Timing: lossradar.Timing{Period: frame.Millisecond, Timeout: frame.Millisecond}}})
	},
	vswitch.Lossless:       func(c *vswitch.Config) { c.PFC.Classes |= 1 << 2 },
	vswitch.SeveralWorkers: func(c *vswitch.Config) { c.Ports[1].Worker = 1 },
	"escape": func(c *vswitch.Config) {
		c.Class.Queue[6] = 7
		c.Options = c.Options.With(point.Name, point.Config{Queue: 6})
	},
}

func build(keys ...string) error {
	cfg := st.Rated(st.Base(2), st.Rate40G)
	cfg.PFC = vswitch.PFCConfig{Mode: pfc.PFC, Classes: 1 << 3}
	cfg.Buffer.XOFF, cfg.Buffer.XONOffset = 300_000, 1000
	for _, k := range keys {
		turnOn[k](cfg)
	}
	arena := frame.MustArena(4096, 2048, frame.DefaultHeadroom)
	depot := frame.NewDepot(arena)
	_, err := vswitch.New(cfg, []*frame.Pool{depot.NewPool(arena), depot.NewPool(arena)})
	return err
}

// A switch refuses each pair as documents do, whoever makes its configuration, and takes
// each of the two alone.
func TestSwitchRefusesExclusions(t *testing.T) {
	for k := range turnOn {
		if err := build(k); err != nil {
			t.Errorf("%s alone: %v", k, err)
		}
	}
	pairs := 0
	for _, x := range vswitch.Exclusions() {
		if turnOn[x.A] == nil || turnOn[x.B] == nil {
			continue
		}
		pairs++
		if err := build(x.A, x.B); err == nil || !strings.Contains(err.Error(), x.Beside()) {
			t.Errorf("%s beside %s: %v", x.A, x.B, err)
		}
	}
	if pairs < 17 {
		t.Errorf("%d pairs were tried", pairs)
	}
}
