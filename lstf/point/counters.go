package point

import "gswitch/vswitch"

var counters = []vswitch.Counter{
	{Name: "slack_packets_total", Help: "Packets with slack that left the network by the port."},
	{Name: "slack_wait_seconds_total", Help: "What those waited in queues on all of their way: the slack that they used."},
	{Name: "slack_wait_p50_seconds", Help: "Median of what packets waited on all of their way.", Gauge: true},
	{Name: "slack_wait_p99_seconds", Help: "99th percentile of what packets waited on all of their way.", Gauge: true},
	{Name: "slack_late_packets_total", Help: "Packets that left the network with less than no slack: they were later than intended."},
	{Name: "slack_overdue_packets_total", Help: "Those of them that were late by more than lstf.late."},
	{Name: "slack_policed_packets_total", Help: "Packets of hosts whose slack was taken off or changed."},
	{Name: "slack_refused_packets_total", Help: "Packets that could not be given slack: there was no room before them."},
	{Name: "slack_marked_packets_total", Help: "Packets that were marked for what they had waited on all of their way."},
	{Name: "slack_dropped_packets_total", Help: "Packets that were dropped for it."},
	{Name: "slack_crowded_packets_total", Help: "Packets of flows that shared their state with another one: there were too many flows."},
}

func (p *points) read(emit func(counter int, port uint16, value float64, labels ...string)) {
	for i, x := range p.ports {
		if x == nil || !x.edge {
			continue
		}
		for c, v := range []float64{float64(x.used.Total()), float64(x.waited) / 1e9, float64(x.used.Quantile(0.5)) / 1e9, float64(x.used.Quantile(0.99)) / 1e9, float64(x.late[0]), float64(x.late[1]),
			float64(x.policed), float64(x.without), float64(x.marked), float64(x.dropped), float64(x.writer.Full() + x.judge.Full())} {
			emit(c, uint16(i), v)
		}
	}
}
