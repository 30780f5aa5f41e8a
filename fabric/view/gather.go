package view

import (
	"gswitch/fabric"
	"gswitch/fabric/vnet"
	"gswitch/frame"
	"gswitch/hostnic"
	"gswitch/pfc"
	"gswitch/vswitch"
)

// gather notes what the nodes of a part show, on the thread that steps them.
// It allocates nothing but the path of a flow that it sees for the first time.
func (s *NetworkSource) gather(now frame.Time, p *part, r *raw) {
	r.at, r.drops = now, 0
	next := 0
	for _, node := range p.nodes {
		ports := s.ends.base[node+1] - s.ends.base[node]
		if s.n.Topology.Nodes[node].Kind == fabric.Host {
			s.host(now, s.n.HostAt(node), &r.ports[next], r)
		} else {
			s.sw(now, node, r.ports[next:next+ports], r)
		}
		next += ports
	}
	if !p.flows {
		return
	}
	c := s.n.Counts()
	r.open, r.ended, r.flows = c.Open, c.Finished, r.flows[:0]
	s.into = r
	s.n.EachOpen(s.each)
	if s.o.Losses != nil {
		r.losses = s.o.Losses(r.losses[:0])
	}
	if s.o.Ways != nil {
		r.ways = s.o.Ways(r.ways[:0])
	}
}

func (s *NetworkSource) host(now frame.Time, h int, to *rawPort, r *raw) {
	to.ofHost(now, s.n.Hosts[h], r)
}

// ofHost notes what a host reports of its port.
func (v *rawPort) ofHost(now frame.Time, nic *hostnic.NIC, r *raw) {
	c := nic.Counts()
	f := nic.Flow(now)
	lost := losses(&c.Drops)
	*v = rawPort{host: true, sent: c.LinkBytes, drops: lost, paused: nic.Paused(), stopped: f.PausedTime}
	v.flow(&f)
	r.drops += lost
}

func (s *NetworkSource) sw(now frame.Time, at int, to []rawPort, r *raw) {
	node := s.n.Switches[s.n.SwitchAt(at)].Nodes[0]
	for i := range to {
		to[i].of(now, node, uint16(i), s.over[s.ends.base[at]+i], r)
	}
	self := node.SelfDrops()
	r.drops += losses(&self)
}

// of notes what a switch reports of a port.
func (v *rawPort) of(now frame.Time, node *vswitch.Node, port uint16, over uint64, r *raw) {
	var c vswitch.PortCounts
	node.ReadPort(port, &c)
	sched := node.Scheduler(port)
	*v = rawPort{up: node.LinkUp(port), sent: c.Tx.Bytes + c.Tx.Frames*over, paused: sched.Paused(now)}
	for class := range v.class {
		q := sched.Stats(now, class, true)
		v.class[class] = Class{Class: class, Queue: q.Bytes, Peak: q.Top, Frames: q.DequeuedFrames, Drops: c.QueueDrops[class], Marks: q.Marked}
		v.queue += q.Bytes
		v.peak += q.Peak // of classes: at most, as they may peak apart
		v.drops += c.QueueDrops[class]
		v.marks += q.Marked
	}
	if f := node.PFC(port); f != nil {
		st := f.Stats(now)
		v.stopped, v.asked = st.PausedTime, f.XOFFSent()
		v.flow(&st)
	}
	r.drops += losses(&c.Drops)
}

// flow counts how often the neighbour was asked to stop.
func (v *rawPort) flow(st *pfc.Stats) {
	for _, k := range st.Requests {
		v.pauses += k
	}
}

// losses adds up what was lost; what merely did its work is left out.
func losses(by *[frame.NumReasons]uint64) (sum uint64) {
	for i, k := range by {
		if k > 0 && frame.Reason(i).Loss() {
			sum += k
		}
	}
	return sum
}

// addFlow notes a connection, as many as there is room for.
func (s *NetworkSource) addFlow(o *vnet.Open) bool {
	q, err := o.NIC.QP(o.QPN)
	if err != nil {
		return true
	}
	r := s.into
	r.flows = r.flows[:len(r.flows)+1]
	f := &r.flows[len(r.flows)-1]
	*f = rawFlow{key: uint64(o.Generation)<<32 | uint64(o.Conn), id: o.Flow.ID, group: o.Flow.Group,
		src: s.n.HostNode(o.Flow.Src), dst: s.n.HostNode(o.Flow.Dst), control: o.Control,
		rate: q.Rate, window: q.Window, flight: q.InFlight, acked: q.Acked, posted: o.Posted}
	f.path = s.path(o, f.key)
	s.flow = f
	q.Inspect(s.see)
	return len(r.flows) < cap(r.flows)
}

// addInside notes an internal of the flow's congestion control.
func (s *NetworkSource) addInside(name string, v float64) {
	if f := s.flow; f.insides < len(f.inside) {
		f.inside[f.insides] = inside{name, v}
		f.insides++
	}
}

// path returns the way of a connection, found when it is seen first.
func (s *NetworkSource) path(o *vnet.Open, key uint64) []End {
	for int(o.Conn) >= len(s.paths) {
		s.paths = append(s.paths, path{})
	}
	p := &s.paths[o.Conn]
	if p.key == key {
		return p.ends
	}
	p.key, p.ends = key, nil
	ports, err := s.n.RouteOf(&o.Flow)
	if err != nil {
		return nil // a way there is not, while links are down
	}
	for _, at := range ports {
		p.ends = append(p.ends, End{s.n.SwitchNode(at.Switch), at.Port})
	}
	return p.ends
}
