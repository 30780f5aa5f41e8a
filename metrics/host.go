package metrics

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"gswitch/dataplane"
	"gswitch/frame"
	"gswitch/histogram"
	"gswitch/hostnic"
	"gswitch/hostnic/agent"
	"gswitch/pfc"
)

// HostUnit is a host on its worker, with the engine's name of its port.
type HostUnit struct {
	Agent  *agent.Agent
	Worker *dataplane.Worker
	Port   string
}

// Host is the state of one host.
type Host struct {
	Name                string
	Counts              hostnic.Counts
	Stack               hostnic.StackCounts
	Flow                pfc.Stats
	Paused, Quenched    uint8 // classes that the neighbour pauses, and has paused for long
	Late                histogram.Buckets
	Sessions, Transfers int
	Serving             bool
	Pace                Pace
	Features            []Measured
	Links               []dataplane.PortStats
}

// Pace is what congestion control allows the queue pairs, or channels, that
// have something to send.
type Pace struct {
	Sending     int
	Rate        float64 // bit/s, of all
	LeastRate   float64 // of one
	Windowed    int     // those that have a window
	Window      float64 // bytes, of these
	LeastWindow float64
	InFlight    uint64 // bytes, of all
}

// add enters a queue pair.
func (p *Pace) add(v *hostnic.QPView) {
	if v.Messages == 0 && v.InFlight == 0 {
		return
	}
	if p.Sending == 0 || v.Rate < p.LeastRate {
		p.LeastRate = v.Rate
	}
	p.Sending++
	p.Rate += v.Rate
	p.InFlight += v.InFlight
	if v.Window <= 0 {
		return
	}
	if p.Windowed == 0 || v.Window < p.LeastWindow {
		p.LeastWindow = v.Window
	}
	p.Windowed++
	p.Window += v.Window
}

// read copies what the host counts. A worker that was stopped is not read.
func (u HostUnit) read(h *Host) {
	_ = u.Worker.Do(func(now frame.Time) {
		n := u.Agent.NIC()
		h.Counts, h.Stack, h.Flow, h.Paused, h.Quenched = *n.Counts(), n.Stack(), n.Flow(now), n.Paused(), n.Quenched()
		h.Late, h.Serving = u.Agent.Late, u.Agent.Serving()
		h.Sessions, h.Transfers = u.Agent.Counts()
		n.ReadFeatures(func(f *hostnic.Feature, counter int, value float64, labels ...string) {
			h.Features = addMeasured(h.Features, f.Name, &f.Counters[counter], value, labels)
		})
		n.QPs(func(qpn uint32) bool {
			if v, err := n.QP(qpn); err == nil {
				h.Pace.add(&v)
			}
			return true
		})
	})
}

var (
	hostUp          = gauge("host_up", "Whether the host's port has a link.", "host")
	hostServing     = gauge("host_serving", "Whether other hosts may open queue pairs.", "host")
	hostRxPackets   = counter("host_receive_packets_total", "Frames that arrived.", "host")
	hostRxBytes     = counter("host_receive_bytes_total", "Bytes of the frames that arrived.", "host")
	hostTxPackets   = counter("host_transmit_packets_total", "Frames sent, by traffic class.", "host", "class")
	hostTxBytes     = counter("host_transmit_bytes_total", "Bytes of the frames sent.", "host")
	hostData        = counter("host_data_packets_total", "Data frames: sent, and of these again (retransmitted); received: delivered, duplicate, out-of-order.", "host", "kind")
	hostTimeouts    = counter("host_timeouts_total", "Retransmission timeouts.", "host")
	hostReplies     = counter("host_replies_total", "Acknowledgements, negative ones and congestion notifications.", "host", "kind", "direction")
	hostMarks       = counter("host_ecn_marked_packets_total", "Data frames that arrived with a congestion mark.", "host")
	hostSelfMarks   = counter("host_source_marked_packets_total", "Data frames that the host sent with a congestion mark of its own, since more than mark_above waited for its link.", "host")
	hostQuenches    = counter("host_quenches_total", "Times that the neighbour paused a class for longer than pfc: quench_after.", "host")
	hostWrong       = counter("host_wrong_receives_total", "RDMA packets that named a receive request which cannot be theirs, and messages that ended without one: the sender is broken or forged.", "host")
	hostRefused     = counter("host_refused_access_total", "RDMA requests for memory that was not granted to their queue pair, beyond its end or without the right: refused by a NAK.", "host")
	hostMessages    = counter("host_messages_total", "Messages that are complete.", "host", "direction")
	hostQPs         = gauge("host_queue_pairs", "Queue pairs that are open.", "host")
	hostSending     = gauge("host_sending_queue_pairs", "Queue pairs that have something to send.", "host")
	hostRate        = gauge("host_rate_bits_per_second", "Rate that congestion control allows the queue pairs that have something to send: of all, and of the slowest (least).", "host", "of")
	hostWindow      = gauge("host_window_bytes", "Window that congestion control allows them, where it has one: of all, and the least.", "host", "of")
	hostInFlight    = gauge("host_in_flight_bytes", "Payload that was sent and is not acknowledged.", "host")
	hostSessions    = gauge("host_sessions", "Transfers under way: active, opened here, and passive, opened by others.", "host", "role")
	hostBlind       = counter("host_blind_acknowledgements_total", "Acknowledgements whose telemetry no switch had written to: congestion control that needs it works without.", "host")
	hostDrops       = counter("host_drops_total", "Frames dropped, by reason.", "host", "reason")
	hostPFC         = counter("host_pfc_frames_total", "Requests to pause (xoff) and to resume (xon).", "host", "class", "direction", "type")
	hostPaused      = gauge("host_pfc_paused", "Whether the neighbour pauses the class now.", "host", "class")
	hostQuenched    = gauge("host_pfc_quenched", "Whether the neighbour has paused the class for longer than pfc: quench_after.", "host", "class")
	hostPauseSec    = counter("host_pfc_pause_seconds_total", "Time in which the neighbour paused the class.", "host", "class")
	hostStack       = counter("host_answers_total", "What the host answered for its address: arp, nd, echo.", "host", "protocol")
	hostUnsolicited = counter("host_neighbors_rejected_total", "Stations that asked for the host's address and were not kept as neighbours, since many others had asked.", "host")
	hostLate        = prometheus.NewDesc("gswitch_host_frame_lateness_seconds", "How long after its instant on the emulated link a frame was sent.", []string{"host"}, nil)
)

func (e emitter) host(h *Host) {
	c, up := &h.Counts, false
	for i := range h.Links {
		up = up || h.Links[i].Up
	}
	e.gauge(hostUp, truth(up), h.Name)
	e.gauge(hostServing, truth(h.Serving), h.Name)
	e.count(hostRxPackets, c.RxFrames, h.Name)
	e.count(hostRxBytes, c.RxBytes, h.Name)
	e.count(hostTxBytes, c.TxBytes, h.Name)
	for class, n := range c.TxClass {
		if n > 0 {
			e.count(hostTxPackets, n, h.Name, digit(class))
		}
	}
	e.count(hostData, c.DataFrames, h.Name, "sent")
	e.count(hostData, c.Retransmissions, h.Name, "retransmitted")
	e.count(hostData, c.Delivered, h.Name, "delivered")
	e.count(hostData, c.Duplicates, h.Name, "duplicate")
	e.count(hostData, c.OutOfOrder, h.Name, "out-of-order")
	e.count(hostTimeouts, c.Timeouts, h.Name)
	e.count(hostReplies, c.AcksSent, h.Name, "ack", "tx")
	e.count(hostReplies, c.AcksReceived, h.Name, "ack", "rx")
	e.count(hostReplies, c.NaksSent, h.Name, "nak", "tx")
	e.count(hostReplies, c.NaksReceived, h.Name, "nak", "rx")
	e.count(hostReplies, c.CNPsSent, h.Name, "cnp", "tx")
	e.count(hostReplies, c.CNPsReceived, h.Name, "cnp", "rx")
	e.count(hostMarks, c.CEMarked, h.Name)
	e.count(hostSelfMarks, c.SelfMarked, h.Name)
	e.count(hostQuenches, c.Quenches, h.Name)
	e.count(hostWrong, c.WrongReceives, h.Name)
	e.count(hostRefused, c.AccessRefused, h.Name)
	e.count(hostMessages, c.MessagesSent, h.Name, "tx")
	e.count(hostMessages, c.MessagesReceived, h.Name, "rx")
	e.gauge(hostQPs, float64(c.QPsOpen), h.Name)
	e.gauge(hostSending, float64(h.Pace.Sending), h.Name)
	e.gauge(hostInFlight, float64(h.Pace.InFlight), h.Name)
	e.pace(hostRate, hostWindow, &h.Pace, h.Name)
	e.gauge(hostSessions, float64(h.Transfers), h.Name, "active")
	e.gauge(hostSessions, float64(h.Sessions), h.Name, "passive")
	e.count(hostStack, h.Stack.ARPAnswered, h.Name, "arp")
	e.count(hostStack, h.Stack.NDAnswered, h.Name, "nd")
	e.count(hostStack, h.Stack.EchoAnswered, h.Name, "echo")
	e.count(hostUnsolicited, h.Stack.UnsolicitedRefused, h.Name)
	e.count(hostBlind, c.Blind, h.Name)
	for reason, n := range c.Drops {
		if n > 0 {
			e.count(hostDrops, n, h.Name, frame.Reason(reason).String())
		}
	}
	for class := range 8 {
		if f := &h.Flow; f.RxXOFF[class]|f.TxXOFF[class]|f.RxXON[class]|f.TxXON[class] != 0 {
			e.count(hostPFC, f.RxXOFF[class], h.Name, digit(class), "rx", "xoff")
			e.count(hostPFC, f.RxXON[class], h.Name, digit(class), "rx", "xon")
			e.count(hostPFC, f.TxXOFF[class], h.Name, digit(class), "tx", "xoff")
			e.count(hostPFC, f.TxXON[class], h.Name, digit(class), "tx", "xon")
			e.gauge(hostPaused, truth(h.Paused>>class&1 != 0), h.Name, digit(class))
			e.gauge(hostQuenched, truth(h.Quenched>>class&1 != 0), h.Name, digit(class))
			e.gauge(hostPauseSec, f.PausedTime[class].Seconds(), h.Name, digit(class))
		}
	}
	if h.Late.Total() > 0 {
		e <- delayHistogram(hostLate, &h.Late, h.Name)
	}
	e.features(h.Features, h.Name)
	for i := range h.Links {
		e.link(h.Name, h.Links[i].Interface, &h.Links[i], strconv.Itoa(h.Links[i].Worker))
	}
}

// pace emits rates and windows. The least of none is nothing.
func (e emitter) pace(rate, window desc, p *Pace, name string) {
	e.gauge(rate, p.Rate, name, "all")
	e.gauge(window, p.Window, name, "all")
	if p.Sending > 0 {
		e.gauge(rate, p.LeastRate, name, "least")
	}
	if p.Windowed > 0 {
		e.gauge(window, p.LeastWindow, name, "least")
	}
}
