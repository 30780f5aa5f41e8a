package verbs

import (
	"fmt"
	"net"

	"gswitch/dataplane"
	"gswitch/dataplane/xsk"
	"gswitch/hostnic"
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
	if err := hostnic.FitMTU("Payload", c.Payload, c.headers(), at, p.mtu); err != nil {
		return p, fmt.Errorf("verbs: %w", err)
	}
	return p, nil
}
