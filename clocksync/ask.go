package clocksync

import (
	"gswitch/frame"
	"gswitch/wire"
)

// askedLast is how many requests may be under way: a machine that is busy answers some
// intervals late.
const askedLast = 16

// asked is when the last requests by one port left.
type asked struct {
	port int
	next frame.Time // not before another is sent, where the parent is asked with each message
	open [askedLast]bool
	of   [askedLast]uint16
	at   [askedLast]frame.Time
}

func (a *asked) begin(port int, sequence uint16, now frame.Time) {
	if a.port != port {
		*a = asked{port: port, next: a.next}
	}
	i := sequence % askedLast
	a.open[i], a.of[i], a.at[i] = true, sequence, now
}

// left says that a request left at another instant than expected.
func (a *asked) left(port int, sequence uint16, at frame.Time) {
	if i := sequence % askedLast; a.port == port && a.open[i] && a.of[i] == sequence {
		a.at[i] = at
	}
}

// answered returns when the request left that an answer is for. There is one answer to each.
func (a *asked) answered(port int, sequence uint16) (at frame.Time, ok bool) {
	i := sequence % askedLast
	if a.port != port || !a.open[i] || a.of[i] != sequence {
		return 0, false
	}
	a.open[i] = false
	return a.at[i], true
}

// ask asks the neighbour at a port: for the delay of the link and, of the parent where what
// hops add is measured, for its clock. That one is asked with each of its messages, and
// answers one request in half an interval.
func (n *Instance) ask(now frame.Time, port int) {
	sequence := uint16(0)
	if n.opt.Measured && port == n.Parent() {
		if now < n.asked.next && n.asked.port == port {
			return
		}
		sequence = n.Delay(port).Request(now)
		n.asked.begin(port, sequence, now)
		n.asked.next = now + n.opt.Interval*3/4
	} else {
		sequence = n.Delay(port).Request(now)
	}
	n.head(wire.PTPPdelayReq, port, sequence)
	if !n.send(port, &n.out) {
		n.Messages.Unsent++
	}
}

// response takes an answer, which began to arrive at the node's time stamp and came in
// whole at whole.
func (n *Instance) response(now, stamp, whole, late frame.Time, port int, f *Packet) {
	if f.Flags&wire.PTPTwoStep != 0 {
		n.Messages.Foreign++
		return
	}
	if f.RequestClock != n.id || int(f.RequestPort) != port+1 {
		n.Messages.Strays++
		return
	}
	known := n.Delay(port).Response(f.Sequence, stamp, late, frame.Time(f.Correction>>16))
	sent, waited := n.asked.answered(port, f.Sequence)
	switch s := &f.Sundial; {
	case !waited && !known:
		n.Messages.Strays++
	case !waited:
	case !f.HasSundial:
		n.Messages.Foreign++ // it knows no clock, or does not say
	case s.Uncertainty == boundless:
		n.Messages.Boundless++
	default:
		m := Message{Time: timeOf(f), Epoch: s.Epoch, Root: s.Root, Depth: s.Depth, Eps: frame.Time(s.Uncertainty)}
		if n.Answered(now, sent, whole, port, m) {
			n.sendSync(now)
		}
	}
}

// timeOf is what a message says that the time was.
func timeOf(f *Packet) frame.Time {
	return frame.Time(f.Time.Seconds)*frame.Second + frame.Time(f.Time.Nanoseconds)
}
