package run

import (
	"fmt"

	"gswitch/cc"
	"gswitch/config"
	"gswitch/fabric/observe"
	_ "gswitch/fabric/observe/all" // measurements of registered systems
	"gswitch/fabric/scenario"
	"gswitch/fabric/vnet"
	"gswitch/feature"
	"gswitch/frame"
	"gswitch/hostnic"
	inband "gswitch/int"
	"gswitch/transport"
)

// network builds what the document of a run describes, on the given engine or, if that is
// nil, in virtual time.
func network(r *scenario.Run, e vnet.EngineMaker) (*vnet.Network, error) {
	return build(r, e, extras{})
}

// extras are settings of a network that are not in its document.
type extras struct {
	pauses int // that each switch keeps
	cores  int
	part   func(node int) int
	change []func(*vnet.Config) // changes by the observers of the run
}

// build is network with extras.
func build(r *scenario.Run, e vnet.EngineMaker, x extras) (*vnet.Network, error) {
	c, err := describe(r, e != nil)
	if err != nil {
		return nil, err
	}
	c.Engine, c.PauseLog, c.Cores, c.Part = e, x.pauses, x.cores, x.part
	for _, change := range x.change {
		change(c)
	}
	return vnet.Build(c)
}

// served merges what a document says about egress queues.
func served(d *scenario.Document) config.Queue {
	s := &d.Switch
	q := config.Queue{Ranking: s.Ranking}
	if s.Order.Kind != "" {
		q.Order = &s.Order
	}
	if s.Admission.Kind != "" {
		q.Admission = &s.Admission
	}
	q.Policy, q.Shadow = s.Policies()
	return q
}

// describe translates the document of a run, for real frames or for virtual time.
func describe(r *scenario.Run, real bool) (*vnet.Config, error) {
	d := r.Doc
	h := &d.Hosts
	rtt, err := h.RTT()
	if err != nil {
		return nil, err
	}
	turn, err := h.TurnBytes()
	if err != nil {
		return nil, err
	}
	c := &vnet.Config{
		Topology: r.Topology, Seed: r.Seed, Payload: int(h.Payload), WholeNs: d.Link.WholeNs, BaseRTT: rtt,
		Sizes:  hostnic.Sizes{Data: h.Sizes.Data, Ack: h.Sizes.Ack, AckINT: h.Sizes.AckINT, PFC: h.Sizes.PFC},
		Buffer: d.Switch.Buffer,
		PFC:    vnet.PFC{On: d.PFC.Enabled, Pausing: d.PFC.Pausing},
		Queue:  served(d), PushOut: d.Switch.PushOut, VOQ: d.Switch.VOQ, RTTs: d.Measure.RTT,
	}
	live, shadow := d.Switch.Policies()
	c.OneQueue = live != nil || shadow != nil
	if c.OneQueueAt, err = d.Switch.Classless(); err != nil {
		return nil, err
	}
	c.Overhead = d.Link.Framing.Bytes()
	for _, class := range d.PFC.Classes {
		c.PFC.Classes |= 1 << class
	}
	if e := &d.Switch.ECN; e.On() {
		c.ECN = vnet.ECN{On: true, ECN: e.ECN, PI: e.PI, At: uint64(e.At)}
	}
	c.INT = vnet.INT{Mode: telemetry(r), Stamp: d.Switch.INT.Record()}
	for _, f := range d.Features() {
		on := vnet.Feature{Name: f.Name, BothEnds: f.BothEnds && !h.Has(f.Name), Options: f.Section.Options}
		for _, class := range f.Classes {
			on.Queues |= 1 << class
		}
		c.Features = append(c.Features, on)
	}
	for _, f := range d.Wholes() {
		c.Wholes = append(c.Wholes, vnet.Whole{Name: f.Name, Options: f.Section.Options})
	}
	c.Paths = d.Switch.Paths
	for _, x := range d.Switch.Detours {
		c.Detours = append(c.Detours, vnet.Detour{At: x.At, To: x.To, Via: x.Via, From: frame.Time(x.From)})
	}
	for i, w := range h.Weights {
		c.Weights[i] = uint32(w)
	}
	c.Host = vnet.Host{Class: uint8(h.Class), CNP: hostnic.CNPConfig{Frames: h.CNP.Frames, Interval: frame.Time(h.CNP.Interval)},
		Writes: h.Verb == "write", Overshoot: h.Overshoot, Turn: turn, Segment: uint32(h.Segment), SegmentRate: uint64(h.SegmentRate), LazyPacing: h.LazyPacing,
		RTTNoise: frame.Time(h.RTTNoise), PaceJitter: h.PaceJitter, MarkAbove: uint32(h.MarkAbove), QuenchAfter: frame.Time(*h.QuenchAfter), NoticeDelay: frame.Time(h.NoticeDelay)}
	if c.Host.First, err = h.Policy.First(); err != nil {
		return nil, err
	}
	if h.AckClass != nil {
		c.Host.AckClass = vnet.InClass(uint8(*h.AckClass))
	}
	if d.Streams() {
		c.Streams = vnet.Streams{On: true, Delay: frame.Time(h.TCP.Delay), Jitter: frame.Time(h.TCP.Jitter)}
	}
	c.Host.Options = h.Options
	c.Host.LowClasses = h.Transport.LowClasses(h.Class)
	if c.Host.Transport, c.Host.Recovery, err = recovery(&h.Transport); err != nil {
		return nil, err
	}
	if c.Host.CC, err = algorithm(h.CC, h.Params); err != nil {
		return nil, err
	}
	noPFC := map[string]bool{}
	for i := range h.Overrides {
		if o := &h.Overrides[i]; o.PFC != nil && !*o.PFC {
			if err := each(r, o.Hosts, func(name string) { noPFC[name] = true }); err != nil {
				return nil, err
			}
		}
	}
	c.AdjustHost = func(name string, c *hostnic.Config) {
		if noPFC[name] {
			c.PFC, c.PFCStages = false, 0
		}
	}
	for _, s := range observe.Of(d) {
		if s.Configure == nil {
			continue
		}
		if err := s.Configure(r, real, c); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// each calls visit with the names of hosts.
func each(r *scenario.Run, names []string, visit func(string)) error {
	hosts, err := scenario.FindHosts(r.Topology, names)
	all := r.Topology.Hosts()
	for _, h := range hosts {
		visit(r.Topology.Nodes[all[h]].Name)
	}
	return err
}

// telemetry returns the telemetry format of data frames. A run has one, since one parser
// serves them all. It has room for the longest path.
func telemetry(r *scenario.Run) inband.Mode {
	d := r.Doc
	if m, named := inband.ParseMode(d.Switch.INT.Mode); named {
		return m
	}
	names := []string{d.Hosts.CC}
	for i := range d.Hosts.Overrides {
		names = append(names, d.Hosts.Overrides[i].CC)
	}
	for i := range d.Workload {
		names = append(names, d.Workload[i].CC)
	}
	for _, name := range names {
		if in, ok := cc.Lookup(name); ok && in.Needs&feature.Telemetry != 0 {
			return inband.Fitting(r.Topology.LongestPath())
		}
	}
	return inband.None
}

// algorithm makes the congestion control of flows.
func algorithm(name string, p scenario.Params) (vnet.Algorithm, error) {
	make, err := scenario.Congestion(name, p)
	return vnet.Algorithm{Name: name + fmt.Sprint(p), New: make}, err
}

// recovery reads the options of the recovery scheme. A key of the document that means the
// same as an option applies if it is set.
func recovery(t *scenario.Transport) (transport.Config, vnet.Recovery, error) {
	n, err := t.Packets()
	if err != nil {
		return transport.Config{}, vnet.Recovery{}, err
	}
	c, err := t.Recovery()
	c.Cap, c.RTOLow, c.RTOHigh, c.AckEvery = uint32(max(0, n)), frame.Time(t.RTOLow), frame.Time(t.RTOHigh), uint32(t.AckEvery)
	return c, vnet.Recovery{Cap: n < 0, RTOs: t.AutoRTO}, err
}
