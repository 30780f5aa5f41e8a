package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"gswitch/dataplane"
	"gswitch/frame"
	"gswitch/histogram"
	"gswitch/hostnic"
	"gswitch/hostnic/bump"
)

// BumpUnit is a bump in the wire on its worker, with the engine's names of its
// ports.
type BumpUnit struct {
	Name         string
	Bump         *bump.Bump
	Worker       *dataplane.Worker
	Outer, Inner string
}

// Bump is the state of one bump.
type Bump struct {
	Name     string
	Counts   bump.Counts
	NIC      hostnic.Counts
	Late     histogram.Buckets
	Channels []bump.Channel
	Peers    []bump.Peer
	MAC      uint64
	Packet   int    // bytes that an IPv4 packet in a channel may have
	Queue    uint32 // bytes that may wait in a channel
	Outer    []dataplane.PortStats
	Inner    []dataplane.PortStats
}

// read copies what the bump counts. A worker that was stopped is not read.
func (u BumpUnit) read(b *Bump) {
	_ = u.Worker.Do(func(frame.Time) {
		b.Counts, b.NIC, b.Late = *u.Bump.Counts(), *u.Bump.NIC().Counts(), u.Bump.Late
		b.Channels, b.Peers, b.MAC = u.Bump.Channels(b.Channels), u.Bump.Peers(b.Peers), u.Bump.Station()
		conf := u.Bump.Config()
		b.Packet, b.Queue = conf.Packet(), conf.Queue
	})
}

// TakeBumps takes a snapshot of an engine and its bumps.
func TakeBumps(engine *dataplane.Engine, units []BumpUnit, config ConfigState) *Snapshot {
	s := &Snapshot{Engine: engine.Stats(), Config: config}
	for _, u := range units {
		b := Bump{Name: u.Name}
		u.read(&b)
		for _, p := range s.Engine.Ports {
			switch p.Name {
			case u.Outer:
				b.Outer = append(b.Outer, p)
			case u.Inner:
				b.Inner = append(b.Inner, p)
			}
		}
		s.Bumps = append(s.Bumps, b)
	}
	return s
}

var (
	bumpFrames   = counter("bump_frames_total", "Frames of a host behind a bump in the wire: where they came in or left.", "host", "side", "direction")
	bumpBytes    = counter("bump_bytes_total", "Bytes of these frames.", "host", "side", "direction")
	bumpPackets  = counter("bump_packets_total", "What became of them: carried by a channel, delivered from one, passed untouched.", "host", "way")
	bumpChannels = gauge("bump_channels", "Channels that are open, for five-tuples and for hosts.", "host", "kind")
	bumpOpened   = counter("bump_channels_opened_total", "Channels opened.", "host")
	bumpLost     = counter("bump_channels_lost_total", "Channels closed since their peer started again or is gone.", "host")
	bumpQueue    = gauge("bump_queue_bytes", "Bytes that wait in channels: of all, and of the one with most.", "host", "of")
	bumpRate     = gauge("bump_rate_bits_per_second", "Rate that congestion control allows the channels that have something to send: of all, and of the slowest (least).", "host", "of")
	bumpWindow   = gauge("bump_window_bytes", "Window that congestion control allows them, where it has one: of all, and the least.", "host", "of")
	bumpPeers    = gauge("bump_peers", "Hosts that packets were sent to, by whether they have a bump.", "host", "state")
	bumpEdits    = counter("bump_edited_packets_total", "Packets that the bump changed, or made: clamped (TCP segment size), marked (ECN), too-big (ICMP error to the kernel).", "host", "kind")
	bumpAgain    = counter("bump_retransmitted_frames_total", "Frames of channels that were sent again.", "host")
	bumpTimeouts = counter("bump_timeouts_total", "Retransmission timeouts of channels.", "host")
	bumpOverflow = counter("bump_overflow_packets_total", "Packets whose five-tuple found no channel of its own.", "host")
	bumpStale    = counter("bump_datagrams_refused_total", "Datagrams of other bumps that were not taken: stale (of an earlier incarnation), bad (not readable).", "host", "reason")
	bumpBlind    = counter("bump_blind_acknowledgements_total", "Acknowledgements whose telemetry no switch had written to: congestion control that needs it works without.", "host")
	bumpDrops    = counter("bump_drops_total", "Frames dropped, by reason. local-consumed were meant for the bump.", "host", "reason")
	bumpLate     = prometheus.NewDesc("gswitch_bump_frame_lateness_seconds", "How long after its instant on the emulated link a frame was sent.", []string{"host"}, nil)
)

func (e emitter) bump(b *Bump) {
	c := &b.Counts
	for _, f := range []struct {
		side, direction string
		bump.Frames
	}{{"kernel", "rx", c.FromKernel}, {"kernel", "tx", c.ToKernel}, {"fabric", "rx", c.FromFabric}, {"fabric", "tx", bump.Frames{Frames: b.NIC.TxFrames, Bytes: b.NIC.TxBytes}}} {
		e.count(bumpFrames, f.Frames.Frames, b.Name, f.side, f.direction)
		e.count(bumpBytes, f.Bytes, b.Name, f.side, f.direction)
	}
	e.count(bumpPackets, c.Carried, b.Name, "carried")
	e.count(bumpPackets, c.Delivered, b.Name, "delivered")
	e.count(bumpPackets, c.PassedOut, b.Name, "passed-out")
	e.count(bumpPackets, c.PassedIn, b.Name, "passed-in")
	var tuples, hosts, queued, most uint64
	var pace Pace
	for i := range b.Channels {
		pace.add(&b.Channels[i].QP)
		if b.Channels[i].Host {
			hosts++
		} else {
			tuples++
		}
		queued += b.Channels[i].Queue
		most = max(most, b.Channels[i].Queue)
	}
	e.gauge(bumpChannels, float64(tuples), b.Name, "tuple")
	e.gauge(bumpChannels, float64(hosts), b.Name, "host")
	e.gauge(bumpQueue, float64(queued), b.Name, "all")
	e.gauge(bumpQueue, float64(most), b.Name, "longest")
	e.pace(bumpRate, bumpWindow, &pace, b.Name)
	e.count(bumpOpened, c.Opened, b.Name)
	e.count(bumpLost, c.Lost, b.Name)
	states := map[string]int{"asked": 0, "known": 0, "absent": 0}
	for i := range b.Peers {
		states[b.Peers[i].State]++
	}
	for state, n := range states {
		e.gauge(bumpPeers, float64(n), b.Name, state)
	}
	e.count(bumpEdits, c.Clamped, b.Name, "clamped")
	e.count(bumpEdits, c.Marked, b.Name, "marked")
	e.count(bumpEdits, c.TooBigs, b.Name, "too-big")
	e.count(bumpAgain, b.NIC.Retransmissions, b.Name)
	e.count(bumpTimeouts, b.NIC.Timeouts, b.Name)
	e.count(bumpOverflow, c.Overflows, b.Name)
	e.count(bumpStale, c.Stale, b.Name, "stale")
	e.count(bumpStale, c.BadDatagrams, b.Name, "bad")
	e.count(bumpBlind, b.NIC.Blind, b.Name)
	for reason := range c.Drops {
		if n := c.Drops[reason] + b.NIC.Drops[reason]; n > 0 {
			e.count(bumpDrops, n, b.Name, frame.Reason(reason).String())
		}
	}
	if b.Late.Total() > 0 {
		e <- delayHistogram(bumpLate, &b.Late, b.Name)
	}
}
