package pfc

import (
	"math/bits"

	"gswitch/frame"
)

// ViolationLimit says after how many violations a port is taken out of use: its
// neighbour ignores pauses.
//
// A neighbour that got XOFF for a class has Grace to stop: as long as a
// pause takes to act, with a margin. If frames of the class come in the Grace
// after that it gets XOFF again; if it does not stop after so many Resends, it is
// unresponsive: DeTail would have its link taken down (Zats et al., UCB/EECS-2012-33,
// section 4.2.2).
type ViolationLimit struct {
	Grace   frame.Time // 0 = off
	Resends int        // 0 = 3
}

const defaultResends = 3

func (l *ViolationLimit) resends() int {
	if l.Resends == 0 {
		return defaultResends
	}
	return l.Resends
}

// compliance is the watch over one class that is XOFF at the neighbour.
type compliance struct {
	due   frame.Time // of the next look; Never: it was found to stop
	count bool       // frames count since the last look
	mark  uint64     // how many had come by then
	inRow int        // looks that found some, one after another
}

// expectStop begins to watch a class for which XOFF is sent. A watch that is
// under way goes on.
func (p *Port) expectStop(now frame.Time, c int, first bool) {
	if p.cfg.Violations.Grace == 0 {
		return
	}
	e := &p.compliance[c]
	if first {
		e.inRow = 0
	}
	if first || e.due == frame.Never {
		e.due, e.count = now+p.cfg.Violations.Grace, false
	}
}

// CheckViolations looks whether the neighbour stops. frames are those that came so far,
// by class. It returns true when the neighbour does not respond to pauses. Call it
// whenever Wake is due.
func (p *Port) CheckViolations(now frame.Time, frames *[8]uint64) (unresponsive bool) {
	if p.cfg.Violations.Grace == 0 {
		return false
	}
	for m := p.sent; m != 0; m &= m - 1 {
		c := bits.TrailingZeros8(m)
		e := &p.compliance[c]
		switch {
		case e.due > now:
		case !e.count:
			e.count, e.mark, e.due = true, frames[c], now+p.cfg.Violations.Grace
		case frames[c] == e.mark:
			e.inRow, e.due = 0, frame.Never
		default:
			p.stats.Violations[c]++
			if e.inRow++; e.inRow > p.cfg.Violations.resends() {
				p.stats.Disables++
				e.inRow = 0
				unresponsive = true
			}
			e.count, e.due = false, now+p.cfg.Violations.Grace
			p.renewAt = now // send it again
		}
	}
	return unresponsive
}

// complianceDue returns when CheckViolations is due.
func (p *Port) complianceDue() frame.Time {
	at := frame.Never
	if p.cfg.Violations.Grace != 0 {
		for m := p.sent; m != 0; m &= m - 1 {
			at = min(at, p.compliance[bits.TrailingZeros8(m)].due)
		}
	}
	return at
}
