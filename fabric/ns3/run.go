package ns3

import (
	"context"
	"fmt"
	"time"

	"gswitch/fabric/vnet"
	"gswitch/frame"
)

// Options say how to run.
type Options struct {
	Algorithm string
	Seed      uint64
	// Until is the virtual time at which flows that have not ended are abandoned:
	// 0 takes 4 s, as the published script does, or two seconds after the last
	// start, if that is later.
	Until frame.Time
	// Progress, where not nil, is called every now and then.
	Progress func(Progress)
}

// Progress is how far a run has come.
type Progress struct {
	Now      frame.Time
	Started  int
	Finished int
	Flows    int
	Events   uint64
	Wall     time.Duration
	Left     time.Duration // estimated, 0 while unknown
}

// Result is what came of a run.
type Result struct {
	Flows      []FCT // in the order of their ends
	Offered    int
	Unfinished int

	Pauses  vnet.Pauses
	Drops   [frame.NumReasons]uint64
	Retrans uint64 // frames sent again

	// Unsteered flows take another of several equal paths than they would in
	// the simulator, since no port number was found by which the switches'
	// hashes choose the same.
	Unsteered int

	Events, FrameHops uint64
	Wall              time.Duration // of the run, without building the network
	Digest            string
}

// step is how much virtual time passes between two looks at the surroundings.
const step = 100 * frame.Microsecond

// Run runs the flows over the topology until all have ended, ctx has or time
// is up. What finished by then is in the result, also where the error is not
// nil.
func Run(ctx context.Context, t *Topology, flows []Flow, o Options) (*Result, error) {
	r, err := newRun(t, flows, &o)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	shown := began
	for err == nil && len(r.result.Flows) < len(flows) && r.net.Engine.Now() < o.Until {
		if err = ctx.Err(); err != nil {
			break
		}
		err = r.net.Engine.Run(r.until(o.Until))
		if err == nil {
			err = r.failed()
		}
		if o.Progress != nil && time.Since(shown) > time.Second/2 {
			shown = time.Now()
			o.Progress(r.progress(time.Since(began)))
		}
	}
	r.result.Wall = time.Since(began)
	r.finish()
	return &r.result, err
}

// run is a run under way.
type run struct {
	net    *vnet.Network
	flows  []Flow
	host   []int // host by node
	routes *routes
	ports  map[[2]int]uint16 // source port of the next flow, by source and destination
	sport  []uint16          // by flow
	next   int               // the first flow that has not started
	err    error
	result Result
}

// firstPort is the source port of the first flow between two hosts; each
// further one takes the next.
const firstPort = 10000

func newRun(t *Topology, flows []Flow, o *Options) (*run, error) {
	f, err := t.Fabric("ns3")
	if err != nil {
		return nil, err
	}
	for i := range t.Links {
		if t.Links[i].Loss != 0 {
			return nil, fmt.Errorf("the link %d - %d loses frames; that is not supported here, write 0", t.Links[i].A, t.Links[i].B)
		}
	}
	cfg, err := Profile(f, o.Algorithm)
	if err != nil {
		return nil, err
	}
	cfg.Seed = o.Seed
	cfg.PFC.Classes = lossless(flows)
	r := &run{flows: flows, routes: newRoutes(t), ports: map[[2]int]uint16{}, sport: make([]uint16, len(flows))}
	r.result.Offered = len(flows)
	if r.net, err = vnet.Build(cfg); err != nil {
		return nil, err
	}
	r.host = make([]int, t.Nodes)
	for n := range r.host {
		h, ok := r.net.HostByName(t.Name(n))
		if r.host[n] = h; !ok {
			r.host[n] = -1
		}
	}
	for i := range flows {
		if r.host[flows[i].Src] < 0 || r.host[flows[i].Dst] < 0 {
			return nil, fmt.Errorf("flow %d goes from node %d to node %d, but one of them has no link", i+1, flows[i].Src, flows[i].Dst)
		}
	}
	if o.Until == 0 {
		o.Until = stopTime
		if len(flows) > 0 {
			o.Until = max(o.Until, flows[len(flows)-1].Start+2*frame.Second)
		}
	}
	r.net.OnDone(r.done)
	if len(flows) > 0 {
		r.net.Engine.At(flows[0].Start, r.start)
	}
	return r, nil
}

// lossless are the classes that flows use, all but that of control where there are none. A
// class that nobody uses would take its reserve and headroom from what all share; that
// simulator takes them once for each port, whatever the number of classes.
func lossless(flows []Flow) (classes uint8) {
	for i := range flows {
		classes |= 1 << flows[i].Class
	}
	if classes &^= 1; classes == 0 {
		return 0xfe
	}
	return classes
}

// until is where the next piece of the run ends: at once where nothing can
// happen before the next flow.
func (r *run) until(limit frame.Time) frame.Time {
	t := r.net.Engine.Now() + step
	if r.next < len(r.flows) && r.next == len(r.result.Flows) {
		t = max(t, r.flows[r.next].Start)
	}
	return min(t, limit)
}

func (r *run) failed() error {
	if r.err != nil {
		return r.err
	}
	return r.net.Err()
}

// start starts the flows that are due, and comes again for the next.
func (r *run) start(now frame.Time) {
	for ; r.next < len(r.flows) && r.flows[r.next].Start <= now; r.next++ {
		if err := r.startFlow(now, r.next); err != nil && r.err == nil {
			r.err = fmt.Errorf("flow %d: %w", r.next+1, err)
		}
	}
	if r.next < len(r.flows) {
		r.net.Engine.At(r.flows[r.next].Start, r.start)
	}
}

func (r *run) startFlow(now frame.Time, i int) error {
	f := &r.flows[i]
	pair := [2]int{f.Src, f.Dst}
	sport := firstPort + r.ports[pair]
	r.ports[pair]++
	r.sport[i] = sport
	v := vnet.Flow{ID: uint64(i), Src: r.host[f.Src], Dst: r.host[f.Dst], Bytes: f.Bytes, Class: vnet.InClass(f.Class)}
	ok := r.steer(&v, f, sport)
	if !ok {
		r.result.Unsteered++
	}
	return r.net.StartFlow(now, &v)
}

// tries bounds the search for a port number: enough for thousands of paths.
const tries = 1 << 13

// steer gives a flow the port numbers by which the switches of the network
// choose the paths that the simulator's would, each way.
func (r *run) steer(v *vnet.Flow, f *Flow, sport uint16) bool {
	there := r.search(v.Src, v.Dst, r.routes.path(f.Src, f.Dst, sport, f.DstPort), false)
	back := r.search(v.Dst, v.Src, r.routes.path(f.Dst, f.Src, f.DstPort, sport), true)
	v.SrcPort, v.AckPort = there, back
	return there != 0 && back != 0
}

func (r *run) search(src, dst int, nodes []int, ack bool) uint16 {
	for i := range uint16(tries) {
		// Ports of the dynamic range, with a stride that is odd.
		port := 0xc000 | (uint16(src*31+dst*17)+i*5)&0x3fff
		ports, err := r.net.Route(src, dst, port, ack)
		if err != nil || len(ports) != len(nodes)-1 {
			return 0
		}
		same := true
		for k, p := range ports {
			// nodes[k] is the switch of ports[k], nodes[k+1] what comes after.
			same = same && r.net.Neighbour(p) == r.routes.t.Name(nodes[k+1])
		}
		if same {
			return port
		}
	}
	return 0
}

func (r *run) done(_ frame.Time, d *vnet.Done) {
	i := int(d.Flow.ID)
	f := &r.flows[i]
	r.result.Flows = append(r.result.Flows, FCT{
		Src: AddrOf(f.Src), Dst: AddrOf(f.Dst), SrcPort: r.sport[i], DstPort: f.DstPort, Bytes: f.Bytes,
		Start: d.Start, Time: d.SenderEnd - d.Start, Standalone: r.net.IdealNS3(d.Flow.Src, d.Flow.Dst, f.Bytes, dataHeader),
	})
}

func (r *run) progress(wall time.Duration) Progress {
	p := Progress{Now: r.net.Engine.Now(), Started: r.next, Finished: len(r.result.Flows), Flows: len(r.flows), Events: r.net.Engine.Stats().Events, Wall: wall}
	if p.Finished > 0 {
		p.Left = time.Duration(float64(wall) * float64(p.Flows-p.Finished) / float64(p.Finished))
	}
	return p
}

// finish reads the counters.
func (r *run) finish() {
	s := r.net.Engine.Stats()
	x := &r.result
	x.Unfinished = x.Offered - len(x.Flows)
	x.Events, x.FrameHops, x.Digest = s.Events, s.FrameHops, r.net.Engine.Digest()
	x.Pauses, x.Drops = r.net.Pauses(r.net.Engine.Now()), r.net.Drops()
	x.Retrans = r.net.Counts().Retransmits
}
