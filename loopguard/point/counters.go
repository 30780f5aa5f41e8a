package point

import "gswitch/feature"

// outcome is what became of a frame that says that it is the switch's own.
type outcome uint8

const (
	shut     outcome = iota // the port is on a loop, and is shut
	awaited                 // the other port of the loop is to shut first
	stale                   // it was sent too long ago
	forged                  // the switch has not made it
	overRate                // it was not looked at
	numOutcomes
)

// counts are those of a port.
type counts struct {
	sent, unsent uint64
	received     [numOutcomes]uint64
}

var counters = []feature.Counter{
	{Name: "loops_sent_total", Help: "Frames that were sent to find loops."},
	{Name: "loops_unsent_total", Help: "Frames to find loops that were not sent, for want of memory."},
	{Name: "loops_received_total", Help: "Frames to find loops that came with the name of this switch, by what came of them: the port was shut, the other port of the loop is awaited to shut, they were too old, forged, or more than are looked at in a second.",
		Labels: []string{"outcome"}, Values: []string{"shut", "awaited", "stale", "forged", "over-rate"}},
	{Name: "loops_shut_seconds", Help: "For how long the port is still shut, since frames came back to it that left by another one, or by itself.", Gauge: true,
		Labels: []string{"from"}},
}

// read calls emit with what was counted, by the index in counters.
func (g *guard) read(emit func(counter int, port uint16, value float64, labels ...string)) {
	now := g.node.Now()
	for i := range g.ports {
		p, at := &g.ports[i], uint16(i)
		if !p.on {
			continue
		}
		emit(0, at, float64(p.count.sent))
		emit(1, at, float64(p.count.unsent))
		for k, v := range p.count.received {
			emit(2, at, float64(v), counters[2].Values[k])
		}
		if until := g.node.DisabledUntil(at); until > now && g.node.DisabledBy(at) == Name {
			emit(3, at, (until - now).Seconds(), p.from)
		}
	}
}
