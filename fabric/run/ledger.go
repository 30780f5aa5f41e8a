package run

import (
	"cmp"
	"slices"

	"gswitch/fabric/measure"
	"gswitch/frame"
)

// ledger records flows and samples in whatever order processes report them. At the end it
// passes all of them to a recorder in the order in which they happened.
type ledger struct {
	entries []entry
	started int        // numbers that Start has assigned
	now     frame.Time // end of the flow that was recorded last
	last    frame.Time // of the last end
}

// entry is a call of a recorder.
type entry struct {
	at   frame.Time
	call func(r *measure.Recorder, numbers []int)
}

func (l *ledger) add(at frame.Time, call func(r *measure.Recorder, numbers []int)) {
	l.entries = append(l.entries, entry{at, call})
}

// Start implements book. The recorder's own number is assigned later.
func (l *ledger) Start(now frame.Time, group int, event uint32, src, dst string, bytes uint64, ideal frame.Time) int {
	number := l.started
	l.started++
	l.add(now, func(r *measure.Recorder, numbers []int) {
		numbers[number] = r.Start(now, group, event, src, dst, bytes, ideal)
	})
	return number
}

// Done implements book.
func (l *ledger) Done(now frame.Time, number, group int, event uint32, fct, rtt frame.Time) {
	l.ends(now)
	l.add(now, func(r *measure.Recorder, numbers []int) { r.Done(now, numbers[number], group, event, fct, rtt) })
}

// Retrieved implements book.
func (l *ledger) Retrieved(now frame.Time, number, group int, event uint32, fct frame.Time) {
	l.ends(now)
	l.add(now, func(r *measure.Recorder, numbers []int) { r.Retrieved(now, numbers[number], group, event, fct) })
}

// Repaired implements book.
func (l *ledger) Repaired(now frame.Time, number, group int, retransmissions, timeouts uint32) {
	l.ends(now)
	l.add(now, func(r *measure.Recorder, numbers []int) {
		r.Repaired(now, numbers[number], group, retransmissions, timeouts)
	})
}

func (l *ledger) ends(now frame.Time) { l.now, l.last = now, max(l.last, now) }

// Open implements book.
func (l *ledger) Open(now frame.Time, id uint64, group int, name string) {
	l.add(now, func(r *measure.Recorder, _ []int) { r.Open(now, id, group, name) })
}

// Ended implements book.
func (l *ledger) Ended(id, bytes uint64) {
	l.add(l.now, func(r *measure.Recorder, _ []int) { r.Ended(id, bytes) })
}

// samples are the samples of all processes.
type samples struct {
	queues []sampledQueue
	links  [][]sampledLink // by process: if several hold parts of a link, they are added up
	acked  []sampledConn
}

// replay passes everything to a recorder. The run ended at end. If its flows were done
// earlier, it was over at the first sample after that. sample and bin are the sampling
// periods.
func (l *ledger) replay(rec *measure.Recorder, summaries []*summary, sample, bin, end frame.Time, over bool) {
	s := samples{}
	flows := l.entries
	// A round trip ends with the arrival of its acknowledgement, which may also end the
	// flow. At the same instant the round trip comes first.
	l.entries = nil
	for _, a := range summaries {
		s.queues = append(s.queues, a.Queues...)
		s.links = append(s.links, a.Sent)
		s.acked = append(s.acked, a.Acked...)
		for _, x := range a.RTTs {
			l.add(x.At, func(r *measure.Recorder, _ []int) { r.RTT(x.At, uint64(x.Serial), x.RTT) })
		}
	}
	l.entries = append(l.entries, flows...)
	slices.SortStableFunc(l.entries, func(a, b entry) int { return cmp.Compare(a.at, b.at) })
	slices.SortStableFunc(s.queues, func(a, b sampledQueue) int { return cmp.Compare(a.Tick, b.Tick) })
	slices.SortStableFunc(s.acked, func(a, b sampledConn) int { return cmp.Compare(a.Bin, b.Bin) })

	if over {
		end = min(end, (l.last+sample-1)/sample*sample)
	}
	numbers := make([]int, l.started)
	var depths, carried []uint64 // as far as reported
	known := map[uint64]uint64{} // acknowledged bytes by connection
	next := 0
	until := func(now frame.Time) {
		for ; next < len(l.entries) && l.entries[next].at <= now; next++ {
			l.entries[next].call(rec, numbers)
		}
	}
	before := make([][]uint64, len(s.links)) // previous carried bytes, by process
	tick, lap := sample, bin
	for tick <= end || lap <= end {
		now := min(tick, lap)
		until(now)
		if now == tick {
			for ; len(s.queues) > 0 && s.queues[0].Tick <= int64(tick/sample); s.queues = s.queues[1:] {
				q := &s.queues[0]
				depths = grown(depths, q.Queue)
				depths[q.Queue] = q.Bytes
			}
			rec.QueueSample(now, func(i int) uint64 { return of(depths, i) })
			tick += sample
		}
		if now != lap {
			continue
		}
		for p, v := range s.links {
			for ; len(v) > 0 && v[0].Bin <= int64(lap/bin); v = v[1:] {
				x := &v[0]
				carried, before[p] = grown(carried, x.Link), grown(before[p], x.Link)
				carried[x.Link] += x.Bytes - before[p][x.Link]
				before[p][x.Link] = x.Bytes
			}
			s.links[p] = v
		}
		for ; len(s.acked) > 0 && s.acked[0].Bin <= int64(lap/bin); s.acked = s.acked[1:] {
			known[uint64(s.acked[0].Serial)] = s.acked[0].Bytes
		}
		rec.LinkSample(now, func(i int) uint64 { return of(carried, i) })
		rec.GoodputSample(now, func(id uint64) uint64 { return known[id] })
		lap += bin
	}
	until(end)
	rec.Close(end)
	until(frame.Never) // counts nothing more, but keeps the order of calls
}

// grown returns v, extended if needed so that it has an element i.
func grown(v []uint64, i int) []uint64 {
	for len(v) <= i {
		v = append(v, 0)
	}
	return v
}

// of returns v[i], or 0 if v is shorter.
func of(v []uint64, i int) uint64 {
	if i >= len(v) {
		return 0
	}
	return v[i]
}

var _ book = (*ledger)(nil)
