package metrics

import "github.com/prometheus/client_golang/prometheus"

// collectOne is a collector of a single metric.
type collectOne struct{ m prometheus.Metric }

func (c collectOne) Describe(chan<- *prometheus.Desc)     {}
func (c collectOne) Collect(out chan<- prometheus.Metric) { out <- c.m }
