package point

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"gswitch/frame"
	"gswitch/mirror"
	"gswitch/vswitch"
	"gswitch/wire"
)

// Probes let probes be sent into the network at this switch, in documents.
type Probes struct {
	From []netip.Prefix `yaml:"from" need:"yes" doc:"IPv4 networks of those who may send probes (gfabric probe): of IP in IP to an address of the switch that asks for a trace, the outer header is taken off, and what is in it goes on as if it had just come. From others it is dropped."`
}

// ProbeConfig is who may send probes, and to which addresses.
type ProbeConfig struct {
	From []netip.Prefix
	Own  []uint32 // sorted
}

// addProbes adds them to a configuration.
func (c *Config) addProbes(d *Probes, cfg *vswitch.Config) error {
	if d == nil {
		return nil
	}
	fail := func(err error) error { return &vswitch.KeyError{Key: "probes.from", Err: err} }
	if len(d.From) == 0 {
		return fail(errors.New("say which networks probes may come from"))
	}
	for _, p := range d.From {
		if !p.Addr().Is4() {
			return fail(fmt.Errorf("%v is no network of IPv4", p))
		}
	}
	own := func(a netip.Addr) {
		if a.Is4() {
			b := a.As4()
			c.Probes.Own = append(c.Probes.Own, binary.BigEndian.Uint32(b[:]))
		}
	}
	for _, a := range cfg.Loopbacks {
		own(a)
	}
	for i := range cfg.Ports {
		for _, p := range cfg.Ports[i].Addresses {
			own(p.Addr())
		}
	}
	if len(c.Probes.Own) == 0 {
		return fail(errors.New("the switch has no IPv4 address that probes could be sent to; give it a loopback"))
	}
	c.Probes.From = d.From
	slices.Sort(c.Probes.Own)
	return nil
}

// on reports whether probes are taken.
func (c *ProbeConfig) on() bool { return len(c.From) > 0 }

// probeCounts is what was counted of probes that came by one port.
type probeCounts struct {
	sent    uint64 // into the network
	ended   uint64 // that had this switch as their end
	refused uint64 // from others
}

// guide takes headers off the probes among the frames that came by a port. It returns,
// in place, the frames that go on.
func (p *point) guide(port uint16, v []frame.Ref) []frame.Ref {
	on := v[:0]
	for i, r := range v {
		m := p.arena.Meta(r)
		if m.Flags&frame.HasIPv4 != 0 && m.Reason == frame.Keep && p.arena.Bytes(r)[m.L3+1]>>2&mirror.DebugDSCP != 0 && !p.guideOne(port, v[i:i+1], m) {
			continue
		}
		on = append(on, r)
	}
	return on
}

// guideOne takes the headers off a frame that are addressed to this switch, and
// reports whether it goes on. v holds it alone.
func (p *point) guideOne(port uint16, v []frame.Ref, m *frame.Meta) bool {
	c := &p.at(port).probes
	for range mirror.MostVia {
		b := p.arena.Bytes(v[0])
		ip := wire.IPv4(b[m.L3:])
		if _, own := slices.BinarySearch(p.probes.Own, binary.BigEndian.Uint32(ip[16:20])); !own {
			return true
		}
		tunnel := m.Proto == wire.ProtoIPv4 && m.Flags&frame.IsFragment == 0
		end := false
		if !tunnel {
			_, _, end = mirror.ProbeOf(m.Proto, b[min(int(m.L4), len(b)):])
		}
		if !tunnel && !end {
			return true
		}
		src := netip.AddrFrom4([4]byte(ip[12:16]))
		switch {
		case !slices.ContainsFunc(p.probes.From, func(n netip.Prefix) bool { return n.Contains(src) }):
			c.refused++
			p.node.Consume(port, v[0], frame.ACLDrop)
			return false
		case end:
			c.ended++
			p.node.Consume(port, v[0], frame.LocalConsumed)
			return false
		}
		c.sent++
		n, l3 := ip.HeaderLen(), int(m.L3)
		copy(b[n:n+l3], b[:l3])
		p.arena.Pull(v[0], n)
		p.node.Parse(v)
		if m.Reason != frame.Keep || m.Flags&frame.HasIPv4 == 0 {
			return true // the switch drops it, and counts why
		}
	}
	return true
}
