package clocks

import (
	"fmt"

	"gswitch/fabric/measure"
	"gswitch/fabric/results"
	"gswitch/frame"
)

// depths is how many hops from the root have values of their own.
const depths = 12

// readings are what was seen of the clocks of all nodes.
type readings struct {
	rec                      *measure.Recorder
	samples, broken, unknown uint64
	roots                    int
	depth                    [depths + 1]frame.Time // largest bound by hops from the root
	watched                  string                 // the node whose bound is recorded over time, "" for none
	trace                    measure.Trace          // of it
	seen                     []seen                 // by node
	impacted                 [2]impact              // of switches, and of hosts
	spans                    []spanReadings         // by those of rec
}

// seen is what a node had received at the last look that found another message.
type seen struct {
	valid, gaps uint64
	impacted    frame.Time
	cut         bool // at that look, or at one since
}

// impact is for how long, and how often, nodes that worked received no sync message.
type impact struct {
	gaps uint64
	time frame.Time
}

// spanReadings is what a span of time keeps of them.
type spanReadings struct {
	eps, err, watched measure.Hist
	least             frame.Time // of the watched node
	idle              frame.Time
	found             measure.Hist
}

// reading is what one node says of its clock, and the truth.
type reading struct {
	Known        bool       // it says a bound
	Eps          frame.Time // the bound
	Error        frame.Time // difference to the root that it follows
	Depth        int        // hops from the root
	Cut          bool       // it has failed itself, or what works does not connect it with the others
	Watched      bool
	SinceMessage frame.Time // since it received a message of the root
	Turned       bool       // to its second parent since the last look
	Host         bool
	// What it counted so far: valid messages, times that none came for longer
	// than one lost message explains, or where all clocks send by a timer for as long or
	// until a controller acts, and the length of these.
	Valid, Gaps uint64
	Impacted    frame.Time
}

// newReadings returns readings for a run, in which the bound of a node is recorded over time.
func newReadings(rec *measure.Recorder, watched string) *readings {
	return &readings{rec: rec, watched: watched, trace: measure.Trace{Peak: true}, spans: make([]spanReadings, rec.Spans())}
}

// sample notes all clocks, and how many nodes take themselves for the root. The
// bound is held against the truth at every sample, before the warm-up, too, and
// also at nodes that are cut off.
func (c *readings) sample(now frame.Time, roots int, v []reading) {
	if now > c.rec.Closed() {
		return
	}
	warm := now >= c.rec.Span(0).From
	for len(c.seen) < len(v) {
		c.seen = append(c.seen, seen{})
	}
	for i := range v {
		x := &v[i]
		c.gap(&c.seen[i], x)
		if x.Known {
			if c.samples++; x.Error > x.Eps {
				c.broken++
			}
		}
		if x.Cut || !warm {
			continue
		}
		if !x.Known {
			c.unknown++
			continue
		}
		d := min(x.Depth, depths)
		c.depth[d] = max(c.depth[d], x.Eps)
		for k := range c.spans {
			if span := c.rec.Span(k); span.Has(now) {
				c.spans[k].add(x)
			}
		}
		if x.Watched {
			c.trace.Add(now, x.Eps.Seconds())
		}
	}
	if warm {
		c.roots = max(c.roots, roots)
	}
}

// gap counts one that has ended since the last look, unless the node was cut off in it:
// then no other parent could have helped.
func (c *readings) gap(last *seen, x *reading) {
	if x.Valid == last.valid {
		last.cut = last.cut || x.Cut
		return
	}
	if !last.cut {
		of := &c.impacted[0]
		if x.Host {
			of = &c.impacted[1]
		}
		of.gaps += x.Gaps - last.gaps
		of.time += x.Impacted - last.impacted
	}
	*last = seen{valid: x.Valid, gaps: x.Gaps, impacted: x.Impacted, cut: x.Cut}
}

func (s *spanReadings) add(x *reading) {
	s.eps.Add(uint64(x.Eps), 1)
	s.err.Add(uint64(x.Error), 1)
	s.idle = max(s.idle, x.SinceMessage)
	if x.Turned {
		s.found.Add(uint64(x.SinceMessage), 1)
	}
	if x.Watched {
		if s.watched.Empty() || x.Eps < s.least {
			s.least = x.Eps
		}
		s.watched.Add(uint64(x.Eps), 1)
	}
}

func (s *spanReadings) values(put func(string, float64)) {
	s.eps.Values(put, "clock_eps", "seconds", 1e-9)
	s.err.Values(put, "clock_error", "seconds", 1e-9)
	s.watched.Values(put, "clock_watched_eps", "seconds", 1e-9)
	if !s.watched.Empty() {
		put("clock_watched_eps_min_seconds", s.least.Seconds())
	}
	if !s.eps.Empty() {
		put("clock_idle_max_seconds", s.idle.Seconds())
		put("clock_quiet_max_seconds", s.idle.Seconds())
	}
	s.found.Values(put, "clock_found", "seconds", 1e-9)
}

// result writes what was seen to the results of a run. The series comes before the others.
func (c *readings) result(out *results.Run) {
	for k := range c.spans {
		c.spans[k].values(measure.Putter(out, c.rec.Span(k).Prefix))
	}
	c.whole(measure.Putter(out, ""))
	out.Series = append(c.trace.Series(nil, "clock_eps", c.watched, "s", results.ShapeStep), out.Series...)
}

// whole adds what is known of the whole run.
func (c *readings) whole(put func(string, float64)) {
	if c.samples+c.unknown == 0 {
		return
	}
	put("clock_samples_total", float64(c.samples))
	put("clock_broken_total", float64(c.broken))
	put("clock_unknown_total", float64(c.unknown))
	put("clock_roots_max", float64(c.roots))
	for i, prefix := range [...]string{"", "host_"} {
		put(prefix+"clock_working_gaps_total", float64(c.impacted[i].gaps))
		put(prefix+"clock_working_impacted_seconds_total", c.impacted[i].time.Seconds())
	}
	for d, eps := range c.depth[1:] {
		if eps > 0 {
			put(depthKey(d+1), eps.Seconds())
		}
	}
}

func depthKey(d int) string { return fmt.Sprintf("clock_depth%d_eps_max_seconds", d) }
