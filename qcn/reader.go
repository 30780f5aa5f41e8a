package qcn

import (
	"gswitch/frame"
	"gswitch/notice"
)

// listener is a reaction point (IEEE 802.1Qau): what hosts give feedback to.
type listener interface {
	// OnQuantized takes feedback from 1 to 63 of a congestion point.
	OnQuantized(now frame.Time, feedback uint8)
}

// reader reads congestion notification messages at a host.
type reader struct{ last Message }

func init() {
	notice.Register(notice.Kind{Name: "qcn", New: func() notice.Reader { return new(reader) }})
}

// Decode implements notice.Reader.
func (r *reader) Decode(msg []byte, icmp uint8) (quote []byte, ours bool, err error) {
	quote, err = r.last.Decode(msg, icmp)
	return quote, err != ErrForeign, err
}

// Reacts implements notice.Reader.
func (r *reader) Reacts(point any) bool { _, ok := point.(listener); return ok }

// React implements notice.Reader.
func (r *reader) React(now frame.Time, point any) {
	point.(listener).OnQuantized(now, r.last.Feedback)
}

// OfFrame implements notice.Reader.
func (r *reader) OfFrame() bool { return true }
