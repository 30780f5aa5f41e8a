package systems_test

import (
	"strings"
	"testing"

	crossbarpoint "gswitch/crossbar/point"
	"gswitch/escape/point"
	"gswitch/frame"
	gfcpoint "gswitch/gfc/point"
	"gswitch/pfc"
	"gswitch/scheduler/orders"
	_ "gswitch/systems"
	"gswitch/vswitch"
	st "gswitch/vswitch/switchtest"
)

// dropping is an order that drops frames, as a policy may.
type dropping struct{ orders.VOQ }

func (dropping) Drops() bool { return true }

// turnOn is what a switch gets by each key of an exclusion.
var turnOn = map[string]func(*vswitch.Config){
	"admission": func(c *vswitch.Config) {
		c.Ports[1].Scheduler.Queues[2].Admission = orders.CoDel{Target: 5 * frame.Millisecond, Interval: 100 * frame.Millisecond}
	},
	"order":       func(c *vswitch.Config) { c.Ports[1].Scheduler.Queues[2].Order = orders.VOQ{} },
	"policy":      func(c *vswitch.Config) { c.Ports[1].Scheduler.Queues[2].Order = dropping{} },
	"push_out":    func(c *vswitch.Config) { c.Ports[1].Scheduler.PushOut.Port = 1e6 },
	"crossbar":    func(c *vswitch.Config) { c.Options = c.Options.With(crossbarpoint.Name, crossbarpoint.Config{}) },
	"gfc":         func(c *vswitch.Config) { c.Options = c.Options.With(gfcpoint.Name, gfcpoint.Config{Stages: 6}) },
	"err_disable": func(c *vswitch.Config) { c.PFC.ErrDisable = frame.Second },
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
	_, err := vswitch.New(cfg, []*frame.Pool{frame.NewPool(frame.MustArena(4096, 2048, frame.DefaultHeadroom))})
	return err
}

// Each pair that excludes each other is refused with its reason, and each of the
// two alone is taken.
func TestExclusions(t *testing.T) {
	for k := range turnOn {
		if err := build(k); err != nil {
			t.Errorf("%s alone: %v", k, err)
		}
	}
	pairs := 0
	for a := range turnOn {
		for b := range turnOn {
			x := vswitch.Excluded(a, func(k string) bool { return k == a || k == b })
			if x == nil || x.B != b {
				continue
			}
			pairs++
			if err := build(a, b); err == nil || !strings.Contains(err.Error(), x.Beside()) {
				t.Errorf("%s beside %s: %v", a, b, err)
			}
		}
	}
	if pairs != 11 {
		t.Errorf("%d pairs exclude each other, of 11 that are known without voq, which only scenarios have", pairs)
	}
}
