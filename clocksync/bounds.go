package clocksync

import "gswitch/frame"

// bounds are the least and the most that a root's clock can be ahead of the own one, by
// stamps alone. A stamp of departure is never later than the frame leaves, one of arrival
// never earlier than it comes, and no frame comes before it has left. So a message of the
// parent says what the root's clock has reached when it comes, and the answer to a request
// what it had not passed when the request left (Mills, RFC 5905 section 8, has the middle
// of the two as the offset, and half of what is between them as the most that it is wrong
// by). Neither a link that is asymmetric nor a machine that is late makes that untrue: it
// makes it wide. What is found stays true but for what the two oscillators part by, and
// the tightest of all counts.
type bounds struct {
	root        uint64
	least, most bound
}

// bound is one of the two, at the own time at.
type bound struct {
	known    bool
	at, lead frame.Time
}

// tighten takes in another bound: the tighter one at the own time now stays.
func (b *bound) tighten(o bound, now frame.Time, c *Clock, upper bool) {
	if !b.known || upper == (o.of(now, c, upper) < b.of(now, c, upper)) {
		*b = o
	}
}

// of is the lead that a bound allows at the own time now, upper or lower.
func (b *bound) of(now frame.Time, c *Clock, upper bool) frame.Time {
	if apart := c.drifted(max(now-b.at, b.at-now)); upper {
		return b.lead + apart
	} else {
		return b.lead - apart
	}
}

// at returns both at the own time now. Where least is above most one of them is false, or
// one of the clocks is broken.
func (b *bounds) at(now frame.Time, c *Clock) (least, most frame.Time) {
	return b.least.of(now, c, false), b.most.of(now, c, true)
}

// measured takes a message of the parent where what hops add is measured: the root's clock has
// reached its time, less what the parent is uncertain by, when it began to arrive at the
// own time stamp.
func (d *Device) measured(now, stamp frame.Time, m Message) (forward bool) {
	b := d.bounds
	if b.root != m.Root {
		b = bounds{root: m.Root}
	}
	b.least.tighten(bound{true, stamp, m.Time - m.Eps - stamp}, stamp, &d.Clock, false)
	switch least, most := b.at(stamp, &d.Clock); {
	case d.synced && d.rootID == m.Root && d.At(stamp)-m.Time > d.Uncertainty(stamp)+m.Eps+d.patience():
		// One of long ago: it does not show that the root is there now.
		d.Counts.Invalid++
		return false
	case !b.most.known:
		// The parent is asked, and this message is taken with its answer.
		d.bounds, d.waiting, d.waits = b, m, true
		d.Counts.Ignored++
		return false
	case least > most:
		d.wrong(now, &d.invalid)
		return false
	}
	d.bounds = b
	return d.follow(now, stamp, m)
}

// patience is how old a message may be.
func (d *Device) patience() frame.Time {
	if d.cfg.Timeout1 != 0 {
		return d.cfg.Timeout1
	}
	return 2 * d.cfg.Interval
}

// Answered takes what a neighbour's clock was, as the message m has it, when a request
// came there that left here, by port, at the own time sent. The answer came at the own
// time received. It reports whether the device is to send Out on the ports of Transmit, in
// reaction to the message that had to wait for this.
func (d *Device) Answered(now, sent, received frame.Time, port int, m Message) (forward bool) {
	b := d.bounds
	if !d.cfg.Measured || d.root || d.evicted || port != d.accept || m.Root != b.root || !b.least.known {
		return false
	}
	b.most.tighten(bound{true, sent, m.Time + m.Eps - sent}, received, &d.Clock, true)
	if least, most := b.at(received, &d.Clock); least > most {
		d.wrong(now, &d.wrongAnswers)
		return false
	}
	d.bounds, d.wrongAnswers = b, 0
	if d.waits {
		return d.follow(now, received, d.waiting)
	}
	if d.synced && d.rootID == b.root {
		d.center(received)
	}
	return false
}

// follow accepts a message, of which the bounds are known at the own time at.
func (d *Device) follow(now, at frame.Time, m Message) (forward bool) {
	if least, most := d.bounds.at(at, &d.Clock); d.synced && d.rootID != m.Root && m.Epoch <= d.epoch {
		// One that took over from the root was as uncertain as this clock then. With the root
		// of a new plan this clock never was synchronised.
		if off := at + (least+most)/2 - d.At(at); max(off, -off) > 2*d.Uncertainty(at)+(most-least+1)/2 {
			d.wrong(now, &d.invalid)
			return false
		}
	}
	d.waits, d.invalid = false, 0
	d.center(at)
	return d.accepted(now, at, m)
}

// center sets the clock to the middle of its bounds.
func (d *Device) center(at frame.Time) {
	least, most := d.bounds.at(at, &d.Clock)
	middle := least + (most-least)/2
	d.correct(at, at+middle)
	d.base = most - middle
}

// wrong is for an invalid message, behind so many others of its kind in a row.
func (d *Device) wrong(now frame.Time, inARow *int) {
	d.Counts.Invalid++
	if *inARow++; *inARow == invalidInARow {
		d.doubt(now)
	}
}
