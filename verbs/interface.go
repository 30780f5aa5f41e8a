package verbs

import (
	"fmt"
	"net"

	"gswitch/dataplane"
	"gswitch/dataplane/xsk"
	"gswitch/wire"
)

// place is what is known of an interface before it is opened.
type place struct {
	mac    wire.MAC
	mtu    int
	queues int // that frames may arrive on: all must be taken, or the kernel would keep some
}

// look finds the interface of a host and refuses one that cannot carry its
// frames.
func look(c *Config) (p place, err error) {
	err = xsk.InNetNS(c.NetNS, func() error {
		i, err := net.InterfaceByName(c.Interface)
		if err != nil {
			return err
		}
		if len(i.HardwareAddr) != len(p.mac) {
			return fmt.Errorf("it has no Ethernet address")
		}
		p = place{wire.MAC(i.HardwareAddr), i.MTU, dataplane.Channels(c.Interface)}
		return nil
	})
	at := c.Interface
	if c.NetNS != "" {
		at += " in network namespace " + c.NetNS
	}
	if err != nil {
		return p, fmt.Errorf("verbs: %s: %w", at, err)
	}
	if need := c.Payload + c.headers(); need > p.mtu {
		return p, fmt.Errorf("verbs: a Payload of %d bytes makes packets of %d with their headers, and the MTU of %s is %d: lower Payload, or raise the MTU", c.Payload, need, at, p.mtu)
	}
	return p, nil
}
