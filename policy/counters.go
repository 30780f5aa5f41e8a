package policy

import "strings"

// Counter is a number that each queue of a policy counts. Counters are the one list
// from which metrics, API, commands, and the values of results are made.
type Counter struct {
	Name string // in the API and in JSON; sent_bytes
	Unit string // what stands behind the name in results; total
	Doc  string // what it is, as a clause that begins with a capital
	// Metric is its name as it is exported, without the exporter's prefix. Several may
	// share one, told apart by the label outcome.
	Metric, Outcome string
	Gauge           bool // values of packets may be below zero
	Of              func(*QueueStats) int64
}

// packetsMetric is the metric of what becomes of packets.
const packetsMetric = "policy_packets_total"

// Counters are all that a queue of a policy counts.
var Counters = []Counter{
	{Name: "admitted", Unit: "total", Doc: "Packets that came and stayed at first.", Metric: "policy_admitted_packets_total",
		Of: func(s *QueueStats) int64 { return int64(s.Admitted) }},
	{Name: "refused", Unit: "total", Doc: "Packets dropped as they came.", Metric: packetsMetric, Outcome: "refused",
		Of: func(s *QueueStats) int64 { return int64(s.Refused) }},
	{Name: "late", Unit: "total", Doc: "Packets refused since their slack was below their wait.", Metric: "policy_late_packets_total",
		Of: func(s *QueueStats) int64 { return int64(s.Late) }},
	{Name: "pushed_out", Unit: "total", Doc: "Packets dropped for others.", Metric: packetsMetric, Outcome: "pushed-out",
		Of: func(s *QueueStats) int64 { return int64(s.PushedOut) }},
	{Name: "sent", Unit: "total", Doc: "Packets sent.", Metric: packetsMetric, Outcome: "sent",
		Of: func(s *QueueStats) int64 { return int64(s.Sent) }},
	{Name: "sent_bytes", Doc: "Bytes of the packets sent.", Metric: "policy_sent_bytes_total",
		Of: func(s *QueueStats) int64 { return int64(s.SentBytes) }},
	{Name: "value", Unit: "total", Doc: "Sum of the values of the packets sent.", Metric: "policy_value", Gauge: true,
		Of: func(s *QueueStats) int64 { return s.Value }},
	{Name: "lost_value", Unit: "total", Doc: "Sum of the values of the packets dropped.", Metric: "policy_lost_value", Gauge: true,
		Of: func(s *QueueStats) int64 { return s.LostValue }},
	{Name: "marked", Unit: "total", Doc: "Packets marked.", Metric: "policy_marked_packets_total",
		Of: func(s *QueueStats) int64 { return int64(s.Marked) }},
	{Name: "notices", Unit: "total", Doc: "Crossings that were notified.", Metric: "policy_notices_total",
		Of: func(s *QueueStats) int64 { return int64(s.Notices) }},
}

// Key is its name in results: of the policy that is live, or of its shadow.
func (c *Counter) Key(shadow bool) string {
	key := "policy_" + c.Name
	if shadow {
		key = "shadow_" + c.Name
	}
	if c.Unit != "" {
		key += "_" + c.Unit
	}
	return key
}

// Title is the heading of its column.
func (c *Counter) Title() string {
	return strings.ToUpper(strings.ReplaceAll(c.Name, "_", " "))
}
