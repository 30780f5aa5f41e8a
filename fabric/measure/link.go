package measure

import "gswitch/frame"

// links follows what links carry.
type links struct {
	last   []uint64
	at     frame.Time
	traces []Trace
}

func (l *links) init(cfg *Config) {
	l.last = make([]uint64, len(cfg.Links))
	l.traces = make([]Trace, len(cfg.Links))
}

// LinkSample notes how many bytes each link has carried, at the end of a bin.
func (r *Recorder) LinkSample(now frame.Time, sent func(i int) uint64) {
	l := &r.link
	if now > r.closed || now <= l.at {
		return
	}
	span := now - l.at
	for k := range r.scopes {
		if s := &r.scopes[k]; s.in(l.at, now) {
			s.linkTime += span
		}
	}
	for i := range r.cfg.Links {
		total := sent(i)
		bits := float64(total-l.last[i]) * 8
		l.last[i] = total
		bps := bits / span.Seconds()
		l.traces[i].Add(now, bps)
		for k := range r.scopes {
			s := &r.scopes[k]
			if !s.in(l.at, now) {
				continue
			}
			if i == 0 {
				if s.linkTime == span || bps < s.linkMin {
					s.linkMin = bps
				}
				if bps < r.cfg.Low {
					s.low += span
				}
			}
			s.linkBits[i] += float64(bits)
		}
	}
	l.at = now
}
