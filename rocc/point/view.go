package point

import (
	"strconv"

	"gswitch/rocc"
	"gswitch/vswitch"
)

// Counts are what a congestion point counted.
type Counts struct {
	Updates uint64    // periods in which the controller ran
	Branch  [3]uint64 // of these, by what they did: see rocc.Branch
	Notices uint64    // sent
	Unsent  uint64    // that could not be made: no chunk was free
	Full    uint64    // packets of flows for which the table had no room
}

// View is a congestion point as it is now.
type View struct {
	Port, Queue int
	Fair        uint64 // bit/s; 0 where hosts work it out
	QueueBytes  uint64
	Reference   uint64 // bytes
	Table       rocc.Kind
	AtHosts     bool
	Flows       int
	Counts
}

// Views appends what the congestion points of a worker are at. Like every
// reader of a node's state it is called between two steps of it.
func Views(n *vswitch.Node, v []View) []View {
	ps, _ := n.Feature(Name).(*points)
	if ps == nil {
		return v
	}
	for _, p := range ps.all {
		if !p.on {
			continue
		}
		_, queue := n.Scheduler(p.port).QueueLen(int(p.queue))
		at := View{Port: int(p.port), Queue: int(p.queue), QueueBytes: queue, Reference: uint64(p.params.QRef), Table: p.kept.Kind, AtHosts: p.atHosts, Flows: p.known(), Counts: p.count}
		if p.table != nil {
			at.Full = p.table.Full
		} else {
			at.Full = p.flows.Full
		}
		if !p.atHosts {
			at.Fair = p.control.Rate()
		}
		v = append(v, at)
	}
	return v
}

const (
	fairRate = iota
	waiting
	reference
	flowsNotified
	updates
	notices
	untrackedFrames
)

var counters = []vswitch.Counter{
	fairRate:        {Name: "rocc_fair_rate_bytes_per_second", Help: "Rate that RoCC allows each flow of the egress queue, where the switch works it out.", Labels: []string{"queue"}, Gauge: true},
	waiting:         {Name: "rocc_waiting_bytes", Help: "Bytes in the egress queue that RoCC watches.", Labels: []string{"queue"}, Gauge: true},
	reference:       {Name: "rocc_reference_bytes", Help: "Length that RoCC holds the egress queue at.", Labels: []string{"queue"}, Gauge: true},
	flowsNotified:   {Name: "rocc_flows", Help: "Flows that RoCC notifies.", Labels: []string{"queue"}, Gauge: true},
	updates:         {Name: "rocc_updates_total", Help: "Periods of RoCC's controller, by what it did: tuned, halved (the queue grew too fast), cut (it was too long).", Labels: []string{"queue", "branch"}, Values: branches[:]},
	notices:         {Name: "rocc_notices_total", Help: "Notices that RoCC sent, or could not make (unsent).", Labels: []string{"queue", "outcome"}, Values: []string{"sent", "unsent"}},
	untrackedFrames: {Name: "rocc_untracked_frames_total", Was: "rocc_untold_packets_total", Help: "Frames of flows for which RoCC's table had no room.", Labels: []string{"queue"}},
}

var branches = [...]string{rocc.Tuned: "tuned", rocc.Halved: "halved", rocc.Cut: "cut"}

func (ps *points) read(emit func(counter int, port uint16, value float64, labels ...string)) {
	for _, v := range Views(ps.node, nil) {
		port, queue := uint16(v.Port), strconv.Itoa(v.Queue)
		if !v.AtHosts {
			emit(fairRate, port, float64(v.Fair)/8, queue)
		}
		emit(waiting, port, float64(v.QueueBytes), queue)
		emit(reference, port, float64(v.Reference), queue)
		emit(flowsNotified, port, float64(v.Flows), queue)
		for i, name := range branches {
			emit(updates, port, float64(v.Branch[i]), queue, name)
		}
		emit(notices, port, float64(v.Notices), queue, "sent")
		emit(notices, port, float64(v.Unsent), queue, "unsent")
		emit(untrackedFrames, port, float64(v.Full), queue)
	}
}
