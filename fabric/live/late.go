package live

import "gswitch/histogram"

// Late is the 99th percentile of lateness so far, in seconds of the nodes, for
// those who look on while it runs. Workers are asked, so they must not call it.
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
