package vswitch

import (
	"gswitch/frame"
	"gswitch/qcn"
	"gswitch/rocc"
)

// QCNConfig makes egress queues of a port congestion points of QCN (IEEE
// 802.1Qau): they sample what arrives and tell the sender of a sampled frame
// how far the queue is from where it should be.
type QCNConfig struct {
	Queues uint8 // bitmap; 0 = off
	Params qcn.Params
}

func (c *QCNConfig) validate() error {
	if c.Queues == 0 {
		return nil
	}
	return c.Params.Validate()
}

// sampler is the congestion point of one egress queue, on the worker that owns
// the port.
type sampler struct {
	port  uint16
	queue uint8
	point *qcn.Point
	from  rocc.Flow // of the sampled frame
	count QCNCounts
}

// QCNCounts are what a congestion point of QCN counted.
type QCNCounts struct {
	Samples  uint64 // frames by which the queue was judged
	Messages uint64 // that were sent
	Unsent   uint64 // that could not be made: no chunk was free
	Untold   uint64 // samples of frames whose sender no message would find
}

// adoptQCN brings the congestion points of an own port in line with the
// configuration.
func (n *Node) adoptQCN(i uint16, c *QCNConfig) {
	ps := &n.ports[i]
	if c.Queues == 0 {
		ps.samplers = nil
		return
	}
	if ps.samplers == nil {
		ps.samplers = new([8]*sampler)
	}
	for q := range ps.samplers {
		switch s := ps.samplers[q]; {
		case c.Queues>>q&1 == 0:
			ps.samplers[q] = nil
		case s == nil:
			ps.samplers[q] = &sampler{port: i, queue: uint8(q), point: qcn.NewPoint(&c.Params, n.prog.Config.Seed^uint64(i)<<32^uint64(q)<<16)}
		default:
			s.point.Configure(&c.Params)
		}
	}
}

// sampled returns the congestion point that judges its queue by a frame which
// is about to join it, nil if none does. What the switch sends itself is not
// what congests it.
func (ps *portState) sampled(m *frame.Meta) *sampler {
	s := ps.samplers[m.Queue&7]
	if s != nil && (m.InPort == m.OutPort || !s.point.Arrive(m.Wire)) {
		s = nil
	}
	return s
}

// sample judges the queue by a frame.
func (n *Node) sample(s *sampler, r frame.Ref, m *frame.Meta) {
	_, queue := n.ports[s.port].sched.QueueLen(int(s.queue))
	found := s.point.Judge(queue + uint64(m.Wire))
	s.count.Samples++
	if found.Feedback == 0 {
		return
	}
	if !tellable(m) {
		s.count.Untold++
		return
	}
	wayBack(&s.from, n.arena.Bytes(r), m)
	told := qcn.Message{Point: uint64(n.prog.Config.ID)<<32 | uint64(s.port)<<8 | uint64(s.queue), Priority: m.Class & 7}
	told.Set(found)
	told.Encode(n.told.head[:], rocc.Type4, s.from.Back[:s.from.Len])
	n.told.set(qcn.MessageLen)
	notice, ok := n.compose(n.now, &n.told, &s.from)
	if !ok {
		s.count.Unsent++
		return
	}
	if !n.later(notice) {
		n.pool.Free(notice.r)
		s.count.Unsent++
		return
	}
	s.count.Messages++
}

// QCNView is a congestion point of QCN as it is now.
type QCNView struct {
	Port, Queue int
	QueueBytes  uint64
	SetPoint    uint64 // bytes
	QCNCounts
}

// QCN appends what the congestion points of this worker are at. Like every
// reader of a node's state it is called between two steps of it.
func (n *Node) QCN(v []QCNView) []QCNView {
	for i := range n.ports {
		if n.ports[i].samplers == nil {
			continue
		}
		for q, s := range n.ports[i].samplers {
			if s != nil {
				_, queue := n.ports[i].sched.QueueLen(q)
				v = append(v, QCNView{Port: i, Queue: q, QueueBytes: queue, SetPoint: uint64(s.point.Params().SetPoint), QCNCounts: s.count})
			}
		}
	}
	return v
}
