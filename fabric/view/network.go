package view

import (
	"context"
	"sync"
	"time"

	"gswitch/fabric/results"
	"gswitch/fabric/vnet"
	"gswitch/frame"
)

// NetworkOptions say how a network is looked at.
type NetworkOptions struct {
	Title  string   // of the scenario
	On     string   // sim or netns; sim if empty
	Run    string   // name of the run
	Groups []string // names of Flow.Group

	// Losses appends what links lost; see Sample. It is called on the thread of the
	// engine's callbacks. nil: not known.
	Losses func(v []Loss) []Loss
	// Ways appends the paths of packets, in the same way.
	Ways func(v []Way) []Way

	// Control names congestion control for people, by its Algorithm.Name. nil
	// takes the name as it is.
	Control func(name string) string

	Scale float64    // real seconds for each of the nodes; 0 = 1
	End   frame.Time // of the run, 0 unknown
	Bound frame.Time // of lateness

	// Every is the time between samples at least, of the nodes. 0 takes a
	// 5000th of End, or, with Pace or on real frames, a 20th of a real second.
	Every frame.Time
	// Pace keeps virtual time from going faster than so many seconds in a real
	// one. 0 does not.
	Pace float64
}

// period is the time between samples.
func (o *NetworkOptions) period(virtual bool) frame.Time {
	const real = 0.05 * 1e9
	switch {
	case o.Every > 0:
		return o.Every
	case virtual && o.Pace > 0:
		return max(1, frame.Time(real*o.Pace))
	case !virtual:
		return max(1, frame.Time(real/max(1, o.Scale)))
	case o.End > 0:
		return max(1, o.End/5000)
	}
	return 10 * frame.Microsecond
}

// NetworkSource looks at a network of fabric/vnet, in virtual time or on real
// frames. It is made by Network.
type NetworkSource struct {
	cast   cast
	layout *Layout
	n      *vnet.Network
	o      NetworkOptions
	ends   *ends
	parts  []part
	over   []uint64 // bytes of a frame on the link beyond its own, by end

	// Of the thread of the engine's callbacks.
	paths []path
	began time.Time
	flow  *rawFlow // that addInside fills
	each  func(*vnet.Open) bool
	see   func(string, float64)
	into  *raw

	// Of the collector.
	mu    sync.Mutex
	wake  chan struct{}
	stop  chan struct{}
	done  chan struct{}
	once  sync.Once
	out   []Port
	prev  []before
	acked map[uint64]uint64
	then  frame.Time // of the flows that acked is of
	late  float64
	asked time.Time // when late was
}

// path is the way of a connection.
type path struct {
	key  uint64
	ends []End
}

// before is what a port had counted at the sample before.
type before struct {
	at      frame.Time
	sent    uint64
	stopped [8]frame.Time
}

// Network returns a source that samples n inside its engine. It must be called before the
// engine runs. Without requests for samples it costs the engine one load per period.
func Network(n *vnet.Network, o NetworkOptions) *NetworkSource {
	s := &NetworkSource{n: n, o: o, layout: NewLayout(n.Topology), wake: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{}), acked: map[uint64]uint64{}}
	s.layout.Title, s.layout.On = o.Title, o.On
	if o.On == "" {
		s.layout.On = "sim"
	}
	if o.Scale > 0 {
		s.layout.Scale = o.Scale
	}
	s.layout.End, s.layout.Bound, s.layout.RTT = o.End.Seconds(), o.Bound.Seconds(), n.Derived.BaseRTT.Seconds()
	s.ends = newEnds(s.layout)
	s.overheads()
	s.out, s.prev = make([]Port, len(s.ends.end)), make([]before, len(s.ends.end))
	for i, e := range s.ends.end {
		s.out[i].End = e
	}
	s.each, s.see = s.addFlow, s.addInside
	s.divide()
	period := o.period(n.Engine.Virtual())
	for i := range s.parts {
		p := &s.parts[i]
		p.own, p.last = s.newRaw(p), nil
		p.free.Store(s.newRaw(p))
		if p.flows {
			continue // after the others, so that what they hand over goes with it
		}
		n.Engine.EveryOn(n.EngineNode(p.nodes[0]), period, period, func(now frame.Time) { s.tick(now, p) })
	}
	n.Engine.Every(period, period, func(now frame.Time) {
		if o.Pace > 0 && n.Engine.Virtual() {
			s.pace(now)
		}
		s.tick(now, &s.parts[0])
	})
	go s.collect()
	return s
}

// overheads notes what a frame occupies at switches' ports beyond its bytes.
func (s *NetworkSource) overheads() {
	s.over = make([]uint64, len(s.ends.end))
	for i, sw := range s.n.Switches {
		base := s.ends.base[s.n.SwitchNode(i)]
		for p := range s.n.Ports(i) {
			s.over[base+p] = uint64(sw.Nodes[0].Scheduler(uint16(p)).Config().Overhead)
		}
	}
}

// divide says who samples what.
func (s *NetworkSource) divide() {
	s.parts = make([]part, 1, 1+len(s.n.Switches))
	s.parts[0].flows = true
	for h := range s.n.Hosts {
		s.parts[0].nodes = append(s.parts[0].nodes, s.n.HostNode(h))
	}
	for i := range s.n.Switches {
		node := s.n.SwitchNode(i)
		if s.n.Engine.Apart(s.n.EngineNode(node)) {
			s.parts = append(s.parts, part{nodes: []int{node}})
		} else {
			s.parts[0].nodes = append(s.parts[0].nodes, node)
		}
	}
}

func (s *NetworkSource) newRaw(p *part) *raw {
	r := &raw{}
	for _, node := range p.nodes {
		r.ports = append(r.ports, make([]rawPort, s.ends.base[node+1]-s.ends.base[node])...)
	}
	if p.flows {
		r.flows = make([]rawFlow, 0, maxRawFlows)
	}
	return r
}

// tick samples a part if a sample was requested. The engine calls it.
func (s *NetworkSource) tick(now frame.Time, p *part) {
	if !s.cast.wanted.Load() {
		return
	}
	r := p.buffer()
	if r == nil {
		return
	}
	s.gather(now, p, r)
	p.hand()
	if p.flows {
		select {
		case s.wake <- struct{}{}:
		default:
		}
	}
}

// pace waits until real time has come as far as virtual time.
func (s *NetworkSource) pace(now frame.Time) {
	if s.began.IsZero() {
		s.began = time.Now().Add(-time.Duration(float64(now) / s.o.Pace))
	}
	ahead := time.Until(s.began.Add(time.Duration(float64(now) / s.o.Pace)))
	if ahead > 0 {
		time.Sleep(ahead)
		return
	}
	// What it could not keep up with is not made good by haste.
	s.began = s.began.Add(-ahead)
}

// collect turns what the engine hands over into samples.
func (s *NetworkSource) collect() {
	defer close(s.done)
	for {
		select {
		case <-s.stop:
			return
		case <-s.wake:
			s.cast.publish(s.assemble())
		}
	}
}

// Close halts the network, takes the last sample and ends the source.
func (s *NetworkSource) Close() {
	s.once.Do(func() {
		close(s.stop)
		<-s.done
		// After an error it may still run; that error is the caller's.
		_ = s.n.Halt()
		now := s.n.Engine.Now()
		for i := range s.parts {
			p := &s.parts[i]
			p.take()
			r := p.buffer()
			s.gather(now, p, r)
			p.hand()
		}
		last := s.assemble()
		last.Done = true
		if timed, ok := s.n.Engine.(interface{ Timing() *results.Timing }); ok {
			last.Late = timed.Timing().LateP99
		}
		s.cast.end(last, nil)
	})
}

// Layout and Sample make it a Source.
func (s *NetworkSource) Layout() *Layout                             { return s.layout }
func (s *NetworkSource) Sample(ctx context.Context) (*Sample, error) { return s.cast.wait(ctx) }

// lateness asks an engine on real frames how late its workers are, once a
// second.
func (s *NetworkSource) lateness() float64 {
	late, ok := s.n.Engine.(interface{ Late() float64 })
	if ok && time.Since(s.asked) > time.Second {
		s.asked, s.late = time.Now(), late.Late()
	}
	return s.late
}
