package vnet

import (
	"fmt"
	"math/bits"
	"slices"
	"strconv"

	"gswitch/buffer"
	"gswitch/config"
	"gswitch/fabric"
	"gswitch/frame"
	inband "gswitch/int"
	intpoint "gswitch/int/point"
	"gswitch/scheduler"
	"gswitch/units"
	"gswitch/vswitch"
	wirefmt "gswitch/wire"
)

// hostVLAN is the VLAN of a switch's hosts.
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
		n.engine[node] = n.Engine.AddNode(node, n.wrapped(node, sw.Nodes[0]), nil)
	}
	return nil
}

// switchConfig returns the configuration of a switch: its document, translated as the
// daemon does it, plus what only networks have.
func (n *Network) switchConfig(i, node int) (*vswitch.Config, error) {
	t, plan := n.Topology, &n.Plan.Nodes[node]
	d := n.document(node)
	d.ID, d.Seed = int(switchID(i)), mix(n.cfg.Seed, node)
	d.MAC = (*config.MAC)(&plan.MAC)
	if n.cfg.OneQueue || slices.Contains(n.cfg.OneQueueAt, d.Name) {
		n.oneQueue(&d)
	}
	n.forwarding(&d, node)
	if t.Mode == fabric.L3 {
		d.Paths = n.paths()
	}
	if len(n.cfg.Wholes) > 0 {
		d.Loopback = plan.Loopback // others know it by this address
	}
	c, err := n.translate(&d, node)
	if err != nil {
		return nil, err
	}
	c.MaxFrames = n.Engine.Pool(node).Chunks()
	c.Buffer.Lateness, c.Buffer.OwnFrames = n.lateness(), n.cfg.OwnFrames
	n.telemetry(c)
	return c, n.wholes(c, func(*vswitch.Feature) bool { return true })
}

// document returns what a document of gswitch would say about a switch, without its
// identity and tables. Ports are named by number, since several may have the same
// neighbour.
func (n *Network) document(node int) config.Switch {
	d := n.cfg.document()
	d.Name, d.PFC = n.Topology.Nodes[node].Name, n.pfc()
	d.QoS = map[string]config.QoS{}
	for p, l := range n.Topology.Nodes[node].Links {
		c := n.portDocument(node, p)
		d.Ports, d.QoS[c.QoS] = append(d.Ports, c), n.profile(uint64(c.Rate))
		d.Buffer.Size += units.Size(n.lateBytes(&n.Topology.Links[l]))
	}
	return d
}

// document returns what the documents of all switches have in common.
func (c *Config) document() config.Switch {
	no, forever := false, units.Duration(frame.Never/2)
	d := config.Switch{MAC: new(config.MAC), Redirects: &no, // hosts send everything to their switch
		Buffer: c.Buffer.Buffer(), Telemetry: intpoint.Section{INT: c.INT.Mode != inband.None, Stamp: c.INT.Stamp}, FDB: config.FDB{Max: 1024, Ageing: &forever}}
	for class := range 8 {
		d.Classes.PCP, d.Classes.Queue = append(d.Classes.PCP, class), append(d.Classes.Queue, class)
	}
	return d
}

func (n *Network) portDocument(node, p int) config.Port {
	l := &n.Topology.Links[n.Topology.Nodes[node].Links[p]]
	peer := n.Topology.Peer(node, p).Node
	on, no, burst := true, false, units.Duration(n.catchUp())
	c := config.Port{Name: strconv.Itoa(p), QoS: strconv.Itoa(p), Workers: []int{0}, Enabled: &on, MTU: n.mtu(l), Rate: units.Rate(l.Rate),
		Framing: config.Framing{Overhead: "none"}, Burst: &burst, Delay: units.Duration(l.Delay), Trust: "dscp", Learn: &no}
	if n.cfg.Overhead != 0 {
		c.Overhead = "ethernet"
	}
	c.Lossless = n.portLossless(l)
	if n.Topology.Nodes[peer].Kind == fabric.Host {
		c.Faces = "host"
	} else if n.Plan != nil && n.Topology.Mode == fabric.L3 {
		c.Addresses = n.Plan.Nodes[node].Ports[p][:1] // IPv4
	}
	return c
}

// portLossless returns the lossless settings that depend on the link.
func (n *Network) portLossless(l *fabric.Link) *config.PortLossless {
	b, c := &n.cfg.Buffer, new(config.PortLossless)
	switch {
	case b.HeadroomDelays != 0:
		h := uint32(float64(l.Rate) / 8 * l.Delay.Seconds() * b.HeadroomDelays)
		if !b.AllowLoss {
			h += uint32(late(l, n.lateness()))
		}
		c.Headroom = units.Size(max(1, h))
	case b.Headroom != 0 && n.lateness() > 0 && !b.AllowLoss:
		c.Headroom = b.Headroom + units.Size(late(l, n.lateness()))
	}
	if b.ScaleAlpha {
		c.Alpha = scaled(b.LosslessAlpha, l.Rate, n.nicRate())
	}
	return c
}

// profile returns the queue profile of a port of the given rate.
func (n *Network) profile(rate uint64) (p config.QoS) {
	c := &n.cfg
	if c.PushOut != (config.PushOut{}) {
		p.PushOut = &c.PushOut
	}
	for class, weight := range c.Weights {
		q := c.Queue
		q.Queue, q.Weight = class, int(weight)
		if c.PFC.On && n.lossless()>>class&1 != 0 {
			q.Admission, q.Shadow = nil, nil
			if scheduler.Drops(q.Config().Order) {
				q.Order, q.Policy = nil, nil
			}
		}
		if c.VOQ {
			q.Order, q.Policy = &config.Order{Kind: "voq"}, nil
		}
		q.ECN, q.PI = c.ECN.at(rate, class)
		p.Queues = append(p.Queues, q)
	}
	return p
}

func (n *Network) pfc() (d config.PFC) {
	if !n.cfg.PFC.On {
		return d
	}
	for m := n.lossless(); m != 0; m &= m - 1 {
		d.Classes = append(d.Classes, bits.TrailingZeros8(m))
	}
	d.Pausing, d.Log = n.cfg.PFC.Pausing, &n.cfg.PauseLog
	return d
}

// translate turns a switch's document into its configuration and adds what no document
// can say: ports are known by their neighbours; one thread steps the switch, so packet
// memory is no limit and pauses are examined as a whole; and the options of features may
// be computed for each port.
func (n *Network) translate(d *config.Switch, node int) (*vswitch.Config, error) {
	c := d.VSwitch(nil)
	c.Workers, c.ShareOwn, c.Buffer.Chunks, c.PFC.Log.Look = nil, false, false, 0
	for p := range c.Ports {
		if err := n.port(&c.Ports[p], node, p); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// lossless returns the bitmap of the classes under flow control.
func (n *Network) lossless() uint8 {
	if n.cfg.PFC.Classes != 0 {
		return n.cfg.PFC.Classes
	}
	return 1 << n.cfg.Host.Class
}

// port adds to a port what no document can say.
func (n *Network) port(c *vswitch.PortConfig, node, p int) error {
	t := n.Topology
	l := &t.Links[t.Nodes[node].Links[p]]
	c.Name = t.Nodes[t.Peer(node, p).Node].Name
	c.Scheduler.WholeNs = n.cfg.WholeNs
	var err error
	if c.Options, err = n.cfg.options(l.Rate, n.hostOf[t.Peer(node, p).Node] >= 0); err != nil {
		return fmt.Errorf("switch %s, port to %s: %w", t.Nodes[node].Name, c.Name, err)
	}
	return nil
}

// lateBytes returns how much more headroom a port's lossless classes need than on exact
// nodes. The buffer grows by the same amount, so that thresholds stay as they are. Where
// there are input queues their lossless frames wait in them, and they grow instead.
func (n *Network) lateBytes(l *fabric.Link) uint64 {
	if !n.cfg.PFC.On || n.cfg.Buffer.AllowLoss || n.cfg.passage() != nil {
		return 0
	}
	each := late(l, n.lateness())
	if n.cfg.stages() != 0 {
		each *= 3 // the headroom, and twice what comes until a stage acts, over which stages extend
	}
	return each * uint64(bits.OnesCount8(n.lossless()))
}

// late returns the bytes that a link carries in t, as headroom counts them.
func late(l *fabric.Link, t frame.Time) uint64 {
	return buffer.Headroom(buffer.Link{Rate: l.Rate, Response: t}, 0).Response
}

// mtu returns the largest packet of a link, in bytes after the Ethernet header.
func (n *Network) mtu(l *fabric.Link) int {
	if n.cfg.MTU != 0 {
		return n.cfg.MTU
	}
	return max(l.MTU, n.Derived.Longest-wirefmt.EthernetLen)
}

// nicRate returns the rate of the first host's link: the reference for what scales with
// the rate of a port.
func (n *Network) nicRate() uint64 {
	return n.Topology.Links[n.Topology.Nodes[n.hostNode[0]].Links[0]].Rate
}

// scaled returns the alpha of a port of the given rate, 0 = 1/8 at that of the hosts.
func scaled(alpha float64, rate, nic uint64) float64 {
	if alpha == 0 {
		alpha = 1.0 / 8
	}
	if rate <= nic {
		return alpha
	}
	// The number of doublings, rounded up: how often the rate must be halved until it is
	// not above the reference.
	return min(1, alpha*float64(uint64(1)<<bits.Len64((rate-1)/nic)))
}

// at returns the marking of a class at a port, nil for what there is none of.
func (e *ECN) at(rate uint64, class int) (*config.ECN, *config.PI) {
	if !e.On || e.Classes != 0 && e.Classes>>class&1 == 0 {
		return nil, nil
	}
	scale := func(s *units.Size) {
		if e.At != 0 {
			*s = units.Size(float64(*s) * (float64(rate) / float64(e.At)))
		}
	}
	if e.PI != nil {
		law := *e.PI
		scale(&law.Ref)
		return nil, &law
	}
	mark := e.ECN
	scale(&mark.KMin)
	scale(&mark.KMax)
	return &mark, nil
}

// forwarding enters everything that a live switch would learn or resolve.
func (n *Network) forwarding(d *config.Switch, node int) {
	if n.Topology.Mode == fabric.L2 {
		n.bridged(d, node)
		return
	}
	plan := &n.Plan.Nodes[node]
	if len(plan.Address) > 0 {
		d.VLANs = []config.VLAN{{ID: hostVLAN, Name: "hosts", Addresses: plan.Address[:1]}}
	}
	for p := range n.Topology.Nodes[node].Links {
		peer := n.Topology.Peer(node, p)
		far := &n.Plan.Nodes[peer.Node]
		if h := n.hostOf[peer.Node]; h >= 0 {
			d.Neighbors = append(d.Neighbors, config.Neighbor{Address: n.addrs[h], MAC: config.MAC(far.MAC)})
			d.FDB.Static = append(d.FDB.Static, config.StaticMAC{VLAN: hostVLAN, MAC: config.MAC(far.MAC), Port: strconv.Itoa(p)})
			continue
		}
		d.Neighbors = append(d.Neighbors, config.Neighbor{Address: far.Ports[peer.Port][0].Addr(), MAC: config.MAC(far.MAC)})
	}
	for _, r := range plan.Routes {
		if !r.Prefix.Addr().Is4() {
			continue
		}
		route := config.Route{Prefix: r.Prefix}
		weight := n.weights(node, r.Prefix)
		for i, via := range r.Via {
			hop := config.NextHop{Via: via}
			if weight != nil {
				hop.Weight = int(weight(r.Ports[i]))
			}
			route.NextHops = append(route.NextHops, hop)
		}
		d.Routes = append(d.Routes, route)
	}
}

// bridged adds forwarding entries towards every host of a tree of switches.
func (n *Network) bridged(d *config.Switch, node int) {
	t := n.Topology
	for _, h := range n.hostNode {
		at := t.Peer(h, 0)
		port := at.Port
		if at.Node != node {
			far := n.ways.dist[at.Node]
			for p := range t.Nodes[node].Links {
				if m := t.Peer(node, p).Node; t.Nodes[m].Kind == fabric.Switch && far[m] == far[node]-1 {
					port = p
				}
			}
		}
		d.FDB.Static = append(d.FDB.Static, config.StaticMAC{VLAN: hostVLAN, MAC: config.MAC(n.Plan.Nodes[h].MAC), Port: strconv.Itoa(port)})
	}
	d.FDB.Max = max(1024, 4*len(n.hostNode))
}
