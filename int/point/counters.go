package point

import (
	inband "gswitch/int"
	"gswitch/vswitch"
)

// portCounts are what a worker counts for a port.
type portCounts struct {
	records [inband.NumOutcomes]uint64 // frames towards it, by what became of this switch's record
	// Frames that got a header, that lost it, and that were too long or had no
	// room for one.
	sourced, sunk, skipped uint64
}

var outcomes = func() (names []string) {
	for o := range inband.NumOutcomes {
		names = append(names, o.String())
	}
	return names
}()

var counters = []vswitch.Counter{
	{Name: "telemetry_frames_total", Help: "Frames with in-band telemetry, by what became of this switch's record.", Labels: []string{"outcome"}, Values: outcomes},
	{Name: "telemetry_edge_frames_total", Help: "Frames at the edge of the telemetry domain: source (got a header), sink (lost it), skipped (too long for a header).", Labels: []string{"role"}, Values: []string{"source", "sink", "skipped"}},
}

func (p *ports) read(emit func(counter int, port uint16, value float64, labels ...string)) {
	for i := range p.node.Config().Ports {
		if p.node.Config().Ports[i].Name == "" || i >= len(p.ports) {
			continue
		}
		c := &p.ports[i].count
		for o, n := range c.records {
			emit(0, uint16(i), float64(n), outcomes[o])
		}
		emit(1, uint16(i), float64(c.sourced), "source")
		emit(1, uint16(i), float64(c.sunk), "sink")
		emit(1, uint16(i), float64(c.skipped), "skipped")
	}
}

// Records adds up the frames with telemetry that a worker took towards ports, by
// what became of their record.
func Records(n *vswitch.Node) (by [inband.NumOutcomes]uint64) {
	if p, _ := n.Feature(Name).(*ports); p != nil {
		for i := range p.ports {
			for o, k := range p.ports[i].count.records {
				by[o] += k
			}
		}
	}
	return by
}
