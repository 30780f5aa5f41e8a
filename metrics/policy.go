package metrics

import (
	"sync"

	"gswitch/policy"
)

// policyHelp is what metrics of several counters of policies say.
var policyHelp = map[string]string{
	"policy_packets_total": "Packets of a queue inside a policy since that came, by whether they were sent, dropped as they came (refused) or for others (pushed-out); of a shadow what would have been.",
}

// policyDescs are the metrics of policy.Counters.
var policyDescs = sync.OnceValue(func() []desc {
	var out []desc
	for i := range policy.Counters {
		c := &policy.Counters[i]
		kind, labels := counter, []string{"switch", "port", "queue", "kind", "of"}
		if c.Gauge {
			kind = gauge
		}
		if c.Outcome != "" {
			labels = append(labels, "outcome")
		}
		help := policyHelp[c.Metric]
		if help == "" {
			help = c.Doc + " Of a queue inside a policy, since that came; of a shadow what would have been."
		}
		out = append(out, kind(c.Metric, help, labels...))
	}
	return out
})

// policy writes what the queues of a policy counted.
func (e emitter) policy(v []policy.QueueStats, sw, port, queue, kind string) {
	for i := range v {
		for k, d := range policyDescs() {
			c, labels := &policy.Counters[k], []string{sw, port, queue, kind, v[i].Name}
			if c.Outcome != "" {
				labels = append(labels, c.Outcome)
			}
			e.gauge(d, float64(c.Of(&v[i])), labels...)
		}
	}
}
