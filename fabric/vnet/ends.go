package vnet

import (
	"fmt"

	"gswitch/frame"
	"gswitch/hostnic"
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
	return Ends{c, k.generation, [2]uint32{k.qpA, k.qpB}}, nil
}

// maxConns bounds the connection numbers that other processes may send.
const maxConns = 1 << 24

// OpenEnds opens the local ends of a connection: here says whether the sender and the
// receiver are local. Messages are posted with Send; f.Bytes is ignored.
func (n *Network) OpenEnds(now frame.Time, f *Flow, e Ends, here [2]bool) error {
	if f.Src == f.Dst || f.Src < 0 || f.Dst < 0 || f.Src >= len(n.Hosts) || f.Dst >= len(n.Hosts) || e.Conn == 0 || e.Conn > maxConns {
		return fmt.Errorf("virtual network %s: there is no connection %d from host %d to host %d of %d", n.Topology.Name, e.Conn, f.Src, f.Dst, len(n.Hosts))
	}
	if f.TCP != nil {
		return fmt.Errorf("virtual network %s: connections of TCP have both ends in one process", n.Topology.Name)
	}
	fl := &n.flows
	i := uint32(e.Conn) - 1
	for len(fl.conns) <= int(i) {
		fl.conns = append(fl.conns, conn{})
	}
	c := &fl.conns[i]
	if c.open {
		return fmt.Errorf("virtual network %s: connection %d is open already", n.Topology.Name, e.Conn)
	}
	var pair [2]hostnic.QPConfig
	pair[0], pair[1] = n.pair(f, i, e.Generation)
	for k, h := range [2]int{f.Src, f.Dst} {
		if !here[k] {
			continue
		}
		qpn, err := n.Hosts[h].OpenQP(n.hostTime(now, h), &pair[k])
		if err != nil {
			return err
		}
		if qpn != e.QPN[k] {
			return fmt.Errorf("host %s: queue pair %#x was opened where %#x was meant: processes do not agree on what is open", n.HostName(h), qpn, e.QPN[k])
		}
		if err := n.Hosts[h].ConnectQP(n.hostTime(now, h), qpn, e.QPN[1-k]); err != nil {
			return err
		}
		fl.peer[h][qpn] = i
	}
	*c = conn{flow: *f, qpA: e.QPN[0], qpB: e.QPN[1], generation: e.Generation, open: true, arrivals: c.arrivals[:0], starts: c.starts[:0]}
	fl.count.Open++
	return nil
}

// CloseEnds closes the ends that OpenEnds opened.
func (n *Network) CloseEnds(now frame.Time, at Conn, here [2]bool) error {
	fl := &n.flows
	i := int(at) - 1
	if i < 0 || i >= len(fl.conns) || !fl.conns[i].open {
		return fmt.Errorf("virtual network %s: connection %d is not open", n.Topology.Name, at)
	}
	c := &fl.conns[i]
	c.open = false
	fl.count.Open--
	for k, h := range [2]int{c.flow.Src, c.flow.Dst} {
		if !here[k] {
			continue
		}
		qpn := [2]uint32{c.qpA, c.qpB}[k]
		delete(fl.peer[h], qpn)
		if err := n.Hosts[h].CloseQP(n.hostTime(now, h), qpn); err != nil {
			return err
		}
	}
	return nil
}
