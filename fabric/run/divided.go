package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"gswitch/fabric"
	"gswitch/fabric/live"
	"gswitch/fabric/observe"
	"gswitch/fabric/pauses"
	"gswitch/fabric/results"
	"gswitch/fabric/scenario"
	"gswitch/fabric/vnet"
	"gswitch/frame"
	"gswitch/sim"
)

// checkDivision reports what several processes do not support.
func (h *host) checkDivision(s *scenario.Scenario) error {
	l := &h.o.Live
	switch {
	case l.Division == live.Together:
		return nil
	case h.o.On != Netns && h.o.On != Containers:
		return fmt.Errorf("processes of their own (%v) have nodes on real frames only: run it with --on netns, or with --processes one", l.Division)
	case l.Start == nil:
		return errors.New("nodes in several processes need a function that starts those (Live.Start)")
	case h.o.Watch != nil:
		return errors.New("a run in several processes cannot be looked at while it is under way: leave --view and --serve out, or run it with --processes one")
	}
	for i := range s.Runs {
		d := s.Runs[i].Doc
		for k := range d.Workload {
			// Other closed loops wait a little longer between flows; here the wait would
			// be part of the measurement.
			if e := &d.Workload[k]; e.Response > 0 || e.Kind == "retrievals" {
				return fmt.Errorf("%s: workload[%d] (%s): an answer is sent when the request has arrived, which the one who posts it learns from another process: the time of both would be longer by that; run it with --processes one", s.File, k, e.Group)
			}
		}
		if d.Streams() {
			return fmt.Errorf("%s: connections of TCP have both ends in one process: run it with --processes one", s.File)
		}
		for _, of := range observe.Of(d) {
			if of.Divided != "" {
				return fmt.Errorf("%s: %s", s.File, of.Divided)
			}
		}
		if d.Measure.CC {
			return fmt.Errorf("%s: measure.cc records what congestion control knows, which is with the hosts' processes: run it with --processes one, or without measure.cc", s.File)
		}
	}
	return nil
}

// mirror is the engine of a network whose nodes are stepped elsewhere.
type mirror struct{ vnet.Engine }

func (mirror) Poke(int) {}

// mirrorFrames is the number of frames that it has room for, though it sends none.
const mirrorFrames = 1 << 10

// divided executes a run whose nodes are in several processes.
func divided(ctx context.Context, s *scenario.Scenario, r *scenario.Run, h *host, p *progress) (*results.Run, error) {
	began := time.Now()
	if err := h.raise(ctx, r.Topology); err != nil {
		return nil, err
	}
	var spec *vnet.EngineSpec
	n, err := network(r, func(v *vnet.EngineSpec) (vnet.Engine, error) {
		spec = v
		small := *v
		small.Chunks = mirrorFrames
		e, err := vnet.Virtual(&small)
		return mirror{e}, err
	})
	if err != nil {
		return nil, err
	}
	d := &director{n: n, conns: map[vnet.Conn]*spread{}, way: map[uint64]*underWay{}, scale: h.dilation(r.Doc), end: frame.Time(r.Doc.Duration), finite: r.Doc.Until == "done"}
	d.ahead = frame.Time(ahead) / frame.Time(d.scale)
	var book ledger
	if d.t, err = newTraffic(ctx, n, d, &book, r, s.File); err != nil {
		return nil, err
	}
	d.t.ahead, d.t.reaction = true, live.Bound(spec, h.o.Live.Bound)

	processes := live.Divide(r.Topology, h.o.Live.Division, h.o.Live.Workers, live.Processors(), h.o.Live.CPUs)
	d.owner = owners(r.Topology, processes)
	if err := d.perform(ctx, s, r, h, p, processes); err != nil {
		return nil, err
	}

	summaries := d.group.summaries()
	rec, ports := recorder(n, r)
	for i, a := range summaries {
		if err := a.check(n.Topology, len(ports.queues), len(ports.links)); err != nil {
			return nil, fmt.Errorf("process %s: %w", processes[i].Name, err)
		}
	}
	book.replay(rec, summaries, frame.Time(r.Doc.Measure.Sample), frame.Time(r.Doc.Measure.Bin), d.end, d.over)
	if r.Doc.Measure.Ideal == "simulated" {
		if err := alone(ctx, r, rec); err != nil {
			return nil, err
		}
	}
	links, counts, timings := merge(summaries)
	out := &results.Run{Name: r.Name, Engine: h.name(), Timing: live.Timing(spec, d.scale, h.o.Live.Bound, h.o.Live.Poll, timings), Seed: r.Seed,
		VirtualTime: rec.Closed().Seconds(), WallTime: time.Since(began).Seconds(), Events: links.Events, FrameHops: links.FrameHops, Values: map[string]float64{}}
	d.judge(out.Timing)
	point(n, r, out)
	rec.Result(out)
	counts.put(n, ended(summaries), links.Lost, out)
	// Processes do not stop at exactly the same time. Queues that waited for long when
	// the first one stopped were waiting in all processes together, so look at that
	// instant.
	waits, until := heldBack(summaries)
	deadlocks(n, waits, until, out)
	if h.o.Pauses > 0 {
		out.Pauses = d.group.trace(ended(summaries), frame.Time(clocks)/frame.Time(d.scale))
		if h.o.Out != "" {
			out.Pauses.Pauses = nil // too many for results.json
		}
	}
	return out, nil
}

// clocks bounds the difference between the clocks of two processes, in real time: each
// reads its own clock and the machine's one after the other, and may be interrupted in
// between.
const clocks = 100 * time.Microsecond

// trace merges the pauses that the switches of all processes logged.
func (g *group) trace(end, slack frame.Time) *pauses.Trace {
	var v []pauses.Pause
	forgotten := uint64(0)
	for _, h := range g.processes {
		v = append(v, h.pauses...)
		forgotten += h.summary.Forgotten
	}
	return pauses.New(v, 0, end.Seconds(), slack.Seconds(), forgotten)
}

// heldBack returns the waiting queues of all processes, and the earliest instant at which
// a process that has any stopped.
func heldBack(summaries []*summary) (v []pauses.Wait, until frame.Time) {
	until = frame.Never
	for _, a := range summaries {
		if len(a.Waits) > 0 {
			v, until = append(v, a.Waits...), min(until, a.Timing.End)
		}
	}
	return v, until
}

// perform makes the processes execute the run. When it returns they have ended.
func (d *director) perform(ctx context.Context, s *scenario.Scenario, r *scenario.Run, h *host, p *progress, processes []live.Process) (err error) {
	document, err := r.Alone()
	if err != nil {
		return err
	}
	ends := wireEnds(r.Topology, h.wires)
	l := &h.o.Live
	env := h.wires.Env()
	d.group, err = startAll(processes, func(name string) (*Process, error) { return l.Start(name, env) }, func(v *live.Process) *setup {
		return &setup{Version: h.o.Version, Name: v.Name, File: s.File, Document: document, Seed: r.Seed, Duration: d.end, Pauses: h.o.Pauses,
			Own: ownOf(r.Topology, v), Ends: ends, Processes: len(processes), Dilation: d.scale, Bound: l.Bound, Workers: v.Workers, Poll: l.Poll, CPUs: v.CPUs}
	})
	defer d.group.stop()
	if err != nil {
		return err
	}
	if err := d.group.ready(ctx); err != nil {
		return err
	}
	if d.origin, err = d.group.begin(); err != nil {
		return err
	}
	d.t.begin()
	return d.direct(ctx, p)
}

// judge adds how late processes posted the flows that they were ordered to send.
func (d *director) judge(t *results.Timing) {
	t.Reaction = d.t.reaction.Seconds()
	slices.Sort(d.late)
	if len(d.late) > 0 {
		at := func(p float64) float64 { return d.late[min(len(d.late)-1, int(p*float64(len(d.late))))] }
		t.PostP50, t.PostP99, t.PostMax = at(0.5), at(0.99), d.late[len(d.late)-1]
	}
	live.JudgePosts(t)
}

// merge adds up the counters of all processes.
func merge(summaries []*summary) (links sim.Stats, counts tally, timings []*live.ProcessTiming) {
	for _, a := range summaries {
		links.Events += a.Links.Events
		links.Handed += a.Links.Handed
		links.FrameHops += a.Links.FrameHops
		links.Injected += a.Links.Injected
		for i, k := range a.Links.Lost {
			links.Lost[i] += k
		}
		counts.add(&a.Tally)
		timings = append(timings, a.Timing)
	}
	return links, counts, timings
}

// owners returns the process of each host.
func owners(t *fabric.Topology, processes []live.Process) []int {
	of := make([]int, len(t.Nodes))
	for i := range processes {
		for _, n := range processes[i].Nodes {
			of[n] = i
		}
	}
	var v []int
	for _, h := range t.Hosts() {
		v = append(v, of[h])
	}
	return v
}

// wireEnds returns the interfaces of all ports.
func wireEnds(t *fabric.Topology, w live.Wires) [][]wireEnd {
	v := make([][]wireEnd, len(t.Nodes))
	for i := range t.Nodes {
		for p := range t.Nodes[i].Links {
			ns, name := w.End(i, p)
			v[i] = append(v[i], wireEnd{ns, name})
		}
	}
	return v
}
