package lstf

import (
	"cmp"
	"fmt"
	"slices"

	"gswitch/frame"
	"gswitch/scheduler"
	"gswitch/wire"
)

// Kind is what decides how much slack a packet gets.
type Kind uint8

const (
	// Constant gives all the same: the packet that waited longest goes first (FIFO+).
	Constant Kind = iota
	// Size gives the packets of a message Of for each packet that it has: the
	// shortest message goes first. Known from the RETH of RDMA writes.
	Size
	// Remaining gives Of for each packet that is still to come, itself included.
	Remaining
	// Fair gives what a flow is ahead of Rate: flows share the links (section
	// 3.3 of the paper, after Virtual Clock).
	Fair
	// Deadline gives what is left of Of since the first packet of the message.
	Deadline
	// Class gives Of for each class below the highest.
	Class
	// Replay gives what the packet waited in Schedule.
	Replay
	// Exit gives the instant at which it left the network there: a priority, not slack.
	Exit
)

// Policy says how much slack packets get where they enter.
type Policy struct {
	Kind     Kind
	Of       frame.Time // see the kinds; of Replay and Exit, for packets that are not in the schedule
	Rate     uint64     // Fair: the share of a flow in bit/s
	Rates    [8]uint64  // Fair: that of flows of each class, where it is not 0: weights
	Schedule *Schedule  // Replay, Exit: what is replayed
}

// maxSlack keeps sums of slack and time within 63 bits: 36 years.
const maxSlack = 1 << 60

// Validate reports what cannot be meant.
func (p *Policy) Validate() error {
	switch {
	case p.Of < 0 || p.Of > maxSlack>>24: // times at most 2^24 packets
		return fmt.Errorf("slack: %v is not between 0 and 68 s", p.Of.Duration())
	case p.Kind == Fair && p.Rate == 0 && slices.Contains(p.Rates[:], 0):
		return fmt.Errorf("slack: flows have no rate, of which fair makes slack")
	case (p.Kind == Replay || p.Kind == Exit) && p.Schedule == nil:
		return fmt.Errorf("slack: there is no schedule to be replayed")
	case (p.Kind == Size || p.Kind == Remaining || p.Kind == Class || p.Kind == Deadline) && p.Of == 0:
		return fmt.Errorf("slack: of is 0, of which slack is made")
	}
	return nil
}

// Writer computes the slack of packets as they enter.
type Writer struct {
	policy Policy
	clock  [8]scheduler.RateClock // at the rates of Fair, by class
	flows  table[credit]
}

// credit is what is known of a flow.
type credit struct {
	slack int64      // of the last packet
	at    frame.Time // when that came; Deadline: the first of the message
	first uint32     // packet sequence number of the first of the message
	count uint32     // its packets, 0 if that is not known
}

// Configure changes the policy. Without one so far the writer has none.
func (w *Writer) Configure(p Policy) {
	if p.Kind != w.policy.Kind || w.flows.slot == nil {
		w.flows = newTable[credit]()
	}
	w.policy = p
	for class := range w.clock {
		w.clock[class].SetRate(cmp.Or(p.Rates[class], p.Rate))
	}
}

// Full returns how many packets were of flows that shared their state with
// another one.
func (w *Writer) Full() uint64 { return w.flows.full }

// Slack returns that of a packet, whose first bytes are b, that enters at now.
func (w *Writer) Slack(now frame.Time, m *frame.Meta, b []byte) int64 {
	p := &w.policy
	switch p.Kind {
	case Constant:
		return int64(p.Of)
	case Class:
		return int64(p.Of) * int64(7-m.Class&7)
	case Replay, Exit:
		wait, left, ok := p.Schedule.Wait(Key(m, b))
		switch {
		case !ok:
			return int64(p.Of)
		case p.Kind == Exit:
			return int64(left)
		}
		return wait
	case Fair:
		return w.fair(now, m)
	case Deadline:
		return w.deadline(now, m, b)
	}
	return w.sized(now, m, b)
}

// fair is what the flow is ahead of its rate: 0 for its first packet, then what the
// one before had, and its time at the rate, less the time since.
func (w *Writer) fair(now frame.Time, m *frame.Meta) int64 {
	s, fresh := w.flows.find(m.Hash, now)
	c, ahead := &s.v, w.clock[m.Class&7].Span(m.Wire)
	if fresh {
		c.slack = 0
	} else {
		c.slack = min(max(0, c.slack+int64(ahead)-int64(now-c.at)), maxSlack)
	}
	c.at = now
	// Replaced when a further packet would have no slack, either.
	s.until = now + frame.Time(c.slack) + ahead
	return c.slack
}

// idle is after how long without a packet a flow begins a new message.
const idle = frame.Second

func (w *Writer) deadline(now frame.Time, m *frame.Meta, b []byte) int64 {
	s, fresh := w.flows.find(m.Hash, now)
	if _, _, first := message(m, b); fresh || first {
		s.v.at = now
	}
	s.until = now + idle
	return int64(w.policy.Of - (now - s.v.at))
}

// sized is for each packet of a message the same, or less with each, whichever is sent
// again. Packets of which it is not known how many follow get none.
func (w *Writer) sized(now frame.Time, m *frame.Meta, b []byte) int64 {
	if m.Flags&frame.HasRoCE == 0 {
		return 0
	}
	s, fresh := w.flows.find(m.Hash, now)
	c := &s.v
	packets, psn, first := message(m, b)
	switch {
	case first:
		c.first, c.count = psn, packets
	case fresh:
		c.count = 0
	}
	s.until = now + idle
	left := c.count
	if w.policy.Kind == Remaining {
		left -= min(left, (psn-c.first)&0xffffff)
	}
	return int64(w.policy.Of) * int64(left)
}

// message reports whether a packet is the first of an RDMA message, its sequence number,
// and of how many packets the message is if that is known: 0 if not, at most 2^24.
func message(m *frame.Meta, b []byte) (packets, psn uint32, first bool) {
	if m.Flags&frame.HasRoCE == 0 {
		return 0, 0, false
	}
	at := wire.BTHOffset(m, b)
	if at+wire.BTHLen > len(b) {
		return 0, 0, false
	}
	psn = wire.BTH(b[at:]).PSN()
	switch b[at] {
	case wire.RCSendFirst, wire.RCSendOnly, wire.RCSendOnlyImmediate:
		return 0, psn, true
	case wire.RCWriteOnly, wire.RCWriteOnlyImmediate:
		return 1, psn, true
	case wire.RCWriteFirst:
		var reth wire.RETHFields
		payload := m.Wire - min(m.Wire, uint32(at+wire.BTHLen+wire.RETHLen+wire.ICRCLen))
		if _, why := reth.Decode(b[at+wire.BTHLen:]); why != frame.Keep || payload == 0 {
			return 0, psn, true
		}
		return min((reth.Length-1)/payload+1, 1<<24), psn, true
	}
	return 0, psn, false
}
