package clocksync

import "gswitch/frame"

// rivals are other roots than the one that is followed.
type rivals struct {
	last  uint64     // identity of the last one
	epoch uint32     // of the root that is followed, when those of other plans were seen
	other bool       // they were
	since frame.Time // when
}

// planIntervals is how long it may take, in intervals, until a plan has come to all nodes:
// for so long some follow the root of the plan before.
const planIntervals = 100

// rival takes notice of a message that names another root than the one that is followed. By
// one plan there is one root: two mean that a backup root took over from one that is up, that
// two documents have a root, or that messages are forged. Roots of two plans are no more than one
// that has not come to all yet, unless that lasts.
func (d *Device) rival(stamp frame.Time, m *Message) {
	r := &d.rivals
	if m.Epoch != d.epoch {
		if !r.other || r.epoch != d.epoch {
			r.other, r.epoch, r.since = true, d.epoch, stamp
		}
		if stamp-r.since <= planIntervals*d.cfg.Interval {
			return
		}
	}
	r.last = m.Root
	d.Counts.SecondRoot++
}

// Rival is the identity of the last one that was counted as a second root.
func (d *Device) Rival() uint64 { return d.rivals.last }
