package hostnic

import (
	"math/bits"

	"gswitch/frame"
)

// source is a feature that has frames of its own to send by class (Instance.Ready,
// Instance.Next), and the time since which it has had some.
type source struct {
	*Instance
	since frame.Time
	turn  bool // data of the same class has gone first
}

// Offer says that features were given something to send at now by other means than their
// stages: by a program.
func (n *NIC) Offer(now frame.Time) {
	for i := range n.sources {
		if s := &n.sources[i]; s.Ready() != 0 {
			s.since = min(s.since, now)
			n.touch(now)
		}
	}
}

// offers returns the classes in which features may send.
func (n *NIC) offers() (classes uint8) {
	for i := range n.sources {
		classes |= n.sources[i].Ready()
	}
	return classes
}

// sourceSince returns the time since which a feature has had something to send, Never if
// it has nothing that may leave.
func (n *NIC) sourceSince(i int) frame.Time {
	if n.sources[i].Ready()&^n.paused == 0 {
		return frame.Never
	}
	return n.sources[i].since
}

// offered returns the classes in which features may send at t.
func (n *NIC) offered(t, now frame.Time) (classes uint8) {
	for i := range n.sources {
		if s := &n.sources[i]; t >= now || s.since <= t {
			classes |= s.Ready() &^ n.paused
		}
	}
	return classes
}

// fromSource takes the next frame of a feature that may send in the class below top. If
// queue pairs have data in that class, the feature waits for one of their frames.
func (n *NIC) fromSource(t, now frame.Time, top int, data bool) frame.Ref {
	for i := range n.sources {
		s := &n.sources[i]
		classes := s.Ready() &^ n.paused
		if bits.Len8(classes) != top || t < now && s.since > t {
			continue
		}
		if data && !s.turn {
			s.turn = true
			continue
		}
		s.turn = false
		r := s.Next(now, classes)
		if s.Ready() == 0 {
			s.since = frame.Never
		}
		if r != frame.Nil {
			n.plainTurn = true
			n.depart(t, r)
			return r
		}
	}
	return frame.Nil
}
