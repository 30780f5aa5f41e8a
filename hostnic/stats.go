package hostnic

import (
	"fmt"

	"gswitch/cc"
	"gswitch/frame"
	"gswitch/pfc"
	"gswitch/wire"
)

// Counts are the counters of a NIC since it was made.
type Counts struct {
	RxFrames, RxBytes uint64 // as Meta.Wire counts
	TxFrames, TxBytes uint64
	TxClass           [8]uint64 // frames
	LinkBytes         uint64    // sent, including what each frame occupies beyond its own length
	Drops             [frame.NumReasons]uint64

	DataFrames      uint64 // sent, retransmissions included; without those for which there was no chunk
	Retransmissions uint64
	Timeouts        uint64
	Delivered       uint64 // data frames whose payload was new
	Duplicates      uint64 // data frames delivered before
	OutOfOrder      uint64 // data frames discarded after a gap

	LowFrames uint64 // data frames of second loops (transport.Recursive) sent
	LowAcks   uint64 // replies to such frames received
	LowMarked uint64 // such frames received with a congestion mark

	AcksSent, NaksSent         uint64
	AcksReceived, NaksReceived uint64
	CEMarked                   uint64 // data frames received with a congestion mark
	BECNs                      uint64 // acknowledgements sent that report one
	CNPsSent, CNPsReceived     uint64
	Notices, NoticesUnknown    uint64 // of congestion points: applied by reaction points; concerning no queue pair
	EchoesCut                  uint64 // acknowledgements without the telemetry that did not fit
	Blind                      uint64 // acknowledgements received with telemetry that no switch had written to
	FlowFrames                 uint64 // PFC and pause frames sent
	SelfMarked                 uint64 // data frames sent with a congestion mark of our own (MarkAbove)
	Quenches                   uint64 // pauses of a class that lasted longer than QuenchAfter
	AccessRefused              uint64 // RDMA requests with a key, address or right that their queue pair does not have
	WrongReceives              uint64 // packets with an impossible receive request, and messages that ended without one

	MessagesSent, MessagesReceived uint64 // complete
	QPsOpen                        int
}

// Counts returns the counters.
func (n *NIC) Counts() *Counts { return &n.count }

// Flow returns the counters of flow control at now: pauses received and sent, and paused
// time by class.
func (n *NIC) Flow(now frame.Time) pfc.Stats { return n.flow.Stats(now) }

// Paused returns the classes that the neighbour pauses.
func (n *NIC) Paused() uint8 { return n.paused }

// QPView is the state of a queue pair.
type QPView struct {
	QPN, Remote     uint32
	Class           uint8
	SrcPort         uint16 // UDP, of data frames
	DstPort         uint16
	Rate            float64 // bit/s at which it is paced; the line rate without congestion control
	Window          float64 // bytes, 0 none
	InFlight        uint64  // payload bytes
	InFlightPackets uint32
	Cum, Next       uint64 // packets: acknowledged, sent for the first time
	Posted          uint64 // packets of all messages so far
	Acked           uint64 // payload bytes
	Messages        int    // not completely acknowledged
	State           string // idle, waiting, ready
	Deadline        frame.Time
	Retransmitted   uint64
	Stats           QPStats
	CC              cc.Algorithm // for inspection only, must not be called; nil without
}

// Inspect yields the internals of congestion control, if it shows any.
func (v *QPView) Inspect(yield func(name string, value float64)) {
	if i, ok := v.CC.(cc.Inspector); ok {
		i.Inspect(yield)
	}
}

// QP returns the state of an open queue pair.
func (n *NIC) QP(qpn uint32) (QPView, error) {
	q, why := n.lookup(qpn)
	if why != frame.Keep {
		return QPView{}, fmt.Errorf("nic %s: there is no queue pair %#x: %v", n.cfg.Name, qpn, why)
	}
	v := QPView{
		QPN: q.qpn, Remote: q.remote, Class: q.lanes[inTurn].class, Rate: float64(n.cfg.Rate), Window: q.window,
		InFlight: q.tx.BytesInFlight(), InFlightPackets: q.tx.InFlight(), Cum: q.tx.Cum(), Next: q.tx.Next(),
		Posted: q.posted, Acked: q.acked, Messages: int(q.msgs.n), Deadline: q.tx.Deadline(),
		Retransmitted: q.tx.Retransmissions(), Stats: q.stats, CC: q.cc,
		State: [...]string{"idle", "waiting", "ready"}[q.lanes[inTurn].state],
	}
	v.SrcPort, v.DstPort = q.data.ports()
	if q.lanes[inTurn].pace.on {
		v.Rate = q.lanes[inTurn].pace.rate
	}
	return v, nil
}

// QPs calls yield with the number of each open queue pair.
func (n *NIC) QPs(yield func(qpn uint32) bool) {
	for _, q := range n.qps {
		if q.open && q.owner == nil && !yield(q.qpn) {
			return
		}
	}
}

// ports returns the UDP ports of a header.
func (t *template) ports() (src, dst uint16) {
	udp := wire.UDP(t.b[wire.EthernetLen+wire.IPv6Len:])
	if t.ipv4 {
		udp = wire.UDP(t.b[wire.EthernetLen+wire.IPv4Len:])
	}
	return udp.SrcPort(), udp.DstPort()
}
