package feature

// Slew is by how much synchronised time is ahead of a node's own, for stamps: they never
// go back while the time is known. Where a clock was set back, stamps go on at half the
// speed until it has caught up. The zero value is ahead by nothing.
type Slew struct {
	by    int64 // ns, by the clock
	above int64 // ns that stamps were ahead of the clock at from
	from  int64 // the node's time at which the clock was set last
	last  int64 // the latest instant that was stamped, by the node's time
}

// Step takes a lead at once: of a clock that was not set before, or is not known any more.
func (s *Slew) Step(by int64) { *s = Slew{by: by} }

// Set takes a lead at the node's time now. Frames may have been stamped that leave later:
// what comes behind these goes on from there.
func (s *Slew) Set(now, by int64) {
	if by == s.by {
		return
	}
	now = max(now, s.last)
	*s = Slew{by: by, above: max(s.lead(now)-by, 0), from: now, last: s.last}
}

// Stamp returns synchronised time at the node's time t.
func (s *Slew) Stamp(t int64) int64 {
	s.last = max(s.last, t)
	return t + s.lead(t)
}

func (s *Slew) lead(t int64) int64 {
	if s.above == 0 {
		return s.by
	}
	return s.by + max(0, s.above-max(0, t-s.from)/2)
}
