package scenario

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"gswitch/fabric"
	"gswitch/fabric/workload"
	"gswitch/frame"
	"gswitch/section"
)

// entryKeys are the keys of an entry of the workload.
var entryKeys = func() map[string]bool {
	keys := map[string]bool{}
	t := reflect.TypeFor[Entry]()
	for i := range t.NumField() {
		keys[t.Field(i).Tag.Get("yaml")] = true
	}
	return keys
}()

func (e *Entry) bins() workload.Bins {
	var v workload.Bins
	for _, b := range e.Bins {
		v = append(v, workload.Bin{Share: b.Share, Min: uint64(b.Min), Max: uint64(b.Max)})
	}
	return v
}

// sizes returns the distribution of flow sizes.
func (e *Entry) sizes(dir string) (workload.Sizes, error) {
	switch {
	case e.Sizes != "":
		return sizesOf(e.Sizes, dir)
	case len(e.Bins) > 0:
		return e.bins(), nil
	}
	return workload.Fixed(e.Size), nil
}

// Source creates the source of the entry's flows. Files of the document are relative to
// dir.
func (e *Entry) Source(d *Document, t *fabric.Topology, dir string, seed uint64) (workload.Source, error) {
	from, err := FindHosts(t, e.From)
	if err != nil {
		return nil, err
	}
	to, err := FindHosts(t, e.To)
	if err != nil {
		return nil, err
	}
	if len(e.From) == 0 && len(to) == 1 {
		from = without(from, to[0])
	}
	start, stop := frame.Time(e.Start), frame.Time(cmp.Or(e.Stop, d.Duration))
	every, size := frame.Time(e.Every), uint64(e.Size)
	switch e.Kind {
	case "poisson":
		return e.poisson(t, dir, from, to, start, stop, seed)
	case "incast":
		return e.incast(t, from, to, start, stop, seed)
	case "permutation", "all-to-all":
		return source(workload.NewRounds(workload.RoundsConfig{From: from, To: to, AllToAll: e.Kind == "all-to-all", Bytes: size, Count: e.Count, Every: every, Start: start, Stop: stop, Seed: seed}))
	case "retrievals":
		return e.retrievals(from, to, start, stop, seed)
	case "requests":
		return e.requests(t, dir, from, to, start, stop, seed)
	case "partition-aggregate":
		return source(workload.NewPartitionAggregate(workload.PartitionAggregateConfig{From: from, To: to, Fanin: cmp.Or(e.Fanin, len(to)-overlap(from, to)), Query: size, Response: uint64(e.Response),
			Rate: e.Rate, Count: e.Count, Start: start, Stop: stop, Seed: seed}))
	case "saturate":
		return source(workload.NewSaturate(workload.SaturateConfig{From: from, To: to, Conns: cmp.Or(e.Conns, 1), Bytes: cmp.Or(size, 1_000_000), Outstanding: cmp.Or(e.Outstanding, 2),
			Start: start, Join: frame.Time(e.Join), Jitter: frame.Time(e.Jitter), Stop: stop, Leave: frame.Time(e.Leave), Seed: seed}))
	case "periodic":
		return source(workload.NewPeriodic(workload.PeriodicConfig{From: from, To: to, Bytes: size, Every: every, Count: e.Count, Persistent: e.Persistent, Start: start, Stop: stop}))
	case "collective":
		op := slices.Index(operations, e.Operation)
		return source(workload.NewCollective(workload.CollectiveConfig{Ranks: from, Op: workload.Operation(op), Trees: e.Algorithm == "trees", Bytes: size, Pieces: cmp.Or(e.Pieces, 1),
			Count: e.Count, Think: frame.Time(e.Think), Start: start, Stop: stop}))
	case "trace":
		return e.trace(t, dir, start, stop)
	case "flows":
		return e.list(t, start)
	}
	return nil, fmt.Errorf("kind %q is not known", e.Kind)
}

// without returns v without host h.
func without(v []int32, h int32) []int32 {
	return slices.DeleteFunc(slices.Clone(v), func(x int32) bool { return x == h })
}

// source passes on the result of a constructor without turning a nil pointer into a
// non-nil interface.
func source[S workload.Source](s S, err error) (workload.Source, error) {
	if err != nil {
		return nil, err
	}
	return s, nil
}

// overlap returns 1 if a sender is also a receiver, and therefore never sends to all of
// them.
func overlap(from, to []int32) int {
	for _, s := range from {
		for _, d := range to {
			if s == d {
				return 1
			}
		}
	}
	return 0
}

func (e *Entry) poisson(t *fabric.Topology, dir string, from, to []int32, start, stop frame.Time, seed uint64) (workload.Source, error) {
	sizes, err := e.sizes(dir)
	if err != nil {
		return nil, err
	}
	c := workload.PoissonConfig{From: from, To: to, Sizes: sizes, Rate: e.Rate, Start: start, Stop: stop, Limit: e.Count, Seed: seed, Rack: racks(t),
		Response: uint64(e.Response), Persistent: e.Persistent}
	switch e.Pick {
	case "permutation":
		c.Pick = workload.Paired
	case "other-rack":
		c.Pick = workload.OtherRack
	}
	weight, capacity, err := e.capacity(t, from, to)
	if err != nil {
		return nil, err
	}
	c.Weight = weight
	if e.Load > 0 {
		c.Rate = e.Load * capacity / 8 / sizes.Mean()
	}
	return source(workload.NewPoisson(c))
}

// capacity returns how much senders may send in all until what load_on names is full,
// in bit/s, and how it is divided among them: by the rates of their links.
func (e *Entry) capacity(t *fabric.Topology, from, to []int32) (weight []float64, sum float64, err error) {
	hosts := t.Hosts()
	for _, h := range from {
		w := float64(hostLink(t, hosts[h]).Rate)
		weight = append(weight, w)
		sum += w
	}
	if e.On == "hosts" {
		return weight, sum, nil
	}
	p, err := FindPort(t, e.On)
	if err != nil {
		return nil, 0, err
	}
	share := linkShare(t, from, to, p, e.Pick == "other-rack")
	if share == 0 {
		return nil, 0, fmt.Errorf("no flow between these hosts passes %s, so no load can be put on it", e.On)
	}
	return weight, float64(t.Links[t.Nodes[p.Node].Links[p.Port]].Rate) / share, nil
}

func (e *Entry) requests(t *fabric.Topology, dir string, from, to []int32, start, stop frame.Time, seed uint64) (workload.Source, error) {
	sizes, err := e.sizes(dir)
	if err != nil {
		return nil, err
	}
	c := workload.RequestsConfig{From: from, To: to, Outstanding: cmp.Or(e.Outstanding, 1), Request: sizes, Response: uint64(e.Response),
		Think: frame.Time(e.Think), Persistent: e.Persistent, Pairs: e.Pairs, Count: e.Count, Start: start, Stop: stop, Seed: seed}
	if e.Load > 0 {
		weight, capacity, err := e.capacity(t, from, to)
		if err != nil {
			return nil, err
		}
		sum := 0.0
		for _, w := range weight {
			sum += w
		}
		for _, w := range weight {
			c.Rate = append(c.Rate, e.Load*capacity/8/sizes.Mean()*w/sum)
		}
	}
	return source(workload.NewRequests(c))
}

func (e *Entry) incast(t *fabric.Topology, from, to []int32, start, stop frame.Time, seed uint64) (workload.Source, error) {
	c := workload.IncastConfig{From: from, To: to, Fanin: cmp.Or(e.Fanin, len(from)-overlap(from, to)), Bytes: uint64(e.Size), Total: uint64(e.Total), Random: e.Senders == "random",
		Rate: e.Rate, Every: frame.Time(e.Every), Count: e.Count, Jitter: frame.Time(e.Jitter), Start: start, Stop: stop, Seed: seed}
	if e.Size > 0 && e.Total > 0 {
		return nil, fmt.Errorf("size and total exclude each other")
	}
	if e.Load > 0 {
		capacity := 0.0
		for _, h := range t.Hosts() {
			capacity += float64(hostLink(t, h).Rate)
		}
		c.Rate = e.Load * capacity / 8 / float64(max(c.Total, c.Bytes*uint64(c.Fanin)))
	}
	if c.Rate > 0 && c.Every > 0 {
		return nil, fmt.Errorf("events come either every so often or as a Poisson process (load, rate), not both")
	}
	if c.Rate == 0 && c.Every == 0 && c.Count == 0 {
		c.Count = 1
	}
	return source(workload.NewIncast(c))
}

func (e *Entry) list(t *fabric.Topology, start frame.Time) (workload.Source, error) {
	var v []workload.Flow
	for i, f := range e.Flows {
		src, err := FindHosts(t, []string{f.From})
		if err != nil {
			return nil, fmt.Errorf("flows[%d].from: %w", i, err)
		}
		dst, err := FindHosts(t, []string{f.To})
		if err != nil {
			return nil, fmt.Errorf("flows[%d].to: %w", i, err)
		}
		if len(src) != 1 || len(dst) != 1 {
			return nil, fmt.Errorf("flows[%d] goes from one host to one host", i)
		}
		v = append(v, workload.Flow{At: start + frame.Time(f.At), Src: src[0], Dst: dst[0], Bytes: uint64(f.Size), Conn: -1, Event: uint32(i)})
	}
	if len(v) == 0 {
		return nil, fmt.Errorf("flows is empty")
	}
	return source(workload.NewList(v))
}

// operations are the names of workload.Operation, in its order.
var operations = []string{"all-reduce", "reduce-scatter", "all-gather", "all-to-all"}

// trace reads the flows of a file. Flows from stop on are left out.
func (e *Entry) trace(t *fabric.Topology, dir string, start, stop frame.Time) (workload.Source, error) {
	v, err := flowsOf(e.File, e.Run, dir, t)
	if err != nil {
		return nil, err
	}
	for i := range v {
		if v[i].At += start; e.Persistent {
			v[i].Conn = 0
		}
	}
	v = slices.DeleteFunc(v, func(f workload.Flow) bool { return f.At >= stop })
	if len(v) == 0 {
		return nil, fmt.Errorf("%s: all flows start after stop", e.File)
	}
	return source(workload.NewList(v))
}

func hostLink(t *fabric.Topology, node int) *fabric.Link { return &t.Links[t.Nodes[node].Links[0]] }

// racks numbers hosts by the switch to which they are linked.
func racks(t *fabric.Topology) []int32 {
	var v []int32
	for _, h := range t.Hosts() {
		v = append(v, int32(t.Peer(h, 0).Node))
	}
	return v
}

// linkShare returns the share of the bytes between uniformly chosen senders and receivers
// that passes a link, if equal-cost paths share evenly at each switch.
func linkShare(t *fabric.Topology, from, to []int32, p Port, otherRack bool) float64 {
	hosts := t.Hosts()
	rack := racks(t)
	total := 0.0
	for _, src := range from {
		pairs, sum := 0, 0.0
		for _, dst := range to {
			if dst == src || otherRack && rack[src] == rack[dst] {
				continue
			}
			pairs++
			sum += passes(t, hosts[src], hosts[dst], p)
		}
		if pairs > 0 {
			total += sum / float64(pairs)
		}
	}
	return total / float64(len(from))
}

// passes returns the share of the traffic from src to dst that leaves p.Node through
// p.Port.
func passes(t *fabric.Topology, src, dst int, p Port) float64 {
	dist := t.HopsTo(dst)
	flow := make([]float64, len(t.Nodes))
	flow[src] = 1
	// Nodes in order of decreasing distance: all inflow of a node is known when it is
	// visited.
	for d := dist[src]; d > 0; d-- {
		for n := range t.Nodes {
			if dist[n] != d || flow[n] == 0 {
				continue
			}
			var next []int
			for q := range t.Nodes[n].Links {
				if m := t.Peer(n, q).Node; dist[m] == d-1 {
					next = append(next, q)
				}
			}
			for _, q := range next {
				part := flow[n] / float64(len(next))
				if n == p.Node && q == p.Port {
					return part
				}
				flow[t.Peer(n, q).Node] += part
			}
		}
	}
	return 0
}

// Schema returns the JSON Schema of scenario files.
func Schema() []byte { return section.Schema("gfabric scenario", new(Document)) }

// Summary returns a short description of the entry.
func (e *Entry) Summary() string {
	s := e.Kind
	switch {
	case e.Sizes != "":
		s += " of " + e.Sizes
	case len(e.Bins) > 0:
		s += " of bins"
	case e.Size > 0:
		s += " of " + e.Size.String()
	case e.Total > 0:
		s += " of " + e.Total.String() + " in all"
	}
	if e.Load > 0 {
		s += fmt.Sprintf(" at load %g", e.Load)
	}
	if len(e.From) > 0 {
		s += " from " + strings.Join(e.From, " ")
	}
	if len(e.To) > 0 {
		s += " to " + strings.Join(e.To, " ")
	}
	if e.CC != "" {
		s += ", " + e.CC
	}
	return s
}
