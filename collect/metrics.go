package collect

import (
	"maps"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics are the counters of a collector.
type Metrics struct {
	reports   *prometheus.CounterVec
	copies    *prometheus.CounterVec
	refused   *prometheus.CounterVec
	missing   prometheus.Counter
	bad       prometheus.Counter
	exporters prometheus.Gauge
	events    *prometheus.CounterVec
	again     prometheus.Counter
	lanes     prometheus.Gauge
	messages  prometheus.Counter
	failed    prometheus.Counter
	lost      prometheus.Gauge

	mu    sync.Mutex
	found map[int]Stats // by lane that is analysed here
	uses  map[int]uses  // likewise
	left  Stats         // totals of lanes that were analysed here before
	// counts are the counters of the network: nil if nothing is analysed here.
	counts *Network
}

// NewMetrics returns metrics and registers them.
func NewMetrics(r prometheus.Registerer) *Metrics {
	m := &Metrics{
		reports:   vec("gcollect_reports_total", "Reports that exporters sent, by what became of them: they are in the stream (stored), were there already (again), or are larger than a message may be (too-large).", "outcome"),
		copies:    vec("gcollect_copies_total", "Copies of packets that came, by what became of them: they are in the stream (stored), there was no time for them (overrun), or the stream did not take them (lost).", "outcome"),
		refused:   vec("gcollect_refused_total", "Connections and copies from addresses that may not send (--from), and connections beyond those that there is room for (full), or that found no memory (memory); and requests about marks (marks) or counters (counters).", "what"),
		missing:   one("gcollect_missing_reports_total", "Reports that exporters have lost before they sent them, by their numbers."),
		bad:       one("gcollect_bad_connections_total", "Connections that ended since what came over them was no report."),
		exporters: prometheus.NewGauge(prometheus.GaugeOpts{Name: "gcollect_exporters", Help: "Exporters that are connected."}),
		events:    vec("gcollect_events_total", "Events that were found here and put into the stream.", "kind", "what"),
		again:     one("gcollect_events_again_total", "Events that the stream had already, after another collector or an earlier start of this one."),
		lanes:     prometheus.NewGauge(prometheus.GaugeOpts{Name: "gcollect_lanes", Help: "Lanes that are analysed here."}),
		messages:  one("gcollect_messages_total", "Messages of the stream of reports that were analysed."),
		failed:    one("gcollect_lane_failures_total", "Times that the analysis of a lane ended with an error; it is begun again."),
		lost:      prometheus.NewGauge(prometheus.GaugeOpts{Name: "gcollect_missing_copies", Help: "Copies that are missing here by their numbers; one that others have overtaken is missing until it comes. Of sessions whose copies several analyzers share the numbers say nothing."}),
		found:     map[int]Stats{}, uses: map[int]uses{}, left: Stats{},
	}
	r.MustRegister(m.reports, m.copies, m.refused, m.missing, m.bad, m.exporters, m.events, m.again, m.lanes, m.messages, m.failed, m.lost, m)
	return m
}

func vec(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
}

func one(name, help string) prometheus.Counter {
	return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
}

func (m *Metrics) received(k kept) {
	m.reports.WithLabelValues("stored").Add(float64(k.Stored))
	m.reports.WithLabelValues("again").Add(float64(k.Again))
}

// families are the counters of analyses as metrics: the sum over the lanes that are, or
// were, analysed here.
var families = map[string]struct {
	*prometheus.Desc
	labels func(label string) []string
}{
	analysedReports: {desc("analysed_reports_total", "Reports that were analysed, by their kind.", "kind"), same},
	reportProblems:  {desc("report_problems_total", "Reports that say nothing: they cannot be read (bad), are of a kind or a port that is not known here (foreign), came twice (again), came after their batch or slot was judged (late), are of an instant that has not been yet (ahead), have another shape than those of the other end (different), or found no memory (full).", "problem"), same},
	tracedPackets:   {desc("traces_total", "Packets that were traced by copies, by what became of them.", "what"), same},
	tracesEarly:     {desc("traces_early_total", "Of these, packets that were judged before all copies may have been there: there were too many at once, of one packet, or for too long."), none},
	eventsLeftOut:   {desc("left_out_events_total", "Events of traced packets and of pauses that were not made: there were more than 1000 of the kind, and of what became of them, in a second in their lane.", "kind", "what"), words},
	tracedLinks:     {desc("link_traced_packets_total", "Packets that a link between two switches carried, of those that are traced by copies.", "link"), same},
	tracedBytes:     {desc("link_traced_bytes_total", "Bytes of these, of their IP packets.", "link"), same},
	tracedFlows:     {desc("link_traced_flows_total", "Connections of TCP that began over a link between two switches: its SYN without ACK was traced by copies.", "link"), same},
	tracedDelays:    {desc("link_traced_delays_total", "Of these, packets whose copies have stamps, by what they took from switch to switch: less than 100us, 500us, 1ms, or more.", "link", "below"), words},
	countedPackets:  {desc("counted_packets_total", "Packets that are traced by copies and that the filter of a counter chooses (--count, gcollect count).", "counter"), counterName},
	countedBytes:    {desc("counted_bytes_total", "Bytes of these, of their IP packets.", "counter"), counterName},
	copies:          {desc("analysed_copies_total", "Copies that were analysed: put into traces, put into traces of their own, since they end within telemetry (cut: give their session a longer snap), or of no IPv4 packet or no copy at all (other).", "outcome"), same},
	linkSent:        {desc("link_packets_total", "Packets that entered a link whose ends report.", "link"), same},
	linkLost:        {desc("link_lost_packets_total", "Of these, packets that the link lost.", "link"), same},
	linkFound:       {desc("link_found_packets_total", "Of the lost, packets that are known one by one.", "link"), same},
	flowSlots:       {desc("flow_slots_total", "Slots of FlowRadar of a switch, by what is known of them: every flow (whole), not every flow since the tables were too full (crowded), or nothing for sure since a report is missing or is of more or less than the slot (unknown).", "outcome"), same},
	linkUnknown:     {desc("link_unknown_batches_total", "Batches of a link of which a digest is missing.", "link"), same},
}

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("gcollect_"+name, help, labels, nil)
}

func same(label string) []string { return []string{label} }

func none(string) []string { return nil }

func words(label string) []string { return strings.Fields(label) }

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(c chan<- *prometheus.Desc) {
	for _, f := range families {
		c <- f.Desc
	}
}

// Collect implements prometheus.Collector.
func (m *Metrics) Collect(c chan<- prometheus.Metric) {
	sum, now := m.sum()
	for k, n := range sum {
		f := families[k.Family]
		if now.gone(k) {
			continue
		}
		c <- prometheus.MustNewConstMetric(f.Desc, prometheus.CounterValue, float64(n), f.labels(k.Label)...)
	}
}

// sum returns what was counted here, and the present counters.
func (m *Metrics) sum() (Stats, *counters) {
	m.mu.Lock()
	defer m.mu.Unlock()
	sum, now := maps.Clone(m.left), (*counters)(nil)
	for _, s := range m.found {
		sum.add(s)
	}
	if m.counts != nil {
		now = m.counts.counters.Load()
	}
	return sum, now
}

// have sets the network whose counters are counted.
func (m *Metrics) have(n *Network) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.counts = n
}

// analysed records the counters and the memory use of a lane's analysis.
func (m *Metrics) analysed(lane int, s Stats, u uses) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.found[lane], m.uses[lane] = s, u
}

// leftLane records that it has ended.
func (m *Metrics) leftLane(lane int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.left.add(m.found[lane])
	if m.counts != nil {
		now := m.counts.counters.Load()
		maps.DeleteFunc(m.left, func(k Stat, _ uint64) bool { return now.gone(k) })
	}
	delete(m.found, lane)
	delete(m.uses, lane)
}

func (s Stats) add(o Stats) {
	for k, n := range o {
		s[k] += n
	}
}
