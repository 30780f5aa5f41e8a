package vswitch

import (
	"fmt"
	"math/bits"
	"net/netip"
	"slices"

	"gswitch/frame"
	"gswitch/wire"
)

// MaxPorts is how many ports a switch can have.
const MaxPorts = 256

// portSet is a set of ports.
type portSet [MaxPorts / 64]uint64

func (s *portSet) add(p uint16)      { s[p/64] |= 1 << (p % 64) }
func (s *portSet) remove(p uint16)   { s[p/64] &^= 1 << (p % 64) }
func (s *portSet) has(p uint16) bool { return s[p/64]&(1<<(p%64)) != 0 }

// next returns the first port of the set from p on, or -1.
func (s *portSet) next(p int) int {
	for w := p / 64; w < len(s); w++ {
		b := s[w]
		if w == p/64 {
			b &= ^uint64(0) << (p % 64)
		}
		if b != 0 {
			return w*64 + bits.TrailingZeros64(b)
		}
	}
	return -1
}

// defaultVLAN is the VLAN of frames of transparent ports.
const defaultVLAN = 1

// noIface is the interface number of what is not routed.
const noIface uint16 = 0

// Program is the immutable snapshot that the workers forward by. A change
// builds the next one, which shares what did not change.
type Program struct {
	Gen    uint32
	Config *Config

	ports    []portProgram
	isolated portSet
	noFlood  [floodKinds]portSet // ports that frames of the kind are not flooded to
	class    ClassMaps
	vlans    *[4096]vlanProgram
	ifaces   []iface // by number, which outlives a program; those without addrs are gone
	acls     []aclProgram
	rules    int // number of access-list rule ids in use
	meters   []Police

	// tagPCP is the 802.1Q priority that stands for each class on the wire.
	tagPCP [8]uint8

	routing   routing
	anyRouted bool
}

type portProgram struct {
	name     string
	enabled  bool
	learn    bool
	isolated bool
	trust    Trust
	vlanMode VLANMode
	class    uint8
	pvid     uint16
	iface    uint16 // routed interface, or noIface
	acl      uint16 // index in acls + 1, 0 = none
	worker   uint16
	maxFrame uint32 // bytes with Ethernet header, without tags and FCS
	minFrame uint32
	storm    StormControl
	edge     bool        // a host is the neighbour
	twin     uint16      // port of its twin in a kernel, or frame.NoPort
	twinOf   uint16      // the port whose twin it leads to, or frame.NoPort
	allowed  *[64]uint64 // trunk VLANs
}

type vlanProgram struct {
	members portSet
	iface   uint16
	known   bool
}

// iface is a routed interface: on a port, or on a VLAN.
type iface struct {
	name  string
	port  uint16 // frame.NoPort for a VLAN
	vid   uint16 // VLAN of a VLAN interface
	mac   uint64
	mtu   uint32
	addrs []netip.Prefix
	v4    netip.Addr // source of what the switch sends, or invalid
	v6    netip.Addr
	local netip.Addr // link-local IPv6 address
}

// linkLocalOf is the IPv6 link-local address of a MAC (RFC 4291 appendix A).
func linkLocalOf(mac uint64) netip.Addr {
	m := wire.MACFromUint64(mac)
	return netip.AddrFrom16([16]byte{0xfe, 0x80, 8: m[0] ^ 2, m[1], m[2], 0xff, 0xfe, m[3], m[4], m[5]})
}

// compile builds the program of cfg. ids are the switch's.
func compile(cfg *Config, ids *idSets, gen uint32) (*Program, error) {
	p := &Program{Gen: gen, Config: cfg, class: cfg.Class, tagPCP: cfg.Class.tags(), vlans: new([4096]vlanProgram), ifaces: make([]iface, 1)}
	if err := cfg.checkFeatures(); err != nil {
		return nil, fmt.Errorf("switch %s: %w", cfg.Name, err)
	}
	if err := cfg.checkExclusions(); err != nil {
		return nil, fmt.Errorf("switch %s: %w", cfg.Name, err)
	}
	if err := cfg.validateQueues(); err != nil {
		return nil, fmt.Errorf("switch %s: %w", cfg.Name, err)
	}
	if err := cfg.Paths.Validate(); err != nil {
		return nil, fmt.Errorf("switch %s: paths: %w", cfg.Name, err)
	}
	if err := p.compilePorts(cfg, ids.ifaces); err != nil {
		return nil, err
	}
	if err := p.compileACLs(cfg, ids.rules); err != nil {
		return nil, err
	}
	if err := p.compileRoutes(cfg, ids.routes); err != nil {
		return nil, err
	}
	return p, nil
}

// tags inverts PCP: each class leaves with the priority that arrives as the
// class, itself if it can.
func (m *ClassMaps) tags() (pcp [8]uint8) {
	for c := range pcp {
		pcp[c] = uint8(c)
		if m.PCP[c]&7 != uint8(c) {
			if i := slices.Index(m.PCP[:], uint8(c)); i >= 0 {
				pcp[c] = uint8(i)
			}
		}
	}
	return pcp
}

func (p *Program) compilePorts(cfg *Config, ids *idSet) error {
	if len(cfg.Ports) > MaxPorts {
		return fmt.Errorf("switch %s: %d ports, at most %d are possible", cfg.Name, len(cfg.Ports), MaxPorts)
	}
	mac := cfg.MAC.Uint64()
	for _, v := range cfg.VLANs {
		if v.ID < 1 || v.ID > 4094 {
			return fmt.Errorf("switch %s: VLAN %d is not between 1 and 4094", cfg.Name, v.ID)
		}
		p.vlans[v.ID].known = true
	}
	p.vlans[defaultVLAN].known = true

	aclIndex := map[string]int{}
	for i, a := range cfg.ACLs {
		aclIndex[a.Name] = i + 1
	}
	p.ports = make([]portProgram, len(cfg.Ports))
	for i := range cfg.Ports {
		c, q := &cfg.Ports[i], &p.ports[i]
		if c.Name == "" {
			continue
		}
		mtu := c.mtu()
		*q = portProgram{name: c.Name, enabled: c.Enabled, learn: !c.LearnDisabled, isolated: c.Isolated, trust: c.Trust,
			vlanMode: c.VLANMode, class: c.DefaultClass & 7, pvid: c.PVID, worker: uint16(c.Worker), maxFrame: uint32(mtu) + 14, minFrame: uint32(c.MinFrame), storm: c.Storm, edge: c.Edge, twin: frame.NoPort, twinOf: frame.NoPort}
		if c.Isolated {
			p.isolated.add(uint16(i))
		}
		for kind, off := range [floodKinds]bool{c.NoFlood.Broadcast, c.NoFlood.Multicast, c.NoFlood.UnknownUnicast} {
			if off {
				p.noFlood[kind].add(uint16(i))
			}
		}
		if c.ACL != "" {
			if aclIndex[c.ACL] == 0 {
				return fmt.Errorf("switch %s port %s: there is no access list %q", cfg.Name, c.Name, c.ACL)
			}
			q.acl = uint16(aclIndex[c.ACL])
		}
		if c.Twin != nil {
			continue // it is in no VLAN
		}
		if len(c.Addresses) > 0 {
			q.vlanMode = VLANTransparent // it is in no VLAN
			q.iface = p.addIface("port "+c.Name, iface{name: c.Name, port: uint16(i), mac: mac, mtu: uint32(mtu), addrs: c.Addresses}, ids)
			continue
		}
		if err := p.joinVLANs(cfg, uint16(i), c, q); err != nil {
			return err
		}
	}
	if err := p.compileTwins(cfg); err != nil {
		return err
	}
	for _, v := range cfg.VLANs {
		if len(v.Addresses) > 0 {
			p.vlans[v.ID].iface = p.addIface(fmt.Sprint("vlan ", v.ID), iface{name: v.Name, port: frame.NoPort, vid: v.ID, mac: mac, mtu: p.vlanMTU(v.ID), addrs: v.Addresses}, ids)
		}
	}
	for _, s := range cfg.FDB.Static {
		if int(s.Port) >= len(cfg.Ports) || s.VLAN > 4094 {
			return fmt.Errorf("switch %s static address %s: there is no port %d or no VLAN %d", cfg.Name, s.MAC, s.Port, s.VLAN)
		}
	}
	return nil
}

// vlanMTU is the largest packet that every port of a VLAN can send.
func (p *Program) vlanMTU(vid uint16) uint32 {
	members := &p.vlans[vid].members
	const none = ^uint32(0)
	mtu := none
	for i := members.next(0); i >= 0; i = members.next(i + 1) {
		mtu = min(mtu, p.ports[i].maxFrame-wire.EthernetLen)
	}
	if mtu == none {
		return defaultMTU
	}
	return mtu
}

// bridgesLike reports whether what was learned on the port of an older program
// holds for this one.
func (pp *portProgram) bridgesLike(old *portProgram) bool {
	same := pp.name == old.name && pp.vlanMode == old.vlanMode && pp.pvid == old.pvid && pp.iface == old.iface
	if pp.allowed == nil || old.allowed == nil {
		return same && pp.allowed == old.allowed
	}
	return same && *pp.allowed == *old.allowed
}

func (p *Program) joinVLANs(cfg *Config, i uint16, c *PortConfig, q *portProgram) error {
	switch c.VLANMode {
	case VLANTransparent:
		p.vlans[defaultVLAN].members.add(i)
		q.pvid = defaultVLAN
	case VLANAccess:
		if c.PVID > 4094 || !p.vlans[c.PVID].known {
			return fmt.Errorf("switch %s port %s: VLAN %d is not configured", cfg.Name, c.Name, c.PVID)
		}
		p.vlans[c.PVID].members.add(i)
	case VLANTrunk:
		q.allowed = new([64]uint64)
		vids := c.Allowed
		if vids == nil {
			for _, v := range cfg.VLANs {
				vids = append(vids, v.ID)
			}
		}
		if c.PVID != 0 {
			vids = append(vids[:len(vids):len(vids)], c.PVID)
		}
		for _, v := range vids {
			if v > 4094 || !p.vlans[v].known {
				return fmt.Errorf("switch %s port %s: VLAN %d is not configured", cfg.Name, c.Name, v)
			}
			q.allowed[v/64] |= 1 << (v % 64)
			p.vlans[v].members.add(i)
		}
	}
	return nil
}

// addIface enters an interface under the number that its key had before.
func (p *Program) addIface(key string, f iface, ids *idSet) uint16 {
	f.local = linkLocalOf(f.mac)
	for _, a := range f.addrs {
		if a.Addr().Is4() && !f.v4.IsValid() {
			f.v4 = a.Addr()
		}
		if a.Addr().Is6() && !f.v6.IsValid() {
			f.v6 = a.Addr()
		}
	}
	id := ids.get(key)
	for len(p.ifaces) <= int(id) {
		p.ifaces = append(p.ifaces, iface{})
	}
	p.ifaces[id] = f
	p.anyRouted = true
	return uint16(id)
}
