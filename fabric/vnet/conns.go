package vnet

import "gswitch/hostnic"

// Open describes an open connection or flow.
type Open struct {
	Conn       Conn
	Generation uint32 // distinguishes successive connections with the same Conn
	Flow       Flow   // as it was started
	Posted     uint64 // bytes of all its messages so far
	NIC        *hostnic.NIC
	QPN, Peer  uint32 // queue pairs of the sender and the receiver
	Control    string // Algorithm.Name of its congestion control
}

// EachOpen calls yield with each open connection and each open flow of queue pairs until
// yield returns false. The argument is valid only during the call. Call it from callbacks
// of the engine, or after the engine has halted.
func (n *Network) EachOpen(yield func(*Open) bool) {
	o := &n.flows.each
	for i := range n.flows.conns {
		c := &n.flows.conns[i]
		if !c.open || c.flow.TCP != nil {
			continue
		}
		*o = Open{Conn: Conn(i + 1), Generation: c.generation, Flow: c.flow, Posted: c.posted, NIC: n.Hosts[c.flow.Src], QPN: c.qp[0], Peer: c.qp[1], Control: c.flow.CC.Name}
		if c.flow.CC.New == nil {
			o.Control = n.cfg.Host.CC.Name
		}
		if !yield(o) {
			return
		}
	}
}

// RouteOf returns the egress ports of the switches that the data of a flow passes, as
// Route does.
func (n *Network) RouteOf(f *Flow) ([]Port, error) {
	port := f.SrcPort
	if port == 0 {
		port = entropy(n.cfg.Seed, f, 0)
	}
	return n.Route(f.Src, f.Dst, port, false)
}

// HostNode and SwitchNode return the topology node of a host or switch.
func (n *Network) HostNode(h int) int   { return n.hostNode[h] }
func (n *Network) SwitchNode(s int) int { return n.swNode[s] }

// HostAt and SwitchAt return the index of the host or switch at a node of the topology,
// or -1 if the node is none.
func (n *Network) HostAt(node int) int   { return n.hostOf[node] }
func (n *Network) SwitchAt(node int) int { return n.swOf[node] }
