package point

import (
	"gswitch/frame"
	"gswitch/mirror"
	"gswitch/vswitch"
	"gswitch/wire"
)

// longestWait is how long a sample waits for others. A collector is to have it
// within a second.
const longestWait = 500 * frame.Millisecond

// subAgent distinguishes the datagrams of sessions and workers, since each numbers its
// own.
func (p *point) subAgent(s *session) uint32 {
	return uint32(s.Wrap.ID)<<16 | uint32(p.node.Index())
}

// mtu is the longest IP packet that can leave by every port, and for which a chunk
// has room.
func (p *point) mtu() int {
	least := p.arena.Room() - wire.EthernetLen
	for i := range p.node.Config().Ports {
		mtu := p.node.Config().Ports[i].MTU
		if mtu == 0 {
			mtu = 1500
		}
		least = min(least, mtu)
	}
	return least
}

// gather adds a sample of a frame, the k-th of its vector, to those that wait.
func (p *point) gather(now frame.Time, i int, r frame.Ref, m *frame.Meta, port uint16, k uint32) {
	if !p.may(i, r, m, port) {
		return
	}
	s, c, b := &p.sessions[i], p.at(port), p.arena.Bytes(r)
	if !s.samples.Fits(b) {
		p.flush(i, s.samples, now)
	}
	if len(s.samples.Ports()) == 0 {
		s.due = now + longestWait
		p.node.Arm(s.due)
	}
	c.samples[i]++
	s.samples.Add(mirror.Sample{Port: port, Sequence: c.samples[i], OneIn: s.OneIn, Pool: c.pool[i] + k, Drops: c.drops(i), Wire: m.Wire}, b)
}

// drops are the samples of a session that were taken and did not leave.
func (c *portCounts) drops(i int) (n uint32) {
	for why, v := range c.lost[i] {
		if why != isCopy {
			n += uint32(v)
		}
	}
	return n
}

// advance sends samples that have waited long enough, and counters that are due.
func (p *point) advance(now frame.Time) frame.Time {
	next := frame.Never
	for i := range p.sessions {
		s := &p.sessions[i]
		switch {
		case s.samples == nil || len(s.samples.Ports()) == 0:
		case now >= s.due:
			p.flush(i, s.samples, now)
		default:
			next = min(next, s.due)
		}
		if s.Counters > 0 {
			if now >= s.poll {
				p.poll(i, now)
				s.poll = now + s.Counters
			}
			next = min(next, s.poll)
		}
	}
	return next
}

// poll sends the counters of the ports whose queues are this worker's.
func (p *point) poll(i int, now frame.Time) {
	s, cfg := &p.sessions[i], p.node.Config()
	for k := range cfg.Ports {
		port := uint16(k)
		if !p.node.Owns(port) {
			continue
		}
		var v vswitch.PortCounts
		p.node.ReadPort(port, &v)
		c := p.at(port)
		c.polls[i]++
		x := mirror.Interface{Port: port, Sequence: c.polls[i], Speed: cfg.Ports[k].Scheduler.Rate, Up: p.node.LinkUp(port),
			InOctets: v.Rx.Bytes, OutOctets: v.Tx.Bytes, InFrames: uint32(v.Rx.Frames), OutFrames: uint32(v.Tx.Frames),
			InDiscards: uint32(v.Dropped()), TooLong: uint32(v.Drops[frame.MTUExceeded])}
		for _, n := range v.QueueDrops {
			x.OutDiscards += uint32(n)
		}
		for why, n := range v.ParseErrors {
			if why != int(frame.Keep) {
				x.InErrors += uint32(n)
			}
		}
		if !s.counters.FitsCounters() {
			p.flush(i, s.counters, now)
		}
		s.counters.AddCounters(&x)
	}
	p.flush(i, s.counters, now)
}

// flush sends the samples of a session that wait in a datagram.
func (p *point) flush(i int, g *mirror.Samples, now frame.Time) {
	s := &p.sessions[i]
	if g == nil || len(g.Ports()) == 0 {
		return
	}
	ports := g.Ports()
	to := p.node.Alloc()
	if to == frame.Nil {
		p.lose(i, ports, noMemory)
		g.Clear()
		return
	}
	cm := p.arena.Meta(to)
	cm.Len = uint16(p.arena.Room())
	n := g.Write(p.arena.Bytes(to), &s.Wrap, uint32(now/frame.Millisecond))
	if n == 0 {
		p.node.Discard(to)
		p.lose(i, ports, noRoom)
		return
	}
	cm.Len, cm.Wire, cm.Flags = uint16(n), uint32(n), frame.IsClone
	cm.InPort, cm.OutPort, cm.Class = ports[0], frame.NoPort, s.Class
	if int(cm.InPort) >= len(p.node.Config().Ports) { // gone with the configuration before
		cm.InPort = 0
	}
	if !p.node.Send(to) {
		p.lose(i, ports, tooMany)
		return
	}
	for _, port := range ports {
		p.at(port).copies[i]++
	}
	p.at(ports[0]).bytes[i] += uint64(n)
}

// lose counts samples that did not leave.
func (p *point) lose(i int, ports []uint16, why int) {
	for _, port := range ports {
		p.at(port).lost[i][why]++
	}
}
