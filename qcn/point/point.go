// Package point makes egress queues of a switch congestion points of QCN
// (package qcn): they sample what arrives and notify the sender of a sampled frame
// how far the queue is from where it should be. Importing it registers the
// feature.
package point

import (
	"fmt"
	"strconv"

	"gswitch/feature"
	"gswitch/frame"
	"gswitch/notice"
	"gswitch/qcn"
	"gswitch/vswitch"
)

// Name is the key of a Config in vswitch.PortConfig.Options.
const Name = "qcn"

// Config says which egress queues of a port are congestion points.
type Config struct {
	Queues uint8 // bitmap; 0 = none
	Params qcn.Params
}

// Of returns the options of a port.
func Of(c *vswitch.PortConfig) Config {
	o, _ := c.Options[Name].(Config)
	return o
}

func init() {
	vswitch.Register(vswitch.Feature{Name: Name, Check: check, New: newPoints, Counters: counters,
		Section: func() vswitch.Section { return new(Section) },
		Doc:     "Queues that report to senders how far they are from their set point (IEEE 802.1Qau), by ICMP messages, for hosts with the congestion control qcn.",
		Signals: feature.Quantized, Notices: true})
}

func check(cfg *vswitch.Config) error {
	for i := range cfg.Ports {
		if o := Of(&cfg.Ports[i]); o.Queues != 0 {
			if err := o.Params.Validate(); err != nil {
				return fmt.Errorf("port %s: %w", cfg.Ports[i].Name, err)
			}
		}
	}
	return nil
}

// points are the congestion points of a worker's ports.
type points struct {
	node    *vswitch.Node
	ports   []*[8]*point // by port and queue, nil where there is none
	message vswitch.Message
	sender  notice.Sender // of the sampled frame
}

// point is the congestion point of one egress queue.
type point struct {
	*qcn.Point
	count Counts
}

// Counts are what a congestion point counted.
type Counts struct {
	Samples  uint64 // frames by which the queue was judged
	Messages uint64 // that were sent
	Unsent   uint64 // that could not be made: no chunk was free
	NoSender uint64 // samples of frames whose sender no message would find
}

func newPoints(n *vswitch.Node) vswitch.Instance {
	p := &points{node: n}
	return vswitch.Instance{State: p, Port: p.adopt, Dismiss: p.dismiss, Queued: p.queued, Read: p.read}
}

// adopt brings the congestion points of a port in line with its options.
func (p *points) adopt(_ frame.Time, port uint16, c *vswitch.PortConfig) vswitch.Stages {
	o := Of(c)
	if o.Queues == 0 {
		p.dismiss(port)
		return 0
	}
	for len(p.ports) <= int(port) {
		p.ports = append(p.ports, nil)
	}
	if p.ports[port] == nil {
		p.ports[port] = new([8]*point)
	}
	for q := range p.ports[port] {
		switch s := &p.ports[port][q]; {
		case o.Queues>>q&1 == 0:
			*s = nil
		case *s == nil:
			*s = &point{Point: qcn.NewPoint(&o.Params, p.node.Config().Seed^uint64(port)<<32^uint64(q)<<16)}
		default:
			(*s).Configure(&o.Params)
		}
	}
	return vswitch.AtQueued
}

func (p *points) dismiss(port uint16) {
	if int(port) < len(p.ports) {
		p.ports[port] = nil
	}
}

// queued counts the frames that joined queues, and judges the queues by those
// that are sampled. What the switch sends itself is not what congests it.
func (p *points) queued(v []vswitch.Queued) {
	arena := p.node.Arena()
	for i := range v {
		m := arena.Meta(v[i].Ref)
		if m.InPort == m.OutPort || int(m.OutPort) >= len(p.ports) || p.ports[m.OutPort] == nil {
			continue
		}
		if s := p.ports[m.OutPort][m.Queue&7]; s != nil && s.Arrive(m.Wire) {
			p.sample(s, &v[i], m)
		}
	}
}

// sample judges a queue by a frame, and notifies the sender.
func (p *points) sample(s *point, q *vswitch.Queued, m *frame.Meta) {
	found := s.Judge(q.Ahead + uint64(m.Wire))
	s.count.Samples++
	if found.Feedback == 0 {
		return
	}
	if !vswitch.Answerable(m) {
		s.count.NoSender++
		return
	}
	vswitch.NoteSender(&p.sender, p.node.Arena().Bytes(q.Ref), m)
	message := qcn.Message{Point: uint64(p.node.Config().ID)<<32 | uint64(m.OutPort)<<8 | uint64(m.Queue&7), Priority: m.Class & 7}
	message.Set(found)
	message.Encode(p.message.Head[:], notice.Type4, p.sender.Back[:p.sender.Len])
	p.message.Set(qcn.MessageLen)
	if p.node.DeferNotice(&p.message, &p.sender) {
		s.count.Messages++
	} else {
		s.count.Unsent++
	}
}

// View is a congestion point as it is now.
type View struct {
	Port, Queue int
	QueueBytes  uint64
	SetPoint    uint64 // bytes
	Counts
}

// Views appends what the congestion points of a worker are at. Like every
// reader of a node's state it is called between two steps of it.
func Views(n *vswitch.Node, v []View) []View {
	p, _ := n.Feature(Name).(*points)
	if p == nil {
		return v
	}
	for i := range p.ports {
		if p.ports[i] == nil {
			continue
		}
		for q, s := range p.ports[i] {
			if s != nil {
				_, bytes := n.Scheduler(uint16(i)).QueueLen(q)
				v = append(v, View{Port: i, Queue: q, QueueBytes: bytes, SetPoint: uint64(s.Params().SetPoint), Counts: s.count})
			}
		}
	}
	return v
}

var counters = []vswitch.Counter{
	{Name: "qcn_waiting_bytes", Help: "Bytes in the egress queue that QCN watches.", Labels: []string{"queue"}, Gauge: true},
	{Name: "qcn_set_point_bytes", Help: "Depth that QCN holds the egress queue at.", Labels: []string{"queue"}, Gauge: true},
	{Name: "qcn_samples_total", Help: "Frames by which QCN judged the egress queue.", Labels: []string{"queue"}},
	{Name: "qcn_messages_total", Help: "Messages that QCN sent, could not make (unsent), or had no sender to notify (no-sender).", Labels: []string{"queue", "outcome"}, Values: []string{"sent", "unsent", "no-sender"}},
}

func (p *points) read(emit func(counter int, port uint16, value float64, labels ...string)) {
	for _, v := range Views(p.node, nil) {
		port, queue := uint16(v.Port), strconv.Itoa(v.Queue)
		emit(0, port, float64(v.QueueBytes), queue)
		emit(1, port, float64(v.SetPoint), queue)
		emit(2, port, float64(v.Samples), queue)
		emit(3, port, float64(v.Messages), queue, "sent")
		emit(3, port, float64(v.Unsent), queue, "unsent")
		emit(3, port, float64(v.NoSender), queue, "no-sender")
	}
}
