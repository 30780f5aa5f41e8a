package view

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"net/netip"
	"slices"

	"gswitch/control/api"
)

// queuePairs returns those of a ghost that send.
func (h *labHosts) queuePairs(ctx context.Context, g *ghost) (out []Flow, err error) {
	pairs, err := g.host.ListQueuePairs(ctx, &api.ListQueuePairsRequest{})
	if err != nil {
		return nil, err
	}
	transfers, err := g.host.ListFlows(ctx, &api.ListFlowsRequest{})
	if err != nil {
		return nil, err
	}
	type key struct {
		host   string
		number uint32
	}
	sends := map[key]*api.Flow{}
	for _, f := range transfers.Flows {
		if f.Direction == "tx" {
			sends[key{f.Host, f.QueuePair}] = f
		}
	}
	for _, q := range pairs.QueuePairs {
		src, ok := g.at[q.Host]
		if !ok || q.InFlight == 0 && (q.TxFrames == 0 || q.Acked == 0) {
			continue
		}
		v, ok := h.flow(src, q.Peer, q.Number, q.Internals)
		if !ok {
			continue
		}
		v.Group, v.Control, v.Rate, v.Window, v.Flight, v.Acked = q.Service, q.Congestion, math.Round(q.Rate), uint64(q.Window), q.InFlight, q.Acked
		if f := sends[key{q.Host, q.Number}]; f != nil {
			v.Group, v.Bytes = f.Operation, f.Total
		}
		out = append(out, v)
	}
	return out, nil
}

// channels returns those that bumps in the wire send in.
func (h *labHosts) channels(ctx context.Context, g *ghost) (out []Flow, err error) {
	list, err := g.bumps.ListChannels(ctx, &api.ListChannelsRequest{})
	if err != nil {
		return nil, err
	}
	for _, c := range list.Channels {
		src, ok := g.at[c.Host]
		if !ok || c.Acked == 0 && c.InFlight == 0 {
			continue
		}
		v, ok := h.flow(src, c.Remote, c.QueuePair, c.Internals)
		if !ok {
			continue
		}
		v.Group = c.Protocol
		if c.LocalPort|c.RemotePort != 0 {
			v.Group = fmt.Sprintf("%s %d-%d", c.Protocol, c.LocalPort, c.RemotePort)
		}
		v.Control, v.Rate, v.Window, v.Flight, v.Acked = c.Congestion, math.Round(c.Rate), uint64(c.Window), c.InFlight, c.Acked
		out = append(out, v)
	}
	return out, nil
}

// flow begins a flow of a host to another one of the fabric.
func (h *labHosts) flow(src int, peer string, number uint32, inside []*api.Internal) (v Flow, ok bool) {
	addr, err := netip.ParseAddr(peer)
	if err != nil {
		return v, false
	}
	dst, ok := h.byAddr[addr]
	if !ok {
		return v, false
	}
	v = Flow{ID: uint64(src)<<32 | uint64(number), Src: src, Dst: dst}
	for _, in := range inside {
		if finite(in.Value) {
			if v.Inside == nil {
				v.Inside = map[string]float64{}
			}
			v.Inside[in.Name] = in.Value
		}
	}
	return v, true
}

// fill enters flows, with what they moved since the sample before.
func (h *labHosts) fill(out *Sample, flows []Flow, span float64) {
	moved := make(map[uint64]uint64, len(flows))
	for _, v := range flows {
		v.Path = h.path(v.Src, v.Dst)
		if was, known := h.moved[v.ID]; known && v.Acked >= was && span > 0 {
			v.Goodput = math.Round(float64(v.Acked-was) * 8 / span)
		}
		moved[v.ID] = v.Acked
		out.Flows = append(out.Flows, v)
	}
	h.moved = moved
	slices.SortFunc(out.Flows, func(a, b Flow) int { return cmp.Or(cmp.Compare(b.Goodput, a.Goodput), cmp.Compare(a.ID, b.ID)) })
	out.Open = len(out.Flows)
	out.Flows = out.Flows[:min(len(out.Flows), MaxFlows)]
}
