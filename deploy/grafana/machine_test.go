package grafana

// rings are the AF_XDP sockets of the ports that at selects.
func (b *builder) rings(at, by string) {
	b.row("AF_XDP")
	b.graph("Ring drops", "pps", "Frames that the kernel dropped before they were seen: at a full receive ring (the worker is too slow), or too large for a chunk.",
		q{"{{" + by + "}} ring full", orZero(rate(by, "gswitch_xsk_rx_ring_full_total", at), by)}, q{"{{" + by + "}} not taken", orZero(rate(by, "gswitch_xsk_rx_dropped_total", at), by)})
	b.graph("Empty and broken", "ops", "Times that the kernel found no chunk to receive into, and descriptors that it refused.",
		q{"{{" + by + "}} no chunk", orZero(rate(by, "gswitch_xsk_rx_fill_ring_empty_total", at), by)},
		q{"{{" + by + "}} receive descriptors", orZero(rate(by, "gswitch_xsk_rx_invalid_descs_total", at), by)}, q{"{{" + by + "}} transmit descriptors", orZero(rate(by, "gswitch_xsk_tx_invalid_descs_total", at), by)})
	b.graph("Frames a system call", "none", "Frames that the kernel takes in a transmit call. At 64 and more the kernel's copying is the limit; near 1 much time goes to calls.",
		q{"{{" + by + "}}", orZero(rate(by, "gswitch_xsk_kick_descriptors_total", at)+` / (`+rate(by, "gswitch_xsk_kicks_total", at)+` > 0)`, by)})
	b.graph("Transmit calls cut short", "ops", "Transmit calls that ended early, by why.",
		q{"{{" + by + "}} {{error}}", orZero(rate(by+", error", "gswitch_xsk_kick_errors_total", at), by)})
}

// workers are the threads of the daemons that at selects.
func (b *builder) workers(at string) {
	b.row("Workers")
	worker := "{{instance}} worker {{worker}}"
	b.graph("Busy", "percentunit", "Share of the time in loops that moved frames.",
		q{worker, `rate(gswitch_worker_busy_seconds_total{` + at + `}[$__rate_interval]) / rate(gswitch_worker_seconds_total{` + at + `}[$__rate_interval])`}).atMost(1).lines(from("green", 0.8, "yellow", 0.95, "red"))
	b.graph("Timers late", "s", "How late half of the timers, and 99 of 100, were served at most. Near a quarter of the round trip the machine's jitter is what one measures.",
		q{worker + " p50", quantile("0.5", "instance, worker", "gswitch_worker_lateness_seconds", at)}, q{worker + " p99", quantile("0.99", "instance, worker", "gswitch_worker_lateness_seconds", at)}).lines(from("green", 1e-3, "red"))
	b.graph("Frames at once", "none", "Frames that the worker receives at once, on average.",
		q{worker, rate("instance, worker", "gswitch_worker_vector_packets_sum", at) + ` / ` + rate("instance, worker", "gswitch_worker_vector_packets_count", at)})
	b.graph("Loops", "ops", "Loops of the worker, those that moved nothing, and sleeps in the kernel.",
		q{worker + " loops", rate("instance, worker", "gswitch_worker_loops_total", at)}, q{worker + " idle", rate("instance, worker", "gswitch_worker_idle_loops_total", at)},
		q{worker + " sleeps", rate("instance, worker", "gswitch_worker_sleeps_total", at)})
	b.graph("Packet memory", "none", "Chunks of the packet memory, free ones, and those that workers keep for themselves.",
		q{"{{instance}} chunks", `gswitch_memory_chunks{` + at + `}`}, q{"{{instance}} free", `gswitch_memory_free_chunks{` + at + `}`}, q{worker + " keeps", `gswitch_worker_free_chunks{` + at + `}`})
	b.graph("Longest interruption", "s", "The longest loop ever that moved frames, and the longest pause of the garbage collector.",
		q{worker + " loop", `gswitch_worker_longest_loop_seconds{` + at + `}`}, q{"{{instance}} collector", `go_gc_duration_seconds{quantile="1", ` + at + `}`})
}
