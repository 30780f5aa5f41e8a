package dut

import (
	"os"

	"gswitch/bench/testbed"
)

var bridge = DUT{
	Name: "bridge", About: "Linux bridge with a static FDB, br_netfilter off; runs on the generator's core",
	Missing: present("bridge", "ethtool"),
	Start: func(b *testbed.Bed, _ Env) ([]*testbed.Proc, error) {
		for _, dev := range []string{"d0", "d1"} {
			if err := b.GRO(dev); err != nil {
				return nil, err
			}
		}
		for _, args := range [][]string{
			{"ip", "link", "add", "br0", "type", "bridge", "mcast_snooping", "0"},
			{"ip", "link", "set", "br0", "up"},
			{"ip", "link", "set", "d0", "master", "br0"},
			{"ip", "link", "set", "d1", "master", "br0"},
			{"bridge", "fdb", "replace", testbed.SinkMAC, "dev", "d1", "master", "static"},
			{"bridge", "fdb", "replace", testbed.GenMAC, "dev", "d0", "master", "static"},
		} {
			if err := b.Exec(args...); err != nil {
				return nil, err
			}
		}
		// Without br_netfilter the keys are not there and there is nothing to switch off.
		if _, err := os.Stat("/proc/sys/net/bridge"); err == nil {
			err := b.Sysctl(testbed.DUT, "net.bridge.bridge-nf-call-iptables=0", "net.bridge.bridge-nf-call-ip6tables=0", "net.bridge.bridge-nf-call-arptables=0")
			if err != nil {
				return nil, err
			}
		}
		return nil, nil
	},
}

// direct is no forwarder: the reflector sits at d0 then. It is the floor of the round trip.
var direct = DUT{
	Name: Direct, About: "no forwarder, one veth pair (round trips only)",
	Missing: func(Env) string { return "" },
}

// Direct names the measurement without a forwarder.
const Direct = "direct"
