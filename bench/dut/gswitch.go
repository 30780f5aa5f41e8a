package dut

import (
	"path/filepath"
	"strconv"

	"github.com/gswitch/gswitch/bench/testbed"
)

var gswitchL2 = DUT{
	Name: "gswitch-l2", About: "gswitch as a learning switch, spinning",
	Missing: built("gswitch"),
	Start:   func(b *testbed.Bed, e Env) ([]*testbed.Proc, error) { return gswitchFlags(b, e, "spin") },
}

var gswitchAdaptive = DUT{
	Name: "gswitch-adaptive", About: "gswitch as a learning switch, sleeping when idle",
	Missing: built("gswitch"),
	Start:   func(b *testbed.Bed, e Env) ([]*testbed.Proc, error) { return gswitchFlags(b, e, "adaptive") },
}

func gswitchFlags(b *testbed.Bed, e Env, poll string) ([]*testbed.Proc, error) {
	return one(b, "gswitch", "ready", filepath.Join(e.Bin, "gswitch"), "run", "--port", "d0", "--port", "d1", "--poll", poll, "--cpu", strconv.Itoa(e.CPU))
}

var gswitchFull = DUT{
	Name: "gswitch-full", About: "gswitch with everything on: 1k ternary ACL entries, 100k routes, 8 queues, PFC, buffer accounting, counters",
	Missing: built("gswitch"),
	Start:   nil,
}

var gswitchChain = DUT{
	Name: "gswitch-chain", About: "three gswitches in a row over in-process wires, on one worker",
	Missing: built("gswitch"),
	Start:   nil,
}
