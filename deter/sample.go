package deter

import "gswitch/frame"

// Sample is a packet whose time is kept, and the gap between packets from it up to
// the next sample.
type Sample struct {
	Index uint64
	At    frame.Time
	Gap   float64 // nanoseconds
}

// Sampler keeps times of packets as samples such that every time that is inferred is
// off by at most Bound (dissertation, algorithm 12). The paper keeps the set of
// rates that explain the packets since the last sample; here it is the set of gaps,
// which is the same set and has no infinities.
type Sampler struct {
	Bound frame.Time

	last     Sample
	low, top float64
	any      bool
	next     uint64
	out      []Sample
}

// Add takes the time of the next packet; times never go back.
func (s *Sampler) Add(at frame.Time) {
	i := s.next
	s.next++
	if !s.any {
		s.begin(i, at)
		return
	}
	n := float64(i - s.last.Index)
	low := max(float64(at-s.Bound-s.last.At)/n, 0)
	top := float64(at+s.Bound-s.last.At) / n
	if low = max(low, s.low); s.top < 0 || low <= min(top, s.top) {
		if s.top >= 0 {
			top = min(top, s.top)
		}
		s.low, s.top = low, top
		return
	}
	s.flush()
	s.begin(i, at)
}

func (s *Sampler) begin(i uint64, at frame.Time) {
	s.last, s.low, s.top, s.any = Sample{Index: i, At: at}, 0, -1, true
}

func (s *Sampler) flush() {
	if s.top >= 0 {
		s.last.Gap = (s.low + s.top) / 2
	}
	s.out = append(s.out, s.last)
}

// Samples ends the list and returns it.
func (s *Sampler) Samples() []Sample {
	if s.any {
		s.flush()
		s.any = false
	}
	return s.out
}

// Times infers the times of the first n packets.
func Times(v []Sample, n int) []frame.Time {
	out := make([]frame.Time, 0, n)
	for k := range v {
		end := uint64(n)
		if k+1 < len(v) {
			end = v[k+1].Index
		}
		for i := v[k].Index; i < end; i++ {
			out = append(out, v[k].At+frame.Time(float64(i-v[k].Index)*v[k].Gap+0.5))
		}
	}
	return out
}
