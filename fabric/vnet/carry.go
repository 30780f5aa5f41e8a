package vnet

import (
	"fmt"

	"gswitch/frame"
)

// Carry has one host carry out a change that was recorded in another network with the
// same configuration. The other ends of its connections are never opened: what they send
// must arrive as frames. The changes of a connection must come in their order. If a
// change depends on one that is missing, Carry returns an error and does nothing.
func (n *Network) Carry(now frame.Time, host int, c HostChange) error {
	if host < 0 || host >= len(n.Hosts) {
		return fmt.Errorf("virtual network %s: there is no host %d of %d", n.Topology.Name, host, len(n.Hosts))
	}
	defer n.Engine.Poke(n.engine[n.hostNode[host]])
	switch c := c.(type) {
	case OfNIC:
		return n.hand(now, host, c)
	case *OpenEnd:
		f := &c.Flow
		if err := n.beyond(c.Conn); err != nil {
			return err
		}
		if c.Conn == 0 || f.Src == f.Dst || f.Src < 0 || f.Dst < 0 || f.Src >= len(n.Hosts) || f.Dst >= len(n.Hosts) || host != f.Src && host != f.Dst || f.TCP != nil && n.stacks == nil {
			return fmt.Errorf("virtual network %s: there is no connection %d from host %d to host %d at host %d of %d", n.Topology.Name, c.Conn, f.Src, f.Dst, host, len(n.Hosts))
		}
		return n.openEnds(now, c, [2]bool{host == f.Src, host == f.Dst})
	case *Post:
		k, err := n.carried(host, c.Conn, c.Generation)
		if err != nil {
			return err
		}
		if host == k.flow.Dst && k.flow.TCP == nil {
			return fmt.Errorf("virtual network %s: host %d receives by connection %d, and posts nothing there", n.Topology.Name, host, c.Conn)
		}
		if err := n.hand(now, host, c); err != nil || host == k.flow.Dst {
			return err
		}
		k.posted += c.Bytes
		k.begin(now)
		return nil
	case *CloseEnd:
		k, err := n.carried(host, c.Conn, c.Generation)
		if err != nil {
			return err
		}
		return n.closeEnds(now, uint32(c.Conn)-1, [2]bool{host == k.flow.Src, host == k.flow.Dst})
	}
	return fmt.Errorf("virtual network %s: there are no changes of the kind %T", n.Topology.Name, c)
}

// carried returns a connection of which Carry has opened the end of a host.
func (n *Network) carried(host int, c Conn, generation uint32) (*conn, error) {
	if c == 0 || int(c) > len(n.flows.conns) {
		return nil, fmt.Errorf("virtual network %s: there is no connection %d", n.Topology.Name, c)
	}
	k := &n.flows.conns[c-1]
	if !k.open || k.generation != generation || host != k.flow.Src && host != k.flow.Dst {
		return nil, fmt.Errorf("virtual network %s: connection %d is not open", n.Topology.Name, c)
	}
	return k, nil
}
