package grafana

// collector is the dashboard of gcollect: what it found, and whether it gets and
// analyses what switches report.
func collector() dashboard {
	b := newDashboard("collector", "gswitch / Collector", "What the collector (gcollect) found in the network, and whether it gets and analyses all that switches report.",
		choice("instance", "Collector", "gcollect_exporters", true))
	const at = `instance=~"$instance"`

	b.row("Overview")
	b.stat("Collectors", "none", "Collectors that answer.", `count(gcollect_exporters{`+at+`})`)
	b.stat("Exporters", "none", "Daemons that are connected to report.", `sum(gcollect_exporters{`+at+`})`, from("red", 1.0, "green")...)
	b.stat("Lanes", "none", "Of the 16 parts of the reports, how many are analysed.", `sum(gcollect_lanes{`+at+`})`, from("red", 16.0, "green")...)
	b.stat("Lost packets", "pps", "Packets that links lost, of those whose both ends report.", orZero(`sum(rate(gcollect_link_lost_packets_total{`+at+`}[$__rate_interval]))`, "link"), from("green", 1.0, "yellow")...)
	b.stat("Blackholes and loops", "none", "Events that report blackholes and loops, in the last five minutes.",
		orZero(`sum(increase(gcollect_events_total{`+at+`,what=~"blackhole|loop|looped"}[5m]))`, "what"), from("green", 1.0, "red")...)
	b.stat("Reports missing", "none", "Reports that switches had no memory for, in the last five minutes.", orZero(`sum(increase(gcollect_missing_reports_total{`+at+`}[5m]))`, "instance"), from("green", 1.0, "red")...)

	b.row("What happened")
	b.graph("Events", "ops", "What was found, by kind and by what it is; docs/TELEMETRY.md explains each.", q{"{{kind}} {{what}}", orZero(rate("kind, what", "gcollect_events_total", at), "kind")}).stacked()
	b.graph("Packets lost by link", "pps", "Packets that a link lost, the queue before it among what is meant.", q{"{{link}}", orZero(rate("link", "gcollect_link_lost_packets_total", at), "link")})
	b.graph("Share lost by link", "percentunit", "Share of the packets that entered a link which it lost.",
		q{"{{link}}", orZero(rate("link", "gcollect_link_lost_packets_total", at)+` / (`+rate("link", "gcollect_link_packets_total", at)+` > 0)`, "link")}).lines(from("green", 0.001, "yellow", 0.01, "red"))
	b.graph("Lost and named", "pps", "Packets that links lost, and those of them that are known one by one: the digests are too small where these are fewer.",
		q{"lost", orZero(`sum(rate(gcollect_link_lost_packets_total{`+at+`}[$__rate_interval]))`, "link")}, q{"named", orZero(`sum(rate(gcollect_link_found_packets_total{`+at+`}[$__rate_interval]))`, "link")})
	b.graph("Traced packets", "pps", "Packets that copies report, by what became of them.", q{"{{what}}", orZero(rate("what", "gcollect_traces_total", at), "what")}).stacked()
	b.graph("Slots of flows", "ops", "Slots of switches of which every flow is known, not every flow, or nothing for sure.", q{"{{outcome}}", orZero(rate("outcome", "gcollect_flow_slots_total", at), "outcome")}).stacked()

	b.row("Reports")
	b.graph("Reports received", "ops", "Reports, by what became of them. Again is what a switch had to send twice.", q{"{{outcome}}", orZero(rate("outcome", "gcollect_reports_total", at), "outcome")})
	b.graph("Reports analysed", "ops", "Reports that were analysed, by kind, and those that say nothing, by why.",
		q{"{{kind}}", orZero(rate("kind", "gcollect_analysed_reports_total", at), "kind")}, q{"{{problem}}", orZero(rate("problem", "gcollect_report_problems_total", at), "problem")})
	b.graph("Copies of packets", "pps", "Copies that came, by what became of them, and those that are missing by their numbers.",
		q{"{{outcome}}", orZero(rate("outcome", "gcollect_copies_total", at), "outcome")}, q{"analysed: {{outcome}}", orZero(rate("outcome", "gcollect_analysed_copies_total", at), "outcome")})
	b.graph("Batches unknown", "ops", "Batches of links of which the report of an end is missing.", q{"{{link}}", orZero(rate("link", "gcollect_link_unknown_batches_total", at), "link")})
	b.graph("Traces cut short", "pps", "Packets that were judged before all copies may have been there: too many at once, of one packet, or for too long.", q{"{{instance}}", orZero(rate("instance", "gcollect_traces_early_total", at), "instance")})
	b.graph("Refused", "ops", "Connections and copies from addresses that may not send, and connections that brought no reports.",
		q{"{{what}}", orZero(rate("what", "gcollect_refused_total", at), "what")}, q{"no reports", orZero(rate("instance", "gcollect_bad_connections_total", at), "instance")})

	b.row("Work")
	b.graph("Lanes by collector", "none", "How the collectors share the 16 parts of the reports.", q{"{{instance}}", `gcollect_lanes{` + at + `}`}).stacked()
	b.graph("Messages analysed", "ops", "Messages of the stream that each collector analyses.", q{"{{instance}}", rate("instance", "gcollect_messages_total", at)})
	b.graph("Failures", "ops", "Analyses that were begun again, and events that the stream had already.",
		q{"{{instance}} failures", rate("instance", "gcollect_lane_failures_total", at)}, q{"{{instance}} again", rate("instance", "gcollect_events_again_total", at)})

	b.row("Switches that report")
	b.graph("Reports waiting", "none", "Reports that daemons keep until the collector has them.", q{"{{instance}}", orZero("gswitch_export_waiting_reports", "instance")})
	b.graph("Bytes waiting", "decbytes", "Bytes of these reports; export.memory bounds them.", q{"{{instance}}", orZero("gswitch_export_waiting_bytes", "instance")})
	b.graph("Reports made", "ops", "Reports that the collector acknowledged, and those that there was no memory for.", q{"{{instance}} {{outcome}}", orZero(rate("instance, outcome", "gswitch_export_reports_total", ""), "instance")})
	return b.d
}
