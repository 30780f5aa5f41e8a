package grafana

// aSwitch is the dashboard of one switch, port by port.
func aSwitch() dashboard {
	b := newDashboard("switch", "gswitch / Switch", "One switch, port by port: rates, queues, buffer, pauses, drops, and the AF_XDP rings and workers below.",
		choice("instance", "Daemon", "gswitch_port_up", false),
		choice("switch", "Switch", `gswitch_port_up{instance=~"$instance"}`, false),
		choice("port", "Port", `gswitch_port_up{instance=~"$instance",switch=~"$switch"}`, true),
		choice("queue", "Queue, class", `gswitch_queue_bytes{instance=~"$instance",switch=~"$switch"}`, true))
	const daemon, sw = `instance=~"$instance"`, `instance=~"$instance",switch=~"$switch"`
	b.switchHead(daemon, sw)
	b.switchLoad(sw + `,port=~"$port"`)
	b.switchQueues(sw + `,port=~"$port",queue=~"$queue"`)
	b.switchLossless(sw, sw+`,port=~"$port",class=~"$queue"`)
	b.switchDrops(sw)
	b.switchTables(sw)
	b.rings(sw+`,port=~"$port"`, "port")
	b.workers(daemon)
	return b.d
}

func (b *builder) switchHead(daemon, sw string) {
	b.row("Overview")
	b.stat("Ports up", "none", "Ports with a link.", `sum(gswitch_port_up{`+sw+`})`)
	b.stat("Ports down", "none", "Ports that are enabled and have no link.", `count(gswitch_port_enabled{`+sw+`} == 1 and gswitch_port_up{`+sw+`} == 0) or on () vector(0)`, from("green", 1.0, "red")...)
	b.stat("Buffer", "percentunit", "Share of the packet buffer that is held.", `sum(gswitch_buffer_held_bytes{`+sw+`}) / sum(gswitch_buffer_size_bytes{`+sw+`})`, from("green", 0.7, "yellow", 0.9, "red")...)
	b.stat("Free chunks", "percentunit", "Share of the packet memory that is free.", `gswitch_memory_free_chunks{`+daemon+`} / gswitch_memory_chunks{`+daemon+`}`, from("red", 0.05, "yellow", 0.2, "green")...)
	b.stat("Runs for", "s", "Time since the daemon started.", `gswitch_uptime_seconds{`+daemon+`}`)
	reload := b.stat("Last change", "none", "Whether the last change of the configuration was taken; the annotations say when.", `gswitch_config_last_reload_success{`+daemon+`}`, from("red", 1.0, "green")...)
	reload.FieldConfig.Defaults.Mappings = []mapping{{"value", map[string]mapText{"0": {"refused", "red", 0}, "1": {"taken", "green", 1}}}}
}

func (b *builder) switchLoad(at string) {
	b.row("Load")
	b.graph("Receives", "bps", "What arrives at each port.", q{"{{port}}", `8 * ` + rate("port", "gswitch_port_receive_bytes_total", at)})
	b.graph("Transmits", "bps", "What leaves each port.", q{"{{port}}", `8 * ` + rate("port", "gswitch_port_transmit_bytes_total", at)})
	b.graph("Utilisation", "percentunit", "Share of the emulated link's time in use, with 24 bytes of preamble, checksum and gap for each frame. Ports without a rate have none.",
		q{"{{port}}", `(rate(gswitch_port_transmit_bytes_total{` + at + `}[$__rate_interval]) + 24 * rate(gswitch_port_transmit_packets_total{` + at + `}[$__rate_interval])) / (gswitch_port_rate_bytes_per_second{` + at + `} > 0)`}).
		atMost(1).lines(from("green", 0.8, "yellow", 0.95, "red"))
	b.graph("Frames received", "pps", "Frames that arrive at each port.", q{"{{port}}", rate("port", "gswitch_port_receive_packets_total", at)})
	b.graph("Frames transmitted", "pps", "Frames that leave each port.", q{"{{port}}", rate("port", "gswitch_port_transmit_packets_total", at)})
	b.graph("Received by class", "bps", "What arrives, by traffic class.", q{"class {{class}}", `8 * ` + rate("class", "gswitch_class_receive_bytes_total", at+`,class=~"$queue"`)}).stacked()
}

func (b *builder) switchQueues(at string) {
	b.row("Queues")
	queue := "{{port}} queue {{queue}}"
	b.graph("Mean depth", "decbytes", "Depth of egress queues, averaged over all of the time between two scrapes. The ten deepest.",
		q{queue, `topk(10, ` + rate("port, queue", "gswitch_queue_byte_seconds_total", at) + `)`})
	b.graph("Depth at scrapes", "decbytes", "Depth of egress queues at the instant of a scrape, and the highest ever. The ten deepest.",
		q{queue, `topk(10, gswitch_queue_bytes{` + at + `})`}, q{queue + " ever", `topk(10, gswitch_queue_persistent_watermark_bytes{` + at + `})`})
	b.graph("Leaves by queue", "bps", "What leaves, by queue.", q{"queue {{queue}}", `8 * ` + rate("queue", "gswitch_queue_dequeued_bytes_total", at)}).stacked()
	b.graph("Waiting", "s", "Time in the egress queue: half of the frames, and 99 of 100, waited no longer.",
		q{"queue {{queue}} p50", quantile("0.5", "queue", "gswitch_queue_delay_seconds", at)}, q{"queue {{queue}} p99", quantile("0.99", "queue", "gswitch_queue_delay_seconds", at)})
	b.heatmap("Waiting, all", "s", "Time that frames spent in the chosen egress queues.", `sum by (le) (increase(gswitch_queue_delay_seconds_bucket{`+at+`}[$__rate_interval]))`)
	b.graph("ECN marks and refusals", "pps", "Frames that left with a congestion mark, and frames that the queue refused.",
		q{"queue {{queue}} marked", rate("queue", "gswitch_queue_ecn_marked_packets_total", at)}, q{"queue {{queue}} refused", rate("queue", "gswitch_queue_drops_total", at)})
}

func (b *builder) switchLossless(sw, at string) {
	b.row("Buffer and pauses")
	b.graph("Buffer", "decbytes", "What the packet buffer holds, what of it lies in the shared pool, and its size.",
		q{"held", `sum(gswitch_buffer_held_bytes{` + sw + `})`}, q{"shared pool", `sum(gswitch_buffer_pool_bytes{` + sw + `})`},
		q{"size of the pool", `sum(gswitch_buffer_pool_size_bytes{` + sw + `})`}, q{"size", `sum(gswitch_buffer_size_bytes{` + sw + `})`})
	b.graph("Held by ingress", "decbytes", "What came in by a port and class and has not left yet; the highest ever. The ten largest.",
		q{"{{port}} class {{class}}", orZero(`topk(10, gswitch_pg_bytes{`+at+`})`, "port")}, q{"{{port}} class {{class}} ever", orZero(`topk(10, gswitch_pg_watermark_bytes{`+at+`})`, "port")})
	b.graph("Headroom in use", "percentunit", "Share of the headroom that lossless ports and classes use; the highest ever. At 1 the next frame is lost.",
		q{"{{port}} class {{class}}", orZero(`gswitch_pg_headroom_bytes{`+at+`} / (gswitch_pg_headroom_size_bytes{`+at+`} > 0)`, "port")},
		q{"{{port}} class {{class}} ever", orZero(`gswitch_pg_headroom_watermark_bytes{`+at+`} / (gswitch_pg_headroom_size_bytes{`+at+`} > 0)`, "port")}).atMost(1).lines(from("green", 0.9, "red"))
	b.graph("Paused by the neighbour", "percentunit", "Share of the time in which the port may not send the class.",
		q{"{{port}} class {{class}}", orZero(`rate(gswitch_pfc_pause_seconds_total{`+at+`,direction="rx"}[$__rate_interval])`, "port")}).atMost(1).lines(from("green", 0.5, "yellow", 0.9, "red"))
	b.graph("Pausing the neighbour", "percentunit", "Share of the time in which the neighbour is asked to hold back.",
		q{"{{port}} class {{class}}", orZero(`rate(gswitch_pfc_pause_seconds_total{`+at+`,direction="tx"}[$__rate_interval])`, "port")}).atMost(1)
	b.graph("Pause frames", "pps", "Requests to pause (xoff) and to resume (xon), both ways, and flow control of a kind that is not configured.",
		q{"{{port}} {{direction}} {{type}}", orZero(rate("port, direction, type", "gswitch_pfc_frames_total", at), "port")},
		q{"{{port}} ignored", rate("port", "gswitch_pfc_ignored_frames_total", sw+`,port=~"$port"`)})
	b.graph("Pause storms", "none", "Pauses that never ended, and that the watchdog ended, in a minute; and frames that it or a full headroom dropped.",
		q{"{{port}} class {{class}} {{event}}", orZero(`sum by (port, class, event) (increase(gswitch_pfc_watchdog_events_total{`+at+`}[1m]))`, "port")},
		q{"{{port}} {{reason}}", orZero(`sum by (port, reason) (increase(gswitch_drops_total{`+sw+`,port=~"$port",reason=~"pfc-watchdog|headroom-full"}[1m]))`, "port")})
	b.graph("Refused at ingress", "pps", "Frames that found the account of their ingress port and class full.",
		q{"{{port}} class {{class}}", orZero(rate("port, class", "gswitch_pg_drops_total", at), "port")})
}

func (b *builder) switchDrops(sw string) {
	b.row("Drops")
	b.graph("Losses by reason", "pps", "Lost frames by reason: frame/reason.go explains each.", q{"{{reason}}", orZero(rate("reason", "gswitch_drops_total", sw+`,reason!~"`+notLost()+`"`), "reason")}).stacked()
	b.graph("Losses by port", "pps", "Lost frames by the port they arrived at; none is the switch itself.",
		q{"{{port}}", orZero(rate("port", "gswitch_drops_total", sw+`,port=~"$port|",reason!~"`+notLost()+`"`), "port")}).stacked()
	b.graph("No losses", "pps", "Frames dropped without harm: control frames that were consumed, and frames without a receiver behind the switch.",
		q{"{{reason}}", orZero(rate("reason", "gswitch_drops_total", sw+`,reason=~"`+notLost()+`"`), "reason")}).stacked()
	b.graph("Malformed", "pps", "Frames whose headers contradict themselves, dropped or bridged all the same.", q{"{{reason}}", orZero(rate("reason", "gswitch_parse_errors_total", sw), "reason")}).stacked()
	b.graph("Faults", "pps", "What the port's configured faults lost, cut, held back, sent twice or inverted, as configured.",
		q{"{{port}} lost {{reason}}", orZero(rate("port, reason", "gswitch_port_fault_lost_packets_total", sw), "port")},
		q{"{{port}} cut", orZero(rate("port", "gswitch_port_fault_receive_lost_packets_total", sw), "port")},
		q{"{{port}} {{fault}}", orZero(rate("port, fault", "gswitch_port_fault_packets_total", sw), "port")})
	b.graph("Telemetry records", "pps", "Data frames with in-band telemetry, by what became of this switch's record.", q{"{{outcome}}", orZero(rate("outcome", "gswitch_telemetry_frames_total", sw), "outcome")}).stacked()
	b.graph("Telemetry edge", "pps", "Frames that got a telemetry header here (source), lost it (sink), or were too long for one (skipped).", q{"{{role}}", orZero(rate("role", "gswitch_telemetry_edge_frames_total", sw), "role")}).stacked()
}

func (b *builder) switchTables(sw string) {
	b.row("Forwarding")
	b.graph("Table entries", "none", "Entries of the tables, and how many addresses the forwarding database may hold.",
		q{"{{table}}", `sum by (table) (gswitch_table_entries{` + sw + `})`}, q{"fdb capacity", `sum(gswitch_fdb_capacity_entries{` + sw + `})`})
	b.graph("Learning", "ops", "Addresses learned, moved to another port, and refused by a full forwarding database.",
		q{"learned", rate("switch", "gswitch_fdb_learned_total", sw)}, q{"moved", rate("switch", "gswitch_fdb_moved_total", sw)}, q{"refused", rate("switch", "gswitch_fdb_rejected_total", sw)})
	b.graph("Flooded and local", "pps", "Frames that were flooded, that the switch itself handled, and ICMP errors sent and withheld.",
		q{"flooded", rate("switch", "gswitch_flooded_packets_total", sw)}, q{"local", rate("switch", "gswitch_local_packets_total", sw)},
		q{"ICMP errors", rate("switch", "gswitch_icmp_errors_sent_total", sw)}, q{"withheld", rate("switch", "gswitch_icmp_errors_limited_total", sw)})
	b.graph("Access lists", "pps", "Frames that named rules matched.", q{"{{acl}} {{rule}}", orZero(rate("acl, rule", "gswitch_acl_rule_packets_total", sw), "rule")})
}
