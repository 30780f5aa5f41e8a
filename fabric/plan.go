package fabric

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"net/netip"
)

// Plan gives every node of a Topology its addresses and routes. The same
// Topology always has the same Plan.
//
// IPv4 addresses are in 10.0.0.0/8, IPv6 in fd00::/32 (unique local, RFC 4193):
//
//	                     IPv4                      IPv6
//	subnet i of hosts    10.0.0.0/9, /24 each      fd00:0:0:i::/64
//	link j of switches   10.128.0.0/10, /31 each   fd00:0:1:j::/127   (RFC 3021, RFC 6164)
//	loopback of switch k 10.192.0.0/16, /32        fd00:0:2::k
//
// A subnet grows beyond /24 where one switch has more hosts than fit. In mode
// l2 there is one subnet, with an address of each switch at its upper end.
type Plan struct {
	Topology *Topology
	Nodes    []NodePlan // index = node
	Subnets  []Subnet
}

// Subnet is a network of hosts.
type Subnet struct {
	Switch int            // the switch that routes it; -1 in mode l2
	Nets   []netip.Prefix // IPv4, IPv6
}

// NodePlan is what one node is configured with.
type NodePlan struct {
	MAC     MAC            // the host's interface, or the base address of a switch
	Address []netip.Prefix // of a host; of a switch among its hosts (mode l3: their gateway)
	Gateway []netip.Addr   // of a host in mode l3

	Loopback []netip.Addr     // of a switch in mode l3
	Ports    [][]netip.Prefix // of a switch: addresses by port; none on a port that bridges
	Routes   []Route          // of a switch in mode l3
}

// Route is a destination with its equal-cost next hops.
type Route struct {
	Prefix netip.Prefix
	Via    []netip.Addr
	Ports  []int // the port of each next hop
}

// MAC is an Ethernet address.
type MAC [6]byte

func (m MAC) String() string {
	return fmt.Sprintf("%02x:%02x:%02x:%02x:%02x:%02x", m[0], m[1], m[2], m[3], m[4], m[5])
}

var (
	hostSpace     = netip.MustParsePrefix("10.0.0.0/9")
	linkSpace     = netip.MustParsePrefix("10.128.0.0/10")
	loopbackSpace = netip.MustParsePrefix("10.192.0.0/16")
	hostSpace6    = netip.MustParsePrefix("fd00:0:0::/48")
	linkSpace6    = netip.MustParsePrefix("fd00:0:1::/48")
	loopSpace6    = netip.MustParsePrefix("fd00:0:2::/64")
)

// NewPlan makes the address plan of t.
func NewPlan(t *Topology) (*Plan, error) {
	p := &Plan{Topology: t, Nodes: make([]NodePlan, len(t.Nodes))}
	for i := range t.Nodes {
		p.Nodes[i].MAC = nodeMAC(t.Nodes[i].Kind, i)
		if t.Nodes[i].Kind == Switch {
			p.Nodes[i].Ports = make([][]netip.Prefix, len(t.Nodes[i].Links))
		}
	}
	if t.Mode == L2 {
		return p, p.bridged()
	}
	if err := p.routed(); err != nil {
		return nil, err
	}
	p.addRoutes()
	return p, nil
}

// nodeMAC is locally administered; the second byte distinguishes hosts (0) from
// switches (1). A switch leaves the last byte to its ports.
func nodeMAC(k Kind, node int) MAC {
	if k == Host {
		return MAC{0x02, 0x00, 0x00, 0x00, byte(node >> 8), byte(node)}
	}
	return MAC{0x02, 0x01, 0x00, byte(node >> 8), byte(node), 0x00}
}

// bridged puts everything into one subnet: hosts from its lower end, switches
// from its upper end.
func (p *Plan) bridged() error {
	bitsLeft := max(8, bits.Len(uint(len(p.Topology.Nodes)+1)))
	nets, err := subnet(0, bitsLeft)
	if err != nil {
		return err
	}
	p.Subnets = []Subnet{{Switch: -1, Nets: nets}}
	for i, n := range p.Topology.Hosts() {
		p.Nodes[n].Address = within(nets, uint64(i+1))
	}
	for i, n := range p.Topology.Switches() {
		p.Nodes[n].Address = within(nets, uint64(1)<<bitsLeft-2-uint64(i))
	}
	return nil
}

// routed gives each switch with hosts a subnet whose first address is its
// own, each link between switches a point-to-point network, and each switch
// loopbacks.
func (p *Plan) routed() error {
	t := p.Topology
	most := 0
	for _, s := range t.Switches() {
		most = max(most, len(p.hostsOf(s)))
	}
	bitsLeft := max(8, bits.Len(uint(most+2)))
	for k, s := range t.Switches() {
		sw := &p.Nodes[s]
		sw.Loopback = []netip.Addr{offset(loopbackSpace.Addr(), uint64(k+1)), offset(loopSpace6.Addr(), uint64(k+1))}
		hosts := p.hostsOf(s)
		if len(hosts) == 0 {
			continue
		}
		nets, err := subnet(len(p.Subnets), bitsLeft)
		if err != nil {
			return err
		}
		p.Subnets = append(p.Subnets, Subnet{Switch: s, Nets: nets})
		sw.Address = within(nets, 1)
		for i, h := range hosts {
			p.Nodes[h].Address = within(nets, uint64(i+2))
			for _, a := range sw.Address {
				p.Nodes[h].Gateway = append(p.Nodes[h].Gateway, a.Addr())
			}
		}
	}
	if len(t.Switches()) > 1<<16-2 {
		return fmt.Errorf("address plan: %d switches do not fit into %v", len(t.Switches()), loopbackSpace)
	}
	j := uint64(0)
	for i := range t.Links {
		l := &t.Links[i]
		if t.Nodes[l.A.Node].Kind != Switch || t.Nodes[l.B.Node].Kind != Switch {
			continue
		}
		if j >= 1<<16 {
			return fmt.Errorf("address plan: more than %d links between switches do not fit into %v", 1<<16, linkSpace6)
		}
		for side, e := range []End{l.A, l.B} {
			p.Nodes[e.Node].Ports[e.Port] = []netip.Prefix{
				netip.PrefixFrom(offset(linkSpace.Addr(), 2*j+uint64(side)), 31),
				netip.PrefixFrom(offset(net64(linkSpace6, j).Addr(), uint64(side)), 127),
			}
		}
		j++
	}
	return nil
}

// hostsOf returns the hosts of a switch in the order of its ports.
func (p *Plan) hostsOf(s int) []int {
	var v []int
	for port := range p.Topology.Nodes[s].Links {
		if m := p.Topology.Peer(s, port).Node; p.Topology.Nodes[m].Kind == Host {
			v = append(v, m)
		}
	}
	return v
}

// subnet returns the i-th network of hosts with bitsLeft host bits.
func subnet(i, bitsLeft int) ([]netip.Prefix, error) {
	if bitsLeft > 23 || uint64(i+1)<<bitsLeft > 1<<23 || i >= 1<<16 {
		return nil, fmt.Errorf("address plan: %d subnets of /%d do not fit into %v", i+1, 32-bitsLeft, hostSpace)
	}
	return []netip.Prefix{
		netip.PrefixFrom(offset(hostSpace.Addr(), uint64(i)<<bitsLeft), 32-bitsLeft),
		net64(hostSpace6, uint64(i)),
	}, nil
}

// within returns the n-th address of each network, with the network's length.
func within(nets []netip.Prefix, n uint64) []netip.Prefix {
	v := make([]netip.Prefix, len(nets))
	for i, net := range nets {
		v[i] = netip.PrefixFrom(offset(net.Addr(), n), net.Bits())
	}
	return v
}

// offset adds n to the low bits of a.
func offset(a netip.Addr, n uint64) netip.Addr {
	if a.Is4() {
		b := a.As4()
		binary.BigEndian.PutUint32(b[:], binary.BigEndian.Uint32(b[:])+uint32(n))
		return netip.AddrFrom4(b)
	}
	b := a.As16()
	binary.BigEndian.PutUint64(b[8:], binary.BigEndian.Uint64(b[8:])+n)
	return netip.AddrFrom16(b)
}

// net64 returns the i-th /64 of a /48.
func net64(space netip.Prefix, i uint64) netip.Prefix {
	b := space.Addr().As16()
	binary.BigEndian.PutUint16(b[6:], uint16(i))
	return netip.PrefixFrom(netip.AddrFrom16(b), 64)
}
