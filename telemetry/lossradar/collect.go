package lossradar

import (
	"cmp"
	"slices"

	"gswitch/frame"
)

// Finding is a loss and its cause, which is known for good.
type Finding struct {
	Segment int // index
	Loss
	Seen frame.Time // when the collector knew of the loss, before its cause
}

// Sum is what the batches of a segment came to.
type Sum struct {
	Batches  int   // in which packets were sent
	Sent     int64 // packets
	Lossy    int   // batches in which some were lost
	Complete int   // of these, those of which every loss is known
	Lost     int64 // packets, by the counts, exact also where not every loss is known
	Found    int64 // packets that are known
	Extra    int64 // packets that only the far end saw
	Unknown  int   // batches of which a report is missing
}

// Add adds the sums of another segment.
func (s *Sum) Add(o Sum) {
	s.Batches += o.Batches
	s.Sent += o.Sent
	s.Lossy += o.Lossy
	s.Complete += o.Complete
	s.Lost += o.Lost
	s.Found += o.Found
	s.Extra += o.Extra
	s.Unknown += o.Unknown
}

// Collector makes findings of reports: it pairs and decodes them, and classifies causes
// by batch and by interval.
type Collector struct {
	pairer     *Pairer
	timing     Timing
	thresholds []Thresholds // by segment
	wait       frame.Time   // how long after its end an interval waits for amendments of its batches
	sums       []Sum
	open       []interval // by segment and begin
	out        []Finding
}

// interval holds the outcomes that began in it.
type interval struct {
	segment  int
	from     frame.Time
	outcomes []seen
}

// seen is an outcome, and when its first revision was there.
type seen struct {
	Outcome
	at frame.Time
}

// NewCollector returns a collector. grace is how long reports take to arrive;
// thresholds are the thresholds of each segment.
func NewCollector(t Timing, grace frame.Time, segments []Segment, thresholds []Thresholds) *Collector {
	p := NewPairer(t, grace, segments)
	return &Collector{pairer: p, timing: t, thresholds: thresholds, wait: 4*t.Period + 2*p.wait(), sums: make([]Sum, len(segments))}
}

// Bytes is about how much memory batches take whose outcome is not known.
func (c *Collector) Bytes() int { return c.pairer.Bytes() }

// Add takes a report that arrived, as Pairer.Add does.
func (c *Collector) Add(now frame.Time, r *Report) bool { return c.pairer.Add(now, r) }

// Seen says that the exporter of a node was seen, with or without reports.
func (c *Collector) Seen(node uint16, now frame.Time) { c.pairer.Seen(node, now) }

// Missed says that reports of a node up to an instant were not given to Add.
func (c *Collector) Missed(node uint16, until frame.Time) { c.pairer.Missed(node, until) }

// Sums returns what became of each segment's batches, of the intervals that are
// over.
func (c *Collector) Sums() []Sum { return c.sums }

// Advance returns the losses of the intervals that are over, by segment and time.
// The slice is good until the next call.
func (c *Collector) Advance(now frame.Time) []Finding {
	for _, o := range c.pairer.Advance(now) {
		c.note(o, now)
	}
	c.out = c.out[:0]
	keep := c.open[:0]
	for _, v := range c.open {
		if now < v.from+c.thresholds[v.segment].Interval+c.wait {
			keep = append(keep, v)
			continue
		}
		c.judge(&v)
	}
	clear(c.open[len(keep):])
	c.open = keep
	return c.out
}

// Flush is Advance when no report will come any more: it classifies all that is known.
func (c *Collector) Flush() []Finding {
	c.out = c.out[:0]
	for i := range c.open {
		c.judge(&c.open[i])
	}
	c.open = nil
	return c.out
}

// note puts an outcome in its interval, in the place of what was known before of
// its batch.
func (c *Collector) note(o Outcome, now frame.Time) {
	span := c.thresholds[o.Segment].Interval
	from := o.From / span * span
	i := slices.IndexFunc(c.open, func(v interval) bool { return v.segment == o.Segment && v.from == from })
	if i < 0 {
		i = len(c.open)
		c.open = append(c.open, interval{segment: o.Segment, from: from})
	}
	v := &c.open[i]
	for k := range v.outcomes {
		if before := &v.outcomes[k]; before.Batch == o.Batch && o.Revision > 0 {
			before.Outcome = o
			return
		}
	}
	v.outcomes = append(v.outcomes, seen{o, now})
}

// judge says what the losses of an interval came from.
func (c *Collector) judge(v *interval) {
	t, sum := &c.thresholds[v.segment], &c.sums[v.segment]
	slices.SortFunc(v.outcomes, func(a, b seen) int { return cmp.Compare(a.Batch, b.Batch) })
	var losses []Loss
	var at []frame.Time
	for i := range v.outcomes {
		o := &v.outcomes[i]
		sum.note(&o.Outcome)
		batch := Times(&o.Outcome, c.timing)
		t.Bursts(batch, o.Unnamed())
		losses = append(losses, batch...)
		for range batch {
			at = append(at, o.at)
		}
	}
	t.Over(losses, v.from)
	for i := range losses {
		c.out = append(c.out, Finding{Segment: v.segment, Loss: losses[i], Seen: at[i]})
	}
}

func (s *Sum) note(o *Outcome) {
	if o.Unknown {
		s.Unknown++
		return
	}
	s.Sent += o.Sent
	if o.Sent > 0 {
		s.Batches++
	}
	if len(o.Lost) > 0 || o.Residual > 0 {
		s.Lossy++
		if o.Complete() {
			s.Complete++
		}
	}
	s.Lost += o.Net + int64(len(o.Extra))
	s.Found += int64(len(o.Lost))
	s.Extra += int64(len(o.Extra))
}
