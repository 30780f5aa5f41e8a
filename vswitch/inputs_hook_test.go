package vswitch

import "gswitch/frame"

// Crossing are options of a crossbar, which registers itself and so cannot be
// imported here: systems_test.go sets WithCrossbar.
type Crossing struct {
	Ingress, Egress, Reserve uint32
	TotalCap                 bool
	Pause, Unpause           uint32
	Latency                  frame.Time
	Speedup                  int
}

// WithCrossbar gives a switch a crossbar, that has next classes skip blocked ones.
var WithCrossbar func(cfg *Config, c Crossing)

// without takes the crossbar out of a copy of a configuration.
func without(cfg *Config) *Config {
	off := *cfg
	off.Options = nil
	return &off
}

// waiting is what input queues report of what waits in them and behind them.
type waiting interface {
	Held() int
	EgressDrain(port uint16, class uint8) uint32
}
