package metrics

import (
	"slices"
	"sync"

	"gswitch/vswitch"
)

// Measured is a counter of a feature at a port: the sum over all workers.
type Measured struct {
	Feature *vswitch.Feature
	Counter *vswitch.Counter
	Labels  []string
	Value   float64
}

// Same reports whether o is the same counter, with the same labels.
func (m *Measured) Same(o Measured) bool {
	return m.Counter == o.Counter && slices.Equal(m.Labels, o.Labels)
}

// addMeasured enters what a worker read.
func addMeasured(v []Measured, f *vswitch.Feature, c *vswitch.Counter, value float64, labels []string) []Measured {
	for i := range v {
		if m := &v[i]; m.Counter == c && slices.Equal(m.Labels, labels) {
			m.Value += value
			return v
		}
	}
	return append(v, Measured{f, c, slices.Clone(labels), value})
}

// featureDescs are the metrics of all features that are part of the program.
var featureDescs = sync.OnceValue(func() map[*vswitch.Counter]desc {
	out := map[*vswitch.Counter]desc{}
	for _, f := range vswitch.Features() {
		for i := range f.Counters {
			c := &f.Counters[i]
			kind := counter
			if c.Gauge {
				kind = gauge
			}
			out[c] = kind(c.Name, c.Help, append([]string{"switch", "port"}, c.Labels...)...)
		}
	}
	return out
})

// features exposes what features counted at a port.
func (e emitter) features(p *Port, sw, port string) {
	for i := range p.Features {
		m := &p.Features[i]
		e.gauge(featureDescs()[m.Counter], m.Value, append([]string{sw, port}, m.Labels...)...)
	}
}
