package vnet

import (
	"math/bits"
	"slices"

	"gswitch/fabric"
	"gswitch/fabric/workers"
	"gswitch/frame"
	"gswitch/hostnic"
	"gswitch/sim"
)

// A network in virtual time is divided into parts, each stepped by its own core (package
// sim). The division never changes the result. In a good division all parts have the same
// amount of work, and hosts are in the part of their switch.

// OneCore returns why the network of cfg has a single part in virtual time, however many
// cores there are, or "" if it may have several.
func (c *Config) OneCore() string {
	switch {
	case c.Streams.On:
		return "when a stream of TCP ends is not foreseen"
	case c.RTTs:
		return "each round-trip time is taken down when it is measured"
	case len(c.Listen) > 0:
		return "a service listens to what hosts are sent"
	case c.Host.Receive != (hostnic.ReceiveConfig{}):
		return "hosts take data later than it comes"
	case c.Host.Transport.Recursive != nil:
		return "a message may end by frames of either loop"
	}
	for i := range c.Topology.Links {
		if c.Topology.Links[i].Delay <= 0 {
			return "a link has no delay"
		}
	}
	return ""
}

// hostsEach is the least number of hosts in a part.
const hostsEach = 16

// divide returns the part of each node: as many parts as cores, if the network is large
// enough.
func (n *Network) divide() []int {
	t := n.Topology
	part := make([]int, len(t.Nodes))
	cores := min(n.cfg.Cores, len(t.Switches()))
	if n.cfg.Part == nil { // in a smaller part, the work of a window costs less than starting it
		cores = min(cores, len(n.hostNode)/hostsEach)
	}
	if cores <= 1 || n.cfg.OneCore() != "" {
		return part
	}
	if n.cfg.Part != nil {
		for i := range part {
			part[i] = n.cfg.Part(i) % cores
		}
		return part
	}
	balance(t, part, cores)
	return part
}

// balance divides a topology. Switches with hosts are split, in their order, which is by
// pod, into shares of equal work. Each switch above them goes to the part with the least
// work, preferring its neighbours' parts.
func balance(t *fabric.Topology, part []int, parts int) {
	work := make([]uint64, len(t.Nodes)) // of a switch with its hosts, by the rates of their links
	var edge, above []int
	var total uint64
	for _, s := range t.Switches() {
		hosts := false
		for _, l := range t.Nodes[s].Links {
			rate := max(t.Links[l].Rate, 1)
			work[s] += rate
			if o := other(t, l, s); t.Nodes[o].Kind == fabric.Host {
				hosts = true
				work[s] += 2 * rate // a port sends and receives, and a NIC does more per frame than a switch
			}
		}
		total += work[s]
		if hosts {
			edge = append(edge, s)
		} else {
			above = append(above, s)
		}
	}
	have := make([]uint64, parts)
	var edges, done uint64
	for _, s := range edge {
		edges += work[s]
	}
	for _, s := range edge {
		hi, lo := bits.Mul64(done+work[s]/2, uint64(parts))
		at, _ := bits.Div64(hi, lo, max(edges, 1))
		p := min(int(at), parts-1)
		done += work[s]
		part[s] = p
		have[p] += work[s]
		for _, l := range t.Nodes[s].Links {
			if o := other(t, l, s); t.Nodes[o].Kind == fabric.Host {
				part[o] = p
			}
		}
	}
	placed := slices.Clone(edge)
	for _, s := range above {
		links := make([]uint64, parts) // towards each part
		for _, l := range t.Nodes[s].Links {
			if o := other(t, l, s); slices.Contains(placed, o) {
				links[part[o]] += max(t.Links[l].Rate, 1)
			}
		}
		best := 0
		for p := range parts {
			// Excess work of a part weighs as much as links that are cut.
			if cost(have[p], links[p]) < cost(have[best], links[best]) {
				best = p
			}
		}
		part[s] = best
		have[best] += work[s]
		placed = append(placed, s)
	}
}

func cost(have, links uint64) int64 { return int64(have>>1) - int64(links>>1) }

func other(t *fabric.Topology, link, node int) int {
	l := &t.Links[link]
	if l.A.Node == node {
		return l.B.Node
	}
	return l.A.Node
}

// virtual is sim.Engine. Callbacks that belong to no node run on one thread at a time.
type virtual struct {
	*sim.Engine
	part []int // of each node of the topology
}

// Virtual makes an engine of virtual time.
func Virtual(spec *EngineSpec) (Engine, error) {
	parts := 1
	for _, p := range spec.Parts {
		parts = max(parts, p+1)
	}
	return virtual{sim.New(sim.Config{Chunks: spec.Chunks, Headers: spec.Headers, Seed: spec.Seed, Parts: parts, Workers: &workers.Group{}}), spec.Parts}, nil
}

func (virtual) Virtual() bool               { return true }
func (v virtual) Pool(node int) *frame.Pool { return v.PoolOf(v.part[node]) }
func (virtual) Apart(int) bool              { return false }
func (virtual) Halt() error                 { return nil }
func (virtual) Close() error                { return nil }
func (v virtual) EveryOn(_ int, first, period frame.Time, fn func(now frame.Time)) {
	v.Every(first, period, fn)
}

func (v virtual) AddNode(node int, n frame.Stepper, after func(now frame.Time)) int {
	i := v.Engine.AddNode(n, after)
	f, _ := n.(sim.Foresight) // hosts only: switches have no such function
	v.Assign(i, v.part[node], f)
	return i
}
