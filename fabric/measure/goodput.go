package measure

import (
	"fmt"

	"gswitch/fabric/results"
	"gswitch/frame"
)

// goodput follows what connections deliver.
type goodput struct {
	at     frame.Time
	open   []stream
	where  map[uint64]int // in open, by id
	ended  []float64      // bytes in the bin of connections that have ended, by group
	groups []Trace
	kept   [][]*kept // series of connections, by group
	cc     map[ccKey]*Trace
	ccKeys []ccKey
}

// stream is an open connection.
type stream struct {
	id    uint64
	group int
	acked uint64 // at the end of the last bin
	since frame.Time
	kept  *kept // nil without series
}

type kept struct {
	name string
	t    Trace
}

type ccKey struct{ object, value string }

// spans sums bins.
type spans struct {
	bits    float64
	time    frame.Time
	min     float64
	jainSum float64
	jainN   int
}

func (s *spans) add(span frame.Time, bits float64) {
	s.bits += bits
	s.time += span
	if bps := bits / span.Seconds(); s.time == span || bps < s.min {
		s.min = bps
	}
}

func (g *goodput) init(cfg *Config) {
	g.ended = make([]float64, len(cfg.Groups))
	g.groups = make([]Trace, len(cfg.Groups))
	g.kept = make([][]*kept, len(cfg.Groups))
	g.cc, g.where = map[ccKey]*Trace{}, map[uint64]int{}
}

// Open says that a connection begins. id is the caller's and unique among
// those that are open.
func (r *Recorder) Open(now frame.Time, id uint64, group int, name string) {
	s := stream{id: id, group: group, since: now}
	if g := &r.good; len(g.kept[group]) < r.cfg.Series {
		s.kept = &kept{name: fmt.Sprintf("%s %d %s", r.cfg.Groups[group], len(g.kept[group])+1, name)}
		g.kept[group] = append(g.kept[group], s.kept)
	}
	r.good.where[id] = len(r.good.open)
	r.good.open = append(r.good.open, s)
}

// Ended says that a connection has delivered all its bytes and is no more.
func (r *Recorder) Ended(id, bytes uint64) {
	g := &r.good
	i, ok := g.where[id]
	if !ok {
		return
	}
	g.ended[g.open[i].group] += float64(bytes - g.open[i].acked)
	last := len(g.open) - 1
	g.open[i] = g.open[last]
	g.where[g.open[i].id] = i
	g.open = g.open[:last]
	delete(g.where, id)
}

// GoodputSample notes how many bytes of each open connection were
// acknowledged, at the end of a bin.
func (r *Recorder) GoodputSample(now frame.Time, acked func(id uint64) uint64) {
	g := &r.good
	if now > r.closed || now <= g.at {
		return
	}
	span := now - g.at
	bits := make([]float64, len(r.cfg.Groups))
	for i, b := range g.ended {
		bits[i] = b * 8
		g.ended[i] = 0
	}
	shares := make([][]float64, len(r.cfg.Groups))
	for i := range g.open {
		s := &g.open[i]
		total := acked(s.id)
		b := float64(total-s.acked) * 8
		s.acked = total
		bits[s.group] += float64(b)
		if s.since <= g.at {
			shares[s.group] = append(shares[s.group], b)
		}
		if s.kept != nil {
			s.kept.t.Add(now, b/span.Seconds())
		}
	}
	sum := 0.0
	var all []float64
	for i := range bits {
		g.groups[i].Add(now, bits[i]/span.Seconds())
		sum += bits[i]
		all = append(all, shares[i]...)
	}
	for k := range r.scopes {
		s := &r.scopes[k]
		if !s.in(g.at, now) {
			continue
		}
		s.good.add(span, sum)
		s.good.fair(all)
		for i := range bits {
			s.groups[i].add(span, bits[i])
			s.groups[i].fair(shares[i])
		}
	}
	g.at = now
}

func (s *spans) fair(x []float64) {
	if len(x) < 2 {
		return
	}
	if j := results.Jain(x); j == j {
		s.jainSum += j
		s.jainN++
	}
}

// Traced calls visit with the connections that have series of their own.
func (r *Recorder) Traced(visit func(id uint64, object string)) {
	for i := range r.good.open {
		if s := &r.good.open[i]; s.kept != nil {
			visit(s.id, s.kept.name)
		}
	}
}

// CCSample notes an internal value of a connection's congestion control.
func (r *Recorder) CCSample(now frame.Time, object, name string, v float64) {
	if now > r.closed {
		return
	}
	k := ccKey{object, name}
	t := r.good.cc[k]
	if t == nil {
		t = new(Trace)
		r.good.cc[k] = t
		r.good.ccKeys = append(r.good.ccKeys, k)
	}
	t.Add(now, v)
}

// recovery returns how long after an event the goodput of a group has a share
// of what it was before, for good: no bin falls short any more. What drains
// from queues right after the event so does not pass for a recovery.
func (g *goodput) recovery(group int, at, end frame.Time, before Window, share float64) (took frame.Time, recovered bool) {
	t := &g.groups[group]
	sum, n := 0.0, 0
	for i, x := range t.t {
		if x > before.From.Seconds() && x <= before.To.Seconds() {
			sum += t.v[i]
			n++
		}
	}
	if n == 0 || len(t.t) == 0 || t.t[len(t.t)-1] <= at.Seconds() {
		return end - at, false
	}
	want := share * sum / float64(n)
	for i := len(t.t) - 1; i >= 0 && t.t[i] > at.Seconds(); i-- {
		if t.v[i] < want {
			return frame.Time(float64(t.t[i]*1e9)+0.5) - at, i < len(t.t)-1
		}
	}
	return 0, true
}

// reach returns how long after an event the goodput of a group first is bps.
func (g *goodput) reach(group int, at, end frame.Time, bps float64) (took frame.Time, reached bool) {
	t := &g.groups[group]
	for i, x := range t.t {
		if x > at.Seconds() && t.v[i] >= bps {
			return frame.Time(float64(x*1e9)+0.5) - at, true
		}
	}
	return end - at, false
}
