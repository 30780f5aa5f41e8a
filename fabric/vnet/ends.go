package vnet

import (
	"fmt"

	"gswitch/frame"
)

// Ends identifies a connection to the processes that step its two hosts. All processes
// build the same network. The process that directs them steps no node; it dials as well
// and thereby learns the queue pair numbers. A host assigns these in the order in which
// queue pairs open and close, so all processes must keep to that order.
type Ends struct {
	Conn       Conn
	Generation uint32
	QPN        [2]uint32 // of the sender and of the receiver
}

// Ends returns the identification of an open connection for other processes.
func (n *Network) Ends(c Conn) (Ends, error) {
	i := int(c) - 1
	if i < 0 || i >= len(n.flows.conns) || !n.flows.conns[i].open {
		return Ends{}, fmt.Errorf("virtual network %s: connection %d is not open", n.Topology.Name, c)
	}
	k := &n.flows.conns[i]
	return Ends{c, k.generation, k.qp}, nil
}

// maxConns bounds the connection numbers that other processes and records may have: all from every one of 1024
// hosts to every other, in about 250 MB. Numbers are given anew, so no network has one beyond those that were open
// at once.
const maxConns = 1 << 20

// beyond returns an error for a connection number that no network has.
func (n *Network) beyond(c Conn) error {
	if c <= maxConns {
		return nil
	}
	return fmt.Errorf("virtual network %s: connection %d is beyond the %d that a network may have", n.Topology.Name, c, maxConns)
}

// OpenEnds opens the local ends of a connection: here says whether the sender and the
// receiver are local. Messages are posted with Send; f.Bytes is ignored.
func (n *Network) OpenEnds(now frame.Time, f *Flow, e Ends, here [2]bool) error {
	if err := n.beyond(e.Conn); err != nil {
		return err
	}
	if f.Src == f.Dst || f.Src < 0 || f.Dst < 0 || f.Src >= len(n.Hosts) || f.Dst >= len(n.Hosts) || e.Conn == 0 {
		return fmt.Errorf("virtual network %s: there is no connection %d from host %d to host %d of %d", n.Topology.Name, e.Conn, f.Src, f.Dst, len(n.Hosts))
	}
	if f.TCP != nil {
		return fmt.Errorf("virtual network %s: connections of TCP have both ends in one process", n.Topology.Name)
	}
	for k, h := range [2]int{f.Src, f.Dst} {
		if !here[k] {
			continue
		}
		if qpn, err := n.Hosts[h].NextQP(); err != nil {
			return err
		} else if qpn != e.QPN[k] {
			return fmt.Errorf("host %s: queue pair %#x would be opened where %#x was meant: processes do not agree on what is open", n.HostName(h), qpn, e.QPN[k])
		}
	}
	return n.openEnds(now, &OpenEnd{Ends: e, Flow: *f}, here)
}

// CloseEnds closes the ends that OpenEnds opened.
func (n *Network) CloseEnds(now frame.Time, at Conn, here [2]bool) error {
	fl := &n.flows
	i := int(at) - 1
	if i < 0 || i >= len(fl.conns) || !fl.conns[i].open {
		return fmt.Errorf("virtual network %s: connection %d is not open", n.Topology.Name, at)
	}
	return n.closeEnds(now, uint32(i), here)
}
