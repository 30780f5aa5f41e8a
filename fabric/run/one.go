package run

import (
	"context"
	"sync/atomic"
	"time"

	"gswitch/fabric"
	"gswitch/fabric/live"
	"gswitch/fabric/measure"
	"gswitch/fabric/observe"
	"gswitch/fabric/results"
	"gswitch/fabric/scenario"
	"gswitch/fabric/vnet"
	"gswitch/frame"
)

// pieces is the number of parts into which a run is cut. Between two parts it checks
// whether it was interrupted or is done, and updates its progress.
const pieces = 500

// one executes a run.
func one(ctx context.Context, s *scenario.Scenario, r *scenario.Run, h *host, p *progress) (out *results.Run, err error) {
	if h.real() && h.o.Live.Division != live.Together {
		return divided(ctx, s, r, h, p)
	}
	began := time.Now()
	var record *live.Record
	if h.real() && h.again == nil {
		if record, err = h.record(s, r); err != nil {
			return nil, err
		}
	}
	e, err := h.maker(ctx, r, record)
	if err != nil {
		return nil, err
	}
	x := extras{pauses: h.o.Pauses, cores: h.o.Cores, part: h.o.Part}
	watching, err := observers(ctx, s, r, h)
	if err != nil {
		return nil, err
	}
	for _, o := range watching {
		if o.Network != nil {
			x.change = append(x.change, o.Network)
		}
	}
	n, err := build(r, e, x)
	if err != nil {
		return nil, err
	}
	// A run that lost track of frames is worthless.
	defer func() {
		if e := n.Engine.Close(); err == nil && e != nil {
			out, err = nil, e
		}
	}()
	if h.built != nil {
		h.built(n)
	}
	rec, ports := recorder(n, r)
	t, err := newTraffic(ctx, n, here{n}, rec, r, s.File)
	if err != nil {
		return nil, err
	}
	t.listen(rec)
	for _, o := range watching {
		if o.Built != nil {
			o.Built(n)
		}
	}
	t.begin()
	var over atomic.Bool
	sample(ctx, n, rec, t, r, ports, &over)
	for _, o := range watching {
		if o.Begin == nil {
			continue
		}
		if err := o.Begin(n, rec); err != nil {
			return nil, err
		}
	}
	if err := inject(n, r); err != nil {
		return nil, err
	}
	if h.real() {
		defer context.AfterFunc(ctx, func() { n.Engine.Stop(ctx.Err()) })()
	}
	defer h.watch(n, s, r, watching)()
	end := frame.Time(r.Doc.Duration)
	for k := frame.Time(1); k <= pieces; k++ {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		until := end / pieces * k
		if k == pieces {
			until = end
		}
		if err := n.Engine.Run(until); err != nil {
			return nil, err
		}
		p.set(until, n.Engine.Stats().Events)
		p.ask(n.Engine)
		if over.Load() {
			break
		}
	}
	if err := n.Halt(); err != nil {
		return nil, err
	}
	if err := n.Err(); err != nil {
		return nil, err
	}
	if rec.Closed() == frame.Never {
		rec.Close(end)
	}
	if r.Doc.Measure.Ideal == "simulated" {
		if err := alone(ctx, r, rec); err != nil {
			return nil, err
		}
	}
	st := n.Engine.Stats()
	out = &results.Run{Name: r.Name, Engine: h.name(), Timing: timing(n), Seed: r.Seed, Digest: n.Engine.Digest(), VirtualTime: rec.Closed().Seconds(), WallTime: time.Since(began).Seconds(),
		Events: st.Events, FrameHops: st.FrameHops, Values: map[string]float64{}}
	point(n, r, out)
	h.noteRecord(record, n, out)
	rec.Result(out)
	counters(n, out)
	for _, o := range watching {
		if o.Finish == nil {
			continue
		}
		if err := o.Finish(n, out); err != nil {
			return nil, err
		}
	}
	if h.o.Pauses > 0 {
		out.Pauses = n.PauseTrace(n.Engine.Now())
		if h.o.Out != "" {
			out.Pauses.Pauses = nil // too many for results.json
		}
	}
	return out, nil
}

// observers returns what observes a run, ordered by the name of the system.
func observers(ctx context.Context, s *scenario.Scenario, r *scenario.Run, h *host) (v []*observe.Observer, err error) {
	run := &observe.Run{Run: r, Real: h.real(), Dir: h.o.Out, Program: h.o.Version,
		Rehearse: func(ctx context.Context, change func(*vnet.Config)) error { return rehearse(ctx, s, r, change) }}
	for _, of := range observe.Of(r.Doc) {
		o, err := of.New(ctx, run)
		if err != nil {
			return nil, err
		}
		v = append(v, o)
	}
	return v, nil
}

// point records the values of the sweep, and warns about settings that are seldom meant.
func point(n *vnet.Network, r *scenario.Run, out *results.Run) {
	out.Warnings = append(r.Doc.Warnings(), r.Doc.Unreachable(n.Derived.BaseRTT)...)
	for _, set := range r.Point {
		if out.Params == nil {
			out.Params = map[string]string{}
		}
		out.Params[set.Key] = set.Value
	}
}

// recorder creates the recorder of a run and the ports that it samples: those of its
// queues, and of the links that are measured.
func recorder(n *vnet.Network, r *scenario.Run) (*measure.Recorder, sampled) {
	m := &r.Doc.Measure
	c := measure.Config{Groups: r.Doc.Groups(), Frame: uint64(r.Doc.Hosts.Payload), Sample: frame.Time(m.Sample), Bin: frame.Time(m.Bin),
		Warmup: frame.Time(m.Warmup), End: frame.Time(r.Doc.Duration), Low: float64(m.Low), Series: m.Series}
	for i := range r.Doc.Workload {
		c.Streams = append(c.Streams, r.Doc.Workload[i].Kind == "saturate")
	}
	for _, b := range m.Buckets {
		c.Buckets = append(c.Buckets, uint64(b))
	}
	for _, s := range m.Sizes {
		c.Sizes = append(c.Sizes, measure.Sizes{Name: s.Name, From: uint64(s.From), To: uint64(s.To)})
	}
	for i := range m.Windows {
		c.Windows = append(c.Windows, window(&m.Windows[i]))
	}
	group := func(name string) int {
		for i, g := range c.Groups {
			if g == name {
				return i
			}
		}
		return -1
	}
	for i := range m.Events {
		e := &m.Events[i]
		v := measure.Event{Name: e.Name, At: frame.Time(e.At), Starts: group(e.Starts), Ends: group(e.Ends), Below: uint64(e.Below), Drains: e.Below > 0, Goodput: group(e.Goodput), Share: e.Share, Reaches: float64(e.Reaches)}
		if e.Before != nil {
			v.Before = window(e.Before)
		}
		c.Events = append(c.Events, v)
	}
	ports := queues(n, r, &c)
	return measure.New(c), ports
}

func window(w *scenario.Window) measure.Window {
	return measure.Window{Name: w.Name, From: frame.Time(w.From), To: frame.Time(w.To)}
}

// sampled are the ports behind a recorder's queues and links.
type sampled struct {
	queues []vnet.Port
	links  []func() uint64 // bytes carried so far
}

func queues(n *vnet.Network, r *scenario.Run, c *measure.Config) (v sampled) {
	t := r.Topology
	named := map[vnet.Port]bool{}
	all := len(r.Doc.Measure.Queues) == 0
	for _, name := range r.Doc.Measure.Queues {
		if name == "all" {
			all = true
			continue
		}
		p, err := scenario.FindPort(t, name)
		if err != nil {
			continue // checked when the document was read
		}
		sw, _ := n.SwitchByName(t.Nodes[p.Node].Name)
		port := vnet.Port{Switch: sw, Port: p.Port}
		named[port] = true
		v.queues = append(v.queues, port)
		c.Queues = append(c.Queues, measure.Queue{Name: name, Trace: true})
	}
	if all {
		for sw, node := range t.Switches() {
			for p := range t.Nodes[node].Links {
				if port := (vnet.Port{Switch: sw, Port: p}); !named[port] {
					v.queues = append(v.queues, port)
					c.Queues = append(c.Queues, measure.Queue{Name: scenario.PortName(t, node, p)})
				}
			}
		}
	}
	names := r.Doc.Measure.Links
	if len(names) == 0 {
		for _, name := range r.Doc.Measure.Queues {
			if name != "all" {
				names = append(names, name)
			}
		}
	}
	for _, name := range names {
		if name == "hosts" {
			hosts := measure.Link{Name: name}
			for _, h := range t.Hosts() {
				hosts.Rate += float64(t.Links[t.Nodes[h].Links[0]].Rate)
			}
			c.Links = append(c.Links, hosts)
			v.links = append(v.links, func() (sent uint64) {
				for _, h := range n.Hosts {
					sent += h.Counts().LinkBytes
				}
				return sent
			})
			continue
		}
		p, err := scenario.FindPort(t, name)
		if err != nil {
			continue
		}
		c.Links = append(c.Links, measure.Link{Name: name, Rate: float64(t.Links[t.Nodes[p.Node].Links[p.Port]].Rate)})
		if t.Nodes[p.Node].Kind == fabric.Host {
			h, _ := n.HostByName(t.Nodes[p.Node].Name)
			v.links = append(v.links, func() uint64 { return n.Hosts[h].Counts().LinkBytes })
			continue
		}
		sw, _ := n.SwitchByName(t.Nodes[p.Node].Name)
		port := vnet.Port{Switch: sw, Port: p.Port}
		v.links = append(v.links, func() uint64 { return n.Sent(port) })
	}
	return v
}

// sample schedules a call for each sample and bin, and sets over when all flows are done.
func sample(ctx context.Context, n *vnet.Network, rec *measure.Recorder, t *traffic, r *scenario.Run, ports sampled, over *atomic.Bool) {
	m := &r.Doc.Measure
	depth := func(i int) uint64 { return n.Queue(ports.queues[i]) }
	sent := func(i int) uint64 { return ports.links[i]() }
	finite := r.Doc.Until == "done"
	every := frame.Time(m.Sample)
	n.Publish(min(every, frame.Time(m.Bin)))
	n.Engine.Every(every, every, func(now frame.Time) {
		if err := ctx.Err(); err != nil {
			n.Engine.Stop(err)
		}
		rec.QueueSample(now, depth)
		if m.CC {
			t.inspect(now, rec)
		}
		if finite && rec.Closed() == frame.Never && t.idle() {
			rec.Close(now)
			over.Store(true)
		}
	})
	bin := frame.Time(m.Bin)
	n.Engine.Every(bin, bin, func(now frame.Time) {
		rec.LinkSample(now, sent)
		rec.GoodputSample(now, t.acknowledged)
	})
}

// inspect records internal variables of congestion control.
func (t *traffic) inspect(now frame.Time, rec *measure.Recorder) {
	rec.Traced(func(conn uint64, object string) {
		nic, qpn, ok := t.n.Sender(vnet.Conn(conn))
		if !ok {
			return
		}
		if v, err := nic.QP(qpn); err == nil {
			v.Inspect(func(name string, x float64) { rec.CCSample(now, object, name, x) })
		}
	})
}
