package vnet

import (
	inband "gswitch/int"
	"gswitch/int/point"
	"gswitch/vswitch"
)

// telemetry gives a switch the units of the network's telemetry records, which may be
// those of another simulator.
func (n *Network) telemetry(c *vswitch.Config) {
	if o, on := c.Options[point.Name].(point.Config); on {
		o.Profile = n.cfg.INT.Profile
		c.Options = c.Options.With(point.Name, o)
	}
}

// rateTable gives senders the rates of the switches' ports if the telemetry format does
// not carry them.
func (n *Network) rateTable() *inband.RateTable {
	if n.cfg.INT.Mode != inband.INTMD && n.cfg.INT.Mode != inband.INTMDUDP {
		return nil
	}
	t := new(inband.RateTable)
	for s, node := range n.swNode {
		for p := range n.Topology.Nodes[node].Links {
			t.Set(switchID(s), uint16(p), n.Rate(Port{s, p}))
		}
	}
	return t
}

// switchID is the identifier that a switch writes into its records.
func switchID(s int) uint32 { return uint32(s + 1) }

// Telemetry counts the frames with telemetry that switches sent, by the outcome of
// writing the record.
func (n *Network) Telemetry() (by [inband.NumOutcomes]uint64) {
	for _, sw := range n.Switches {
		for i, k := range point.Records(sw.Nodes[0]) {
			by[i] += k
		}
	}
	return by
}
