package view

import (
	"math"

	"gswitch/fabric"
	"gswitch/scheduler"
)

// fill enters what a daemon said of its switches, and of the hosts at their
// ports.
func (s *LabSource) fill(out *Sample, a answer, span float64) {
	ports := map[string]int{} // by switch and name: the end
	for _, p := range a.ports.Ports {
		i, ok := s.end(p.Switch, int(p.Number))
		if !ok {
			continue
		}
		ports[p.Switch+"/"+p.Name] = i
		over := uint64(0)
		if p.Rate > 0 {
			over = scheduler.EthernetOverhead
		}
		to := &out.Ports[i]
		to.Up = p.Up
		to.Sent = s.speed(i, p.TxBytes+over*p.TxFrames, span)
		if far := s.host(i); far >= 0 {
			h := &out.Ports[far]
			h.Up = p.Up
			h.Sent = s.speed(far, p.RxBytes+over*p.RxFrames, span)
		}
	}
	for _, q := range a.queues.Queues {
		i, ok := ports[q.Switch+"/"+q.Port]
		if !ok || q.Queue > 7 || q.EnqueuedFrames+q.Drops == 0 {
			continue
		}
		to, b := &out.Ports[i], &s.prev[i]
		to.Queue += q.Bytes
		// What the daemon keeps is the deepest ever: between two samples it
		// reports only what is deeper than ever before.
		peak := max(q.Bytes, b.queue[q.Queue])
		if q.PeakBytes > b.top[q.Queue] && b.top[q.Queue] > 0 {
			peak = q.PeakBytes
		}
		b.queue[q.Queue], b.top[q.Queue] = q.Bytes, q.PeakBytes
		to.Peak += peak
		to.Drops += q.Drops
		to.Marks += q.EcnMarkedFrames
		to.Class = append(to.Class, Class{Class: int(q.Queue), Queue: q.Bytes, Peak: q.PeakBytes, Frames: q.DequeuedFrames, Drops: q.Drops, Marks: q.EcnMarkedFrames})
	}
	s.pauses(out, a, ports, span)
	for _, d := range a.drops.Drops {
		if d.Loss {
			out.Drops += d.Frames
		}
	}
	for _, w := range a.workers.Workers {
		out.Late = max(out.Late, float64(w.LatenessP99)/1e9)
	}
}

// pauses enters flow control, of which the other end of a host's link is notified
// too.
func (s *LabSource) pauses(out *Sample, a answer, ports map[string]int, span float64) {
	for _, c := range a.pfc.Classes {
		i, ok := ports[c.Switch+"/"+c.Port]
		if !ok || c.Class > 7 {
			continue
		}
		to, b, far := &out.Ports[i], &s.prev[i], s.host(i)
		if c.Paused {
			to.Paused |= 1 << c.Class
		}
		if span > 0 {
			to.Halted = max(to.Halted, thousandths(min(1, (c.PausedSeconds-b.paused[c.Class])/span)))
		}
		b.paused[c.Class] = c.PausedSeconds
		to.Pauses += c.TxXoff
		if c.Asking {
			to.Asked |= 1 << c.Class
		}
		if far < 0 {
			continue
		}
		h, hb := &out.Ports[far], &s.prev[far]
		h.Paused = to.Asked
		if span > 0 {
			h.Halted = max(h.Halted, thousandths(min(1, (c.AskedSeconds-hb.paused[c.Class])/span)))
		}
		hb.paused[c.Class] = c.AskedSeconds
		h.Pauses += c.RxXoff
	}
}

// end finds the end that a switch's port is.
func (s *LabSource) end(sw string, number int) (int, bool) {
	node, ok := s.top.Lookup(sw)
	if !ok || number < 0 || number >= len(s.top.Nodes[node].Links) {
		return 0, false
	}
	return s.ends.base[node] + number, true
}

// host returns the end of the host at the other side of an end, -1 if a switch
// is there.
func (s *LabSource) host(i int) int {
	far := s.ends.peer[i]
	if far < 0 || s.top.Nodes[s.ends.end[far].Node].Kind != fabric.Host {
		return -1
	}
	return far
}

// speed is what an end sent since the sample before, in bit/s.
func (s *LabSource) speed(i int, bytes uint64, span float64) float64 {
	b := &s.prev[i]
	was, known := b.sent, b.known
	b.sent, b.known = bytes, true
	if !known || bytes < was || span <= 0 { // a switch that was restarted counts anew
		return 0
	}
	return math.Round(float64(bytes-was) * 8 / span)
}
