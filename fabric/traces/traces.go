// Package traces says what became of packets, from the copies that switches made of
// them (package mirror; Everflow): it knows the network that they travelled.
package traces

import (
	"net/netip"
	"slices"

	"gswitch/fabric"
	"gswitch/frame"
	"gswitch/mirror"
	"gswitch/wire"
)

// mostOpen bounds the memory of packets whose traces are not whole yet.
const mostOpen = 1 << 17

// Book collects copies and makes traces of them. Traces of packets that nothing
// more came of for a second are whole.
type Book struct {
	net    *network
	traces *mirror.Traces
	Done   []*mirror.Trace // whole, by when they became so
	Pauses []Pause
	Copies uint64
	Open   int    // packets that may not be at their end yet, and are not among those
	Other  uint64 // frames that are no copies, or of no IPv4 packet
	Cut    uint64 // copies that end within telemetry, and are in no trace with others of their packet
	// Lost is how many copies the numbers of those that came show to be missing.
	Lost    uint64
	numbers mirror.Numbers
	first   frame.Time // when the first copy came
}

// Pause is a pause frame that a switch saw, or sent.
type Pause struct {
	At      frame.Time
	Switch  string
	Port    string // the neighbour there
	Sent    bool   // by the switch
	Classes uint8  // that are paused
	Resumed uint8  // that are not any more
}

// New returns a book of a network. With a nil plan nothing is known about the network,
// and the missing node at the end of a trace cannot be named.
func New(plan *fabric.Plan) *Book {
	b := &Book{net: newNetwork(plan)}
	b.traces = mirror.NewTraces(b.net, mostOpen)
	return b
}

// Idle has traces be whole when nothing more came of their packets for so long, in place
// of mirror.IdleTime.
func (b *Book) Idle(d frame.Time) { b.traces.Idle = d }

// Add takes a frame that came at an instant, and reports whether it is a copy.
func (b *Book) Add(now frame.Time, data []byte) bool {
	b.Advance(now)
	c, ok := mirror.Unwrap(data)
	if !ok {
		b.Other++
		return false
	}
	if b.Copies++; b.Copies == 1 {
		b.first = now
	}
	b.numbers.Add(&c)
	b.Lost = b.numbers.Missing
	if k, h, ok := c.Hop(); ok {
		if h.Cut {
			b.Cut++
		}
		b.traces.Add(now, k, h)
	} else if !b.pause(now, &c) {
		b.Other++
	}
	return true
}

// Finish makes all traces whole. Copies of the last packets may be on their way
// still: those that would be lost, and of which a copy came in the last tenth of the
// time since the first copy, or of a second, are not judged.
func (b *Book) Finish(now frame.Time) {
	b.Advance(now)
	sure := now - min(mirror.IdleTime, (now-b.first)/10)
	for _, t := range b.traces.Advance(now + 2*mirror.IdleTime) {
		if t.Lost && t.Last > sure {
			b.Open++
			continue
		}
		b.Done = append(b.Done, t)
	}
}

// Advance makes the traces whole that nothing more came of for long enough.
func (b *Book) Advance(now frame.Time) { b.Done = append(b.Done, b.traces.Advance(now)...) }

// mostNewest is how many traces Newest looks through.
const mostNewest = 4096

// Newest returns what is known of the packets of which copies came last, the newest
// first, most of them at most, and half as many that arrived: of one that arrived, was
// dropped or looped at once, of one that is seen no more when no copy came of it for
// as long as Finish would want.
func (b *Book) Newest(now frame.Time, most int) (v []Verdict) {
	idle := min(mirror.IdleTime, (now-b.first)/10)
	arrived, looked := 0, 0
	note := func(t *mirror.Trace) bool {
		if x := b.Verdict(t); x.Kind != Delivered {
			v = append(v, x)
		} else if arrived < most/2 {
			v = append(v, x)
			arrived++
		}
		looked++
		return len(v) < most && looked < mostNewest
	}
	b.traces.Newest(func(t *mirror.Trace) bool {
		if now-t.Last > idle || t.Gaps == 0 && !t.Lost || t.Loop != nil || len(t.Dropped) > 0 {
			return note(t)
		}
		return true
	})
	for i := len(b.Done) - 1; i >= 0 && len(v) < most && looked < mostNewest; i-- {
		note(b.Done[i])
	}
	return v
}

// Choose drops the traces that a filter does not choose (mirror.ParseFilter), in
// which switches are named as in the network.
func (b *Book) Choose(filter string) error {
	f, err := b.Filter(filter)
	if err == nil {
		b.Done = slices.DeleteFunc(b.Done, func(t *mirror.Trace) bool { return !f.Match(t) })
	}
	return err
}

// Filter reads a filter in which switches are named as in the network.
func (b *Book) Filter(text string) (*mirror.Filter, error) {
	return mirror.ParseFilter(text, b.net.addresses)
}

// Hops is how much of traces that are not whole is known, of mirror.MostHops.
func (b *Book) Hops() int { return b.traces.Hops() }

// Early is how many traces were judged before they were whole, for want of memory.
func (b *Book) Early() uint64 { return b.traces.Early }

// pause takes the copy of a pause frame (IEEE 802.3 annex 31D).
func (b *Book) pause(now frame.Time, c *mirror.Copied) bool {
	o := c.Original
	if len(o) < wire.MinFrame || wire.Ethernet(o).EtherType() != wire.EtherTypeMACControl {
		return false
	}
	m := wire.MACControl(o)
	p := Pause{At: now, Switch: b.net.name(c.Switch), Port: b.net.neighbour(c.Switch, c.Info.Port), Sent: c.Info.Egress}
	if c.Info.At != 0 {
		p.At = c.Info.At
	}
	switch m.Opcode() {
	case wire.OpPFC:
		for i := range 8 {
			if m.Enabled()>>i&1 == 0 {
				continue
			}
			if m.Quanta(i) > 0 {
				p.Classes |= 1 << i
			} else {
				p.Resumed |= 1 << i
			}
		}
	case wire.OpPause:
		if m.PauseQuanta() > 0 {
			p.Classes = 0xff
		} else {
			p.Resumed = 0xff
		}
	default:
		return false
	}
	b.Pauses = append(b.Pauses, p)
	return true
}

// network is what a plan says of switches.
type network struct {
	plan *fabric.Plan
	node map[netip.Addr]int // of switches, by their addresses
	mac  map[wire.MAC]int   // by their first five bytes
}

func newNetwork(plan *fabric.Plan) *network {
	n := &network{plan: plan, node: map[netip.Addr]int{}, mac: map[wire.MAC]int{}}
	if plan == nil {
		return n
	}
	for _, s := range plan.Topology.Switches() {
		p := &plan.Nodes[s]
		n.mac[base(wire.MAC(p.MAC))] = s
		for _, a := range p.Loopback {
			n.node[a] = s
		}
		for _, a := range p.Address {
			n.node[a.Addr()] = s
		}
		for _, port := range p.Ports {
			for _, a := range port {
				n.node[a.Addr()] = s
			}
		}
	}
	return n
}

// base is the address of a switch without the byte that its ports have.
func base(m wire.MAC) wire.MAC {
	m[5] = 0
	return m
}

// Last implements mirror.Network.
func (n *network) Last(s netip.Addr, dst [4]byte) bool {
	node, known := n.node[s]
	return !known || n.home(node, netip.AddrFrom4(dst))
}

// home reports whether a switch hands packets to an address to a host, or keeps
// them.
func (n *network) home(node int, dst netip.Addr) bool {
	for _, a := range n.plan.Nodes[node].Address {
		if a.Contains(dst) {
			return true
		}
	}
	at, own := n.node[dst]
	return own && at == node
}

// Station implements mirror.Network.
func (n *network) Station(m wire.MAC) bool {
	_, ok := n.mac[base(m)]
	return ok
}

// addresses are those of a switch that has a name.
func (n *network) addresses(name string) (v []netip.Addr) {
	for a, node := range n.node {
		if a.Is4() && n.plan.Topology.Nodes[node].Name == name {
			v = append(v, a)
		}
	}
	return v
}

// linked reports whether two addresses are of switches with a link between them. Copies
// that are made up say anything: there are no more links than the network has.
func (n *network) linked(a, b netip.Addr) bool {
	from, ok := n.node[a]
	to, known := n.node[b]
	if !ok || !known {
		return false
	}
	for port := range n.plan.Topology.Nodes[from].Links {
		if n.plan.Topology.Peer(from, port).Node == to {
			return true
		}
	}
	return false
}

// name is the name of a switch, or its address.
func (n *network) name(a netip.Addr) string {
	if node, ok := n.node[a]; ok {
		return n.plan.Topology.Nodes[node].Name
	}
	return a.String()
}

// neighbour names who is behind a port of a switch.
func (n *network) neighbour(sw netip.Addr, port uint16) string {
	node, ok := n.node[sw]
	if !ok || int(port) >= len(n.plan.Topology.Nodes[node].Links) {
		return ""
	}
	return n.plan.Topology.Nodes[n.plan.Topology.Peer(node, int(port)).Node].Name
}

// next names who may have been the hop behind a switch for an address.
func (n *network) next(sw netip.Addr, dst [4]byte) (names []string) {
	node, ok := n.node[sw]
	if !ok {
		return nil
	}
	addr := netip.AddrFrom4(dst)
	best := -1
	for _, r := range n.plan.Nodes[node].Routes {
		if !r.Prefix.Contains(addr) || r.Prefix.Bits() <= best {
			continue
		}
		best, names = r.Prefix.Bits(), nil
		for _, port := range r.Ports {
			names = append(names, n.plan.Topology.Nodes[n.plan.Topology.Peer(node, port).Node].Name)
		}
	}
	return names
}

// flow is a packet's connection, for people.
func flow(k *mirror.Key) string {
	proto := map[uint8]string{wire.ProtoTCP: "tcp", wire.ProtoUDP: "udp", wire.ProtoICMP: "icmp"}[k.Proto]
	src, dst := netip.AddrFrom4(k.Src), netip.AddrFrom4(k.Dst)
	if k.SrcPort == 0 && k.DstPort == 0 {
		return proto + " " + src.String() + " > " + dst.String()
	}
	return proto + " " + netip.AddrPortFrom(src, k.SrcPort).String() + " > " + netip.AddrPortFrom(dst, k.DstPort).String()
}
