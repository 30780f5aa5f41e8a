package run

import (
	"testing"

	"gswitch/config"
	"gswitch/fabric"
	"gswitch/fabric/results"
	"gswitch/fabric/vnet"
)

// A run on real frames that dropped what must not be dropped is no result.
func TestLosslessDropsAreInvalid(t *testing.T) {
	topology, err := fabric.Parse("star.yaml", []byte("version: 1\ngenerate: star(2)\nclasses: {host: {rate: 1Gbps}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		real    bool
		allowed bool
		lost    uint64
		valid   bool
	}{
		"nothing lost": {true, false, 0, true}, "lost": {true, false, 3, false}, "accepted": {true, true, 3, true}, "virtual time": {false, false, 3, true},
	} {
		n, err := vnet.Build(&vnet.Config{Topology: topology, Buffer: config.NetworkBuffer{LosslessRoom: config.LosslessRoom{AllowLoss: c.allowed}}})
		if err != nil {
			t.Fatal(err)
		}
		out := &results.Run{}
		if c.real {
			out.Timing = &results.Timing{Valid: true}
		}
		judgeLossless(n, c.lost, out)
		if out.Timing != nil && (out.Timing.Valid != c.valid || c.valid != (len(out.Timing.Why) == 0)) {
			t.Errorf("%s: %+v", name, out.Timing)
		}
	}
}
