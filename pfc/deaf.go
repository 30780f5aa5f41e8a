package pfc

import (
	"math/bits"

	"gswitch/frame"
)

// Deaf configures the watch for neighbours that ignore a pause.
//
// A neighbour that got XOFF for a class has Grace to stop: as long as a
// pause takes to act, with a margin. If frames of the class come in the Grace
// after that it gets XOFF again; if it does not stop after so many Resends, it is
// deaf: DeTail would have its link taken down (Zats et al., UCB/EECS-2012-33,
// section 4.2.2).
type Deaf struct {
	Grace   frame.Time // 0 = off
	Resends int        // 0 = 3
}

const defaultResends = 3

func (d *Deaf) resends() int {
	if d.Resends == 0 {
		return defaultResends
	}
	return d.Resends
}

// compliance is the watch over one class that is XOFF at the neighbour.
type compliance struct {
	due     frame.Time // of the next look; Never: it was found to stop
	count   bool       // frames count since the last look
	mark    uint64     // how many had come by then
	ignored int        // looks in a row that found some
}

// expectStop begins to watch a class for which XOFF is sent. A watch that is
// under way goes on.
func (p *Port) expectStop(now frame.Time, c int, first bool) {
	if p.cfg.Deaf.Grace == 0 {
		return
	}
	e := &p.compliance[c]
	if first {
		e.ignored = 0
	}
	if first || e.due == frame.Never {
		e.due, e.count = now+p.cfg.Deaf.Grace, false
	}
}

// Listen looks whether the neighbour stops. frames are those that came so far,
// by class. It returns true when the neighbour proves to be deaf. Call it
// whenever Wake is due.
func (p *Port) Listen(now frame.Time, frames *[8]uint64) (deaf bool) {
	if p.cfg.Deaf.Grace == 0 {
		return false
	}
	for m := p.sent; m != 0; m &= m - 1 {
		c := bits.TrailingZeros8(m)
		e := &p.compliance[c]
		switch {
		case e.due > now:
		case !e.count:
			e.count, e.mark, e.due = true, frames[c], now+p.cfg.Deaf.Grace
		case frames[c] == e.mark:
			e.ignored, e.due = 0, frame.Never
		default:
			p.stats.Ignored[c]++
			if e.ignored++; e.ignored > p.cfg.Deaf.resends() {
				p.stats.Deaf++
				e.ignored = 0
				deaf = true
			}
			e.count, e.due = false, now+p.cfg.Deaf.Grace
			p.renewAt = now // send it again
		}
	}
	return deaf
}

// complianceDue returns when Listen is due.
func (p *Port) complianceDue() frame.Time {
	at := frame.Never
	if p.cfg.Deaf.Grace != 0 {
		for m := p.sent; m != 0; m &= m - 1 {
			at = min(at, p.compliance[bits.TrailingZeros8(m)].due)
		}
	}
	return at
}
