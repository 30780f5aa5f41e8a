package hostnic

import (
	"errors"
	"fmt"
	"slices"

	"gswitch/cc"
	"gswitch/frame"
	inband "gswitch/int"
	"gswitch/transport"
	"gswitch/wire"
)

// queuePair is one end of a connection.
type queuePair struct {
	// Fields used for each frame, in the order in which sending a frame needs them: with
	// thousands of queue pairs none is in the cache, and each cache line costs a wait.
	index     uint32
	qpn       uint32
	remote    uint32 // its number at the other end
	open      bool
	linked    bool // connected: remote is valid
	ackClass  uint8
	ackOp     uint8 // opcode of replies
	selects   bool  // its NAKs name the packet that caused them
	duties    duties
	loops     uint8 // how many of the lanes it has
	ceSeen    bool  // since the last acknowledgement
	noECN     bool
	ipID      uint16
	peerPort  uint16  // UDP source port of the other end's frames, 0 any
	initial   uint32  // first PSN
	posted    uint64  // packets of all messages so far
	sent      uint64  // payload bytes sent for the first time
	acked     uint64  // payload bytes acknowledged
	window    float64 // bytes in flight at most, 0 none
	cc        cc.Algorithm
	service   *service // what it is for
	intLen    int      // telemetry that data frames reserve
	msgs      messages
	lanes     [numLanes]lane // the second one is in use with second loops only
	_         [16]byte       // keeps the cache lines of what follows: thousands of queue pairs are slower without
	ccDue     frame.Time
	tx        transport.Sender
	transport transport.Config
	stats     QPStats
	data      template
	seg       segments

	// Further fields for a frame received.
	rx       transport.Receiver
	assembly assembly
	cnpAt    frame.Time // earliest time of the next congestion notification
	peer     address
	local    address
	codec    inband.Codec
	place    Placer
	reply    template

	waits uint64 // its part of the class's

	verbs  *verbs     // of requestService
	owner  *queuePair // of responseService: the queue pair of the requests
	frames *frames    // of packetService
	ackDue frame.Time // of an acknowledgement that was deferred (frames)

	reacts    any    // cc, if it handles notices of congestion points; while connected
	nextPoint uint32 // next of its bucket, +1

	lowClasses   []uint8 // of each level of the second loop, from 1 on
	ccName       string
	framesMemory *frames // kept for the next use

	_ [40]byte // pad to whole cache lines, which the next queue pair in memory does not share
}

// QPStats are the counters of a queue pair.
type QPStats struct {
	TxFrames, TxBytes uint64 // data frames; payload bytes, retransmissions included
	RxFrames, RxBytes uint64 // data frames delivered; payload bytes
	Acks, Naks        uint64 // received
	CEs               uint64 // acknowledgements that reported a congestion mark
	CNPs              uint64 // congestion notifications received
	Losses            uint64 // recoveries that a NAK began
	Timeouts          uint64
	LowFrames         uint64 // data frames of its second loop
	WindowBlocked     uint64 // times that only the window prevented a transmission
}

// nextID returns the identification of the next IPv4 header. Data and replies share a
// sequence, and so do requests and read responses: packets with the same addresses and
// ports are distinguished by it (RFC 6864 section 4.1).
func (q *queuePair) nextID() uint16 {
	if q.owner != nil {
		q = q.owner
	}
	q.ipID++
	return q.ipID
}

// lookup returns the open queue pair with a number.
func (n *NIC) lookup(qpn uint32) (*queuePair, frame.Reason) {
	i := qpn & (1<<n.numbers.bits - 1)
	if int(i) >= len(n.qps) {
		return nil, frame.QPUnknown
	}
	q := n.qps[i]
	if !q.open || q.qpn != qpn {
		return nil, frame.QPStale
	}
	if q.owner != nil {
		return nil, frame.QPUnknown // it has no number on the wire
	}
	return q, frame.Keep
}

// OpenQP opens a queue pair and returns its 24-bit number. It receives no frames until
// ConnectQP sets the other end.
func (n *NIC) OpenQP(now frame.Time, cfg *QPConfig) (uint32, error) {
	if err := cfg.validate(n); err != nil {
		return 0, err
	}
	if err := cfg.Transport.Validate(); err != nil {
		return 0, fmt.Errorf("nic %s: %w", n.cfg.Name, err)
	}
	q, err := n.take(cfg.Number)
	if err != nil {
		return 0, err
	}
	q.open, q.linked, q.loops = true, false, 1
	n.opened = q.index
	q.lanes[inTurn] = lane{class: cfg.Class, pace: pacer{lazy: cfg.LazyPacing, kept: cfg.KeepPlanned}}
	q.ackClass = cfg.Class
	if n.cfg.AckClass >= 0 {
		q.ackClass = uint8(n.cfg.AckClass)
	}
	q.initial = cfg.InitialPSN & 0xffffff
	q.peer, q.local = addressOf(cfg.RemoteAddr), n.addr
	q.transport, q.place = cfg.Transport, cfg.Place
	q.selects = cfg.Transport.Kind().SACKs
	q.tx.Init(&q.transport)
	q.rx.Init(&q.transport)
	q.codec = inband.NewCodec(cfg.INT, n.profile(cfg.INTProfile))
	if cfg.INTRates != nil {
		q.codec = q.codec.WithRates(cfg.INTRates)
	}
	q.intLen = q.codec.HeaderLen()
	n.makeTemplates(q, cfg)
	if err := n.fits(q, cfg); err != nil {
		q.open = false
		n.free = append(n.free, q.index)
		return 0, err
	}
	q.posted, q.sent, q.acked, q.cnpAt, q.ceSeen, q.ipID, q.peerPort = 0, 0, 0, 0, false, 0, 0
	q.stats = QPStats{}
	q.msgs.reset()
	q.seg.reset(cfg.Segment, cfg.SegmentRate)
	q.assembly.reset()
	q.window, q.ccDue, q.ackDue = 0, frame.Never, frame.Never
	n.openCC(q, cfg)
	q.openSecond(cfg)
	n.count.QPsOpen++
	q.ackOp, q.verbs, q.owner = wire.RCAcknowledge, nil, nil
	q.serve(&messageService)
	if cfg.Writes {
		q.serve(&writeService)
	}
	if cfg.Frames != nil {
		q.openFrames(&q.transport)
	}
	if cfg.Verbs != nil {
		if err := n.openVerbs(now, q, cfg); err != nil {
			n.CloseQP(now, q.qpn)
			return 0, err
		}
	}
	return q.qpn, nil
}

// profile returns the profile to use; the codec would make a new one for each queue pair.
func (n *NIC) profile(p *inband.Profile) *inband.Profile {
	if p == nil {
		return &n.defaultProfile
	}
	return p
}

func (n *NIC) openCC(q *queuePair, cfg *QPConfig) {
	if cfg.CC == nil {
		q.cc, q.ccName = nil, ""
		return
	}
	n.env = cc.Env{
		Rate: float64(n.cfg.Rate), BaseRTT: n.cfg.BaseRTT, Payload: n.cfg.Payload,
		MTU: int(n.dataWire(q, uint32(n.cfg.Payload))), Range: q.codec.Range(),
		Segment: cfg.Segment, Burst: float64(cfg.SegmentRate),
	}
	r, ok := q.cc.(cc.Resetter)
	if ok && cfg.CCName != "" && cfg.CCName == q.ccName {
		r.Reset(&n.env)
	} else {
		q.cc, q.ccName = cfg.CC(&n.env), cfg.CCName
	}
	n.adoptCC(q)
}

// ErrQPs is the error of OpenQP when as many queue pairs are open as
// Config.MaxQPs allows.
var ErrQPs = errors.New("there is no room for another queue pair")

// NextQP returns the number that the next queue pair will have, so that the other end can
// have it before OpenQP.
func (n *NIC) NextQP() (uint32, error) {
	i := n.vacant()
	if int(i) >= n.maxQPs {
		return 0, n.tooMany()
	}
	return n.numbers.next(i), nil
}

// ordered is how many queue pairs a NIC makes with Config.InOrder before it uses one again:
// by then those that were opened long before are mostly closed.
const ordered = 1 << 12

// vacant returns the index of the next queue pair: of one that is closed, or a new one.
func (n *NIC) vacant() uint32 {
	last := len(n.free) - 1
	switch {
	case last < 0 || n.cfg.InOrder && len(n.qps) < min(ordered, n.maxQPs):
		return uint32(len(n.qps))
	case !n.cfg.InOrder:
		return n.free[last]
	}
	for i := n.opened; ; {
		if i++; int(i) == len(n.qps) {
			i = 0
		}
		if !n.qps[i].open {
			return i
		}
	}
}

func (n *NIC) tooMany() error {
	return fmt.Errorf("nic %s: %w: %d are open", n.cfg.Name, ErrQPs, len(n.qps))
}

// take returns a queue pair that is not open: the one with a number, if that is not 0.
func (n *NIC) take(number uint32) (*queuePair, error) {
	if number != 0 {
		return n.takeNumber(number)
	}
	i := n.vacant()
	if int(i) == len(n.qps) {
		return n.grow()
	}
	n.unfree(i)
	n.numbers.renew(i)
	n.qps[i].qpn = n.numbers.number(i)
	return n.qps[i], nil
}

// unfree takes an index off the free ones, and reports whether it was there.
func (n *NIC) unfree(i uint32) bool {
	at := len(n.free) - 1
	for at >= 0 && n.free[at] != i { // mostly the last one
		at--
	}
	if at < 0 {
		return false
	}
	n.free = slices.Delete(n.free, at, at+1)
	return true
}

// takeNumber returns the queue pair with a number. The indices before it become free.
func (n *NIC) takeNumber(number uint32) (*queuePair, error) {
	i, generation := n.numbers.parts(number)
	for generation != 0 && int(i) >= len(n.qps) {
		q, err := n.grow()
		if err != nil {
			return nil, err
		}
		n.free = append(n.free, q.index)
	}
	if generation == 0 || !n.unfree(i) {
		return nil, fmt.Errorf("nic %s: there cannot be a queue pair %#x now", n.cfg.Name, number)
	}
	n.numbers.use(number)
	n.qps[i].qpn = number
	return n.qps[i], nil
}

// grow makes one more queue pair.
func (n *NIC) grow() (*queuePair, error) {
	i := uint32(len(n.qps))
	if int(i) >= n.maxQPs {
		return nil, n.tooMany()
	}
	if len(n.slab) == 0 { // side by side, for the sake of the TLB
		n.slab = make([]queuePair, min(max(4, len(n.qps)), 256))
	}
	q := &n.slab[0]
	n.slab = n.slab[1:]
	q.index = i
	n.qps = append(n.qps, q)
	n.numbers.add()
	q.qpn = n.numbers.number(i)
	n.paceWheel.grow()
	n.timers.grow()
	return q, nil
}

var errConnected = errors.New("the queue pair is connected already")

// ConnectQP sets the other end's queue pair. Both directions are then open.
func (n *NIC) ConnectQP(now frame.Time, qpn, remote uint32) error {
	q, why := n.lookup(qpn)
	if why != frame.Keep {
		return fmt.Errorf("nic %s: there is no queue pair %#x: %v", n.cfg.Name, qpn, why)
	}
	if q.linked {
		return fmt.Errorf("nic %s: queue pair %#x: %w", n.cfg.Name, qpn, errConnected)
	}
	q.remote, q.linked = remote&0xffffff, true
	q.data.setQP(q.remote)
	q.reply.setQP(q.remote)
	n.enlist(q)
	q.service.connect(n, q)
	n.schedule(now, q)
	return nil
}

// SourcePort returns the UDP source port of all frames of a queue pair, 0 if it does not
// exist.
func (n *NIC) SourcePort(qpn uint32) uint16 {
	q, why := n.lookup(qpn)
	if why != frame.Keep {
		return 0
	}
	return q.dataUDP().SrcPort()
}

// SetRemotePort sets the UDP source port of the other end's frames: frames with another
// one are rejected. 0, the initial value, accepts any.
func (n *NIC) SetRemotePort(qpn uint32, port uint16) {
	if q, why := n.lookup(qpn); why == frame.Keep {
		q.peerPort = port
	}
}

// CloseQP closes a queue pair. Unacknowledged work completes as flushed; frames that
// still arrive for it are counted as stale.
func (n *NIC) CloseQP(now frame.Time, qpn uint32) error {
	q, why := n.lookup(qpn)
	if why != frame.Keep {
		return fmt.Errorf("nic %s: there is no queue pair %#x: %v", n.cfg.Name, qpn, why)
	}
	q.service.close(n, now, q)
	n.delist(q)
	n.withdraw(q)
	n.weigh(q)
	for q.msgs.n > 0 {
		m := q.msgs.at(0)
		n.done = append(n.done, Completion{Op: SendDone, QPN: q.qpn, ID: m.id, Bytes: m.bytes, Start: m.start, End: now, Retransmitted: m.rtx, Status: StatusFlushed})
		q.msgs.pop()
	}
	q.open, q.linked = false, false
	n.free = append(n.free, q.index)
	n.count.QPsOpen--
	return nil
}
