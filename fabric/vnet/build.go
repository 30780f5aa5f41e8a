package vnet

import (
	"errors"
	"fmt"
	"math"
	"net/netip"

	"gswitch/fabric"
	"gswitch/frame"
	"gswitch/hostnic"
	inband "gswitch/int"
	"gswitch/sim"
	"gswitch/tcp/endpoint"
	"gswitch/tcp/stack"
	"gswitch/units"
	"gswitch/vswitch"
)

// Network is a network in virtual time, or on real frames (Config.Engine).
type Network struct {
	Engine   Engine
	Topology *fabric.Topology
	Plan     *fabric.Plan
	Hosts    []*hostnic.NIC
	Switches []*vswitch.Switch
	Derived  Derived

	cfg      Config
	ways     *ways
	hostNode []int // node of the topology by host
	swNode   []int // by switch
	hostOf   []int // host by node, -1 for a switch
	swOf     []int // switch by node, -1 for a host
	engine   []int // number in the engine by node
	links    []sim.LinkID
	addrs    []netip.Addr // by host
	intRates *inband.RateTable
	shared   [][]shared // by switch and port, nil where no other thread steps it

	stacks []*endpoint.Endpoint // by host, nil without Config.Streams
	tap    func(f *Flow, a, b *stack.Options) (stack.Tap, stack.Tap)

	flows   flows
	command func(now frame.Time, node int, c frame.Command) // nil: they are carried out, and nobody notes them
}

// Build makes the network that cfg describes, idle, at time 0.
func Build(cfg *Config) (*Network, error) {
	n := &Network{cfg: *cfg, Topology: cfg.Topology}
	n.cfg.fill()
	if err := n.build(); err != nil {
		if n.Engine != nil {
			err = errors.Join(err, n.Engine.Close())
		}
		return nil, err
	}
	return n, nil
}

func (n *Network) build() error {
	if err := n.check(); err != nil {
		return err
	}
	plan, err := fabric.NewPlan(n.Topology)
	if err != nil {
		return err
	}
	n.Plan = plan
	n.number()
	for _, h := range n.hostNode {
		n.addrs = append(n.addrs, n.Plan.Nodes[h].Address[0].Addr())
	}
	n.sizes()
	if err := n.Derived.scan(n.ways, &n.cfg); err != nil {
		return err
	}
	n.Derived.complete(n.ways, &n.cfg)
	if err := n.Derived.Transport.Validate(); err != nil {
		return err
	}
	if err := n.makeEngine(); err != nil {
		return err
	}
	if err := n.addSwitches(); err != nil {
		return err
	}
	if err := n.addHosts(); err != nil {
		return err
	}
	for i := range n.Topology.Links {
		l := &n.Topology.Links[i]
		n.links = append(n.links, n.Engine.Connect(n.engine[l.A.Node], uint16(l.A.Port), n.engine[l.B.Node], uint16(l.B.Port), sim.Link{Delay: frame.Time(l.Delay)}))
	}
	n.intRates = n.rateTable()
	n.flows.init(n)
	if len(n.Topology.Nodes) >= manyNodes {
		hugePages()
	}
	return nil
}

// sizes works out how long frames are.
func (n *Network) sizes() {
	if n.cfg.INT.Mode != inband.None && n.cfg.INT.Profile == nil {
		p := inband.ProfileFor(n.rates()...)
		n.cfg.INT.Profile = &p
	}
	n.Derived.sizes(&n.cfg, n.Topology.LongestPath())
}

// makeEngine makes what will step the nodes.
func (n *Network) makeEngine() error {
	make := n.cfg.Engine
	if make == nil {
		make = Virtual
	}
	e, err := make(&EngineSpec{Plan: n.Plan, Chunks: n.chunks(), Frame: n.Derived.MTU, Payload: n.cfg.payload(), Headers: n.headers(), Seed: mix(n.cfg.Seed, -1), Parts: n.divide(),
		BaseRTT: n.Derived.BaseRTT, Overhead: n.cfg.Overhead})
	if err != nil {
		return fmt.Errorf("network %s: %w", n.Topology.Name, err)
	}
	n.Engine = e
	if !e.Virtual() && n.cfg.Sizes != (hostnic.Sizes{}) {
		return fmt.Errorf("network %s: hosts.sizes sets lengths of frames that their headers do not have, which is possible in virtual time only: remove it to run on real frames", n.Topology.Name)
	}
	return nil
}

// manyNodes is from when on huge pages pay for what it takes to make them, a
// fifth of a second for 320 hosts: the run of a smaller network stays within
// the caches.
const manyNodes = 128

// check refuses what cannot be meant.
func (n *Network) check() error {
	c := &n.cfg
	switch {
	case c.Topology == nil:
		return fmt.Errorf("virtual network: no topology")
	case c.Payload < 0 || c.Payload > maxPayload:
		return fmt.Errorf("virtual network %s: payload of %d bytes is not from 1 to %d", c.Topology.Name, c.Payload, maxPayload)
	case c.Overhead != 0 && c.Overhead != 24:
		return fmt.Errorf("virtual network %s: link overhead of %d bytes is neither 0 nor 24", c.Topology.Name, c.Overhead)
	case c.ECN.On && c.ECN.PI == nil && (c.ECN.KMax == 0 || c.ECN.KMin > c.ECN.KMax):
		return fmt.Errorf("virtual network %s: ECN kmin %d and kmax %d: give 0 < kmin <= kmax in bytes", c.Topology.Name, c.ECN.KMin, c.ECN.KMax)
	case c.BaseRTT < 0:
		return fmt.Errorf("virtual network %s: base RTT %v is negative", c.Topology.Name, c.BaseRTT.Duration())
	}
	for i := range c.Topology.Links {
		l := &c.Topology.Links[i]
		if l.Rate == 0 {
			return fmt.Errorf("virtual network %s: the link %s - %s has no rate; virtual time needs one", c.Topology.Name, c.Topology.Nodes[l.A.Node].Name, c.Topology.Nodes[l.B.Node].Name)
		}
	}
	return nil
}

// maxPayload leaves room for all headers below the largest packet that a
// switch takes.
const maxPayload = 9000

func (c *Config) payload() int {
	if c.Payload == 0 {
		return 1000
	}
	return c.Payload
}

// frame is a frame of n bytes as links see it.
func (c *Config) frame(n int) wire { return wire{uint64(n) + uint64(c.Overhead), c.WholeNs} }

// fill sets what of the buffer is left out.
func (c *Config) fill() {
	b := &c.Buffer
	if b.Size == 0 {
		b.Size = 12 * units.MiB
	}
	switch {
	case b.Alpha != 0:
	case b.Ingress != 0:
		b.Alpha = 1024 // as good as none
	default:
		b.Alpha = 1
	}
}

// number gives hosts and switches their indices.
func (n *Network) number() {
	t := n.Topology
	n.ways = newWays(t)
	if p := n.cfg.passage(); p != nil {
		n.ways.pass(p)
	}
	n.hostNode, n.swNode = n.ways.hosts, t.Switches()
	n.hostOf, n.swOf, n.engine = fill(len(t.Nodes)), fill(len(t.Nodes)), fill(len(t.Nodes))
	for i, h := range n.hostNode {
		n.hostOf[h] = i
	}
	for i, s := range n.swNode {
		n.swOf[s] = i
	}
}

func fill(n int) []int {
	v := make([]int, n)
	for i := range v {
		v[i] = -1
	}
	return v
}

func (n *Network) rates() (v []uint64) {
	for i := range n.Topology.Links {
		v = append(v, n.Topology.Links[i].Rate)
	}
	return v
}

// headers is the most bytes that stand before the payload of a frame, behind the
// last switch of the longest path.
func (n *Network) headers() int {
	codec := inband.NewCodec(n.cfg.INT.Mode, n.cfg.INT.Profile)
	bytes := dataHeader + codec.FullLen(n.Topology.LongestPath())
	if n.cfg.Streams.On {
		bytes = max(bytes, tcpHeaders)
	}
	return max(bytes, n.cfg.LinkLocal)
}

// chunks is how many frames can be in the network: what all buffers hold of
// full frames, what is on all links, and some for acknowledgements. Few
// networks ever come near it, so there is a bound, which is above what 464
// hosts queue that pause each other in all 24 switches; memory that no frame
// touches is not taken from the machine.
func (n *Network) chunks() int {
	if n.cfg.Chunks != 0 {
		return n.cfg.Chunks
	}
	bytes := float64(n.cfg.Buffer.Size) * float64(len(n.swNode))
	for i := range n.Topology.Links {
		l := &n.Topology.Links[i]
		bytes += float64(2 * float64(l.Rate) / 8 * l.Delay.Seconds())
	}
	want := 2*bytes/float64(n.Derived.MTU) + float64(64*len(n.hostNode))
	return int(math.Min(math.Max(want, 1<<14), 1<<21))
}

// mix makes unrelated seeds of one.
func mix(seed uint64, node int) uint64 {
	r := frame.NewRand(seed ^ uint64(int64(node))<<20)
	return r.Uint64()
}
