package lossradar

import (
	"cmp"
	"slices"

	"gswitch/frame"
)

// Segment is a part of the network between meters: a link with the buffer
// before and the tables behind it, or a region of switches without meters
// (section 5.5.2), which has several exits. Every meter reports every batch in
// which it counted something; upstream meters report empty ones, too.
type Segment struct {
	Name string
	Up   []Meter // one, or its shards
	Down []Meter // of all exits and shards
}

// Outcome is what became of one batch on a segment.
type Outcome struct {
	Segment  int // index
	Batch    uint64
	From, To frame.Time // at the upstream meter
	Sent     int64
	// Unknown says that a meter did not report and that its exporter
	// was not seen either: nothing can be said about losses.
	Unknown bool
	// Revision counts outcomes of the same batch: a later one, after packets
	// that came late, replaces those before.
	Revision int
	Decoded
}

// Pairer is the collector's part: it pairs the reports of both ends by batch,
// subtracts and decodes. Reports of one meter come in order.
type Pairer struct {
	timing   Timing
	grace    frame.Time // how long after a batch is over reports may take
	segments []Segment
	where    map[Meter][]int // segments of a meter
	pending  map[pairKey]*pair
	order    []*pair               // the same, oldest first
	lastSeen map[uint16]frame.Time // when the exporter of a node was last seen
	gap      map[uint16]frame.Time // until when reports of a node are not all here
	out      []Outcome
}

type pairKey struct {
	segment int
	id      uint8 // what the packets carry
}

type pair struct {
	key      pairKey
	up, down map[Meter]bool // that have reported
	sum      *Digest        // up less down
	sent     int64
	batch    uint64
	from, to frame.Time
	born     frame.Time // first report
	upDone   frame.Time // when the last upstream report came; 0: not yet
	decided  bool
	revision int
	amended  bool
	missed   uint64
	merged   uint32 // batches that the entrance added to this one
	forgot   bool   // reports of the exit on it may have been discarded
}

// longestMerged is how many batches may run on as one: while they do, the exit
// reports their packets piece by piece, and these are kept for so long. It is less
// than half of the numbers that packets carry.
const longestMerged = 120

// NewPairer returns a pairer. grace is how long reports may take to arrive.
func NewPairer(t Timing, grace frame.Time, segments []Segment) *Pairer {
	p := &Pairer{timing: t, grace: grace, segments: segments, where: map[Meter][]int{}, pending: map[pairKey]*pair{}, lastSeen: map[uint16]frame.Time{}, gap: map[uint16]frame.Time{}}
	for i, s := range segments {
		for _, m := range slices.Concat(s.Up, s.Down) {
			p.where[m] = append(p.where[m], i)
		}
	}
	return p
}

// Seen says that the exporter of a node was seen, with or without reports.
func (p *Pairer) Seen(node uint16, now frame.Time) { p.lastSeen[node] = now }

// Missed says that reports of a node up to an instant were not given to Add: that one
// of a batch is not here says nothing.
func (p *Pairer) Missed(node uint16, until frame.Time) { p.gap[node] = max(p.gap[node], until) }

// Add takes a report that arrived. It keeps no part of it. It returns false if
// no segment has that meter, or its digest has another shape than the others.
func (p *Pairer) Add(now frame.Time, r *Report) bool {
	p.lastSeen[r.Meter.Node] = now
	segments := p.where[r.Meter]
	good := len(segments) > 0
	for _, s := range segments {
		good = p.add(now, s, r) && good
	}
	return good
}

func (p *Pairer) add(now frame.Time, segment int, r *Report) bool {
	key := pairKey{segment, uint8(r.Batch)}
	a := p.pending[key]
	if a == nil {
		a = &pair{up: map[Meter]bool{}, down: map[Meter]bool{}, sum: NewDigest(r.Shape), key: key, born: now}
		p.pending[key] = a
		p.order = append(p.order, a)
	}
	var err error
	if r.Meter.Down {
		err = a.sum.Subtract(r.Digest)
		a.down[r.Meter] = true
		a.missed += r.Missed
	} else {
		err = a.sum.Add(r.Digest)
		a.up[r.Meter] = true
		a.sent += r.Packets()
		a.merged = max(a.merged, r.Merged)
		a.forgot = a.forgot || r.Merged > longestMerged || now-r.To > longestMerged*p.timing.Period
		a.batch, a.from, a.to = r.Batch, r.From, r.To
		a.upDone = now
	}
	if err != nil {
		return false
	}
	if a.decided {
		a.amended = true
	}
	return true
}

// Bytes is about how much memory batches take whose outcome is not known.
func (p *Pairer) Bytes() (n int) {
	for _, a := range p.order {
		n += a.sum.Shape.Bytes() + 256*(1+len(a.up)+len(a.down))
	}
	return n
}

// Advance returns what is known by now, oldest first. The slice is good until
// the next call.
func (p *Pairer) Advance(now frame.Time) []Outcome {
	p.out = p.out[:0]
	keep := p.order[:0]
	for _, a := range p.order {
		p.judge(a, now)
		if now < p.expires(a) {
			keep = append(keep, a)
			continue
		}
		if !a.decided {
			p.decide(a, true) // there is no report of its entrance
		}
		delete(p.pending, a.key)
	}
	clear(p.order[len(keep):])
	p.order = keep
	slices.SortFunc(p.out, func(a, b Outcome) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.Segment, b.Segment))
	})
	return p.out
}

// expires is when amendments have come or, of a batch that may run on at the
// entrance, when that has been for too long: then nothing is known of it.
func (p *Pairer) expires(a *pair) frame.Time {
	if len(a.up) < len(p.segments[a.key.segment].Up) {
		return a.born + (longestMerged+2)*p.timing.Period + p.wait()
	}
	return max(a.born, a.upDone) + 3*p.timing.Period + p.last(a)
}

// judge decides on a batch when all has come that will come.
func (p *Pairer) judge(a *pair, now frame.Time) {
	s := &p.segments[a.key.segment]
	incomplete := a.missed > 0 || a.forgot && a.sent > 0 || a.merged > 0 && p.inGap(s, a)
	switch {
	case len(a.up) < len(s.Up):
		// Downstream digests alone: the upstream report is on its way, or lost, or
		// the batch runs on.
	case a.merged > 0 && now < a.upDone+p.last(a):
		// The exit reports what came last after what came first.
	case a.amended, !a.decided && len(a.down) == len(s.Down):
		p.decide(a, incomplete)
	case !a.decided && now >= a.upDone+p.wait():
		p.decide(a, incomplete || !p.allSeen(s, a, now))
	}
}

// last is how long after the upstream report of a batch the last downstream one
// comes: where batches ran on it may amend another one, for two batches.
func (p *Pairer) last(a *pair) frame.Time {
	if a.merged > 0 {
		return p.wait() + 2*p.timing.Period
	}
	return p.wait()
}

// wait is how long after the upstream report the last downstream one can come:
// packets sent at the end of the batch, their meter's timeout, and the way.
func (p *Pairer) wait() frame.Time { return p.timing.Period + p.timing.Timeout + p.grace }

// allSeen reports whether the exporters of the downstream meters that did not
// report are up, so that no report means that nothing arrived.
func (p *Pairer) allSeen(s *Segment, a *pair, now frame.Time) bool {
	for _, m := range s.Down {
		if at, ok := p.lastSeen[m.Node]; !a.down[m] && (!ok || now-at > 2*p.timing.Period+p.grace || a.upDone <= p.gap[m.Node]) {
			return false
		}
	}
	return true
}

// inGap reports whether some of the digests that the exit makes of a batch that runs on may
// be among those that were never given to Add.
func (p *Pairer) inGap(s *Segment, a *pair) bool {
	return slices.ContainsFunc(s.Down, func(m Meter) bool { return a.from < p.gap[m.Node] })
}

func (p *Pairer) decide(a *pair, unknown bool) {
	o := Outcome{Segment: a.key.segment, Batch: a.batch, From: a.from, To: a.to, Sent: a.sent, Unknown: unknown, Revision: a.revision}
	if !unknown {
		o.Decoded = a.sum.Clone().Decode()
	}
	a.decided, a.amended = true, false
	a.revision++
	p.out = append(p.out, o)
}
