package measure

import (
	"math"

	"gswitch/fabric/results"
	"gswitch/frame"
)

// Result writes what was measured to run. The run is over.
func (r *Recorder) Result(run *results.Run) {
	if run.Values == nil {
		run.Values = map[string]float64{}
	}
	end := min(r.closed, r.cfg.End)
	r.flowValues(run)
	for i := range r.scopes {
		r.scopeValues(run, &r.scopes[i])
	}
	for i := range r.cfg.Events {
		r.eventValues(run, &r.cfg.Events[i], end)
	}
	r.distributions(run)
	r.series(run)
	run.Flows = r.flows.all
	edges := r.cfg.Buckets
	if len(edges) == 0 {
		edges = results.Edges(run.Flows, 10)
	}
	if len(run.Flows) > 0 {
		run.Buckets = results.Buckets(run.Flows, edges)
	}
}

// Putter returns what adds finite values under a prefix.
func Putter(run *results.Run, prefix string) func(string, float64) {
	return func(name string, v float64) {
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			run.Values[prefix+name] = v
		}
	}
}

func (r *Recorder) flowValues(run *results.Run) {
	r.flows.values(Putter(run, ""), -1)
	for i, g := range r.cfg.Groups {
		r.flows.values(Putter(run, g+"."), i)
	}
	for i := range r.cfg.Sizes {
		s := &r.cfg.Sizes[i]
		r.flows.times(Putter(run, s.Name+"."), func(k int) bool { return s.has(r.flows.all[k].Bytes) })
	}
}

func (r *Recorder) scopeValues(run *results.Run, s *scope) {
	put := Putter(run, s.Prefix)
	s.queue.Values(put, "queue", "bytes", 1)
	s.rtt.Values(put, "ack_rtt", "seconds", 1e-9)
	if !s.queue.Empty() {
		put("queue_busy_share", 1-s.queue.Zero())
	}
	if s.linkTime > 0 && len(r.cfg.Links) > 0 {
		used, could := 0.0, 0.0
		for i, l := range r.cfg.Links {
			used += s.linkBits[i]
			could += float64(l.Rate * s.linkTime.Seconds())
		}
		put("utilisation_share", used/could)
		put("link_bps", s.linkBits[0]/s.linkTime.Seconds())
		put("link_min_bps", s.linkMin)
		put("link_low_seconds", s.low.Seconds())
	}
	s.good.values(put)
	if s.Prefix == "" {
		for i, g := range r.cfg.Groups {
			s.groups[i].values(Putter(run, g+"."))
			s.rtts[i].Values(Putter(run, g+"."), "ack_rtt", "seconds", 1e-9)
		}
	}
}

func (s *spans) values(put func(string, float64)) {
	if s.time == 0 {
		return
	}
	put("goodput_bps", s.bits/s.time.Seconds())
	put("goodput_min_bps", s.min)
	if s.jainN > 0 {
		put("jain_index", s.jainSum/float64(s.jainN))
	}
}

func (r *Recorder) eventValues(run *results.Run, e *Event, end frame.Time) {
	put := Putter(run, e.Name+".")
	at := e.At
	switch {
	case e.Starts >= 0:
		at = r.flows.first[e.Starts]
	case e.Ends >= 0:
		at = r.flows.last[e.Ends]
	}
	if at > end {
		return // it never happened
	}
	is := map[bool]float64{true: 1}
	put("at_seconds", at.Seconds())
	if e.Drains {
		took, drained, peak, crossings := r.queue.drain(at, end, e.Below)
		put("drain_seconds", took.Seconds())
		put("drained", is[drained])
		put("peak_bytes", float64(peak))
		put("crossings", float64(crossings))
	}
	if e.Goodput >= 0 && e.Reaches > 0 {
		took, reached := r.good.reach(e.Goodput, at, end, e.Reaches)
		put("reach_seconds", took.Seconds())
		put("reached", is[reached])
	}
	if e.Goodput >= 0 {
		before := e.Before
		if before == (Window{}) {
			before = Window{From: r.cfg.Warmup, To: at}
		}
		took, recovered := r.good.recovery(e.Goodput, at, end, before, e.Share)
		put("recovery_seconds", took.Seconds())
		put("recovered", is[recovered])
	}
}

func (r *Recorder) distributions(run *results.Run) {
	var fct, slow, rtt []float64
	for i := range r.flows.all {
		if f := &r.flows.all[i]; f.FCT > 0 {
			fct, slow = append(fct, f.FCT), append(slow, f.Slowdown)
		}
	}
	for _, g := range r.flows.rtts {
		rtt = append(rtt, g...)
	}
	for _, d := range []struct {
		name, unit string
		x          []float64
	}{{"slowdown", "", slow}, {"fct_seconds", "s", fct}, {"rtt_seconds", "s", rtt}} {
		if len(d.x) > 0 {
			run.CDFs = append(run.CDFs, results.NewCDF(d.name, d.unit, d.x))
		}
	}
	if h := &r.scopes[0].rtt; !h.Empty() {
		run.CDFs = append(run.CDFs, h.CDF("ack_rtt_seconds", "s", 1e-9))
	}
	if q := &r.scopes[0].queue; !q.Empty() {
		run.CDFs = append(run.CDFs, q.CDF("queue_bytes", "B", 1))
	}
}

func (r *Recorder) series(run *results.Run) {
	add := func(name, object, unit, shape string, t *Trace) {
		run.Series = t.Series(run.Series, name, object, unit, shape)
	}
	for i, t := range r.queue.traces {
		add("queue", r.cfg.Queues[i].Name, "B", results.ShapeStep, t)
	}
	for i := range r.link.traces {
		add("throughput", r.cfg.Links[i].Name, "bit/s", results.ShapeMean, &r.link.traces[i])
	}
	for i := range r.good.groups {
		add("goodput of groups", r.cfg.Groups[i], "bit/s", results.ShapeMean, &r.good.groups[i])
	}
	for i := range r.good.kept {
		for _, k := range r.good.kept[i] {
			add("goodput", k.name, "bit/s", results.ShapeMean, &k.t)
		}
	}
	for _, k := range r.good.ccKeys {
		add("cc_"+k.value, k.object, "", results.ShapeLine, r.good.cc[k])
	}
}
