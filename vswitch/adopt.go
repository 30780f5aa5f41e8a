package vswitch

import (
	"gswitch/frame"
	"gswitch/pfc"
	"gswitch/pipeline"
	"gswitch/scheduler"
	"gswitch/wire"
)

// How a worker takes over a program that the control plane has put in force.

// adopt makes p the program of this worker, between two vectors.
func (n *Node) adopt(now frame.Time, p *Program) {
	old := n.prog
	n.prog = p
	n.memo.newEpoch()
	n.count.Programs++
	for len(n.ports) < len(p.ports) {
		n.ports = append(n.ports, portState{})
	}
	n.routeCount = grow(n.routeCount, len(p.routing.entries))
	n.aclCount = grow(n.aclCount, p.rules)
	n.acl.adopt(now, p)
	if old != nil && old.Config == p.Config {
		n.adoptPaths(false)
		n.rerouted()
		return // only table entries changed
	}
	n.selfMAC = p.Config.MAC.Uint64()
	n.parser = wire.NewParser(p.Config.Hasher())
	n.adoptFeatures(p.Config)
	n.beginAdoption(now)
	logs := n.adoptPauseLog(p.Config.PFC.Log)
	for i := range n.ports {
		if i < len(p.ports) {
			n.adoptPort(now, uint16(i), &p.ports[i], &p.Config.Ports[i])
		} else {
			n.judgeLink(now, uint16(i))
			n.dismiss(now, uint16(i))
		}
	}
	n.shared.Keep(n.ownSchedulers)
	n.adoptPaths(true)
	if old != nil && old.class.Queue != p.class.Queue {
		n.repause(now)
	}
	if err := n.buffer.Reconfigure(bufferConfig(p.Config, len(n.others.in), n.pool)); err != nil {
		panic(err) // cannot happen: Apply tried the same division before it stored the program
	}
	n.adoptFloods(p.Config)
	n.adoptInputs(now)
	n.rerouted()
	n.chunks.limit, n.chunks.lossy = p.Config.mayHold(len(n.others.in), n.arena.Chunks())
	n.chunks.counted = p.Config.Buffer.Chunks
	if n.chunks.counted {
		n.chunks.lossy = n.chunks.limit // the buffer, or the input queues, judge both kinds
	}
	n.limitICMP(now)
	n.flow.lossless = 0
	if p.Config.PFC.Mode != pfc.Off {
		n.flow.lossless = p.Config.PFC.Classes
	}
	if n.local != nil {
		n.local.adopt(now)
	}
	if logs {
		n.logLasting(now)
	}
}

func grow(s []Traffic, n int) []Traffic {
	if len(s) < n {
		s = append(s, make([]Traffic, n-len(s))...)
	}
	return s
}

// adoptPort brings the state of a port in line with its configuration.
func (n *Node) adoptPort(now frame.Time, i uint16, pp *portProgram, c *PortConfig) {
	ps := &n.ports[i]
	for k, rate := range [floodKinds]uint64{pp.storm.Broadcast, pp.storm.Multicast, pp.storm.UnknownUnicast} {
		if rate > 0 && ps.stormRate[k] != rate {
			// A tenth of a second may be flooded at once, at least 16 large frames.
			ps.storm[k], _ = pipeline.NewMeter(int64(rate), min(max(int64(rate)/80, 16*1518), pipeline.MaxBurst))
			ps.storm[k].Take(now, 0)
			ps.stormRate[k] = rate
		}
	}
	n.adoptOwn(now, ps, c)
	n.adoptTwin(now, ps, c)
	n.adoptWraps(i, c)
	n.adoptArrivals(i, c)
	n.judgeLink(now, i)
	if ps.disabled != 0 && !pp.enabled {
		n.Enable(now, i)
	}
	if pp.name == "" || int(pp.worker) != n.index {
		n.dismiss(now, i)
		return
	}
	sc := c.Scheduler
	sc.PushOut = n.prog.Config.pushOut(c)
	n.adoptQueues(i, c, &sc)
	sc.Shared = &n.shared
	if ps.sched == nil {
		ps.sched = scheduler.NewPort(n.arena, sc, n.prog.Config.Seed^uint64(i)<<32)
	} else {
		ps.sched.Configure(now, sc)
		if ps.sched.HasShed() {
			n.dropShed(now, ps)
		}
		n.touched.add(i)
	}
	n.adoptPFC(now, i, c)
	n.adoptArc(now, i, c)
}

// ownSchedulers calls yield with the queue configuration of each port that this worker
// serves, until yield returns false.
func (n *Node) ownSchedulers(yield func(*scheduler.PortConfig) bool) {
	for i := range n.prog.ports {
		if n.ports[i].sched != nil && !yield(&n.prog.Config.Ports[i].Scheduler) {
			return
		}
	}
}

// dismiss removes the queues of a port that was removed or has another owner.
func (n *Node) dismiss(now frame.Time, i uint16) {
	ps := &n.ports[i]
	if ps.sched == nil {
		return
	}
	if ps.disabled != 0 {
		n.Enable(now, i)
	}
	n.flushPort(now, i)
	n.dismissArc(i)
	ps.sched, ps.pfc, ps.dropping, ps.collected, ps.floods = nil, nil, 0, 0, floods{}
}
