package point

import (
	"strconv"

	"gswitch/crossbar"
	"gswitch/frame"
	"gswitch/scheduler"
	"gswitch/vswitch"
)

// point is the crossbar of a worker.
type point struct {
	node *vswitch.Node
	x    *crossbar.Crossbar // nil: there is none
}

func newPoint(n *vswitch.Node) vswitch.Instance {
	p := &point{node: n}
	return vswitch.Instance{State: p, Queues: p.queues, InputQueues: p.adopt, Read: p.read}
}

// adopt brings the crossbar in line with the configuration.
func (p *point) adopt(now frame.Time) vswitch.InputQueues {
	cfg := p.node.Config()
	c, on := Of(cfg)
	if !on {
		p.x = nil
		return nil
	}
	made, err := c.made(cfg)
	made.Chunks = p.chunks(made.Chunks.Headroom)
	switch {
	case err != nil:
		panic(err) // check made the same before the switch adopted it
	case p.x == nil:
		p.x = crossbar.New(p.node.Arena(), made)
	default:
		p.x.Configure(now, made)
	}
	return p.x
}

// chunks divides the memory of the worker among the ports.
func (p *point) chunks(headroom uint32) crossbar.Chunks {
	bytes, all := p.node.InputMemory()
	if bytes == 0 {
		return crossbar.Chunks{}
	}
	ports, own := 0, 0
	for _, c := range p.node.Config().Ports {
		if c.Name != "" {
			ports++
			if c.Worker == p.node.Index() {
				own++
			}
		}
	}
	return crossbar.Divide(bytes, all, ports, own, headroom)
}

// queues cuts how far the link of a port may catch up: what it hands to its device
// no pause stops.
func (p *point) queues(_ uint16, c *vswitch.PortConfig, s *scheduler.PortConfig) {
	cfg := p.node.Config()
	if o, on := Of(cfg); on {
		l := c.Link(&cfg.Buffer)
		s.Burst = o.burst(c, &l)
	}
}

// At returns the crossbar of a worker, nil if it has none. Like every reader of a
// node's state it is called between two steps of it.
func At(n *vswitch.Node) *crossbar.Crossbar {
	if p, ok := n.Feature(Name).(*point); ok {
		return p.x
	}
	return nil
}

const (
	drainBytes = iota
	mostBytes
	crossed
	refused
	short
	chunks
	pauses
)

var counters = []vswitch.Counter{
	drainBytes: {Name: "crossbar_drain_bytes", Help: "Bytes of the class and those above: at the ingress port, waiting to cross (ingress), or that crossed and have not left (egress).", Labels: []string{"class", "side"}, Values: []string{"ingress", "egress"}, Gauge: true},
	mostBytes:  {Name: "crossbar_watermark_bytes", Help: "Most bytes that ever waited at the port; of several workers the sum of theirs.", Labels: []string{"side"}, Values: []string{"ingress", "egress"}, Gauge: true},
	crossed:    {Name: "crossbar_packets_total", Help: "Frames that crossed to the port, and of them those that crossed while a class above was blocked (skipped).", Labels: []string{"outcome"}, Values: []string{"crossed", "skipped"}},
	refused:    {Name: "crossbar_refused_packets_total", Help: "Frames that came by the port and found no room in its ingress queue; copied: those of lossless classes for several ports, which found none in the shared buffer at one of them.", Labels: []string{"kind"}, Values: []string{"lossless", "lossy", "copied"}},
	short:      {Name: "crossbar_short_packets_total", Help: "Frames, of those refused, for which the port had no more chunks of packet memory, though bytes of its ingress queue."},
	chunks:     {Name: "crossbar_chunks", Help: "Chunks of packet memory of the frames that wait at the ingress port; 0 where they are not counted.", Gauge: true},
	pauses:     {Name: "crossbar_pauses_total", Help: "Pauses that the ingress queue of the port asked for.", Labels: []string{"class"}},
}

func (p *point) read(emit func(counter int, port uint16, value float64, labels ...string)) {
	if p.x == nil {
		return
	}
	cfg := p.node.Config()
	for i := range cfg.Ports {
		if cfg.Ports[i].Name == "" {
			continue
		}
		at, v := uint16(i), p.x.Port(uint16(i))
		for c := range v.Ingress {
			class := strconv.Itoa(c)
			emit(drainBytes, at, float64(v.Ingress[c]), class, "ingress")
			emit(drainBytes, at, float64(v.Egress[c]), class, "egress")
			emit(pauses, at, float64(v.In.Pauses[c]), class)
		}
		emit(mostBytes, at, float64(v.IngressPeak), "ingress")
		emit(mostBytes, at, float64(v.EgressPeak), "egress")
		emit(crossed, at, float64(v.Out.Frames), "crossed")
		emit(crossed, at, float64(v.Out.Skipped), "skipped")
		emit(refused, at, float64(v.In.Refused), "lossless")
		emit(refused, at, float64(v.In.RefusedLossy), "lossy")
		emit(refused, at, float64(v.In.RefusedCopied), "copied")
		emit(short, at, float64(v.In.Short))
		emit(chunks, at, float64(v.Chunks))
	}
}
