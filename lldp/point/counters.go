package point

import "gswitch/feature"

// outcome is what became of a frame.
type outcome uint8

const (
	found outcome = iota
	refreshed
	left
	malformed
	tooMany
	overRate
	numOutcomes
)

// Why neighbours are removed without a shutdown frame.
const (
	withTime = iota
	withLink
	numForgotten
)

// counts are those of a port.
type counts struct {
	sent, unsent uint64
	received     [numOutcomes]uint64
	forgotten    [numForgotten]uint64
}

var counters = []feature.Counter{
	{Name: "lldp_neighbors", Help: "Neighbours that are known.", Gauge: true},
	{Name: "lldp_sent_total", Help: "LLDP frames that were sent."},
	{Name: "lldp_unsent_total", Help: "LLDP frames that were not sent, for want of memory."},
	{Name: "lldp_received_total", Help: "LLDP frames that came, by what they were: of a new neighbour, of one that is known, of one that shuts down, malformed, of one for whom there is no place, or more than are read in a second.",
		Labels: []string{"outcome"}, Values: []string{"new", "refreshed", "leaving", "malformed", "too-many", "over-rate"}},
	{Name: "lldp_forgotten_total", Help: "Neighbours that were removed, as their time was over or the link was lost.",
		Labels: []string{"reason"}, Values: []string{"ttl", "link"}},
	{Name: "lldp_ttl_seconds", Help: "For how long a neighbour is still known, with what it reports of itself.", Gauge: true,
		Labels: []string{"system", "remote_port", "remote_description", "chassis", "address", "capabilities", "description"}},
}

// read calls emit with what was counted, by the index in counters.
func (a *agent) read(emit func(counter int, port uint16, value float64, labels ...string)) {
	now := a.node.Now()
	for i := range a.ports {
		p, at := &a.ports[i], uint16(i)
		if p.advertisement == nil {
			continue
		}
		emit(0, at, float64(len(p.neighbors)))
		emit(1, at, float64(p.count.sent))
		emit(2, at, float64(p.count.unsent))
		for k, v := range p.count.received {
			emit(3, at, float64(v), counters[3].Values[k])
		}
		for k, v := range p.count.forgotten {
			emit(4, at, float64(v), counters[4].Values[k])
		}
		for _, n := range p.neighbors {
			emit(5, at, max(0, n.expires-now).Seconds(), n.labels...)
		}
	}
}
