package view

import (
	"context"
	"fmt"
	"sync"
	"time"

	"gswitch/control"
	"gswitch/control/api"
	"gswitch/fabric"
	"gswitch/fabric/lab"
)

// LabSource looks at a fabric that gfabric up raised, by asking its daemons.
// It is made by Lab.
type LabSource struct {
	cast   cast
	layout *Layout
	top    *fabric.Topology
	ends   *ends
	procs  []process
	hosts  labHosts
	every  time.Duration
	began  time.Time

	ask  chan struct{}
	stop context.CancelFunc
	done chan struct{}

	at   time.Time // of the sample before
	prev []labCounts
}

// process is a gswitch of the fabric.
type process struct {
	socket string
	client api.ControlClient
}

// labCounts is what an end of a link had counted at the sample before.
type labCounts struct {
	known  bool
	sent   uint64 // bytes, with the link's overhead
	paused [8]float64
	top    [8]uint64 // deepest that a queue ever was
	queue  [8]uint64
}

// Lab returns a source for the fabric that is up under this name. It asks the
// daemons every so often (200 ms if 0) as long as somebody looks.
//
// Hosts with the kernel's own stack are shown as the switch sees them: what
// they send is what arrives at its port. Hosts that a ghost drives report
// their queue pairs, those with a ghost in the wire of its channels. Ghosts are
// found by their sockets, in the usual folder or beside those of the fabric,
// and by the namespaces of their interfaces.
func Lab(name string, every time.Duration) (*LabSource, error) {
	st, err := lab.Inspect(name)
	if err != nil {
		return nil, err
	}
	if every == 0 {
		every = 200 * time.Millisecond
	}
	s := &LabSource{layout: NewLayout(st.Topology), top: st.Topology, every: every, began: st.Created, ask: make(chan struct{}, 1), done: make(chan struct{})}
	s.layout.On, s.layout.Title = "lab", "Fabric "+name
	s.ends = newEnds(s.layout)
	s.prev = make([]labCounts, len(s.ends.end))
	for _, p := range st.Processes {
		s.procs = append(s.procs, process{p.Socket, control.Dial(p.Socket)})
	}
	s.hosts.init(st)
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	s.cast.on = func() {
		select {
		case s.ask <- struct{}{}:
		default:
		}
	}
	go s.run(ctx)
	return s, nil
}

// Close ends the source.
func (s *LabSource) Close() {
	s.stop()
	<-s.done
}

// Layout and Sample make it a Source.
func (s *LabSource) Layout() *Layout                             { return s.layout }
func (s *LabSource) Sample(ctx context.Context) (*Sample, error) { return s.cast.wait(ctx) }

// run takes one sample at a time, as long as there are requests.
func (s *LabSource) run(ctx context.Context) {
	defer close(s.done)
	for {
		select {
		case <-ctx.Done():
			s.cast.end(nil, nil)
			return
		case <-s.ask:
		}
		if !s.rest(ctx, s.every-time.Since(s.at)) {
			s.cast.end(nil, nil)
			return
		}
		v, err := s.sample(ctx)
		switch {
		case ctx.Err() != nil:
			s.cast.end(nil, nil)
			return
		case err != nil:
			s.cast.end(nil, err)
			return
		case v == nil: // the first one, which has no rates yet
			s.cast.on()
		default:
			s.cast.publish(v)
		}
	}
}

func (s *LabSource) rest(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// sample asks all daemons at once. It returns nil the first time.
func (s *LabSource) sample(ctx context.Context) (*Sample, error) {
	first := s.at.IsZero()
	now := time.Now()
	span := now.Sub(s.at).Seconds()
	out := &Sample{Time: now.Sub(s.began).Seconds(), Ports: make([]Port, len(s.ends.end)), Flows: []Flow{}}
	for i, e := range s.ends.end {
		out.Ports[i].End = e
	}
	var mu sync.Mutex
	var group sync.WaitGroup
	errs := make([]error, len(s.procs))
	for i := range s.procs {
		group.Go(func() {
			a, err := s.procs[i].answer(ctx)
			if err != nil {
				errs[i] = control.Explain(s.procs[i].socket, err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			s.fill(out, a, span)
		})
	}
	group.Go(func() {
		flows := s.hosts.flows(ctx)
		mu.Lock()
		defer mu.Unlock()
		s.hosts.fill(out, flows, span)
	})
	group.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, fmt.Errorf("fabric %s: %w; gfabric status says what is left of it", s.layout.Name, err)
		}
	}
	s.at = now
	if first {
		return nil, nil
	}
	return out, nil
}

// answer is what a daemon answers.
type answer struct {
	ports   *api.Ports
	queues  *api.Queues
	pfc     *api.PFC
	drops   *api.Drops
	workers *api.Workers
}

func (p *process) answer(ctx context.Context) (a answer, err error) {
	r := &api.ListRequest{}
	if a.ports, err = p.client.ListPorts(ctx, r); err != nil {
		return a, err
	}
	if a.queues, err = p.client.ListQueues(ctx, r); err != nil {
		return a, err
	}
	if a.pfc, err = p.client.ListPFC(ctx, r); err != nil {
		return a, err
	}
	if a.drops, err = p.client.ListDrops(ctx, r); err != nil {
		return a, err
	}
	a.workers, err = p.client.ListWorkers(ctx, r)
	return a, err
}
