package measure

import "gswitch/frame"

// maxTrace bounds the points of a series. Beyond, neighbours are merged.
const maxTrace = 8000

// trace is a quantity over time.
type trace struct {
	t      []float64 // seconds
	v      []float64
	stride int  // samples to a point
	in     int  // samples in the last point
	peak   bool // merged points keep the larger value; else the mean
}

func (s *trace) add(now frame.Time, v float64) {
	s.stride = max(s.stride, 1)
	if s.in > 0 && s.in < s.stride {
		last := len(s.v) - 1
		if s.peak {
			s.v[last] = max(s.v[last], v)
		} else {
			s.v[last] += (v - s.v[last]) / float64(s.in+1)
			s.t[last] = now.Seconds()
		}
		s.in++
		return
	}
	if len(s.v) == maxTrace {
		s.halve()
	}
	s.t, s.v, s.in = append(s.t, now.Seconds()), append(s.v, v), 1
}

// halve merges neighbours. The time of a mean is its end, that of a peak its
// beginning.
func (s *trace) halve() {
	for i := range maxTrace / 2 {
		a, b := s.v[2*i], s.v[2*i+1]
		s.t[i], s.v[i] = s.t[2*i+1], (a+b)/2
		if s.peak {
			s.t[i], s.v[i] = s.t[2*i], max(a, b)
		}
	}
	s.t, s.v = s.t[:maxTrace/2], s.v[:maxTrace/2]
	s.stride *= 2
}
