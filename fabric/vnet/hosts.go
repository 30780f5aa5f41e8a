package vnet

import (
	"fmt"

	"gswitch/fabric"
	"gswitch/frame"
	"gswitch/hostnic"
	"gswitch/tcp/endpoint"
	wirefmt "gswitch/wire"
)

func (n *Network) addHosts() error {
	for i, node := range n.hostNode {
		c := n.hostConfig(node)
		if n.cfg.AdjustHost != nil {
			n.cfg.AdjustHost(c.Name, c)
		}
		if options := n.cfg.Host.Options; options != nil {
			var err error
			if c.Options, err = options(c); err != nil {
				return fmt.Errorf("virtual network %s: host %s: %w", n.Topology.Name, c.Name, err)
			}
		}
		if n.cfg.Streams.On {
			c.Options = c.Options.With(endpoint.Name, n.streamOptions(node))
		}
		nic, err := hostnic.New(c, n.Engine.Pool(node))
		if err != nil {
			return fmt.Errorf("virtual network %s: %w", n.Topology.Name, err)
		}
		n.Hosts = append(n.Hosts, nic)
		if n.cfg.Streams.On {
			n.stacks = append(n.stacks, endpoint.Of(nic))
			n.flows.streams = append(n.flows.streams, map[uint32]uint32{})
		}
		n.engine[node] = n.Engine.AddNode(node, n.wrapped(node, n.stepped(nic, node)), func(now frame.Time) {
			// First: a completion may close what a round-trip time is of.
			if nic.RTTs() > 0 {
				n.times(now, i)
			}
			if nic.Completed() > 0 {
				n.collect(now, i)
			}
			if n.stacks != nil && n.stacks[i].Completed() > 0 {
				n.collectTCP(now, i)
			}
		})
	}
	return nil
}

// catchUp is by how much links make good for workers that come late: in real
// time each wake-up is some microseconds late, and what a link did not carry
// meanwhile would be lost to it for good, frame after frame. Nobody is later
// than a round trip in a run that is of use, and a link that made good for
// more would send it all at once.
func (n *Network) catchUp() frame.Time {
	if n.Engine == nil || n.Engine.Virtual() { // nil: a configuration is only checked
		return 0
	}
	return n.Derived.BaseRTT
}

// lateness is how much longer than on exact nodes a pause takes to act on real
// frames, in a run that is of use: the switch notices late that it needs one,
// the neighbour that it came, and meanwhile its link makes good for having been
// late before. Each is a quarter of T at most, or the run is invalid. It is as long
// until a stage acts.
func (n *Network) lateness() frame.Time { return n.catchUp() / 4 * 3 }

func (n *Network) hostConfig(node int) *hostnic.Config {
	t, h := n.Topology, &n.cfg.Host
	l := &t.Links[t.Nodes[node].Links[0]]
	c := &hostnic.Config{
		Name: t.Nodes[node].Name, MAC: wirefmt.MAC(n.Plan.Nodes[node].MAC), Addr: n.Plan.Nodes[node].Address[0].Addr(),
		Rate: l.Rate, Overhead: n.cfg.Overhead, WholeNs: n.cfg.WholeNs, Burst: n.catchUp(),
		Payload: n.cfg.payload(), BaseRTT: n.Derived.BaseRTT,
		AckClass: h.AckClass.number(), AckPauseClass: h.AckPauseClass.number(),
		Weights:    n.cfg.Weights,
		CableDelay: frame.Time(l.Delay),
		Virtual:    n.Engine.Virtual(), Sizes: n.cfg.Sizes,
		CNP: h.CNP, Overshoot: h.Overshoot, InOrder: h.InOrder, Turn: h.Turn, First: h.First, MarkAbove: h.MarkAbove, QuenchAfter: h.QuenchAfter, NoticeDelay: h.NoticeDelay, Receive: h.Receive,
		RTTNoise: h.RTTNoise, PaceJitter: h.PaceJitter, RTTSamples: n.cfg.RTTs,
		Seed: mix(n.cfg.Seed, node),
	}
	for class := range c.DSCP {
		c.DSCP[class] = uint8(class * 8)
	}
	if n.cfg.PFC.On {
		c.PFC, c.PFCClasses, c.PFCStages, c.PFCResponse = true, n.lossless(), n.cfg.stages(), frame.Time(n.cfg.PFC.Response)
	}
	if t.Mode == fabric.L3 {
		c.Gateway = wirefmt.MAC(n.Plan.Nodes[t.Peer(node, 0).Node].MAC)
	}
	return c
}

// remoteMAC is the address that frames of host src for host dst are sent to:
// the other host's where both are in one subnet, else zero for the gateway.
func (n *Network) remoteMAC(src, dst int) (mac wirefmt.MAC) {
	a, b := n.hostNode[src], n.hostNode[dst]
	if n.Topology.Mode == fabric.L2 || n.Topology.Peer(a, 0).Node == n.Topology.Peer(b, 0).Node {
		return wirefmt.MAC(n.Plan.Nodes[b].MAC)
	}
	return mac
}
