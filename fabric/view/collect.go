package view

import (
	"cmp"
	"math"
	"slices"

	"gswitch/fabric"
	"gswitch/frame"
)

// assemble makes a sample of what was handed over last.
func (s *NetworkSource) assemble() *Sample {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := &Sample{Run: s.o.Run, Late: s.lateness()}
	for i := range s.parts {
		p := &s.parts[i]
		was := p.last
		r := p.take()
		if r == nil {
			continue
		}
		out.Drops += r.drops
		if r != was {
			s.ports(p, r)
		}
		if p.flows {
			out.Time, out.Open, out.Ended = r.at.Seconds(), r.open, r.ended
			s.flows(out, r)
			out.Losses = slices.Clone(r.losses)
			slices.SortStableFunc(out.Losses, func(a, b Loss) int { return cmp.Compare(b.Frames, a.Frames) })
			out.Losses = out.Losses[:min(len(out.Losses), MaxLosses)]
			out.Ways = slices.Clone(r.ways)
		}
	}
	out.Ports = slices.Clone(s.out)
	for i := range out.Ports {
		// A host's link is up when its switch says so.
		if e := out.Ports[i].Node; s.n.Topology.Nodes[e].Kind == fabric.Host && s.ends.peer[i] >= 0 {
			out.Ports[i].Up = out.Ports[s.ends.peer[i]].Up
		}
	}
	return out
}

// ports works out what the ports of a part did since the sample before.
func (s *NetworkSource) ports(p *part, r *raw) {
	next := 0
	for _, node := range p.nodes {
		for i := s.ends.base[node]; i < s.ends.base[node+1]; i++ {
			v, b := &r.ports[next], &s.prev[i]
			next++
			to := &s.out[i]
			*to = Port{End: s.ends.end[i], Up: v.up, Queue: v.queue, Peak: v.peak, Drops: v.drops, Marks: v.marks, Pauses: v.pauses, Paused: v.paused, Asked: v.asked}
			if span := r.at - b.at; span > 0 {
				to.Sent = math.Round(float64(v.sent-b.sent) * 8 / span.Seconds())
				var most frame.Time
				for c := range v.stopped {
					most = max(most, v.stopped[c]-b.stopped[c])
				}
				to.Halted = thousandths(min(1, float64(most)/float64(span)))
			}
			*b = before{r.at, v.sent, v.stopped}
			if v.host {
				continue
			}
			for c := range v.class {
				if k := &v.class[c]; k.Frames > 0 || k.Peak > 0 || k.Drops > 0 {
					to.Class = append(to.Class, *k)
				}
			}
		}
	}
}

// flows lists those that move most.
func (s *NetworkSource) flows(out *Sample, r *raw) {
	span := r.at - s.then
	acked := make(map[uint64]uint64, len(r.flows))
	all := make([]Flow, len(r.flows))
	for i := range r.flows {
		f := &r.flows[i]
		to := &all[i]
		*to = Flow{ID: f.id, Src: f.src, Dst: f.dst, Path: f.path, Control: f.control, Rate: math.Round(f.rate), Window: uint64(f.window), Flight: f.flight, Acked: f.acked, Bytes: f.posted}
		if f.group < len(s.o.Groups) {
			to.Group = s.o.Groups[f.group]
		}
		if s.o.Control != nil {
			to.Control = s.o.Control(f.control)
		}
		// Of one that is new, all that it has was acknowledged since.
		if span > 0 {
			to.Goodput = math.Round(float64(f.acked-s.acked[f.key]) * 8 / span.Seconds())
		}
		acked[f.key] = f.acked
		if f.insides > 0 {
			to.Inside = make(map[string]float64, f.insides)
			for _, in := range f.inside[:f.insides] {
				if finite(in.value) { // JSON knows no other, and a threshold may be infinite
					to.Inside[in.name] = in.value
				}
			}
		}
	}
	s.acked, s.then = acked, r.at
	slices.SortStableFunc(all, func(a, b Flow) int { return cmp.Or(cmp.Compare(b.Goodput, a.Goodput), cmp.Compare(a.ID, b.ID)) })
	out.Flows = slices.Clip(all[:min(len(all), MaxFlows)])
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// thousandths rounds a share up, so that a little is not nothing.
func thousandths(v float64) float64 { return math.Ceil(v*1000) / 1000 }
