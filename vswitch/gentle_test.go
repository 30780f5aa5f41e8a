package vswitch

import (
	"strings"
	"testing"

	"gswitch/frame"
	"gswitch/pfc"
	"gswitch/scheduler"
)

// TestGentleConfig: what stands against slowing neighbours is refused, and says
// why.
func TestGentleConfig(t *testing.T) {
	for _, c := range []struct {
		change func(*Config)
		want   string
	}{
		{func(c *Config) {}, ""},
		{func(c *Config) { c.PFC.Gentle.Stages = 16 }, "at most 15 stages"},
		{func(c *Config) { c.PFC.Mode = pfc.Pause }, "needs pfc"},
		{func(c *Config) { c.PFC.Watchdog.Detect = frame.Second }, "watchdog"},
		{func(c *Config) { c.Ports[1].Worker = 1 }, "another worker"},
		{func(c *Config) { c.Ports[0].Scheduler.Rate = 0 }, "needs a rate"},
	} {
		cfg := &Config{PFC: PFCConfig{Mode: pfc.PFC, Classes: 1 << 3, Gentle: GentleConfig{Stages: 15}}}
		for _, name := range []string{"p0", "p1"} {
			cfg.Ports = append(cfg.Ports, PortConfig{Name: name, Scheduler: scheduler.PortConfig{Rate: 10e9}})
		}
		c.change(cfg)
		err := cfg.validateGentle()
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
}
