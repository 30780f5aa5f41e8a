package measure

import (
	"gswitch/fabric/results"
	"gswitch/frame"
)

// maxTrace bounds the points of a series. Beyond, neighbours are merged.
const maxTrace = 8000

// Trace is a quantity over time.
type Trace struct {
	Peak   bool      // merged points keep the larger value; else the mean
	t      []float64 // seconds
	v      []float64
	stride int // samples to a point
	in     int // samples in the last point
}

// Add notes the value at now.
func (s *Trace) Add(now frame.Time, v float64) {
	s.stride = max(s.stride, 1)
	if s.in > 0 && s.in < s.stride {
		last := len(s.v) - 1
		if s.Peak {
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
func (s *Trace) halve() {
	for i := range maxTrace / 2 {
		a, b := s.v[2*i], s.v[2*i+1]
		s.t[i], s.v[i] = s.t[2*i+1], (a+b)/2
		if s.Peak {
			s.t[i], s.v[i] = s.t[2*i], max(a, b)
		}
	}
	s.t, s.v = s.t[:maxTrace/2], s.v[:maxTrace/2]
	s.stride *= 2
}

// Series appends the quantity to v as one of an object, if anything was noted. A nil Trace
// has nothing.
func (s *Trace) Series(v []results.Series, name, object, unit, shape string) []results.Series {
	if s == nil || len(s.t) == 0 {
		return v
	}
	return append(v, results.Series{Name: name, Object: object, Unit: unit, Shape: shape, T: s.t, V: s.v})
}
