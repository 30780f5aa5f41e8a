package grafana

// host is the dashboard of hosts on real frames.
func host() dashboard {
	b := newDashboard("host", "gswitch / Host", "Hosts (ghost): what they send and receive, recovery, congestion feedback, pauses, and how late the machine lets them be.",
		choice("instance", "Daemon", `{__name__=~"gswitch_host_up|gswitch_bump_channels"}`, true),
		choice("host", "Host", `{__name__=~"gswitch_host_up|gswitch_bump_channels",instance=~"$instance"}`, true))
	const at = `instance=~"$instance",host=~"$host"`

	b.row("Overview")
	b.stat("Hosts up", "none", "Hosts whose port has a link.", `sum(gswitch_host_up{`+at+`})`)
	b.stat("Hosts down", "none", "Hosts whose port has no link.", `count(gswitch_host_up{`+at+`} == 0) or on () vector(0)`, from("green", 1.0, "red")...)
	b.stat("Queue pairs", "none", "Queue pairs that are open.", `sum(gswitch_host_queue_pairs{`+at+`})`)
	b.stat("Transfers", "none", "Transfers under way that these hosts opened.", `sum(gswitch_host_sessions{`+at+`,role="active"})`)
	b.stat("Timeouts", "ops", "Retransmission timeouts in a second.", `sum(rate(gswitch_host_timeouts_total{`+at+`}[$__rate_interval]))`, from("green", 0.1, "yellow", 1.0, "red")...)
	b.stat("Frames late, p99", "s", "99 of 100 frames left no later than this after their instant on the emulated link.", quantile("0.99", "", "gswitch_host_frame_lateness_seconds", at), from("green", 1e-3, "red")...)

	b.row("Load")
	b.graph("Sends", "bps", "What hosts send.", q{"{{host}}", `8 * ` + rate("host", "gswitch_host_transmit_bytes_total", at)})
	b.graph("Receives", "bps", "What hosts receive.", q{"{{host}}", `8 * ` + rate("host", "gswitch_host_receive_bytes_total", at)})
	b.graph("Messages", "ops", "Messages that are complete.", q{"{{host}} {{direction}}", rate("host, direction", "gswitch_host_messages_total", at)})
	b.graph("Frames sent by class", "pps", "Frames sent, by traffic class.", q{"{{host}} class {{class}}", rate("host, class", "gswitch_host_transmit_packets_total", at)})
	b.graph("Frames received", "pps", "Frames that arrive.", q{"{{host}}", rate("host", "gswitch_host_receive_packets_total", at)})
	b.graph("Queue pairs and transfers", "none", "Queue pairs that are open, and transfers that the host opened (active) or others did (passive).",
		q{"{{host}} queue pairs", `gswitch_host_queue_pairs{` + at + `}`}, q{"{{host}} {{role}}", `gswitch_host_sessions{` + at + `}`})

	b.row("Recovery and congestion")
	b.graph("Data frames", "pps", "Data frames sent, and of these again; received: delivered, duplicates, out of order.", q{"{{host}} {{kind}}", rate("host, kind", "gswitch_host_data_packets_total", at)})
	b.graph("Sent again", "percentunit", "Share of the data frames that were sent before.",
		q{"{{host}}", orZero(rate("host", "gswitch_host_data_packets_total", at+`,kind="retransmitted"`)+` / (`+rate("host", "gswitch_host_data_packets_total", at+`,kind="sent"`)+` > 0)`, "host")}).atMost(1)
	b.graph("Acknowledgements", "pps", "Acknowledgements, negative ones and congestion notifications, both ways.", q{"{{host}} {{kind}} {{direction}}", rate("host, kind, direction", "gswitch_host_replies_total", at)})
	b.graph("ECN marks", "percentunit", "Share of the data frames that arrived with a congestion mark.",
		q{"{{host}}", orZero(rate("host", "gswitch_host_ecn_marked_packets_total", at)+` / (`+rate("host", "gswitch_host_data_packets_total", at+`,kind=~"delivered|duplicate|out-of-order"`)+` > 0)`, "host")}).atMost(1)
	b.graph("Rate allowed", "bps", "What congestion control allows the queue pairs that have something to send: of all, and of the slowest.", q{"{{host}} {{of}}", orZero(`gswitch_host_rate_bits_per_second{`+at+`}`, "host")})
	b.graph("Window and bytes in flight", "decbytes", "Windows of the queue pairs that have something to send: of all, and the least; and what is in flight.",
		q{"{{host}} {{of}}", orZero(`gswitch_host_window_bytes{`+at+`}`, "host")}, q{"{{host}} in flight", orZero(`gswitch_host_in_flight_bytes{`+at+`}`, "host")})
	b.graph("Timeouts and broken peers", "ops", "Retransmission timeouts, and RDMA packets that cannot be right.", q{"{{host}} timeouts", rate("host", "gswitch_host_timeouts_total", at)}, q{"{{host}} broken", rate("host", "gswitch_host_wrong_receives_total", at)})
	b.graph("Paused by the switch", "percentunit", "Share of the time in which the switch holds a class of the host back.",
		q{"{{host}} class {{class}}", orZero(`rate(gswitch_host_pfc_pause_seconds_total{`+at+`}[$__rate_interval])`, "host")}).atMost(1).lines(from("green", 0.5, "yellow", 0.9, "red"))

	b.row("Losses and answers")
	b.graph("Drops", "pps", "Frames dropped, by reason: frame/reason.go explains each.", q{"{{host}} {{reason}}", orZero(rate("host, reason", "gswitch_host_drops_total", at), "host")}).stacked()
	b.graph("Pause frames", "pps", "Requests to pause (xoff) and to resume (xon).", q{"{{host}} {{direction}} {{type}}", orZero(rate("host, direction, type", "gswitch_host_pfc_frames_total", at), "host")})
	b.graph("Answers", "ops", "What hosts answer for their address: ARP, neighbour discovery, echo.", q{"{{host}} {{protocol}}", rate("host, protocol", "gswitch_host_answers_total", at)})
	b.heatmap("Frames late", "s", "How long after their instant on the emulated link frames left.", `sum by (le) (increase(gswitch_host_frame_lateness_seconds_bucket{`+at+`}[$__rate_interval]))`)

	b.bumps(at)
	b.rings(`instance=~"$instance",switch=~"$host"`, "switch")
	b.workers(`instance=~"$instance"`)
	return b.d
}

// bumps are the hosts that keep their kernel's stack: ghost paces what the
// kernel sends in channels.
func (b *builder) bumps(at string) {
	b.row("Transparent hosts")
	b.graph("Between kernel and fabric", "bps", "What goes through the bump in the wire, on the side of the kernel and on that of the fabric.",
		q{"{{host}} {{side}} {{direction}}", orZero(`8 * `+rate("host, side, direction", "gswitch_bump_bytes_total", at), "host")})
	b.graph("Channels", "none", "Channels that are open, for five-tuples and for hosts.", q{"{{host}} {{kind}}", orZero(`gswitch_bump_channels{`+at+`}`, "host")})
	b.graph("Waiting in channels", "decbytes", "Bytes that wait in all channels, and in the one with most: here the queue is, not at the switches.",
		q{"{{host}} {{of}}", orZero(`gswitch_bump_queue_bytes{`+at+`}`, "host")})
	b.graph("Rate of channels", "bps", "What congestion control allows the channels that have something to send: of all, and of the slowest.", q{"{{host}} {{of}}", orZero(`gswitch_bump_rate_bits_per_second{`+at+`}`, "host")})
	b.graph("Window of channels", "decbytes", "Windows of the channels that have something to send: of all, and the least.", q{"{{host}} {{of}}", orZero(`gswitch_bump_window_bytes{`+at+`}`, "host")})
	b.graph("Packets by way", "pps", "Packets carried by a channel, delivered from one, and passed untouched.", q{"{{host}} {{way}}", orZero(rate("host, way", "gswitch_bump_packets_total", at), "host")}).stacked()
	b.graph("Channels opened and lost", "ops", "Channels opened, closed since their peer started again or is gone, and packets that found no channel of their own.",
		q{"{{host}} opened", orZero(rate("host", "gswitch_bump_channels_opened_total", at), "host")}, q{"{{host}} lost", orZero(rate("host", "gswitch_bump_channels_lost_total", at), "host")},
		q{"{{host}} overflow", orZero(rate("host", "gswitch_bump_overflow_packets_total", at), "host")})
	b.graph("Recovery in channels", "ops", "Frames of channels that were sent again, and timeouts.",
		q{"{{host}} again", orZero(rate("host", "gswitch_bump_retransmitted_frames_total", at), "host")}, q{"{{host}} timeouts", orZero(rate("host", "gswitch_bump_timeouts_total", at), "host")})
}
