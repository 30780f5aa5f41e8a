package hostnic

import (
	"gswitch/frame"
	"gswitch/scheduler"
	"gswitch/wire"
)

// slowReceiver is a host that processes data frames more slowly than they arrive: they
// wait in a bounded buffer, and the neighbour is asked to pause.
type slowReceiver struct {
	on      bool
	stuck   bool // it processes nothing
	limit   uint32
	xoff    uint32
	xon     uint32
	classes uint8 // to be paused
	asking  bool
	held    uint32 // bytes
	queue   frame.FIFO
	clock   scheduler.RateClock
	overAt  frame.Time // the oldest frame has left the buffer then, Never if there is none or it is stuck
}

func (r *ReceiveConfig) buffer() uint32 {
	if r.Buffer == 0 {
		return defaultRxBuf
	}
	return r.Buffer
}

// thresholds returns XOFF and XON in bytes. After the request for a pause there still
// arrive the bytes on the cable both ways, a frame that the neighbour has started, and
// the bytes during one frame of ours ahead of the request (IEEE 802.1Q annex N).
func (r *ReceiveConfig) thresholds(c *Config) (xoff, xon uint32) {
	xoff, xon = r.XOFF, r.XON
	if xoff == 0 {
		frames := 2 * uint64(max(c.Payload, defaultPayload)+templateLen)
		way := uint64(float64(c.Rate) / 8e9 * float64(2*c.CableDelay))
		if need := way + frames; need < uint64(r.buffer()) {
			xoff = r.buffer() - uint32(need)
		}
	}
	if xon == 0 {
		xon = xoff / 2
	}
	return xoff, xon
}

func (s *slowReceiver) init(c *Config) {
	s.queue.Init()
	s.overAt = frame.Never
	s.configure(c)
}

func (s *slowReceiver) configure(c *Config) {
	r := &c.Receive
	s.on = s.stuck || r.Rate != 0
	s.limit = r.buffer()
	s.xoff, s.xon = r.thresholds(c)
	s.clock.SetRate(r.Rate)
	s.classes = 0xff
	if c.PFC {
		s.classes = c.PFCClasses
	}
}

// SetReceiver changes how fast the host processes frames: rate in bit/s, 0 for
// immediately. A stuck host processes nothing until stuck is cleared.
func (n *NIC) SetReceiver(now frame.Time, rate uint64, stuck bool) {
	s := &n.slow
	n.cfg.Receive.Rate, s.stuck = rate, stuck
	s.configure(&n.cfg)
	s.overAt = frame.Never
	if !stuck && s.queue.Len() > 0 {
		s.begin(now, n.arena)
	}
	n.drainSlow(now)
	n.queueFlowControl(now)
}

func (s *slowReceiver) due() frame.Time { return s.overAt }

// begin starts processing the oldest frame.
func (s *slowReceiver) begin(now frame.Time, a *frame.Arena) {
	s.clock.Idle(now)
	s.clock.Charge(a.Meta(s.queue.Head()).Wire)
	s.overAt = max(now, s.clock.Free())
}

// hold buffers a frame for which the host is too slow.
func (n *NIC) hold(now frame.Time, r frame.Ref) {
	s, bytes := &n.slow, n.arena.Meta(r).Wire
	if s.held+bytes > s.limit {
		n.drop(r, frame.BufferFull)
		return
	}
	s.held += bytes
	s.queue.Push(n.arena, r)
	if s.queue.Len() == 1 && !s.stuck {
		s.begin(now, n.arena)
	}
	if s.held > s.xoff && !s.asking {
		s.asking = true
		n.flow.Request(s.classes)
		n.queueFlowControl(now)
	}
}

// drainSlow processes the frames that the host has had time for.
func (n *NIC) drainSlow(now frame.Time) {
	s := &n.slow
	for s.overAt <= now {
		r := s.queue.Pop(n.arena)
		s.held -= n.arena.Meta(r).Wire
		at := s.overAt
		if s.overAt = frame.Never; s.queue.Len() > 0 {
			s.begin(at, n.arena)
		}
		n.processHeld(now, r)
	}
	if s.asking && s.held <= s.xon {
		s.asking = false
		n.flow.Request(0)
		n.queueFlowControl(now)
	}
}

// Held returns the bytes in the buffer of a slow receiver.
func (n *NIC) Held() uint32 { return n.slow.held }

// processHeld processes a data frame that has waited: its queue pair may have been closed
// in the meantime.
func (n *NIC) processHeld(now frame.Time, r frame.Ref) {
	m, b := n.arena.Meta(r), n.arena.Bytes(r)
	bth := wire.BTHOffset(m, b)
	q, why := n.lookup(wire.BTH(b[bth:]).DestQP())
	if why != frame.Keep {
		n.drop(r, why)
		return
	}
	if !n.cfg.Virtual {
		b = whole(m, b)
	}
	q.service.data(n, now, r, m, b, bth, q)
}
