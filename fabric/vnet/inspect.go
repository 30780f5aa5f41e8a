package vnet

import (
	"gswitch/frame"
	"gswitch/hostnic"
	inband "gswitch/int"
	"gswitch/sim"
	"gswitch/vswitch"
)

// HostName and SwitchName return the name in the topology.
func (n *Network) HostName(h int) string   { return n.Topology.Nodes[n.hostNode[h]].Name }
func (n *Network) SwitchName(s int) string { return n.Topology.Nodes[n.swNode[s]].Name }

// HostByName and SwitchByName return the index of a node, and false if there is none of
// that name.
func (n *Network) HostByName(name string) (int, bool) {
	i, ok := n.Topology.Lookup(name)
	if !ok || n.hostOf[i] < 0 {
		return 0, false
	}
	return n.hostOf[i], true
}

func (n *Network) SwitchByName(name string) (int, bool) {
	i, ok := n.Topology.Lookup(name)
	if !ok || n.swOf[i] < 0 {
		return 0, false
	}
	return n.swOf[i], true
}

// INT returns the telemetry format of data frames.
func (n *Network) INT() inband.Mode { return n.cfg.INT.Mode }

// Payload returns the payload of a full packet of queue pairs in bytes.
func (n *Network) Payload() int { return n.cfg.payload() }

// Congestion returns the name of the default congestion control of flows.
func (n *Network) Congestion() string { return n.cfg.Host.CC.Name }

// Ports returns the number of ports of a switch.
func (n *Network) Ports(s int) int { return len(n.Topology.Nodes[n.swNode[s]].Links) }

// PortOf returns the egress port of a switch towards a neighbour, and false if the nodes
// are not neighbours.
func (n *Network) PortOf(s int, neighbour string) (int, bool) {
	for p := range n.Topology.Nodes[n.swNode[s]].Links {
		if n.Topology.Nodes[n.Topology.Peer(n.swNode[s], p).Node].Name == neighbour {
			return p, true
		}
	}
	return 0, false
}

// Link returns the engine's identifier of link l of the topology, for faults.
func (n *Network) Link(l int) sim.LinkID { return n.links[l] }

// EngineNode returns the engine's number of a node of the topology.
func (n *Network) EngineNode(node int) int { return n.engine[node] }

// Rate returns the rate of a switch's port in bit/s.
func (n *Network) Rate(p Port) uint64 {
	return n.Topology.Links[n.Topology.Nodes[n.swNode[p.Switch]].Links[p.Port]].Rate
}

// Pauses counts pauses that were requested from neighbours.
type Pauses struct {
	Requests uint64     // times that a class of a port was paused
	XOFF     uint64     // requests to pause, renewals included
	XON      uint64     // requests to resume
	Time     frame.Time // time paused, summed over classes and ports
}

func (p *Pauses) add(o Pauses) {
	p.Requests += o.Requests
	p.XOFF += o.XOFF
	p.XON += o.XON
	p.Time += o.Time
}

// PortPauses returns the pauses that a switch requested from the neighbour at a port.
func (n *Network) PortPauses(now frame.Time, at Port) (p Pauses) {
	f := n.Switches[at.Switch].Nodes[0].PFC(uint16(at.Port))
	if f == nil {
		return p
	}
	s := f.Stats(now)
	for c := range s.Requests {
		p.add(Pauses{s.Requests[c], s.TxXOFF[c], s.TxXON[c], s.RequestTime[c]})
	}
	return p
}

// Pauses returns the pauses that all switches requested from their neighbours.
func (n *Network) Pauses(now frame.Time) (p Pauses) {
	for s := range n.Switches {
		for port := range n.Ports(s) {
			p.add(n.PortPauses(now, Port{s, port}))
		}
	}
	return p
}

// AcceptsLoss reports whether lossless classes may have too little headroom.
func (n *Network) AcceptsLoss() bool { return n.cfg.Buffer.AllowLoss }

// Drops returns the frames that all nodes lost, by reason. Frames that were consumed or
// had no receiver are not counted.
func (n *Network) Drops() (by [frame.NumReasons]uint64) {
	for i, sw := range n.Switches {
		node := sw.Nodes[0]
		for p := range n.Ports(i) {
			var c vswitch.PortCounts
			node.ReadPort(uint16(p), &c)
			plus(&by, &c.Drops)
		}
		self := node.SelfDrops()
		plus(&by, &self)
	}
	for _, h := range n.Hosts {
		plus(&by, &h.Counts().Drops)
	}
	for r := range by {
		if !frame.Reason(r).Loss() {
			by[r] = 0
		}
	}
	return by
}

func plus(a, b *[frame.NumReasons]uint64) {
	for i, v := range b {
		a[i] += v
	}
}

// Lost returns the sum of Drops.
func (n *Network) Lost() (sum uint64) {
	for _, v := range n.Drops() {
		sum += v
	}
	return sum
}

// Late returns the number of frames that reached a host after their connection had been
// closed.
func (n *Network) Late() (sum uint64) {
	for _, h := range n.Hosts {
		sum += h.Counts().Drops[frame.QPStale]
	}
	return sum
}

// Sender returns the NIC and queue pair that send a connection's data. ok is false once
// it is closed, and for TCP (see Stream).
func (n *Network) Sender(c Conn) (nic *hostnic.NIC, qpn uint32, ok bool) {
	i := int(c) - 1
	if i < 0 || i >= len(n.flows.conns) || !n.flows.conns[i].open || n.flows.conns[i].flow.TCP != nil {
		return nil, 0, false
	}
	f := &n.flows.conns[i]
	return n.Hosts[f.flow.Src], f.qp[0], true
}

// Neighbour returns the name of the node at the other end of a switch port's link.
func (n *Network) Neighbour(p Port) string {
	return n.Topology.Nodes[n.Topology.Peer(n.swNode[p.Switch], p.Port).Node].Name
}
