package policy

import (
	"strings"

	"gswitch/feature"
	"gswitch/scheduler"
)

// Counter is a number that each queue of a policy counts. Counters are the one list
// from which metrics, API, commands, and the values of results are made.
type Counter struct {
	feature.Counter
	Doc string // what it is, as a clause that begins with a capital
	Of  func(*QueueStats) int64
}

// Counters are all that a queue of a policy counts.
var Counters = []Counter{
	counted("admitted", "policy_admitted_packets_total", "Packets that came and stayed at first.",
		func(s *QueueStats) int64 { return int64(s.Admitted) }),
	became("refused", "Packets dropped as they came.",
		func(s *QueueStats) int64 { return int64(s.Refused) }),
	counted("late", "policy_late_packets_total", "Packets refused since their slack was below their wait.",
		func(s *QueueStats) int64 { return int64(s.Late) }),
	became("pushed-out", "Packets dropped for others.",
		func(s *QueueStats) int64 { return int64(s.PushedOut) }),
	became("sent", "Packets sent.",
		func(s *QueueStats) int64 { return int64(s.Sent) }),
	counted("sent_bytes", "policy_sent_bytes_total", "Bytes of the packets sent.",
		func(s *QueueStats) int64 { return int64(s.SentBytes) }),
	summed("value", "policy_value", "Sum of the values of the packets sent.",
		func(s *QueueStats) int64 { return s.Value }),
	summed("lost_value", "policy_lost_value", "Sum of the values of the packets dropped.",
		func(s *QueueStats) int64 { return s.LostValue }),
	counted("marked", "policy_marked_packets_total", "Packets marked.",
		func(s *QueueStats) int64 { return int64(s.Marked) }),
	counted("notices", "policy_notices_total", "Crossings that were notified.",
		func(s *QueueStats) int64 { return int64(s.Notices) }),
}

// counters are those of Counters as others read them.
var counters = func() []feature.Counter {
	v := make([]feature.Counter, len(Counters))
	for i := range v {
		v[i] = Counters[i].Counter
	}
	return v
}()

// counted is a Counter that has name in the API and in JSON, and metric as it is exported.
func counted(name, metric, doc string, of func(*QueueStats) int64) Counter {
	return Counter{feature.Counter{Name: metric, Known: map[string]string{"": name}, Labels: []string{"kind", "of"},
		Help: doc + " Of a queue inside a policy, since that came; of a shadow what would have been."}, doc, of}
}

// summed is one that may fall: values of packets may be below zero.
func summed(name, metric, doc string, of func(*QueueStats) int64) Counter {
	c := counted(name, metric, doc, of)
	c.Gauge = true
	return c
}

// became counts one of the things that become of packets, which are one metric.
func became(outcome, doc string, of func(*QueueStats) int64) Counter {
	return Counter{feature.Counter{Name: "policy_packets_total", Labels: []string{"kind", "of", "outcome"}, Values: []string{outcome},
		Known: map[string]string{outcome: strings.ReplaceAll(outcome, "-", "_")},
		Help:  "Packets of a queue inside a policy since that came, by whether they were sent, dropped as they came (refused) or for others (pushed-out); of a shadow what would have been."}, doc, of}
}

// Short is its name in the API and in JSON.
func (c *Counter) Short() string { return c.Keys()[0] }

// Result is its name in results: of the policy that is live, or of its shadow.
func (c *Counter) Result(shadow bool) string {
	key := "policy_" + c.Short()
	if shadow {
		key = "shadow_" + c.Short()
	}
	if strings.HasSuffix(key, "_bytes") {
		return key
	}
	return key + "_total"
}

// Title is the heading of its column.
func (c *Counter) Title() string {
	return strings.ToUpper(strings.ReplaceAll(c.Short(), "_", " "))
}

// Inside implements scheduler.Divided.
func (d *Discipline) Inside() *scheduler.Inside { return Inside("live", d.Stats()) }

// Inside implements scheduler.Divided.
func (w *Watch) Inside() *scheduler.Inside { return Inside("shadow", w.Stats()) }

// Inside is what queues of a policy counted, as the scheduler reads it.
func Inside(kind string, stats []QueueStats) *scheduler.Inside {
	in := &scheduler.Inside{Counters: counters, Kind: kind, Queues: make([]scheduler.Inner, len(stats))}
	for i := range stats {
		s := &stats[i]
		q := scheduler.Inner{Name: s.Name, Size: uint64(s.Size), InPackets: s.InPackets, Packets: uint64(s.Packets), Bytes: uint64(s.Bytes),
			MaxPackets: uint64(s.MaxPackets), Counts: make([]int64, len(Counters))}
		for k := range Counters {
			q.Counts[k] = Counters[k].Of(s)
		}
		in.Queues[i] = q
	}
	return in
}

var _, _, _ scheduler.Divided = (*paced)(nil), (*spanning)(nil), (*watchShedder)(nil)
