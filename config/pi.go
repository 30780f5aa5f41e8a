package config

import (
	"gswitch/frame"
	"gswitch/scheduler"
	"gswitch/units"
)

// law returns what a queue has.
func (p *PI) law() scheduler.PI {
	return scheduler.PI{Ref: clip(p.Ref), A: p.A, B: p.B, Max: p.Max, Period: frame.Time(p.Period)}
}

// clip makes a size that is too long for 32 bits one that is refused.
func clip(s units.Size) uint32 { return uint32(min(s, 1<<32-1)) }

func (d decoder) validatePI(q *Queue, path string) {
	law := q.PI.law()
	if err := law.Validate(); err != nil && !d.Refused(path+".pi") {
		d.Fail(path+".pi", "%v", err)
	}
}
