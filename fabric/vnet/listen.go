package vnet

import (
	"gswitch/frame"
	"gswitch/hostnic"
)

// listener is a host that examines incoming frames before its NIC does.
type listener struct {
	*hostnic.NIC
	pool *frame.Pool
	// takes is called with the bytes of a frame and reports whether the frame is not for
	// the NIC.
	takes func(now frame.Time, b []byte) bool
}

// Receive implements frame.Node.
func (l *listener) Receive(now frame.Time, port uint16, v []frame.Ref) {
	keep := v[:0]
	for _, r := range v {
		if l.takes(now, l.pool.Bytes(r)) {
			l.pool.Free(r)
			continue
		}
		keep = append(keep, r)
	}
	l.NIC.Receive(now, port, keep)
}

// stepped returns what the engine steps for a host.
func (n *Network) stepped(nic *hostnic.NIC, node int) frame.Stepper {
	if takes := n.cfg.Listen[n.Topology.Nodes[node].Name]; takes != nil {
		return &listener{nic, n.Engine.Pool(node), takes}
	}
	return nic
}

// wrapped returns what the engine steps for a node.
func (n *Network) wrapped(node int, s frame.Stepper) frame.Stepper {
	if n.cfg.Wrap != nil {
		return n.cfg.Wrap(n, node, s)
	}
	return s
}
