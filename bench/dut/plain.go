package dut

import (
	"path/filepath"
	"strconv"

	"gswitch/bench/testbed"
)

var cL2fwd = DUT{
	Name: "c", About: "plain AF_XDP forwarder in C, parses nothing (bench/peers/cl2fwd)",
	Missing: built("peer-cl2fwd"),
	Start: func(b *testbed.Bed, e Env) ([]*testbed.Proc, error) {
		return one(b, "cl2fwd", "ready", filepath.Join(e.Bin, "peer-cl2fwd"), strconv.Itoa(e.CPU), "d0", "d1")
	},
}

var asavie = DUT{
	Name: "asavie", About: "forwarder on github.com/asavie/xdp v0.3.3 (bench/peers/asavie)",
	Missing: built("peer-asavie"),
	Start: func(b *testbed.Bed, e Env) ([]*testbed.Proc, error) {
		return one(b, "asavie", "ready", filepath.Join(e.Bin, "peer-asavie"), "-cpu", strconv.Itoa(e.CPU), "d0", "d1")
	},
}
