package mirror

import "net/netip"

// Numbers finds by the numbers of copies how many are missing, as RFC 3550 (A.3) does: those
// that the numbers say there are, without those that came. Copies may overtake each other.
type Numbers struct {
	Missing uint64 // of all sources; one that comes after others that were sent behind it is not missing any more
	sources map[source]*numbered
}

// source numbers its copies: a session of one worker of a switch.
type source struct {
	sw      netip.Addr
	session uint16
	engine  uint8
}

// numbered is what came of a source since it began.
type numbered struct {
	first, last, came uint32
	// strange is a number far from all others, which one that is close to it confirms.
	strange  uint32
	unproved bool
}

func (n *numbered) missing() uint64 {
	return uint64(max(int64(n.last-n.first)+1-int64(n.came), 0))
}

const (
	// mostSources is of how many sources the numbers are known. Beyond it all are forgotten, and
	// copies that are missing in that moment are not counted.
	mostSources = 1 << 16
	// near is how many copies may overtake one, or be missing before it. A number that is
	// farther from those before counts once a second one is as close to it: else one
	// copy that was made up would have a million missing, or the source begin anew.
	near = 1 << 12
	// mostAhead is how many copies may be missing before one: a second of more than collectors
	// take. What seems to be a longer loss is a source that began anew far from its last
	// number.
	mostAhead = 1 << 20
)

// Add takes a copy.
func (n *Numbers) Add(c *Copied) {
	if !c.Numbered {
		return
	}
	at := source{c.Switch, c.Session, c.Engine}
	s := n.sources[at]
	if s == nil {
		if n.sources == nil || len(n.sources) >= mostSources {
			n.sources = map[source]*numbered{}
		}
		n.sources[at] = &numbered{first: c.Sequence, last: c.Sequence, came: 1}
		return
	}
	before := s.missing()
	switch ahead := int32(c.Sequence - s.last); {
	case ahead > near || ahead <= -near:
		if d := distance(c.Sequence, s.strange); !s.unproved || d > near || d == 0 {
			s.strange, s.unproved = c.Sequence, true
			return
		}
		low, high := min(s.strange, c.Sequence), max(s.strange, c.Sequence)
		if high-low > near { // they lie on both sides of 0
			low, high = high, low
		}
		if ahead < 0 || ahead > mostAhead {
			*s = numbered{first: low, last: high}
			before = 0
		}
		s.last, s.unproved = high, false
		s.came++ // the first one of the two
	case ahead > 0:
		s.last = c.Sequence
	case c.Sequence-s.first > s.last-s.first:
		s.first = c.Sequence // sent before the first one that came
	}
	s.came++
	if s.came > s.last-s.first+1 {
		// More came than there are numbers: they are those of a source that began anew.
		n.Missing -= before
		*s = numbered{first: c.Sequence, last: c.Sequence, came: 1}
		return
	}
	n.Missing += s.missing() - before
}

// distance is how far two numbers are apart.
func distance(a, b uint32) uint32 { return min(a-b, b-a) }
