package hostnic

import (
	"math/bits"

	"gswitch/frame"
)

// Service is what a host does with frames that are no queue pair's: a transport of
// its own, such as TCP. It is stepped with the NIC and does no I/O.
type Service interface {
	// Receive takes over a frame that was parsed and is for the host.
	Receive(now frame.Time, r frame.Ref)
	// Ready returns the classes of which Next may have a frame, and Next the next
	// one of given classes, or Nil. It is asked when the link is free.
	Ready() uint8
	Next(now frame.Time, classes uint8) frame.Ref
	// Due is when Advance is to be called next.
	Due() frame.Time
	Advance(now frame.Time)
}

// ServeTCP gives the segments of TCP that are for the host to s, and sends what s
// has to send: of a class in turn with data of queue pairs, by the priorities of
// classes else. Before the NIC is stepped.
func (n *NIC) ServeTCP(s Service) { n.tcp.Service = s }

// served is a service and since when it has something to send.
type served struct {
	Service
	since frame.Time
	turn  bool
}

// ServiceReady tells that a service was given something to send at now, other than
// by a frame or its timer.
func (n *NIC) ServiceReady(now frame.Time) {
	s := &n.tcp
	if s.Service == nil || s.Ready() == 0 {
		return
	}
	s.since = min(s.since, now)
	n.touch(now)
}

// serves reports whether a frame is a segment for the service.
func (n *NIC) serves(m *frame.Meta) bool {
	const not = frame.HasTunnel | frame.IsFragment | frame.IsMulticast | frame.Chained
	return n.tcp.Service != nil && m.Flags&(frame.HasTCP|not) == frame.HasTCP
}

// serviceReady returns the classes of which the service may send.
func (n *NIC) serviceReady() uint8 {
	if n.tcp.Service == nil {
		return 0
	}
	return n.tcp.Ready() &^ n.paused
}

// fromService takes the next frame of the service, if it is its turn beside queue
// pairs of the classes can.
func (n *NIC) fromService(t, now frame.Time, can uint8) frame.Ref {
	s := &n.tcp
	classes := n.serviceReady()
	if classes == 0 || t < now && s.since > t {
		return frame.Nil
	}
	if mine, theirs := bits.Len8(classes), bits.Len8(can); mine < theirs || mine == theirs && !s.turn {
		s.turn = true
		return frame.Nil
	}
	s.turn = false
	r := s.Next(now, classes)
	if s.Ready() == 0 {
		s.since = frame.Never
	}
	if r != frame.Nil {
		n.depart(t, r)
	}
	return r
}
