package point

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"

	"gswitch/frame"
	"gswitch/mirror"
	"gswitch/vswitch"
	"gswitch/wire"
)

// maxGroups is how many virtual addresses a switch divides the copies of.
const maxGroups = 4

// Group is analyzers that share the copies to a virtual address (the reshuffler of
// section 4.2 of the paper).
type Group struct {
	VIP  netip.Addr
	To   []netip.Addr
	From []netip.Prefix // from where copies may be sent there; none: from anywhere
}

// Reshuffle is a group in documents.
type Reshuffle struct {
	VIP  netip.Addr     `yaml:"vip" need:"yes" doc:"IPv4 address that copies are sent to. Other switches need a route for it to this one, or divide the copies themselves."`
	To   []netip.Addr   `yaml:"to" need:"yes" doc:"IPv4 addresses of the analyzers, 64 at most, in any order. All copies of a packet go to one of them. Copies for one that is taken out go to the others, and no other copy goes elsewhere."`
	From []netip.Prefix `yaml:"from" doc:"Networks that copies may come from: the loopbacks of the switches. What comes from elsewhere is dropped. All may send if left out."`
}

// group returns what a switch works with.
func (d *Reshuffle) group() (Group, error) {
	g := Group{d.VIP, d.To, d.From}
	if !d.VIP.Is4() {
		return g, fmt.Errorf("%v is no IPv4 address", d.VIP)
	}
	if slices.Contains(d.To, d.VIP) {
		return g, fmt.Errorf("%v is the address that the copies come to; analyzers have others", d.VIP)
	}
	_, err := mirror.NewAnalyzers(d.To)
	return g, err
}

// group is a Group at work.
type group struct {
	Group
	vip   uint32
	share *mirror.Analyzers
}

func newGroups(c []Group) []group {
	v := make([]group, len(c))
	for i, g := range c {
		a := g.VIP.As4()
		v[i] = group{Group: g, vip: binary.BigEndian.Uint32(a[:])}
		v[i].share, _ = mirror.NewAnalyzers(g.To) // check has tried it
	}
	return v
}

// groupOf is the place of the group of an address, -1 if there is none.
func (p *point) groupOf(a netip.Addr) int {
	return slices.IndexFunc(p.groups, func(g group) bool { return g.VIP == a })
}

// reshuffle sends the copies among the frames that came by a port to their
// analyzers. It returns, in place, the frames that go on.
func (p *point) reshuffle(port uint16, v []frame.Ref) []frame.Ref {
	on := v[:0]
	for i, r := range v {
		m := p.arena.Meta(r)
		if m.Flags&frame.HasIPv4 != 0 && m.Reason == frame.Keep {
			b, l3 := p.arena.Bytes(r), int(m.L3)
			dst := binary.BigEndian.Uint32(b[l3+16:])
			for k := range p.groups {
				if g := &p.groups[k]; g.vip == dst && !p.divert(g, &p.at(port).groups[k], b[l3-wire.EthernetLen:]) {
					p.node.Consume(port, r, frame.ACLDrop)
					r = frame.Nil
					break
				} else if g.vip == dst {
					p.node.Parse(v[i : i+1])
					break
				}
			}
		}
		if r != frame.Nil {
			on = append(on, r)
		}
	}
	return on
}

// divert gives a copy, of which b begins with the Ethernet header before its IP header,
// the address of its analyzer. False: it is not from where copies come from. What is
// no copy is left as it is.
func (p *point) divert(g *group, c *groupCounts, b []byte) bool {
	ip := wire.IPv4(b[wire.EthernetLen:])
	src := netip.AddrFrom4([4]byte(ip[12:16]))
	if len(g.From) > 0 && !slices.ContainsFunc(g.From, func(n netip.Prefix) bool { return n.Contains(src) }) {
		c.refused++
		return false
	}
	copied, ok := mirror.Unwrap(b)
	if !ok {
		c.other++
		return true
	}
	a := g.share.Of(&copied)
	c.diverted[a]++
	to := g.To[a].As4()
	ip.SetChecksum(wire.PatchChecksum32(ip.Checksum(), g.vip, binary.BigEndian.Uint32(to[:])))
	copy(ip[16:20], to[:])
	return true
}

// groupCounts is what was counted of the copies to a virtual address that came by one
// port.
type groupCounts struct {
	diverted       [mirror.MaxAnalyzers]uint64
	other, refused uint64
}

// keepGroups lets groups count on that there were before.
func keepGroups(to, from *[maxGroups]groupCounts, now, before []group) {
	for i := range now {
		k := slices.IndexFunc(before, func(g group) bool { return g.VIP == now[i].VIP })
		if k < 0 {
			continue
		}
		to[i].other, to[i].refused = from[k].other, from[k].refused
		for a, addr := range now[i].To {
			if old := slices.Index(before[k].To, addr); old >= 0 {
				to[i].diverted[a] = from[k].diverted[old]
			}
		}
	}
}

// addReshuffle adds the groups of a document to a configuration.
func (c *Config) addReshuffle(v []Reshuffle) error {
	fail := func(i int, err error) error {
		return &vswitch.KeyError{Key: fmt.Sprintf("reshuffle[%d]", i), Err: err}
	}
	if len(v) > maxGroups {
		return fail(maxGroups, fmt.Errorf("%d addresses: at most %d are possible", len(v), maxGroups))
	}
	for i := range v {
		g, err := v[i].group()
		if err != nil {
			return fail(i, err)
		}
		c.Groups = append(c.Groups, g)
	}
	for i := range c.Sessions {
		s := &c.Sessions[i]
		if s.Wrap.Format == mirror.SFlow && slices.ContainsFunc(c.Groups, func(g Group) bool { return g.VIP == s.Wrap.Dst }) {
			return &vswitch.KeyError{Key: fmt.Sprintf("sessions[%d].to", i), Err: fmt.Errorf("a datagram of sFlow has samples of many packets, and %v divides them among analyzers; say one collector", s.Wrap.Dst)}
		}
	}
	return nil
}
