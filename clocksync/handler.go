package clocksync

import "gswitch/frame"

// turn is what a timeout, or invalid messages, lead to (section 3.4.2): the
// device turns to its second parent, once. It never turns back by itself; the
// controller returns it to a primary parent with the next plan. The uncertainty
// is raised first, so that no reader sees the path of more hops with the bound of
// the shorter one.
//
// The backup root goes on to turn: where no messages come from its second parent either the root may
// have failed since, and no other clock takes over. Its first parent, which is the root, may
// also be back: its messages count meanwhile, unless they were invalid.
func (d *Device) turn(now frame.Time, cause *uint64) {
	if d.root || d.evicted || d.flipped && d.cfg.Timeout2 == 0 {
		return
	}
	to := d.cfg.Backup
	if d.flipped && d.accept == to && !d.doubted {
		to = d.cfg.Accept
	}
	d.base = max(d.base, d.cfg.EpsBackup)
	d.flipped, d.following, d.waits, d.invalid, d.wrongAnswers = true, false, false, 0, 0
	if to != NoPort {
		d.accept = to
	}
	*cause++
	if d.cfg.Timeout2 > 0 {
		d.electAt = now + d.cfg.Timeout2
	}
}

// doubt is for messages that are invalid by the clock. From the first parent:
// that one is broken, turn. From the second as well: this clock is. A host with
// one link cannot distinguish the two and goes on by its own.
func (d *Device) doubt(now frame.Time) {
	switch {
	case !d.flipped || d.accept == d.cfg.Accept && d.cfg.Backup != NoPort:
		d.timeoutAt, d.doubted = frame.Never, true
		d.turn(now, &d.Counts.FlipInvalid)
	case d.cfg.Backup != NoPort:
		d.evicted, d.synced = true, false
		d.timeoutAt, d.electAt = frame.Never, frame.Never
		d.Counts.Evicted++
	}
}
