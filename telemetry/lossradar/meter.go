package lossradar

import (
	"fmt"

	"gswitch/frame"
	"gswitch/telemetry"
)

// Meter names a meter.
type Meter struct {
	Node  uint16
	Port  uint16
	Class uint8 // of the classes that share a digest, the lowest
	Shard uint8 // worker that counts
	Down  bool  // a downstream meter
	// Of is the upstream meter whose packets a downstream meter counts, where
	// several lie before it (section 5.5.2); 0 where there is only one.
	Of uint16
}

// Report is the digest of one meter's batch.
type Report struct {
	Meter    Meter
	Batch    uint64 // number since the upstream meter began; a downstream meter knows the low 8 bits only
	From, To frame.Time
	// Amends says that these packets arrived after their batch was reported.
	Amends bool
	// Merged counts batches that were added to this one, because the exporter
	// had all digests.
	Merged uint32
	// Missed counts packets that no digest was free for: the batch holds less
	// than what arrived.
	Missed uint64
	*Digest
}

// Timing is when batches begin and end.
type Timing struct {
	Period  frame.Time // T, the length of a batch; the paper uses 10 ms
	Timeout frame.Time // the longest time a packet takes from meter to meter beyond what the link takes, as reordering and queues make it
}

// DefaultTiming is the paper's batch and a timeout of 2 ms.
func DefaultTiming() Timing {
	return Timing{Period: 10 * frame.Millisecond, Timeout: 2 * frame.Millisecond}
}

// Validate reports what is wrong with a timing.
func (t Timing) Validate() error {
	switch {
	case t.Period < 100*frame.Microsecond || t.Period > 10*frame.Second:
		return fmt.Errorf("a batch of %v: between 100us and 10s is possible", t.Period.Duration())
	case t.Timeout <= 0 || t.Timeout > t.Period*maxOpen/2:
		return fmt.Errorf("a timeout of %v with batches of %v: it must be positive, and at most %d batches", t.Timeout.Duration(), t.Period.Duration(), maxOpen/2)
	}
	return nil
}

// Tag is what a packet carries from one meter to the next.
type Tag struct {
	Batch uint8
	Meter uint16 // upstream meter, where several lie before a downstream one
	Stamp uint16 // 14 bits, in units of 1/2^14 of a batch
}

// Upstream is the meter at the entrance of a segment. One goroutine owns it.
type Upstream struct {
	timing Timing
	out    *telemetry.Outbox[Report]
	meter  Meter
	now    *Report
	scale  uint64 // stamp = elapsed * scale >> 32
	starts frame.Time
	ends   frame.Time
	merged uint64
	few    few
}

// few are packets that came by themselves, or a handful at once: they go into the digest
// together, whose cells are near by then.
type few struct {
	v [32]Signature
	n int
}

// many is from how many packets on they go into the digest at once.
const many = 8

func (w *few) add(d *Digest, v []Signature) {
	if len(v) >= many {
		d.Insert(v...)
		return
	}
	if w.n+len(v) > len(w.v) {
		w.flush(d)
	}
	w.n += copy(w.v[w.n:], v)
}

// flush puts all packets into the digest.
func (w *few) flush(d *Digest) {
	d.Insert(w.v[:w.n]...)
	w.n = 0
}

// NewUpstream returns a meter whose first batch began at the last multiple of
// the period: batches are numbered by the node's clock, so that the shards of
// several workers agree.
func NewUpstream(m Meter, t Timing, out *telemetry.Outbox[Report], now frame.Time) *Upstream {
	u := &Upstream{timing: t, out: out, meter: m, scale: 1 << (32 + StampBits) / uint64(t.Period)}
	u.begin(out.Empty(), now)
	return u
}

func (u *Upstream) begin(r *Report, now frame.Time) {
	batch := now / u.timing.Period
	u.starts = batch * u.timing.Period
	u.ends = u.starts + u.timing.Period
	u.now = r
	r.Meter, r.Batch, r.From, r.Amends, r.Merged, r.Missed = u.meter, uint64(batch), u.starts, false, 0, 0
}

// Tag returns what packets that leave now carry.
func (u *Upstream) Tag(now frame.Time) Tag {
	stamp := uint64(now-u.starts) * u.scale >> 32
	return Tag{Batch: uint8(u.now.Batch), Meter: u.meter.Of, Stamp: uint16(min(stamp, stampMask))}
}

// Insert counts packets. Their Stamp is that of Tag.
func (u *Upstream) Insert(v ...Signature) { u.few.add(u.now.Digest, v) }

// Due is when Advance is to be called next.
func (u *Upstream) Due() frame.Time { return u.ends }

// Advance ends the batch when its time is over, also where it is empty: a
// report that is missing differs from one that says that nothing was
// sent. If the exporter has all digests the batch goes on under its number.
func (u *Upstream) Advance(now frame.Time) {
	if now < u.ends {
		return
	}
	next := u.out.Empty()
	if next == nil {
		u.now.Merged++
		u.merged++
		u.ends += u.timing.Period
		return
	}
	u.few.flush(u.now.Digest)
	u.now.To = u.ends
	u.out.Publish(u.now)
	u.begin(next, now)
}

// Merged counts batches that ran on because no digest was free.
func (u *Upstream) Merged() uint64 { return u.merged }

// maxOpen is how many batches a downstream meter keeps apart: a batch whose only
// packet was sent at its end is open until 2T + timeout after its beginning, so
// that three overlap; the fourth is for batches that are amended.
const maxOpen = 4

// Downstream is the meter at the exit of a segment: it counts a packet for the
// batch that the packet names, whenever it arrives. One goroutine owns it.
type Downstream struct {
	timing Timing
	out    *telemetry.Outbox[Report]
	meter  Meter
	slots  [2 * maxOpen]slot
	last   int    // slot of the packet before
	high   uint64 // highest batch seen, unwrapped
	due    frame.Time
	missed uint64 // packets that no digest was free for
	strays uint64
	few    few // of the report of the slot before
}

// slot is a batch that is open, or that was reported a moment ago.
type slot struct {
	state  slotState
	id     uint8
	batch  uint64
	until  frame.Time // when the state ends
	report *Report    // nil: nothing was counted in this state
}

type slotState uint8

const (
	slotIdle slotState = iota
	slotOpen
	slotReported // late packets amend it
)

// NewDownstream returns a meter.
func NewDownstream(m Meter, t Timing, out *telemetry.Outbox[Report]) *Downstream {
	m.Down = true
	return &Downstream{timing: t, out: out, meter: m, due: frame.Never}
}

// Insert counts packets for the batch of their tags.
func (d *Downstream) Insert(now frame.Time, batch uint8, v ...Signature) {
	sl := &d.slots[d.last]
	if sl.state == slotIdle || sl.id != batch {
		d.flush()
		if sl = d.find(now, batch); sl == nil {
			d.strays += uint64(len(v))
			d.missed += uint64(len(v))
			return
		}
	}
	if sl.report == nil && !d.fill(now, sl) {
		d.missed += uint64(len(v))
		return
	}
	d.few.add(sl.report.Digest, v)
}

// flush puts all packets into the digests that they belong to.
func (d *Downstream) flush() {
	if d.few.n > 0 {
		d.few.flush(d.slots[d.last].report.Digest)
	}
}

// find returns the slot of a batch, a new one if there is none, nil if all are
// taken.
func (d *Downstream) find(now frame.Time, batch uint8) *slot {
	idle := -1
	for i := range d.slots {
		sl := &d.slots[i]
		if sl.state == slotIdle {
			idle = i
		} else if sl.id == batch {
			d.last = i
			return sl
		}
	}
	if idle < 0 {
		return nil
	}
	d.last = idle
	sl := &d.slots[idle]
	*sl = slot{state: slotOpen, id: batch, batch: d.unwrap(batch), until: now + d.timing.Period + d.timing.Timeout}
	// The batch before is complete one timeout from now.
	for i := range d.slots {
		if o := &d.slots[i]; o.state == slotOpen && o.id == batch-1 {
			o.until = min(o.until, now+d.timing.Timeout)
			d.due = min(d.due, o.until)
		}
	}
	d.due = min(d.due, sl.until)
	return sl
}

// unwrap returns the number of a batch from its low 8 bits.
func (d *Downstream) unwrap(batch uint8) uint64 {
	n := d.high + uint64(int64(int8(batch-uint8(d.high))))
	if int64(n) < 0 {
		n += 256
	}
	d.high = max(d.high, n)
	return n
}

func (d *Downstream) fill(now frame.Time, sl *slot) bool {
	r := d.out.Empty()
	if r == nil {
		return false
	}
	r.Meter, r.Batch, r.From, r.Amends, r.Merged, r.Missed = d.meter, sl.batch, now, sl.state == slotReported, 0, 0
	sl.report = r
	return true
}

// Due is when Advance is to be called next.
func (d *Downstream) Due() frame.Time { return d.due }

// Advance reports the batches whose time is over.
func (d *Downstream) Advance(now frame.Time) {
	if now < d.due {
		return
	}
	d.flush()
	d.due = frame.Never
	for i := range d.slots {
		sl := &d.slots[i]
		if sl.state != slotIdle && now >= sl.until {
			d.end(now, sl)
		}
		if sl.state != slotIdle {
			d.due = min(d.due, sl.until)
		}
	}
}

func (d *Downstream) end(now frame.Time, sl *slot) {
	if r := sl.report; r != nil {
		r.To, r.Missed = now, d.missed
		d.missed = 0
		sl.report = nil
		d.out.Publish(r)
	}
	if sl.state == slotOpen {
		sl.state, sl.until = slotReported, now+2*d.timing.Period
	} else {
		sl.state = slotIdle
	}
}

// Strays returns how many packets named a batch that there was no place for:
// one long gone, or more than a meter keeps apart.
func (d *Downstream) Strays() uint64 { return d.strays }
