package measure

import "gswitch/frame"

// queues follows the depths of egress queues.
type queues struct {
	traces []*Trace // nil where none is kept
	first  []depth  // of the first queue, all changes: for events
}

type depth struct {
	at    frame.Time
	bytes uint64
}

func (q *queues) init(cfg *Config) {
	q.traces = make([]*Trace, len(cfg.Queues))
	for i := range cfg.Queues {
		if cfg.Queues[i].Trace {
			q.traces[i] = &Trace{Peak: true}
		}
	}
}

// QueueSample notes the depths of all queues, one sample interval after the last.
func (r *Recorder) QueueSample(now frame.Time, bytes func(i int) uint64) {
	if now > r.closed {
		return
	}
	weight := r.cfg.Sample.Seconds()
	for i := range r.cfg.Queues {
		b := bytes(i)
		for k := range r.scopes {
			if s := &r.scopes[k]; s.Has(now) {
				s.queue.Add(b, weight)
			}
		}
		if t := r.queue.traces[i]; t != nil {
			t.Add(now, float64(b))
		}
		if i == 0 && len(r.cfg.Events) > 0 {
			if f := r.queue.first; len(f) == 0 || f[len(f)-1].bytes != b {
				r.queue.first = append(f, depth{now, b})
			}
		}
	}
}

// drain looks at the first queue after an event: when it came down to below
// after it had been above, how deep it got, how often it rose above.
func (q *queues) drain(at, end frame.Time, below uint64) (took frame.Time, drained bool, peak uint64, crossings int) {
	top := at // when it was deepest
	above := false
	for _, d := range q.first {
		if d.at < at || d.at > end {
			continue
		}
		if d.bytes > peak {
			peak, top = d.bytes, d.at
		}
		if d.bytes > below && !above {
			crossings++
		}
		above = d.bytes > below
	}
	if peak <= below {
		return 0, true, peak, 0 // it never was above
	}
	for _, d := range q.first {
		if d.at > top && d.bytes <= below {
			return d.at - at, true, peak, crossings
		}
	}
	return end - at, false, peak, crossings
}
