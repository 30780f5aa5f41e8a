package view

import (
	"cmp"
	"context"
	"math"
	"net/netip"
	"path/filepath"
	"slices"
	"sync"

	"github.com/gswitch/gswitch/config"
	"github.com/gswitch/gswitch/control"
	"github.com/gswitch/gswitch/control/api"
	"github.com/gswitch/gswitch/fabric"
	"github.com/gswitch/gswitch/fabric/lab"
)

// labHosts are the hosts of a fabric that run a ghost.
type labHosts struct {
	top    *fabric.Topology
	byAddr map[netip.Addr]int // node by address
	byNS   map[string]int     // node by namespace
	dist   map[int][]int      // hops to a switch that has hosts, from every node

	sockets map[string]*ghost
	acked   map[uint64]uint64 // at the sample before, by flow
}

// ghost is a daemon that was found.
type ghost struct {
	client api.HostClient
	node   int // -1: of no host of this fabric
}

func (h *labHosts) init(st *lab.Status) {
	h.top, h.byAddr, h.byNS = st.Topology, map[netip.Addr]int{}, map[string]int{}
	h.sockets, h.acked, h.dist = map[string]*ghost{}, map[uint64]uint64{}, map[int][]int{}
	for _, host := range st.Hosts {
		node, ok := st.Topology.Lookup(host.Name)
		if !ok {
			continue
		}
		h.byNS[host.Namespace] = node
		for _, a := range host.Addresses {
			h.byAddr[a.Addr()] = node
		}
	}
}

// labFlow is a queue pair that sends.
type labFlow struct {
	node int
	qp   *api.QueuePair
}

// flows asks the ghosts of the fabric's hosts. One that does not answer has
// none: hosts come and go.
func (h *labHosts) flows(ctx context.Context) (out []labFlow) {
	paths, _ := filepath.Glob(filepath.Join(config.HostSocketDir, "*.sock")) // the pattern is well formed
	for path := range h.sockets {
		if !slices.Contains(paths, path) {
			delete(h.sockets, path)
		}
	}
	var mu sync.Mutex
	var group sync.WaitGroup
	for _, path := range paths {
		g := h.sockets[path]
		if g == nil {
			g = &ghost{client: control.DialHost(path), node: -2}
			h.sockets[path] = g
		}
		if g.node == -1 {
			continue
		}
		group.Go(func() {
			if g.node == -2 && !h.place(ctx, g) {
				return
			}
			v, err := g.client.ListQueuePairs(ctx, &api.ListQueuePairsRequest{})
			if err != nil {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			for _, q := range v.QueuePairs {
				if q.TxFrames > 0 && q.Acked > 0 || q.InFlight > 0 {
					out = append(out, labFlow{g.node, q})
				}
			}
		})
	}
	group.Wait()
	return out
}

// place finds out which host a ghost is.
func (h *labHosts) place(ctx context.Context, g *ghost) bool {
	st, err := g.client.GetHost(ctx, &api.GetHostRequest{})
	if err != nil {
		return false
	}
	g.node = -1
	if node, ok := h.byNS[filepath.Base(st.Netns)]; ok {
		g.node = node
	}
	return g.node >= 0
}

// fill enters flows.
func (h *labHosts) fill(out *Sample, flows []labFlow, span float64) {
	acked := make(map[uint64]uint64, len(flows))
	for _, f := range flows {
		q := f.qp
		addr, err := netip.ParseAddr(q.Peer)
		if err != nil {
			continue
		}
		dst, ok := h.byAddr[addr]
		if !ok {
			continue
		}
		id := uint64(f.node)<<32 | uint64(q.Number)
		v := Flow{ID: id, Group: q.Service, Src: f.node, Dst: dst, Path: h.path(f.node, dst), Control: q.Congestion,
			Rate: math.Round(q.Rate), Window: uint64(q.Window), Flight: q.InFlight, Acked: q.Acked}
		if was, known := h.acked[id]; known && q.Acked >= was && span > 0 {
			v.Goodput = math.Round(float64(q.Acked-was) * 8 / span)
		}
		acked[id] = q.Acked
		for _, in := range q.Internals {
			if finite(in.Value) {
				if v.Inside == nil {
					v.Inside = map[string]float64{}
				}
				v.Inside[in.Name] = in.Value
			}
		}
		out.Flows = append(out.Flows, v)
	}
	h.acked = acked
	slices.SortFunc(out.Flows, func(a, b Flow) int { return cmp.Or(cmp.Compare(b.Goodput, a.Goodput), cmp.Compare(a.ID, b.ID)) })
	out.Open = len(out.Flows)
	out.Flows = out.Flows[:min(len(out.Flows), MaxFlows)]
}

// path is the way from a host to another where there is only one: which of
// several a switch chooses, only the switch knows.
func (h *labHosts) path(src, dst int) (path []End) {
	t := h.top
	last := t.Peer(dst, 0)
	dist := h.dist[last.Node]
	if dist == nil {
		dist = t.HopsTo(last.Node)
		h.dist[last.Node] = dist
	}
	for n := t.Peer(src, 0).Node; n != last.Node; {
		next := -1
		for p := range t.Nodes[n].Links {
			if m := t.Peer(n, p).Node; t.Nodes[m].Kind == fabric.Switch && dist[m] == dist[n]-1 {
				if next >= 0 {
					return nil
				}
				next = p
			}
		}
		if next < 0 {
			return nil
		}
		path = append(path, End{n, next})
		n = t.Peer(n, next).Node
	}
	return append(path, End{last.Node, last.Port})
}
