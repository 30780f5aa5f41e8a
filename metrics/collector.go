package metrics

import (
	"runtime"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"gswitch/dataplane"
	"gswitch/frame"
	"gswitch/histogram"
	"gswitch/pfc"
	"gswitch/scheduler"
	"gswitch/vswitch"
)

// Collector exposes snapshots. It keeps nothing between scrapes.
type Collector struct{ take func() *Snapshot }

// NewCollector returns a collector that calls take once for each scrape.
func NewCollector(take func() *Snapshot) *Collector { return &Collector{take} }

// NewRegistry returns a registry that holds a Collector, that of the Go runtime
// (go_gc_duration_seconds, go_memstats_...) and that of the process
// (process_cpu_seconds_total, process_resident_memory_bytes, ...).
func NewRegistry(take func() *Snapshot) *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(NewCollector(take), collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return r
}

// desc is a metric with its kind.
type desc struct {
	*prometheus.Desc
	kind prometheus.ValueType
}

func counter(name, help string, labels ...string) desc {
	return desc{prometheus.NewDesc("gswitch_"+name, help, labels, nil), prometheus.CounterValue}
}

func gauge(name, help string, labels ...string) desc {
	return desc{prometheus.NewDesc("gswitch_"+name, help, labels, nil), prometheus.GaugeValue}
}

// Everything that is exposed. Base units: bytes, seconds, ratios.
var (
	buildInfo = gauge("build_info", "Version of the program. Always 1.", "version", "goversion")

	portInfo      = gauge("port_info", "What a port is. Always 1.", "switch", "port", "kind", "interface", "netns", "wire", "xdp_mode", "workers", "queues")
	portUp        = gauge("port_up", "Whether the port is enabled and has a link.", "switch", "port")
	portEnabled   = gauge("port_enabled", "Whether the port is administratively up.", "switch", "port")
	portRate      = gauge("port_rate_bytes_per_second", "Speed of the emulated link. 0 is unlimited.", "switch", "port")
	portRxPackets = counter("port_receive_packets_total", "Frames that arrived at the port.", "switch", "port")
	portRxBytes   = counter("port_receive_bytes_total", "Bytes of the frames that arrived, without preamble, checksum and gap.", "switch", "port")
	portTxPackets = counter("port_transmit_packets_total", "Frames that left by the port.", "switch", "port")
	portTxBytes   = counter("port_transmit_bytes_total", "Bytes of the frames that left, without preamble, checksum and gap.", "switch", "port")
	portReopened  = counter("port_reopened_total", "Times that the interface was lost and opened again.", "switch", "port")
	classPackets  = counter("class_receive_packets_total", "Frames that arrived, by traffic class.", "switch", "port", "class")
	classBytes    = counter("class_receive_bytes_total", "Bytes of the frames that arrived, by traffic class.", "switch", "port", "class")
	drops         = counter("drops_total", "Frames dropped, by the port they arrived at (empty: made by the switch itself) and reason.", "switch", "port", "reason")
	parseErrors   = counter("parse_errors_total", "Frames with malformed headers, dropped or bridged all the same.", "switch", "port", "reason")

	queueInPackets  = counter("queue_enqueued_packets_total", "Frames that entered the egress queue.", "switch", "port", "queue")
	queueInBytes    = counter("queue_enqueued_bytes_total", "Bytes that entered the egress queue.", "switch", "port", "queue")
	queueOutPackets = counter("queue_dequeued_packets_total", "Frames that left the egress queue.", "switch", "port", "queue")
	queueOutBytes   = counter("queue_dequeued_bytes_total", "Bytes that left the egress queue.", "switch", "port", "queue")
	queueMarked     = counter("queue_ecn_marked_packets_total", "Frames that the egress queue chose for an ECN mark.", "switch", "port", "queue")
	queueDrops      = counter("queue_drops_total", "Frames that the egress queue refused.", "switch", "port", "queue")
	queueEvicted    = counter("queue_pushed_out_packets_total", "Frames that waited in the egress queue and were dropped for one worth more.", "switch", "port", "queue")
	queueShed       = counter("queue_shed_packets_total", "Frames that the admission of the egress queue dropped when they would have left.", "switch", "port", "queue")
	queueInversions = counter("queue_inversions_total", "Frames that left the egress queue while one of smaller rank waited, where that is counted.", "switch", "port", "queue")
	queuePackets    = gauge("queue_packets", "Frames in the egress queue.", "switch", "port", "queue")
	queueBytes      = gauge("queue_bytes", "Bytes in the egress queue.", "switch", "port", "queue")
	queueWatermark  = gauge("queue_persistent_watermark_bytes", "Highest depth of the egress queue ever.", "switch", "port", "queue")
	queueByteSecs   = counter("queue_byte_seconds_total", "Depth of the egress queue, summed over time: its rate is the mean depth in bytes.", "switch", "port", "queue")
	queueDelay      = prometheus.NewDesc("gswitch_queue_delay_seconds", "Time that frames spent in the egress queue. The sum is computed from the buckets.", []string{"switch", "port", "queue"}, nil)

	pathChoices = counter("path_choices_total", "Adaptive choices of a path, by the first threshold that the port was below: 1, 2, ..., or any.", "switch", "class", "tier")
	flowlets    = counter("flowlets_total", "Flowlets that began.", "switch")

	pgBytes             = gauge("pg_bytes", "Bytes that an ingress port and class holds in the buffer.", "switch", "port", "class")
	pgHeadroom          = gauge("pg_headroom_bytes", "Bytes that an ingress port and class holds in its headroom.", "switch", "port", "class")
	pgHeadroomSize      = gauge("pg_headroom_size_bytes", "Headroom of an ingress port and class.", "switch", "port", "class")
	pgWatermark         = gauge("pg_watermark_bytes", "Highest bytes of an ingress port and class.", "switch", "port", "class")
	pgHeadroomWatermark = gauge("pg_headroom_watermark_bytes", "Highest bytes in the headroom of an ingress port and class.", "switch", "port", "class")
	pgDrops             = counter("pg_drops_total", "Frames refused by the account of an ingress port and class.", "switch", "port", "class")
	bufferSize          = gauge("buffer_size_bytes", "Size of the packet buffer.", "switch")
	bufferHeld          = gauge("buffer_held_bytes", "Bytes held in the packet buffer.", "switch")
	bufferPool          = gauge("buffer_pool_bytes", "Bytes held in the shared pool of the packet buffer.", "switch", "pool")
	bufferPoolSize      = gauge("buffer_pool_size_bytes", "Size of the shared pool of the packet buffer.", "switch", "pool")

	pfcFrames        = counter("pfc_frames_total", "Requests to pause (xoff) and to resume (xon) in PFC and pause frames.", "switch", "port", "class", "direction", "type")
	pfcSeconds       = counter("pfc_pause_seconds_total", "Time in pause. rx: the neighbour paused us. tx: we paused the neighbour.", "switch", "port", "class", "direction")
	pfcPaused        = gauge("pfc_paused", "Whether there is a pause now.", "switch", "port", "class", "direction")
	pfcHeld          = gauge("pfc_held_back_seconds", "For how long the neighbour has held back, without a break, a class of which frames wait.", "switch", "port", "class")
	pfcWatchdog      = counter("pfc_watchdog_events_total", "Pause storms that the watchdog found and ended.", "switch", "port", "class", "event")
	pfcBroken        = counter("pfc_pause_violations_total", "Times that frames of the class came where a pause should have stopped them.", "switch", "port", "class")
	pfcViolationsWas = counter("pfc_told_in_vain_total", "Use gswitch_pfc_pause_violations_total: this name is removed in the next version.", "switch", "port", "class")
	pfcDisabled      = counter("pfc_err_disabled_total", "Times that the port was err-disabled since the neighbour did not pause.", "switch", "port")
	pfcDisabledWas   = counter("pfc_shunned_total", "Use gswitch_pfc_err_disabled_total: this name is removed in the next version.", "switch", "port")
	pfcIgnored       = counter("pfc_ignored_frames_total", "Flow control frames of a kind that is not configured.", "switch", "port")

	tableEntries  = gauge("table_entries", "Entries of a table.", "switch", "table")
	fdbCapacity   = gauge("fdb_capacity_entries", "Most addresses of the forwarding database.", "switch")
	fdbLearned    = counter("fdb_learned_total", "Addresses learned.", "switch")
	fdbMoved      = counter("fdb_moved_total", "Addresses that moved to another port.", "switch")
	fdbRejected   = counter("fdb_rejected_total", "Addresses that found the forwarding database full, or as much of it taken by their port as it may.", "switch")
	fdbPort       = gauge("fdb_port_entries", "Addresses of the forwarding database that were learned at the port.", "switch", "port")
	fdbPortMax    = gauge("fdb_port_capacity_entries", "Most addresses that are learned at one port.", "switch")
	fdbPortRefuse = counter("fdb_port_rejected_total", "Times that an address of the port was not learned: the forwarding database is full, or the port has its share.", "switch", "port")
	neighborsFull = counter("neighbors_rejected_total", "Times that a neighbour was not entered: the table is full, or the port has its share.", "switch")
	flooded       = counter("flooded_packets_total", "Frames that were flooded.", "switch")
	toLocal       = counter("local_packets_total", "Frames that the switch itself handled.", "switch")
	madeFrames    = counter("made_packets_total", "Frames that the switch made, or failed to make: copies, answers, errors, pauses, messages of features.", "switch")
	copiesMade    = counter("mirrored_packets_total", "Copies of frames that it made for mirrors.", "switch")
	icmpSent      = counter("icmp_errors_sent_total", "ICMP errors sent.", "switch")
	icmpLimited   = counter("icmp_errors_limited_total", "ICMP errors withheld by the rate limit.", "switch")
	aclPackets    = counter("acl_rule_packets_total", "Frames that a named rule of an access list matched.", "switch", "acl", "rule")
	aclBytes      = counter("acl_rule_bytes_total", "Bytes that a named rule of an access list matched.", "switch", "acl", "rule")
	configGen     = gauge("config_generation", "Number of the configuration in force, from 1.")
	configSuccess = gauge("config_last_reload_success", "Whether the last change of the configuration was applied.")
	configTime    = gauge("config_last_reload_timestamp_seconds", "When a configuration was last applied, or refused.")

	exportReports   = counter("export_reports_total", "Reports that the switches made, by what became of them: the collector keeps them (acknowledged), or there was no memory for them (lost).", "outcome")
	exportWaiting   = gauge("export_waiting_reports", "Reports that the collector has not acknowledged yet.")
	exportBytes     = gauge("export_waiting_bytes", "Bytes of these reports.")
	exportConnected = gauge("export_connected", "Whether there is a connection to the collector.")
	exportConnects  = counter("export_connections_total", "Connections to the collector that were made.")

	workerInfo    = gauge("worker_info", "What a worker is. Always 1. cpu is empty if it is not pinned.", "worker", "poll", "cpu")
	workerSeconds = counter("worker_seconds_total", "Time since the worker started.", "worker")
	workerBusy    = counter("worker_busy_seconds_total", "Time in loops that moved frames.", "worker")
	workerLoops   = counter("worker_loops_total", "Loops.", "worker")
	workerIdle    = counter("worker_idle_loops_total", "Loops that moved no frame.", "worker")
	workerSleeps  = counter("worker_sleeps_total", "Times that the worker slept in the kernel.", "worker")
	workerWakeups = counter("worker_wakeups_total", "Sleeps ended by another worker or by the control plane.", "worker")
	workerMaxLoop = gauge("worker_longest_loop_seconds", "Longest loop that moved frames.", "worker")
	workerChunks  = gauge("worker_free_chunks", "Free chunks that the worker keeps.", "worker")
	workerNoChunk = counter("worker_missing_chunks_total", "Chunks of packet memory that the worker asked for and that were not there: for frames to make, to copy or to receive. What came of it is counted where it happened, of packets as drops under arena-exhausted.", "worker")
	workerVector  = prometheus.NewDesc("gswitch_worker_vector_packets", "Frames received at once.", []string{"worker"}, nil)
	workerAdopts  = prometheus.NewDesc("gswitch_worker_adoption_seconds", "Time for which the worker's thread ran in the step in which it took over another configuration or other tables, while frames waited.", []string{"worker"}, nil)
	workerLate    = prometheus.NewDesc("gswitch_worker_lateness_seconds", "How late timers were served.", []string{"worker"}, nil)

	xskInfo          = gauge("xsk_info", "How AF_XDP serves a port that is up: the mode, and what was tried for it. Always 1.", "switch", "port", "mode", "tried", "tx_budget", "multi_buffer", "busy_poll")
	xskKicks         = counter("xsk_kicks_total", "Transmit system calls.", "switch", "port", "worker")
	xskKickFrames    = counter("xsk_kick_descriptors_total", "Descriptors that the kernel took in transmit system calls.", "switch", "port", "worker")
	xskKickErrors    = counter("xsk_kick_errors_total", "Transmit system calls that ended early.", "switch", "port", "worker", "error")
	xskRxWakeups     = counter("xsk_receive_wakeups_total", "Receive system calls.", "switch", "port", "worker")
	xskRxDropped     = counter("xsk_rx_dropped_total", "Frames too large for a chunk, or otherwise not taken (XDP_STATISTICS).", "switch", "port", "worker")
	xskRxRingFull    = counter("xsk_rx_ring_full_total", "Frames dropped at a full receive ring (XDP_STATISTICS).", "switch", "port", "worker")
	xskFillRingEmpty = counter("xsk_rx_fill_ring_empty_total", "Times that the kernel found no chunk to receive into (XDP_STATISTICS).", "switch", "port", "worker")
	xskRxInvalid     = counter("xsk_rx_invalid_descs_total", "Descriptors of the fill ring that the kernel refused (XDP_STATISTICS).", "switch", "port", "worker")
	xskTxInvalid     = counter("xsk_tx_invalid_descs_total", "Frames or descriptors that cannot be sent (XDP_STATISTICS).", "switch", "port", "worker")
	xskTxRingEmpty   = counter("xsk_tx_ring_empty_total", "Times that the kernel found nothing to send (XDP_STATISTICS).", "switch", "port", "worker")
	linkTxDropped    = counter("port_transmit_lost_packets_total", "Frames lost below the port: its device went away or refused them.", "switch", "port")
	faultLost        = counter("port_fault_lost_packets_total", "Frames that left the switch and that the port's faults lost, by why.", "switch", "port", "reason")
	faultRxLost      = counter("port_fault_receive_lost_packets_total", "Frames that arrived while the port's link was cut.", "switch", "port")
	faultFrames      = counter("port_fault_packets_total", "Frames that the port's faults held back, sent twice, or sent with bits inverted; uncopied: not sent twice for want of memory.", "switch", "port", "fault")

	chunks     = gauge("memory_chunks", "Chunks of the packet memory.")
	chunksFree = gauge("memory_free_chunks", "Free chunks of the packet memory.")
	hugePages  = gauge("memory_huge_pages", "Whether the packet memory is in huge pages.")
	// For one version: these are metrics of the Go runtime's own collector.
	gcCycles     = counter("gc_cycles_total", "Cycles of the garbage collector. Use go_gc_duration_seconds_count: this name is removed in the next version.")
	gcPauses     = counter("gc_pauses_total", "Pauses of the garbage collector. Use go_gc_duration_seconds_count: this name is removed in the next version.")
	gcPauseMax   = gauge("gc_longest_pause_seconds", "Longest pause of the garbage collector. Use go_gc_duration_seconds with quantile 1: this name is removed in the next version.")
	gcHeap       = gauge("gc_heap_bytes", "Bytes on the heap. Use go_memstats_heap_alloc_bytes: this name is removed in the next version.")
	scrapeWindow = gauge("uptime_seconds", "Time since the engine was made.")
)

// Describe implements prometheus.Collector. The metrics depend on what is
// configured, so none is announced.
func (c *Collector) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (c *Collector) Collect(out chan<- prometheus.Metric) {
	s := c.take()
	e := emitter(out)
	e.gauge(buildInfo, 1, s.Config.Version, runtime.Version())
	for i := range s.Switches {
		e.sw(&s.Switches[i])
	}
	for i := range s.Hosts {
		e.host(&s.Hosts[i])
	}
	for i := range s.Bumps {
		e.bump(&s.Bumps[i])
	}
	e.engine(&s.Engine)
	if c := s.Export; c != nil {
		e.count(exportReports, c.Acknowledged, "acknowledged")
		e.count(exportReports, c.Lost, "lost")
		e.gauge(exportWaiting, float64(c.Waiting))
		e.gauge(exportBytes, float64(c.Bytes))
		e.gauge(exportConnected, truth(c.Connected))
		e.count(exportConnects, c.Connects)
	}
	e.gauge(configGen, float64(s.Config.Generation))
	e.gauge(configSuccess, truth(s.Config.ReloadSuccess))
	if t := s.Config.ReloadTime; !t.IsZero() {
		e.gauge(configTime, float64(t.UnixNano())/1e9)
	}
}

type emitter chan<- prometheus.Metric

func (e emitter) gauge(d desc, v float64, labels ...string) {
	e <- prometheus.MustNewConstMetric(d.Desc, d.kind, v, labels...)
}

func (e emitter) count(d desc, v uint64, labels ...string) { e.gauge(d, float64(v), labels...) }

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func (e emitter) sw(s *Switch) {
	for i := range s.Ports {
		e.port(s, &s.Ports[i])
	}
	for reason, n := range s.SelfDrops {
		if n > 0 {
			e.count(drops, n, s.Name, "", frame.Reason(reason).String())
		}
	}
	c := &s.Counts
	e.count(fdbLearned, c.Learned, s.Name)
	e.count(fdbMoved, c.Moved, s.Name)
	e.count(fdbRejected, c.LearnFull, s.Name)
	e.count(neighborsFull, c.NeighborFull, s.Name)
	e.count(flooded, c.Flooded, s.Name)
	e.count(toLocal, c.ToLocal, s.Name)
	e.count(madeFrames, c.Made, s.Name)
	e.count(copiesMade, c.Mirrored, s.Name)
	e.count(icmpSent, c.ICMPSent, s.Name)
	e.count(icmpLimited, c.ICMPLimited, s.Name)
	e.gauge(fdbCapacity, float64(s.Capacity), s.Name)
	e.gauge(fdbPortMax, float64(s.PerPort), s.Name)
	for i := range s.Ports {
		p := &s.Ports[i]
		e.gauge(fdbPort, float64(p.Learned), s.Name, p.Config.Name)
		e.count(fdbPortRefuse, p.Rejected, s.Name, p.Config.Name)
	}
	e.gauge(tableEntries, float64(s.Addresses), s.Name, "fdb")
	e.gauge(tableEntries, float64(len(s.Program.Config.Routes)), s.Name, "routes")
	e.tables(s)
	e.paths(s)
	e.buffers(s)
}

func (e emitter) tables(s *Switch) {
	rules := 0
	s.Program.Rules(func(list string, rule *vswitch.ACLRule, id uint32) bool {
		rules++
		// Rules come in thousands; those that have a name are wanted.
		if rule.Name != "" && int(id) < len(s.Rules) {
			e.count(aclPackets, s.Rules[id].Frames, s.Name, list, rule.Name)
			e.count(aclBytes, s.Rules[id].Bytes, s.Name, list, rule.Name)
		}
		return true
	})
	e.gauge(tableEntries, float64(rules), s.Name, "acl")
}

func (e emitter) port(s *Switch, p *Port) {
	sw, name := s.Name, p.Config.Name
	fc := &s.Program.Config.PFC
	e.portInfo(sw, p)
	e.gauge(portUp, truth(p.LinkUp), sw, name)
	e.gauge(portEnabled, truth(p.Config.Enabled), sw, name)
	e.gauge(portRate, float64(p.Config.Scheduler.Rate)/8, sw, name)
	c := &p.Counts
	e.count(portRxPackets, c.Rx.Frames, sw, name)
	e.count(portRxBytes, c.Rx.Bytes, sw, name)
	e.count(portTxPackets, c.Tx.Frames, sw, name)
	e.count(portTxBytes, c.Tx.Bytes, sw, name)
	for class, t := range c.RxClass {
		if s.OnlyUsed && t.Frames == 0 {
			continue
		}
		e.count(classPackets, t.Frames, sw, name, digit(class))
		e.count(classBytes, t.Bytes, sw, name, digit(class))
	}
	// A reason appears with its first frame: there are about seventy. Those to
	// be alerted on are there from the start, since a rate needs a zero first.
	lossless := fc.Mode != pfc.Off && fc.Classes != 0
	for reason := range c.Drops {
		if n := c.Drops[reason]; n > 0 || alerted(frame.Reason(reason), lossless) {
			e.count(drops, n, sw, name, frame.Reason(reason).String())
		}
		if n := c.ParseErrors[reason]; n > 0 {
			e.count(parseErrors, n, sw, name, frame.Reason(reason).String())
		}
	}
	for q := range p.Queues {
		if s.OnlyUsed && p.Queues[q].EnqueuedFrames == 0 && c.QueueDrops[q] == 0 {
			continue
		}
		e.queue(&p.Queues[q], &p.Sojourn[q], c.QueueDrops[q], sw, name, digit(q))
		if v := p.Inversions[q]; v != nil {
			e.count(queueInversions, v.Frames, sw, name, digit(q))
		}
		e.inside(p.Inside[q], sw, name, digit(q))
		e.inside(p.Beside[q], sw, name, digit(q))
	}
	e.features(p.Features, sw, name)
	for class := range p.Classes {
		if s.OnlyUsed && c.RxClass[class].Frames == 0 && (fc.Mode == pfc.Off || fc.Classes>>class&1 == 0) {
			continue
		}
		e.pfc(p, class, fc.Mode != pfc.Off && fc.Classes>>class&1 == 1, sw, name, digit(class))
	}
	e.count(pfcIgnored, p.PFC.RxIgnored, sw, name)
	e.count(pfcDisabled, p.PFC.Disables, sw, name)
	e.count(pfcDisabledWas, p.PFC.Disables, sw, name)
	e.links(sw, p)
}

// alerted reports whether deploy/prometheus alerts on drops for a reason.
func alerted(r frame.Reason, lossless bool) bool {
	switch r {
	case frame.ArenaExhausted, frame.WorkerRing:
		return true
	case frame.HeadroomFull, frame.PFCWatchdog:
		return lossless
	}
	return false
}

func digit(i int) string { return "0123456789"[i : i+1] }

func (e emitter) portInfo(sw string, p *Port) {
	var l dataplane.PortStats
	var workers []string
	queues, reopened := 0, uint64(0)
	for i := range p.Links {
		l = p.Links[i]
		workers = append(workers, strconv.Itoa(l.Worker))
		queues += len(l.Queues)
		reopened += l.Reopened
	}
	mode := ""
	if l.Kind == dataplane.XDP && l.Up {
		mode = l.Mode.String()
		e.gauge(xskInfo, 1, sw, p.Config.Name, mode, l.ModeWhy, strconv.Itoa(l.TxBudget), strconv.FormatBool(l.MultiBuffer), strconv.FormatBool(l.BusyPoll))
	}
	e.gauge(portInfo, 1, sw, p.Config.Name, l.Kind.String(), l.Interface, l.NetNS, l.Wire, mode, strings.Join(workers, ","), strconv.Itoa(queues))
	e.count(portReopened, reopened, sw, p.Config.Name)
}

func (e emitter) queue(s *scheduler.QueueStats, delay *histogram.Buckets, dropped uint64, labels ...string) {
	e.count(queueInPackets, s.EnqueuedFrames, labels...)
	e.count(queueInBytes, s.EnqueuedBytes, labels...)
	e.count(queueOutPackets, s.DequeuedFrames, labels...)
	e.count(queueOutBytes, s.DequeuedBytes, labels...)
	e.count(queueMarked, s.Marked, labels...)
	e.count(queueDrops, dropped, labels...)
	e.count(queueEvicted, s.Evicted, labels...)
	e.count(queueShed, s.Shed, labels...)
	e.count(queuePackets, s.Frames, labels...)
	e.count(queueBytes, s.Bytes, labels...)
	e.count(queueWatermark, s.Top, labels...)
	e.gauge(queueByteSecs, s.ByteSeconds, labels...)
	if s.DequeuedFrames > 0 {
		e <- delayHistogram(queueDelay, delay, labels...)
	}
}

func (e emitter) buffers(s *Switch) {
	var size, held, pool, inPool uint64
	for i := range s.Buffers {
		b := &s.Buffers[i]
		size, held, pool, inPool = size+b.Size, held+b.Held, pool+b.Shared, inPool+b.InShared
	}
	e.count(bufferSize, size, s.Name)
	e.count(bufferHeld, held, s.Name)
	e.count(bufferPoolSize, pool, s.Name, "shared")
	e.count(bufferPool, inPool, s.Name, "shared")
	for i := range s.Ports {
		for class := range 8 {
			g := s.Group(&s.Ports[i], class)
			if !g.Lossless && g.Peak == 0 {
				continue // nothing ever arrived in this class
			}
			labels := []string{s.Name, s.Ports[i].Config.Name, digit(class)}
			e.count(pgBytes, g.Reserved+g.Shared+g.Headroom, labels...)
			e.count(pgHeadroom, g.Headroom, labels...)
			e.count(pgHeadroomSize, g.HeadroomSize, labels...)
			e.count(pgWatermark, g.Peak, labels...)
			e.count(pgHeadroomWatermark, g.HeadroomPeak, labels...)
			e.count(pgDrops, g.Drops, labels...)
		}
	}
}

func (e emitter) engine(s *dataplane.Stats) {
	for i := range s.Workers {
		w, name := &s.Workers[i], strconv.Itoa(i)
		cpu := ""
		if w.Pin {
			cpu = strconv.Itoa(w.CPU)
		}
		e.gauge(workerInfo, 1, name, w.Poll.String(), cpu)
		e.gauge(workerSeconds, w.Running.Seconds(), name)
		e.gauge(workerBusy, w.Busy.Seconds(), name)
		e.count(workerLoops, w.Loops, name)
		e.count(workerIdle, w.IdleLoops, name)
		e.count(workerSleeps, w.Sleeps, name)
		e.count(workerWakeups, w.Wakeups, name)
		e.gauge(workerMaxLoop, w.MaxLoop.Seconds(), name)
		e.gauge(workerChunks, float64(w.FreeChunks), name)
		e.count(workerNoChunk, w.NoChunk, name)
		e <- vectorHistogram(w.Vectors[:], name)
		e <- spanHistogram(workerLate, &w.Lateness.Buckets, float64(w.Lateness.Sum)/1e9, []string{name})
		e <- spanHistogram(workerAdopts, &w.Adoption.Buckets, float64(w.Adoption.Sum)/1e9, []string{name})
	}
	e.gauge(chunks, float64(s.Chunks))
	e.gauge(chunksFree, float64(s.FreeChunks))
	e.gauge(hugePages, truth(s.HugePages))
	e.count(gcCycles, s.GC.Cycles)
	e.count(gcPauses, s.GC.Pauses)
	e.gauge(gcPauseMax, s.GC.PauseMax)
	e.count(gcHeap, s.GC.HeapBytes)
	e.gauge(scrapeWindow, s.Now.Seconds())
}
