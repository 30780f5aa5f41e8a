// Package controller sends packets another way, where what observes a run found that they
// are lost (the section controller of a scenario).
package controller

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"

	"gswitch/fabric/flows"
	"gswitch/fabric/scenario"
	"gswitch/fabric/vnet"
	"gswitch/frame"
	"gswitch/vswitch"
)

// Controller acts in one run.
type Controller struct {
	n *vnet.Network
	scenario.Controller
	moved map[move]bool
}

// move is a destination, and the port that packets to it avoid.
type move struct {
	to  netip.Prefix
	way flows.Way
}

// New returns a controller for a network.
func New(n *vnet.Network, c scenario.Controller) *Controller {
	return &Controller{n: n, Controller: c, moved: map[move]bool{}}
}

// Later has something done when the controller had its time.
func (c *Controller) Later(now frame.Time, do func(now frame.Time)) {
	c.n.Engine.At(now+frame.Time(c.Takes), do)
}

// Avoid sends what is for an address by other ports than one, if the switch has others
// for it. first says that none did before.
func (c *Controller) Avoid(now frame.Time, to netip.Prefix, w flows.Way) (first, ok bool) {
	if c.moved[move{to, w}] {
		return false, true
	}
	sw := c.n.SwitchAt(w.Node)
	r, ok := otherWays(c.n.Switches[sw].Program().Config, to, c.peer(w))
	if !ok {
		return false, false
	}
	if err := c.n.Change(now, sw, vswitch.SetRoute{Route: r}); err != nil {
		c.n.Engine.Stop(fmt.Errorf("controller: %w", err))
		return false, true
	}
	c.moved[move{to, w}] = true
	return true, true
}

// Leave sends what is for an address by other links than one direction of one: at the
// switch before it, or, where that has no other way, at all that send to it. It
// reports whether it did something.
func (c *Controller) Leave(now frame.Time, to netip.Prefix, w flows.Way) (did bool) {
	if first, ok := c.Avoid(now, to, w); ok {
		return first
	}
	for p := range c.n.Topology.Nodes[w.Node].Links {
		if e := c.n.Topology.Peer(w.Node, p); p != w.Port && slices.Contains(c.n.Topology.Switches(), e.Node) {
			first, _ := c.Avoid(now, to, flows.Way{Node: e.Node, Port: e.Port})
			did = did || first
		}
	}
	return did
}

// peer returns the addresses of the other end of a port.
func (c *Controller) peer(w flows.Way) (v []netip.Addr) {
	e := c.n.Topology.Peer(w.Node, w.Port)
	if p := c.n.Plan.Nodes[e.Node].Ports; e.Port < len(p) {
		for _, a := range p[e.Port] {
			v = append(v, a.Addr())
		}
	}
	return v
}

// HostRoute is the prefix of one IPv4 address.
func HostRoute(addr uint32) netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte(binary.BigEndian.AppendUint32(nil, addr))), 32)
}

// otherWays returns a route to a destination by the next hops that a switch has for
// it, but for one; false if there are no others, or if that is none of them.
func otherWays(cfg *vswitch.Config, to netip.Prefix, but []netip.Addr) (best vswitch.Route, ok bool) {
	for _, r := range cfg.Routes {
		if r.Prefix.Contains(to.Addr()) && (!ok || r.Prefix.Bits() > best.Prefix.Bits()) {
			best, ok = r, true
		}
	}
	all := len(best.NextHops)
	best.Prefix = to
	best.NextHops = slices.DeleteFunc(slices.Clone(best.NextHops), func(h vswitch.NextHop) bool { return slices.Contains(but, h.Via) })
	return best, ok && len(best.NextHops) > 0 && len(best.NextHops) < all
}
