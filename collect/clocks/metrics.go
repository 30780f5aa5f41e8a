package clocks

import "github.com/prometheus/client_golang/prometheus"

// Metrics are the counters of a controller.
type Metrics struct {
	leader      prometheus.Gauge
	epoch       prometheus.Gauge
	unreachable prometheus.Gauge
	plans       *prometheus.CounterVec
}

// NewMetrics returns metrics and registers them.
func NewMetrics(r prometheus.Registerer) *Metrics {
	m := &Metrics{
		leader:      prometheus.NewGauge(prometheus.GaugeOpts{Name: "gcollect_clock_leader", Help: "1 while this controller of clocks leads."}),
		epoch:       prometheus.NewGauge(prometheus.GaugeOpts{Name: "gcollect_clock_epoch", Help: "The last plan of clocks that this controller made."}),
		unreachable: prometheus.NewGauge(prometheus.GaugeOpts{Name: "gcollect_clock_unreachable_switches", Help: "Switches that do not answer the controller of clocks that leads."}),
		plans:       prometheus.NewCounterVec(prometheus.CounterOpts{Name: "gcollect_clock_plans_total", Help: "Plans of clocks, by what became of them: every switch has taken it (done), or not (failed)."}, []string{"outcome"}),
	}
	r.MustRegister(m.leader, m.epoch, m.unreachable, m.plans)
	return m
}

func (m *Metrics) leads(held bool) {
	m.leader.Set(0)
	if held {
		m.leader.Set(1)
	}
}

func (m *Metrics) pushed(epoch uint32, err error) {
	m.epoch.Set(float64(epoch))
	if err != nil {
		m.plans.WithLabelValues("failed").Inc()
		return
	}
	m.plans.WithLabelValues("done").Inc()
}
