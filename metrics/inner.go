package metrics

import (
	"slices"
	"sync"

	"gswitch/feature"
	"gswitch/scheduler"
)

// innerDescs are the metrics of what queues inside queues count, a desc by *feature.Counter: made when they are
// first written.
var innerDescs sync.Map

func innerDesc(c *feature.Counter) desc {
	if d, made := innerDescs.Load(c); made {
		return d.(desc)
	}
	kind := counter
	if c.Gauge {
		kind = gauge
	}
	d := kind(c.Name, c.Help, slices.Concat([]string{"switch", "port", "queue"}, c.Labels)...)
	innerDescs.Store(c, d)
	return d
}

// inside writes what the queues inside a queue counted, if it has any.
func (e emitter) inside(in *scheduler.Inside, place ...string) {
	if in == nil {
		return
	}
	for i := range in.Queues {
		q := &in.Queues[i]
		for k := range in.Counters {
			e.gauge(innerDesc(&in.Counters[k]), float64(q.Counts[k]), slices.Concat(place, in.Labels(k, q))...)
		}
	}
}
