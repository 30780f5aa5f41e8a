package vnet

import (
	"sync/atomic"

	"gswitch/frame"
	"gswitch/vswitch"
)

// shared is what callbacks read of a switch's port that another thread steps.
type shared struct{ queue, sent atomic.Uint64 }

// Publish makes Queue and Sent return in callbacks what was last seen on the
// threads of the switches, which look once in each period: where one thread
// steps everything they say what is, and Publish does nothing. It is for use
// before the first Run.
func (n *Network) Publish(period frame.Time) {
	n.shared = make([][]shared, len(n.Switches))
	for s := range n.Switches {
		node := n.engine[n.swNode[s]]
		if !n.Engine.Apart(node) {
			continue
		}
		v := make([]shared, n.Ports(s))
		n.shared[s] = v
		n.Engine.EveryOn(node, period, period, func(frame.Time) {
			for p := range v {
				v[p].queue.Store(n.queue(Port{s, p}))
				v[p].sent.Store(n.sentBytes(Port{s, p}))
			}
		})
	}
}

// Halt ends time. Everything may be read then.
func (n *Network) Halt() error {
	err := n.Engine.Halt()
	n.shared = nil
	return err
}

// Queue returns the bytes that wait at an egress port of a switch, in all
// classes.
func (n *Network) Queue(p Port) uint64 {
	if n.shared != nil && n.shared[p.Switch] != nil {
		return n.shared[p.Switch][p.Port].queue.Load()
	}
	return n.queue(p)
}

func (n *Network) queue(p Port) uint64 {
	_, bytes := n.Switches[p.Switch].Nodes[0].Scheduler(uint16(p.Port)).Backlog()
	return bytes
}

// Sent returns the bytes that an egress port of a switch has sent, with the
// link's overhead.
func (n *Network) Sent(p Port) uint64 {
	if n.shared != nil && n.shared[p.Switch] != nil {
		return n.shared[p.Switch][p.Port].sent.Load()
	}
	return n.sentBytes(p)
}

func (n *Network) sentBytes(p Port) uint64 {
	var c vswitch.PortCounts
	n.Switches[p.Switch].Nodes[0].ReadPort(uint16(p.Port), &c)
	return c.Tx.Bytes + c.Tx.Frames*uint64(n.cfg.Overhead)
}
