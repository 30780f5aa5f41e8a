package copies

import (
	"fmt"
	"net/netip"

	"gswitch/fabric"
	"gswitch/fabric/results"
	"gswitch/fabric/scenario"
	"gswitch/fabric/traces"
	"gswitch/fabric/vnet"
	"gswitch/frame"
	"gswitch/hostnic"
	"gswitch/mirror"
	"gswitch/wire"
)

// probes sends the probes of a scenario, and says what became of them.
type probes []*probeSeries

// probeSeries is one series under way.
type probeSeries struct {
	doc  *scenario.Probe
	is   mirror.Probe
	host int
	sent int
	buf  []byte
}

// probe asks the engine for the probes of a run.
func probe(n *vnet.Network, r *scenario.Run) (out probes, err error) {
	for i := range r.Doc.Probes {
		d := &r.Doc.Probes[i]
		host, ok := n.HostByName(d.From)
		if !ok {
			return nil, fmt.Errorf("probes: there is no host %s", d.From)
		}
		node := func(name string) netip.Addr {
			k, _ := n.Topology.Lookup(name) // the document was checked
			p := &n.Plan.Nodes[k]
			if n.Topology.Nodes[k].Kind == fabric.Switch {
				return p.Loopback[0]
			}
			return p.Address[0].Addr()
		}
		s := &probeSeries{doc: d, host: host, is: mirror.Probe{ID: uint32(i + 1), From: node(d.From), Src: node(d.From), Dst: node(d.To), Proto: wire.ProtoUDP, SrcPort: uint16(d.SrcPort), DstPort: uint16(d.DstPort)}}
		if d.Src != "" {
			s.is.Src = node(d.Src)
		}
		if d.Protocol == "tcp" {
			s.is.Proto = wire.ProtoTCP
		}
		for _, name := range d.Via {
			s.is.Via = append(s.is.Via, node(name))
		}
		if err := s.is.Validate(); err != nil {
			return nil, fmt.Errorf("probes: %s: %w", d.Name, err)
		}
		out = append(out, s)
		for k := range d.Count {
			at := frame.Time(d.Start) + frame.Time(k)*frame.Time(d.Every)
			n.Engine.At(at, func(now frame.Time) { s.send(now, n) })
		}
	}
	return out, nil
}

// send sends the next probe.
func (s *probeSeries) send(now frame.Time, n *vnet.Network) {
	c := n.Hosts[s.host].Config()
	eth := wire.EthernetFields{Dst: c.Gateway, Src: c.MAC, EtherType: wire.EtherTypeIPv4}
	s.buf = append(s.buf[:0], make([]byte, wire.EthernetLen)...)
	eth.Encode(s.buf)
	s.buf = s.is.Append(s.buf, uint32(s.sent))
	inject := &hostnic.Inject{Frame: s.buf}
	if err := n.ChangeHost(now, s.host, inject); err != nil {
		n.Engine.Stop(err)
	}
	if inject.Sent {
		s.sent++
	}
}

// put writes what became of the probes, according to the copies.
func (p probes) put(book *traces.Book, out *results.Run) {
	series := map[uint32]traces.Series{}
	for _, s := range book.Probes() {
		series[s.ID] = s
	}
	for _, s := range p {
		t := series[s.is.ID]
		put := func(what string, v float64) { out.Values[traces.ProbeKey(s.doc.Name, what)] = v }
		put("sent_total", float64(s.sent))
		put("lost_total", float64(s.sent-t.Delivered))
		if t.RoundTrips > 0 {
			put("rtt_mean_seconds", t.Mean.Seconds())
			put("rtt_max_seconds", t.Max.Seconds())
		}
	}
}
