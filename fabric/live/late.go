package live

import "gswitch/histogram"

// Late returns the 99th percentile of lateness so far, in seconds of the nodes' time. It
// is meant for progress displays. It asks the workers, so it must not be called on one.
func (e *Engine) Late() float64 {
	s := e.dp.Stats()
	var all histogram.Histogram
	for i := range s.Workers {
		all.Merge(&s.Workers[i].Lateness)
		all.Merge(&s.Workers[i].FrameLateness)
	}
	_, p99, _ := lateness(&all)
	return p99
}
