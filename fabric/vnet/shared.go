package vnet

import (
	"sync/atomic"

	"gswitch/frame"
	"gswitch/vswitch"
)

// shared is the state of a port of a switch on another thread that callbacks may read.
type shared struct{ queue, sent atomic.Uint64 }

// Publish makes Queue and Sent return, in callbacks, values that the threads of the
// switches sample once per period. If one thread steps everything, Queue and Sent are
// exact and Publish does nothing. Call it before the first Run.
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

// Halt stops time for good. After that every node may be read.
func (n *Network) Halt() error {
	err := n.Engine.Halt()
	n.shared = nil
	return err
}

// Queue returns the bytes that wait at an egress port of a switch, over all classes.
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

// Sent returns the bytes that an egress port of a switch has sent, link overhead
// included.
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
