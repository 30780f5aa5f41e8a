package dut

import (
	"fmt"

	"gswitch/bench/testbed"
)

// dpdkPages is how many huge pages of 2 MB DPDK gets.
const dpdkPages = 256

var testpmd = DUT{
	Name: "testpmd", About: "dpdk-testpmd, io mode on net_af_xdp: parses nothing",
	Missing: present("dpdk-testpmd", "stdbuf"),
	Start: func(b *testbed.Bed, e Env) ([]*testbed.Proc, error) {
		if err := b.HugePages(dpdkPages); err != nil {
			return nil, err
		}
		return one(b, "testpmd", "Press enter", "stdbuf", "-oL", "dpdk-testpmd",
			"-l", fmt.Sprintf("%d,%d", e.GenCPU, e.CPU), "--main-lcore", fmt.Sprint(e.GenCPU),
			"--in-memory", "--no-pci", "--no-telemetry", "--log-level=6",
			"--vdev", "net_af_xdp0,iface=d0", "--vdev", "net_af_xdp1,iface=d1", "--",
			"--forward-mode=io", "--auto-start", "--nb-cores=1", "--total-num-mbufs=16384")
	},
}
