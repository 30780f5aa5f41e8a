package view

import (
	"maps"
	"slices"

	"gswitch/fabric"
	"gswitch/fabric/vnet"
	"gswitch/frame"
	"gswitch/hostnic"
	"gswitch/vswitch"
)

// Instants looks at nodes at instants that its caller chooses, which ascend: at those of a
// record. Samples are those that one sees live.
type Instants struct {
	s     NetworkSource
	fill  func(now frame.Time, r *raw)
	raw   *raw
	whole *part // of a network
}

// NetworkAt looks at a network.
func NetworkAt(n *vnet.Network, o NetworkOptions) *Instants {
	i := &Instants{s: NetworkSource{n: n, o: o, layout: NewLayout(n.Topology), acked: map[uint64]uint64{}}}
	i.s.layout.Title, i.s.layout.RTT = o.Title, n.Derived.BaseRTT.Seconds()
	i.begin()
	i.s.overheads()
	i.s.each, i.s.see = i.s.addFlow, i.s.addInside
	p := &part{flows: true}
	for node := range n.Topology.Nodes {
		p.nodes = append(p.nodes, node)
	}
	i.raw, i.whole = i.s.newRaw(p), p
	i.fill = func(now frame.Time, r *raw) { i.s.gather(now, p, r) }
	return i
}

// SwitchAt looks at a switch alone: at each of its ports, by number and name, stands
// a neighbour of which nothing is known. rates are those of ports, in bit/s; 0 or none:
// unlimited.
func SwitchAt(name string, node *vswitch.Node, ports map[uint16]string, rates map[string]float64) *Instants {
	l := &Layout{Name: name, Nodes: []Node{{Name: name, Kind: fabric.Switch.String(), Tier: 1}}}
	numbers := slices.Sorted(maps.Keys(ports))
	over := make([]uint64, len(numbers))
	for k, number := range numbers {
		port := ports[number]
		l.Nodes = append(l.Nodes, Node{Name: port, Kind: fabric.Host.String()})
		l.Links = append(l.Links, Link{A: End{0, k}, B: End{k + 1, 0}, Rate: rates[port]})
	}
	i := &Instants{s: NetworkSource{layout: l}}
	i.begin()
	i.raw, i.whole = &raw{ports: make([]rawPort, len(i.s.ends.end))}, &part{nodes: nodesOf(l)}
	i.fill = func(now frame.Time, r *raw) {
		for k, number := range numbers {
			if !node.HasPort(number) { // a configuration took it away
				r.ports[k] = rawPort{}
				continue
			}
			over[k] = uint64(node.Scheduler(number).Config().Overhead)
			r.ports[k].of(now, node, number, over[k], r)
			r.ports[len(numbers)+k] = rawPort{host: true, up: r.ports[k].up}
		}
		self := node.SelfDrops()
		r.drops += losses(&self)
	}
	return i
}

// HostAt looks at a host alone, at whose port the network stands. rate is that of its
// link, in bit/s.
func HostAt(name string, nic *hostnic.NIC, rate float64) *Instants {
	l := &Layout{Name: name, Nodes: []Node{{Name: name, Kind: fabric.Host.String()}, {Name: "network", Kind: fabric.Switch.String(), Tier: 1}},
		Links: []Link{{A: End{0, 0}, B: End{1, 0}, Rate: rate}}}
	i := &Instants{s: NetworkSource{layout: l, acked: map[uint64]uint64{}}}
	i.begin()
	i.s.see = i.s.addInside
	i.raw, i.whole = &raw{ports: make([]rawPort, 2), flows: make([]rawFlow, 0, maxRawFlows)}, &part{flows: true, nodes: nodesOf(l)}
	i.fill = func(now frame.Time, r *raw) {
		r.ports[0].ofHost(now, nic, r)
		r.ports[1] = rawPort{up: true, host: true}
		r.flows = r.flows[:0]
		for qpn := range nic.QPs {
			q, err := nic.QP(qpn)
			if err != nil || q.InFlight == 0 && q.Acked == 0 || len(r.flows) == cap(r.flows) {
				continue
			}
			f := rawFlow{key: uint64(qpn), id: uint64(qpn), dst: 1, rate: q.Rate, window: q.Window, flight: q.InFlight, acked: q.Acked}
			r.flows = append(r.flows, f)
			i.s.flow = &r.flows[len(r.flows)-1]
			q.Inspect(i.s.see)
			if q.InFlight > 0 {
				r.open++
			}
		}
	}
	return i
}

func nodesOf(l *Layout) (nodes []int) {
	for n := range l.Nodes {
		nodes = append(nodes, n)
	}
	return nodes
}

func (i *Instants) begin() {
	s := &i.s
	s.layout.On, s.layout.Scale = "record", 1
	s.ends = newEnds(s.layout)
	s.out, s.prev = make([]Port, len(s.ends.end)), make([]before, len(s.ends.end))
	for k, e := range s.ends.end {
		s.out[k].End = e
	}
}

// Layout is what is looked at. The caller may set its title and length.
func (i *Instants) Layout() *Layout { return i.s.layout }

// Sample returns what the nodes are now, with rates since the sample before. begin is the
// instant from which times count.
func (i *Instants) Sample(now, begin frame.Time) *Sample {
	r := i.raw
	r.at, r.drops, r.open = now, 0, 0
	i.fill(now, r)
	out := &Sample{Run: i.s.o.Run, Time: (now - begin).Seconds(), Flows: []Flow{}, Drops: r.drops, Open: r.open, Ended: r.ended}
	i.s.ports(i.whole, r)
	if i.whole.flows {
		i.s.flows(out, r)
	}
	out.Ports = make([]Port, len(i.s.out))
	for k := range out.Ports {
		out.Ports[k] = i.s.out[k]
		if node := i.s.ends.end[k].Node; i.s.layout.Nodes[node].Kind == fabric.Host.String() && i.s.ends.peer[k] >= 0 {
			out.Ports[k].Up = i.s.out[i.s.ends.peer[k]].Up
		}
	}
	return out
}
