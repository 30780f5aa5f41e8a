package measure

import (
	"fmt"

	"gswitch/frame"
)

// ClockDepths is how many hops from the root have values of their own.
const ClockDepths = 12

// clocks is what was seen of the clocks of all nodes.
type clocks struct {
	samples, broken, unknown uint64
	roots                    int
	depth                    [ClockDepths + 1]frame.Time // largest bound by hops from the root
	trace                    *trace
	watched                  string
	seen                     []clockSeen    // by node
	impacted                 [2]clockImpact // of switches, and of hosts
}

// clockSeen is what a node had received at the last look that found another message.
type clockSeen struct {
	valid, gaps uint64
	impacted    frame.Time
	cut         bool // at that look, or at one since
}

// clockImpact is for how long, and how often, nodes that worked received no sync message.
type clockImpact struct {
	gaps uint64
	time frame.Time
}

// clockScope is what a span of time keeps of them.
type clockScope struct {
	eps, err, watched Hist
	least             frame.Time // of the watched node
	idle              frame.Time
	found             Hist
}

// ClockReading is what one node says of its clock, and the truth.
type ClockReading struct {
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

// WatchClock names the node whose bound is recorded over time.
func (r *Recorder) WatchClock(name string) { r.clock.watched, r.clock.trace = name, &trace{peak: true} }

// ClockSample notes all clocks, and how many nodes take themselves for the root. The
// bound is held against the truth at every sample, before the warm-up, too, and
// also at nodes that are cut off.
func (r *Recorder) ClockSample(now frame.Time, roots int, v []ClockReading) {
	if now > r.closed {
		return
	}
	c := &r.clock
	for len(c.seen) < len(v) {
		c.seen = append(c.seen, clockSeen{})
	}
	for i := range v {
		x := &v[i]
		c.gap(&c.seen[i], x)
		if x.Known {
			if c.samples++; x.Error > x.Eps {
				c.broken++
			}
		}
		if x.Cut || now < r.cfg.Warmup {
			continue
		}
		if !x.Known {
			c.unknown++
			continue
		}
		d := min(x.Depth, ClockDepths)
		c.depth[d] = max(c.depth[d], x.Eps)
		for k := range r.scopes {
			if s := &r.scopes[k]; now >= s.from && now < s.to {
				s.clock.add(x)
			}
		}
		if x.Watched && c.trace != nil {
			c.trace.add(now, x.Eps.Seconds())
		}
	}
	if now >= r.cfg.Warmup {
		c.roots = max(c.roots, roots)
	}
}

// gap counts one that has ended since the last look, unless the node was cut off in it:
// then no other parent could have helped.
func (c *clocks) gap(last *clockSeen, x *ClockReading) {
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
	*last = clockSeen{valid: x.Valid, gaps: x.Gaps, impacted: x.Impacted, cut: x.Cut}
}

func (s *clockScope) add(x *ClockReading) {
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

func (s *clockScope) values(put func(string, float64)) {
	s.eps.values(put, "clock_eps", "seconds", 1e-9)
	s.err.values(put, "clock_error", "seconds", 1e-9)
	s.watched.values(put, "clock_watched_eps", "seconds", 1e-9)
	if !s.watched.Empty() {
		put("clock_watched_eps_min_seconds", s.least.Seconds())
	}
	if !s.eps.Empty() {
		put("clock_idle_max_seconds", s.idle.Seconds())
		put("clock_quiet_max_seconds", s.idle.Seconds())
	}
	s.found.values(put, "clock_found", "seconds", 1e-9)
}

// values adds what is known of the whole run.
func (c *clocks) values(put func(string, float64)) {
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

// clockKeys are the keys of all this.
func clockKeys() []Key {
	v := []Key{
		{"clock_eps", OfRun | OfWindow, true, "seconds", "Uncertainty that clocks say they have, at all samples of all nodes that work, with clock."},
		{"clock_error", OfRun | OfWindow, true, "seconds", "What these clocks differ in truth from the root that they follow."},
		{"clock_watched_eps", OfRun | OfWindow, true, "seconds", "Uncertainty of the clock of the node clock.watch."},
		{"clock_watched_eps_min_seconds", OfRun | OfWindow, false, "", "The least of it."},
		{"clock_idle_max_seconds", OfRun | OfWindow, false, "", "Longest that a node had received no message of the root."},
		{"clock_quiet_max_seconds", OfRun | OfWindow, false, "", "Use clock_idle_max_seconds: this name is removed in the next version."},
		{"clock_found", OfRun | OfWindow, true, "seconds", "How long nodes that turned to their second parent had received nothing, at the first look behind that."},
		{"clock_samples_total", OfRun, false, "", "Samples of clocks that say a bound, those before the warm-up and of nodes that failed included."},
		{"clock_broken_total", OfRun, false, "", "Of these, the ones whose error was larger than the bound. There must not be any."},
		{"clock_unknown_total", OfRun, false, "", "Samples of clocks that know no bound: no root has set them yet, or know that they are broken."},
		{"clock_roots_max", OfRun, false, "", "Most nodes that took themselves for the root at one time, those that failed not counted."},
	}
	for _, of := range [...][2]string{{"", "switches"}, {"host_", "hosts"}} {
		v = append(v, Key{of[0] + "clock_working_gaps_total", OfRun, false, "", "Times that " + of[1] + " received no sync message for longer than one lost message explains, or, where all clocks send by a timer, for as long or until a controller acts, though they worked, and what worked connected them with the others."},
			Key{of[0] + "clock_working_impacted_seconds_total", OfRun, false, "", "The length of these times together, each from the last message to the next: the impacted device time of Sundial (figure 3.20)."})
	}
	for d := 1; d <= ClockDepths; d++ {
		v = append(v, Key{depthKey(d), OfRun, false, "", fmt.Sprintf("Largest uncertainty of a clock that is %d hops from the root.", d)})
	}
	v[len(v)-1].Doc = fmt.Sprintf("Largest uncertainty of a clock that is %d hops from the root, or more.", ClockDepths)
	return v
}
