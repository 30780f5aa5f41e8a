package vnet

import (
	"fmt"
	"math/bits"
	"slices"

	"gswitch/fabric"
	"gswitch/frame"
	"gswitch/pfc"
	"gswitch/scheduler"
	"gswitch/scheduler/orders"
	_ "gswitch/systems" // what configurations can have
	"gswitch/vswitch"
	wirefmt "gswitch/wire"
)

// hostVLAN is where the hosts of a switch are.
const hostVLAN = 1

func (n *Network) addSwitches() error {
	for i, node := range n.swNode {
		c, err := n.switchConfig(i, node)
		if err != nil {
			return fmt.Errorf("virtual network %s: %w", n.Topology.Name, err)
		}
		if err := n.detour(c, node); err != nil {
			return err
		}
		if n.cfg.AdjustSwitch != nil {
			n.cfg.AdjustSwitch(c.Name, c)
		}
		sw, err := vswitch.New(c, []*frame.Pool{n.Engine.Pool(node)})
		if err != nil {
			return fmt.Errorf("virtual network %s: %w", n.Topology.Name, err)
		}
		n.Switches = append(n.Switches, sw)
		n.engine[node] = n.Engine.AddNode(node, sw.Nodes[0], nil)
	}
	return nil
}

func (n *Network) switchConfig(i, node int) (*vswitch.Config, error) {
	t, plan := n.Topology, &n.Plan.Nodes[node]
	c := &vswitch.Config{
		Name: t.Nodes[node].Name, ID: uint16(switchID(i)), MAC: wirefmt.MAC(plan.MAC), Seed: mix(n.cfg.Seed, node),
		Class: vswitch.DefaultClassMaps(), Buffer: n.cfg.Buffer.config(), PFC: n.pfcConfig(),
		MaxFrames: n.Engine.Pool(node).Chunks(),
		// Hosts send everything to their switch.
		NoRedirects: true,
		FDB:         vswitch.FDBConfig{Size: 1024, Ageing: frame.Never / 2},
	}
	n.telemetry(c)
	if n.cfg.OneQueue || slices.Contains(n.cfg.OneQueueAt, c.Name) {
		n.oneQueue(c)
	}
	c.Buffer.Lateness = n.lateness()
	for p := range t.Nodes[node].Links {
		c.Buffer.Size += n.lateBytes(&t.Links[t.Nodes[node].Links[p]])
		port, err := n.portConfig(node, p)
		if err != nil {
			return nil, err
		}
		port.Scheduler.Burst = n.catchUp()
		if n.swOf[t.Peer(node, p).Node] >= 0 && t.Mode == fabric.L3 {
			port.Addresses = plan.Ports[p][:1] // IPv4
		}
		c.Ports = append(c.Ports, port)
	}
	n.forwarding(c, node)
	if len(n.cfg.Wholes) > 0 {
		c.Loopbacks = plan.Loopback // by which others know it
	}
	return c, n.wholes(c, func(*vswitch.Feature) bool { return true })
}

func (b *Buffer) config() vswitch.BufferConfig {
	return vswitch.BufferConfig{Size: b.size(), Alpha: b.alpha(), QueueLimit: b.QueueLimit, IngressLimit: b.IngressLimit,
		LosslessAlpha: b.LosslessAlpha, XOFF: b.XOFF, XONOffset: b.XONOffset, Headroom: b.Headroom, GroupReserve: b.GroupReserve, AllowLoss: b.AllowLoss}
}

func (n *Network) pfcConfig() vswitch.PFCConfig {
	if !n.cfg.PFC.On {
		return vswitch.PFCConfig{}
	}
	return vswitch.PFCConfig{Mode: pfc.PFC, Classes: n.lossless(), Quanta: n.cfg.PFC.Quanta, Response: n.cfg.PFC.Response, ErrDisable: n.cfg.PFC.ErrDisable,
		Log: vswitch.PauseLog{Keep: n.cfg.PauseLog}}
}

// lossless is the bitmap of the classes under flow control.
func (n *Network) lossless() uint8 {
	if n.cfg.PFC.Classes != 0 {
		return n.cfg.PFC.Classes
	}
	return 1 << n.cfg.Host.Class
}

func (n *Network) portConfig(node, p int) (vswitch.PortConfig, error) {
	t := n.Topology
	l := &t.Links[t.Nodes[node].Links[p]]
	c := vswitch.PortConfig{
		Name: t.Nodes[t.Peer(node, p).Node].Name, Enabled: true, MTU: n.mtu(l),
		Scheduler:  scheduler.PortConfig{Rate: l.Rate, Overhead: n.cfg.Overhead, WholeNs: n.cfg.WholeNs, PushOut: n.cfg.PushOut},
		CableDelay: frame.Time(l.Delay), Trust: vswitch.TrustDSCP, LearnDisabled: true, Edge: t.Nodes[t.Peer(node, p).Node].Kind == fabric.Host,
	}
	for class := range c.Scheduler.Queues {
		q := &c.Scheduler.Queues[class]
		q.Order, q.Rank, q.Admission, q.Inversions = n.cfg.Queue.Order, n.cfg.Queue.Rank, n.cfg.Queue.Admission, n.cfg.Queue.Inversions
		if n.cfg.PFC.On && n.lossless()>>class&1 != 0 {
			q.Admission = nil
			if scheduler.Drops(q.Order) {
				q.Order = nil
			}
		}
		q.Weight = n.cfg.Weights[class]
		q.ECN = n.cfg.ECN.at(l.Rate, class)
		if n.cfg.VOQ {
			q.Order = orders.VOQ{}
		}
	}
	var err error
	if c.Options, err = n.cfg.options(l.Rate, n.hostOf[t.Peer(node, p).Node] >= 0); err != nil {
		return c, fmt.Errorf("switch %s, port to %s: %w", t.Nodes[node].Name, c.Name, err)
	}
	b := &n.cfg.Buffer
	if b.HeadroomDelays != 0 {
		c.Headroom = max(1, uint32(float64(l.Rate)/8*l.Delay.Seconds()*b.HeadroomDelays))
	}
	if c.Headroom == 0 && b.Headroom != 0 && n.lateness() > 0 && !b.AllowLoss {
		c.Headroom = b.Headroom + uint32(late(l, n.lateness()))
	}
	if b.ScaleAlpha {
		c.LosslessAlpha = b.scaled(l.Rate, n.nicRate())
	}
	return c, nil
}

// lateBytes is by how much a port's lossless classes need more headroom than on
// exact nodes. The buffer is larger by as much, so that thresholds stay.
func (n *Network) lateBytes(l *fabric.Link) uint64 {
	if !n.cfg.PFC.On {
		return 0
	}
	return late(l, n.lateness()) * uint64(bits.OnesCount8(n.lossless()))
}

// late returns the bytes that a link carries in t.
func late(l *fabric.Link, t frame.Time) uint64 { return uint64(float64(l.Rate) / 8 * t.Seconds()) }

// mtu is the largest packet after the Ethernet header of a link.
func (n *Network) mtu(l *fabric.Link) int {
	need := n.Derived.MTU - wirefmt.EthernetLen
	if n.cfg.MTU != 0 {
		return n.cfg.MTU
	}
	return max(l.MTU, need)
}

// nicRate is the rate of the first host's link: the unit of what scales with
// the rate of a port.
func (n *Network) nicRate() uint64 {
	return n.Topology.Links[n.Topology.Nodes[n.hostNode[0]].Links[0]].Rate
}

// scaled is the alpha of a port of the given rate.
func (b *Buffer) scaled(rate, nic uint64) float64 {
	alpha := b.LosslessAlpha
	if alpha == 0 {
		alpha = 1.0 / 8
	}
	if rate <= nic {
		return alpha
	}
	// Doublings, rounded up: what halving the rate until it is not above takes.
	return min(1, alpha*float64(uint64(1)<<bits.Len64((rate-1)/nic)))
}

// at are the marking thresholds of a port.
func (e *ECN) at(rate uint64, class int) scheduler.ECN {
	if !e.On || e.Classes != 0 && e.Classes>>class&1 == 0 {
		return scheduler.ECN{}
	}
	scale := 1.0
	if e.At != 0 {
		scale = float64(rate) / float64(e.At)
	}
	if e.PI.Ref > 0 {
		law := e.PI
		law.Ref = uint32(float64(law.Ref) * scale)
		return scheduler.ECN{PI: law}
	}
	return scheduler.ECN{KMin: uint32(float64(e.KMin) * scale), KMax: uint32(float64(e.KMax) * scale), PMax: e.PMax}
}

// forwarding enters everything that a live switch would learn or resolve.
func (n *Network) forwarding(c *vswitch.Config, node int) {
	if n.Topology.Mode == fabric.L2 {
		n.bridged(c, node)
		return
	}
	plan := &n.Plan.Nodes[node]
	c.Paths = n.pathsConfig()
	if len(plan.Address) > 0 {
		c.VLANs = []vswitch.VLANConfig{{ID: hostVLAN, Name: "hosts", Addresses: plan.Address[:1]}}
	}
	for p := range n.Topology.Nodes[node].Links {
		peer := n.Topology.Peer(node, p)
		far := &n.Plan.Nodes[peer.Node]
		if h := n.hostOf[peer.Node]; h >= 0 {
			c.Neighbors = append(c.Neighbors, vswitch.StaticNeighbor{Addr: n.addrs[h], MAC: wirefmt.MAC(far.MAC)})
			c.FDB.Static = append(c.FDB.Static, vswitch.StaticMAC{VLAN: hostVLAN, MAC: wirefmt.MAC(far.MAC), Port: uint16(p)})
			continue
		}
		c.Neighbors = append(c.Neighbors, vswitch.StaticNeighbor{Addr: far.Ports[peer.Port][0].Addr(), MAC: wirefmt.MAC(far.MAC)})
	}
	for _, r := range plan.Routes {
		if !r.Prefix.Addr().Is4() {
			continue
		}
		route := vswitch.Route{Prefix: r.Prefix}
		weight := n.weights(node, r.Prefix)
		for i, via := range r.Via {
			hop := vswitch.NextHop{Via: via}
			if weight != nil {
				hop.Weight = weight(r.Ports[i])
			}
			route.NextHops = append(route.NextHops, hop)
		}
		c.Routes = append(c.Routes, route)
	}
}

// bridged enters the port towards every host of a tree of switches.
func (n *Network) bridged(c *vswitch.Config, node int) {
	t := n.Topology
	for _, h := range n.hostNode {
		at := t.Peer(h, 0)
		port := at.Port
		if at.Node != node {
			d := n.ways.dist[at.Node]
			for p := range t.Nodes[node].Links {
				if m := t.Peer(node, p).Node; t.Nodes[m].Kind == fabric.Switch && d[m] == d[node]-1 {
					port = p
				}
			}
		}
		c.FDB.Static = append(c.FDB.Static, vswitch.StaticMAC{VLAN: hostVLAN, MAC: wirefmt.MAC(n.Plan.Nodes[h].MAC), Port: uint16(port)})
	}
	c.FDB.Size = max(1024, 4*len(n.hostNode))
}
