package grafana

// fabric is the dashboard of all switches, and hosts, together: where is it
// busy, where do frames wait, which port pauses which, what is lost.
func fabric() dashboard {
	b := newDashboard("fabric", "gswitch / Fabric", "All switches and hosts together: where it is busy, where frames wait, which port pauses which, what is lost.",
		choice("instance", "Daemon", "gswitch_build_info", true),
		choice("switch", "Switch", `gswitch_port_up{instance=~"$instance"}`, true))
	const at = `instance=~"$instance",switch=~"$switch"`
	const port = "{{switch}}/{{port}}"

	b.row("Overview")
	b.stat("Switches", "none", "Switches that Prometheus scrapes.", `count(count by (instance, switch) (gswitch_port_up{`+at+`}))`)
	b.stat("Ports down", "none", "Ports that are enabled and have no link.",
		`count(gswitch_port_enabled{`+at+`} == 1 and gswitch_port_up{`+at+`} == 0) or on () vector(0)`, from("green", 1.0, "red")...)
	b.stat("Traffic", "bps", "Bits that leave all ports in a second.", `8 * sum(rate(gswitch_port_transmit_bytes_total{`+at+`}[$__rate_interval]))`)
	b.stat("Losses", "pps", "Frames lost in a second. Frames without a receiver behind the switch, and consumed control frames, are not losses.",
		`sum(rate(gswitch_drops_total{`+at+`,reason!~"`+notLost()+`"}[$__rate_interval])) or on () vector(0)`, from("green", 0.1, "yellow", 10.0, "red")...)
	b.stat("Paused now", "none", "Classes of ports that the neighbour pauses at this moment.",
		`sum(gswitch_pfc_paused{`+at+`,direction="rx"}) or on () vector(0)`, from("green", 1.0, "yellow")...)
	b.stat("Alerts", "none", "Alerts that fire, of the rules in deploy/prometheus.",
		`count(ALERTS{alertstate="firing",service="gswitch",instance=~"$instance"}) or on () vector(0)`, from("green", 1.0, "red")...)

	b.row("Load")
	b.graph("Busiest ports", "bps", "What leaves the ten busiest ports.",
		q{port, `topk(10, 8 * ` + rate("instance, switch, port", "gswitch_port_transmit_bytes_total", at) + `)`}).linked("switch", "instance", "switch", "port")
	b.graph("Utilisation", "percentunit", "Share of the emulated link's time in use, with 24 bytes of preamble, checksum and gap for each frame. The ten busiest; ports without a rate have none.",
		q{port, `topk(10, (rate(gswitch_port_transmit_bytes_total{` + at + `}[$__rate_interval]) + 24 * rate(gswitch_port_transmit_packets_total{` + at + `}[$__rate_interval])) / (gswitch_port_rate_bytes_per_second{` + at + `} > 0))`}).
		atMost(1).lines(from("green", 0.8, "yellow", 0.95, "red")).linked("switch", "instance", "switch", "port")
	b.graph("Hosts", "bps", "What ghosts send and receive.",
		q{"{{host}} sends", `8 * ` + rate("instance, host", "gswitch_host_transmit_bytes_total", `instance=~"$instance"`) + ` or on () label_replace(vector(0), "host", "none", "", "")`},
		q{"{{host}} receives", `8 * ` + rate("instance, host", "gswitch_host_receive_bytes_total", `instance=~"$instance"`) + ` or on () label_replace(vector(0), "host", "none", "", "")`}).linked("host", "instance", "host")

	b.row("Queues")
	b.graph("Deepest queues", "decbytes", "Mean depth of the ten deepest egress ports, of everything that happened between two scrapes.",
		q{port, `topk(10, ` + rate("instance, switch, port", "gswitch_queue_byte_seconds_total", at) + `)`}).linked("switch", "instance", "switch", "port")
	b.graph("Waiting, 99th percentile", "s", "Time in the egress queue that 99 of 100 frames did not exceed, by switch.",
		q{"{{switch}}", quantile("0.99", "instance, switch", "gswitch_queue_delay_seconds", at)})
	b.heatmap("Waiting", "s", "Time that frames spent in egress queues of all chosen switches.", `sum by (le) (increase(gswitch_queue_delay_seconds_bucket{`+at+`}[$__rate_interval]))`)

	b.row("Congestion")
	b.graph("Paused by the neighbour", "percentunit", "Share of the time in which a port may not send, by class. The ten worst. Near 1 it is a storm.",
		q{port + " class {{class}}", orZero(`topk(10, rate(gswitch_pfc_pause_seconds_total{`+at+`,direction="rx"}[$__rate_interval]))`, "port")}).
		atMost(1).lines(from("green", 0.5, "yellow", 0.9, "red")).linked("switch", "instance", "switch", "port")
	b.graph("Pausing the neighbour", "percentunit", "Share of the time in which a port asks its neighbour to hold back, by class: this is where the pauses come from.",
		q{port + " class {{class}}", orZero(`topk(10, rate(gswitch_pfc_pause_seconds_total{`+at+`,direction="tx"}[$__rate_interval]))`, "port")}).
		atMost(1).linked("switch", "instance", "switch", "port")
	b.graph("ECN marks", "percentunit", "Share of the frames of a queue that left with a congestion mark. The ten highest.",
		q{port + " queue {{queue}}", `topk(10, rate(gswitch_queue_ecn_marked_packets_total{` + at + `}[$__rate_interval]) / (rate(gswitch_queue_dequeued_packets_total{` + at + `}[$__rate_interval]) > 0))`}).
		atMost(1).linked("switch", "instance", "switch", "port")
	b.graph("Losses by reason", "pps", "Lost frames by reason; gswitch show drops lists the ports.",
		q{"{{reason}}", orZero(rate("reason", "gswitch_drops_total", at+`,reason!~"`+notLost()+`"`), "reason")}).stacked()
	b.graph("Losses by switch", "pps", "Lost frames by switch.",
		q{"{{switch}}", orZero(rate("instance, switch", "gswitch_drops_total", at+`,reason!~"`+notLost()+`"`), "switch")}).stacked()
	b.graph("Telemetry records", "pps", "Data frames with in-band telemetry, by what became of the switch's record. Only stamped ones show this switch to the host.",
		q{"{{outcome}}", orZero(rate("outcome", "gswitch_telemetry_frames_total", at), "outcome")}).stacked()

	b.row("Machine")
	b.graph("Workers busy", "percentunit", "Share of the time in loops that moved frames.",
		q{"{{instance}} worker {{worker}}", `rate(gswitch_worker_busy_seconds_total{instance=~"$instance"}[$__rate_interval]) / rate(gswitch_worker_seconds_total{instance=~"$instance"}[$__rate_interval])`}).
		atMost(1).lines(from("green", 0.8, "yellow", 0.95, "red"))
	b.graph("Timers late, 99th percentile", "s", "How late 99 of 100 timers were served at most. Near a quarter of the round trip the machine's jitter is what one measures.",
		q{"{{instance}} worker {{worker}}", quantile("0.99", "instance, worker", "gswitch_worker_lateness_seconds", `instance=~"$instance"`)}).lines(from("green", 1e-3, "red"))
	b.graph("Frames lost around the rings", "pps", "Frames that the kernel dropped before a switch or host saw them, and frames that a device refused.",
		q{"{{switch}} receive", orZero(`sum by (instance, switch) (rate(gswitch_xsk_rx_ring_full_total{instance=~"$instance"}[$__rate_interval]) + rate(gswitch_xsk_rx_dropped_total{instance=~"$instance"}[$__rate_interval]))`, "switch")},
		q{"{{switch}} transmit", orZero(rate("instance, switch", "gswitch_port_transmit_lost_packets_total", at), "switch")}).stacked()

	b.row("Ports")
	b.portTable(at)
	return b.d
}

// portTable lists the ports with what is known of them now.
func (b *builder) portTable(at string) {
	by := "sum by (instance, switch, port) "
	p := b.newPanel("table", "Ports", "", "The state of every port. A click on a port opens its switch.", columns, 12, targets([]q{
		{"", `gswitch_port_up{` + at + `}`},
		{"", `8 * gswitch_port_rate_bytes_per_second{` + at + `}`},
		{"", `8 * ` + by + `(rate(gswitch_port_receive_bytes_total{` + at + `}[$__rate_interval]))`},
		{"", `8 * ` + by + `(rate(gswitch_port_transmit_bytes_total{` + at + `}[$__rate_interval]))`},
		{"", by + `(gswitch_queue_bytes{` + at + `})`},
		{"", by + `(rate(gswitch_drops_total{` + at + `,reason!~"` + notLost() + `"}[$__rate_interval])) or 0 * gswitch_port_up{` + at + `}`},
	}, "table", true))
	column := func(ref, name, unit string) override {
		return override{matcher{"byName", "Value #" + ref}, []property{{"displayName", name}, {"unit", unit}}}
	}
	up := column("A", "State", "none")
	up.Properties = append(up.Properties,
		property{"mappings", []mapping{{"value", map[string]mapText{"0": {"down", "red", 0}, "1": {"up", "green", 1}}}}},
		property{"custom.cellOptions", map[string]any{"type": "color-text"}})
	p.FieldConfig.Overrides = []override{up, column("B", "Speed", "bps"), column("C", "Receives", "bps"), column("D", "Transmits", "bps"),
		column("E", "Queued", "decbytes"), column("F", "Losses", "pps"),
		{matcher{"byName", "port"}, []property{{"links", []dataLink{{"Open the switch",
			"/d/gswitch-switch/gswitch-switch?${__url_time_range}&var-datasource=${datasource}&var-instance=${__data.fields.instance}&var-switch=${__data.fields.switch}&var-port=${__data.fields.port}"}}}}}}
	p.Transformations = []transformation{
		{"merge", map[string]any{}},
		{"organize", map[string]any{
			"excludeByName": map[string]bool{"Time": true, "__name__": true, "job": true, "fabric": true},
			"indexByName":   map[string]int{"switch": 0, "port": 1, "Value #A": 2, "Value #B": 3, "Value #C": 4, "Value #D": 5, "Value #E": 6, "Value #F": 7, "instance": 8},
		}},
	}
	p.Options = map[string]any{"showHeader": true, "sortBy": []map[string]any{{"displayName": "switch", "desc": false}}}
}
