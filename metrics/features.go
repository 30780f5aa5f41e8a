package metrics

import (
	"slices"
	"sync"

	"gswitch/feature"
	"gswitch/hostnic"
	"gswitch/vswitch"
)

// Measured is a counter of a feature at a port, where it is the sum over all
// workers, or in a host.
type Measured struct {
	Feature string
	Counter *feature.Counter
	Labels  []string
	Value   float64
}

// Same reports whether o is the same counter, with the same labels.
func (m *Measured) Same(o Measured) bool {
	return m.Counter == o.Counter && slices.Equal(m.Labels, o.Labels)
}

// addMeasured enters what a worker read.
func addMeasured(v []Measured, name string, c *feature.Counter, value float64, labels []string) []Measured {
	for i := range v {
		if m := &v[i]; m.Counter == c && slices.Equal(m.Labels, labels) {
			m.Value += value
			return v
		}
	}
	return append(v, Measured{name, c, slices.Clone(labels), value})
}

// featureDescs are the metrics of all features that are part of the program: each
// counter by its name, and by the one that it had in the last version.
var featureDescs = sync.OnceValue(func() map[*feature.Counter][]desc {
	out := map[*feature.Counter][]desc{}
	add := func(counters []feature.Counter, place ...string) {
		for i := range counters {
			c := &counters[i]
			kind := counter
			if c.Gauge {
				kind = gauge
			}
			out[c] = append(out[c], kind(c.Name, c.Help, slices.Concat(place, c.Labels)...))
			if c.Was != "" {
				out[c] = append(out[c], kind(c.Was, "Use gswitch_"+c.Name+": this name is removed in the next version.", slices.Concat(place, c.Labels)...))
			}
		}
	}
	for _, f := range vswitch.Features() {
		add(f.Counters, "switch", "port")
	}
	for _, f := range hostnic.Features() {
		add(f.Counters, "host")
	}
	return out
})

// features exposes what features counted at a place.
func (e emitter) features(v []Measured, place ...string) {
	for i := range v {
		m := &v[i]
		for _, d := range featureDescs()[m.Counter] {
			e.gauge(d, m.Value, slices.Concat(place, m.Labels)...)
		}
	}
}
