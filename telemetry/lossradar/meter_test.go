package lossradar

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"gswitch/frame"
	"gswitch/telemetry"
)

const ms = frame.Millisecond

// link is a segment with its two meters and a collector, in a test's hands.
type link struct {
	up         *Upstream
	down       *Downstream
	upBox      *telemetry.Outbox[Report]
	dnBox      *telemetry.Outbox[Report]
	pair       *Pairer
	out        []Outcome
	noExporter bool // the downstream exporter is gone
	slow       bool // the upstream exporter takes no reports
	gap        bool // the downstream one loses them, and says so
	id         uint16
}

func box(n int) *telemetry.Outbox[Report] {
	var v []*Report
	for range n {
		v = append(v, &Report{Digest: NewDigest(DefaultShape())})
	}
	return telemetry.NewOutbox(v...)
}

func newLink() *link {
	l := &link{upBox: box(4), dnBox: box(8)}
	um, dm := Meter{Node: 1, Port: 1}, Meter{Node: 2, Port: 1, Down: true}
	l.up = NewUpstream(um, DefaultTiming(), l.upBox, 0)
	l.down = NewDownstream(dm, DefaultTiming(), l.dnBox)
	l.pair = NewPairer(DefaultTiming(), ms, []Segment{{Name: "s1>s2", Up: []Meter{um}, Down: []Meter{dm}}})
	return l
}

// sent is a packet on its way.
type sent struct {
	tag Tag
	sig Signature
}

func (l *link) send(now frame.Time) sent {
	l.advance(now)
	l.id++
	tag := l.up.Tag(now)
	s := sent{tag, Fields{Src: 1, Dst: 2, SrcPort: 3, DstPort: 4, Proto: 17, ID: l.id, Stamp: tag.Stamp}.Pack()}
	l.up.Insert(s.sig)
	return s
}

func (l *link) arrive(now frame.Time, s sent) {
	l.advance(now)
	l.down.Insert(now, s.tag.Batch, s.sig)
}

// advance brings both meters and the collector to now.
func (l *link) advance(now frame.Time) {
	for t := min(l.up.Due(), l.down.Due()); t <= now; t = min(l.up.Due(), l.down.Due()) {
		l.up.Advance(t)
		l.down.Advance(t)
		l.collect(t)
	}
	l.collect(now)
}

func (l *link) collect(now frame.Time) {
	for _, b := range []*telemetry.Outbox[Report]{l.upBox, l.dnBox} {
		if b == l.upBox && l.slow {
			continue
		}
		for r := b.Take(); r != nil; r = b.Take() {
			switch {
			case b == l.dnBox && l.gap:
				l.pair.Missed(2, r.To+2*DefaultTiming().Period)
			case b == l.upBox || !l.noExporter:
				l.pair.Add(now, r)
			}
			r.Reset()
			b.Return(r)
		}
	}
	if !l.noExporter {
		l.pair.Seen(2, now)
	}
	l.out = append(l.out, l.pair.Advance(now)...)
}

// losses are the packets missing by the last word on each batch.
func (l *link) losses() (lost []Signature, unknown int) {
	last := map[uint64]Outcome{}
	for _, o := range l.out {
		last[o.Batch] = o
	}
	for _, o := range last {
		lost = append(lost, o.Lost...)
		if o.Unknown || len(o.Extra) > 0 || o.Residual > 0 {
			unknown++
		}
	}
	return sorted(lost), unknown
}

// However packets are delayed below the timeout, and whichever are lost, exactly
// these are reported: packets of two batches arrive mixed.
func TestBatchesAreReadFromTheTag(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := newLink()
		type event struct {
			at frame.Time
			s  sent
		}
		var way []event
		var want []Signature
		now := frame.Time(0)
		for range rapid.IntRange(1, 300).Draw(t, "packets") {
			now += frame.Time(rapid.IntRange(0, int(2*ms)).Draw(t, "gap"))
			for len(way) > 0 && way[0].at <= now {
				l.arrive(way[0].at, way[0].s)
				way = way[1:]
			}
			s := l.send(now)
			if rapid.IntRange(0, 9).Draw(t, "lost") == 0 {
				want = append(want, s.sig)
				continue
			}
			way = append(way, event{now + frame.Time(rapid.IntRange(1, int(2*ms)-1).Draw(t, "delay")), s})
			slices.SortStableFunc(way, func(a, b event) int { return int(a.at - b.at) })
		}
		for _, e := range way {
			l.arrive(e.at, e.s)
		}
		l.advance(now + 200*ms)
		if got, bad := l.losses(); bad != 0 || !slices.Equal(got, sorted(want)) {
			t.Fatalf("%d losses reported, %d batches with something else; %d were lost", len(got), bad, len(want))
		}
	})
}

// An exporter that takes no reports for a while lets batches run on at the
// entrance, for longer than the exit keeps them apart: it reports their packets
// piece by piece, and what is missing is still what was lost.
func TestBatchesThatRunOn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := newLink()
		var want []Signature
		now := frame.Time(0)
		for range rapid.IntRange(1, 6).Draw(t, "spans") {
			l.slow = !l.slow
			end := now + frame.Time(rapid.IntRange(1, 600).Draw(t, "milliseconds"))*ms
			for now < end {
				now += frame.Time(rapid.IntRange(int(ms/2), int(30*ms)).Draw(t, "gap"))
				s := l.send(now)
				if rapid.IntRange(0, 9).Draw(t, "lost") == 0 {
					want = append(want, s.sig)
				} else {
					l.arrive(now+1000, s)
				}
			}
		}
		l.slow = false
		l.advance(now + 400*ms)
		if got, bad := l.losses(); bad != 0 || !slices.Equal(got, sorted(want)) {
			t.Fatalf("%d losses reported, %d batches with something else; %d were lost", len(got), bad, len(want))
		}
	})
}

// What became of a batch that ran on is unknown where the exit reported some of it, and a
// digest with the rest was lost.
func TestBatchThatRunsOnIntoAGap(t *testing.T) {
	l := newLink()
	l.slow = true
	for i := range frame.Time(60) {
		now := i * 5 * ms
		if i == 40 {
			l.gap = true
		}
		l.arrive(now+1000, l.send(now))
	}
	l.advance(400 * ms)
	l.slow, l.gap = false, false
	l.advance(1000 * ms)
	if got, unknown := l.losses(); len(got) != 0 || unknown == 0 {
		t.Errorf("%d packets are said to be lost, and of %d batches it is not known what became of them", len(got), unknown)
	}
}

// Of a batch that ran on for longer than the collector keeps what the exit said
// nothing is claimed.
func TestBatchThatRunsOnForever(t *testing.T) {
	l := newLink()
	l.slow = true
	now := frame.Time(0)
	for range 400 {
		now += 10 * ms
		l.arrive(now+1000, l.send(now))
	}
	l.slow = false
	for range 50 {
		now += 10 * ms
		l.arrive(now+1000, l.send(now))
	}
	l.advance(now + 4000*ms)
	if got, unknown := l.losses(); len(got) != 0 || unknown == 0 {
		t.Errorf("%d packets are said to be lost, and nothing is unknown of %d batches", len(got), unknown)
	}
}

// The negative control: a meter that sorts by the time of arrival reports losses
// that never were, and sees packets that were never sent.
func TestBatchesByArrivalWouldBeWrong(t *testing.T) {
	l := newLink()
	for i := range frame.Time(3000) {
		at := i * 10 * frame.Microsecond
		s := l.send(at)
		arrives := at + 500*frame.Microsecond
		s.tag.Batch = uint8(arrives / (10 * ms))
		l.down.Insert(arrives, s.tag.Batch, s.sig)
	}
	l.advance(200 * ms)
	lost, extra := 0, 0
	for _, o := range l.out {
		lost += len(o.Lost)
		extra += len(o.Extra)
	}
	if lost < 50 || extra < 50 {
		t.Errorf("%d lost and %d extra: the control shows nothing", lost, extra)
	}
}

// A batch whose only packet was sent at its end begins late at the downstream
// meter and overlaps the two behind it.
func TestThreeBatchesOverlap(t *testing.T) {
	l := newLink()
	var way []sent
	for _, at := range []frame.Time{10*ms - 1, 10 * ms, 20 * ms, 21 * ms} {
		way = append(way, l.send(at))
	}
	for i, at := range []frame.Time{22 * ms, 22*ms - 1, 22*ms + 1, 22*ms + 2} {
		l.arrive(at, way[i])
	}
	l.advance(200 * ms)
	if lost, bad := l.losses(); len(lost) != 0 || bad != 0 {
		t.Errorf("%d losses, %d batches with something else", len(lost), bad)
	}
}

// Packets that a pause held longer than the timeout are lost at first, and not
// in the end.
func TestLatePacketsAmend(t *testing.T) {
	l := newLink()
	var held []sent
	for i := range frame.Time(100) {
		s := l.send(i * 100 * frame.Microsecond)
		if i >= 90 {
			held = append(held, s)
			continue
		}
		l.arrive(i*100*frame.Microsecond+1, s)
	}
	l.advance(24 * ms)
	if got, _ := l.losses(); len(got) != 10 {
		t.Fatalf("%d losses before the packets came, want 10", len(got))
	}
	for _, s := range held {
		l.arrive(25*ms, s)
	}
	l.advance(200 * ms)
	if got, bad := l.losses(); len(got) != 0 || bad != 0 {
		t.Errorf("%d losses in the end, %d batches with something else", len(got), bad)
	}
	revised := slices.ContainsFunc(l.out, func(o Outcome) bool { return o.Batch == 0 && o.Revision > 0 })
	if !revised {
		t.Error("no outcome was revised")
	}
}

// A dead link: all is lost where the other end's exporter is up, and nothing
// is said where it is not. An idle link loses nothing.
func TestMissingReports(t *testing.T) {
	for _, noExporter := range []bool{false, true} {
		t.Run(fmt.Sprint("mute=", noExporter), func(t *testing.T) {
			l := newLink()
			l.noExporter = noExporter
			for i := range frame.Time(390) {
				l.send(i * 20 * frame.Microsecond)
			}
			l.advance(100 * ms)
			first := l.out[slices.IndexFunc(l.out, func(o Outcome) bool { return o.Batch == 0 })]
			if first.Unknown != noExporter || first.Sent != 390 || !noExporter && (first.Net != 390) {
				t.Errorf("%+v", first)
			}
			for _, o := range l.out {
				if o.Batch > 0 && (o.Sent != 0 || o.Net != 0 || o.Unknown != noExporter) {
					t.Errorf("an idle batch: %+v", o)
				}
			}
		})
	}
}

// An exporter that is slow makes longer batches, and loses no packet of them.
func TestNoFreeDigest(t *testing.T) {
	b := box(2)
	u := NewUpstream(Meter{}, DefaultTiming(), b, 0)
	for i := range frame.Time(50) {
		u.Advance(i * ms)
		u.Insert(Fields{ID: uint16(i)}.Pack())
	}
	first := b.Take()
	if first.Batch != 0 || first.Packets() != 10 || b.Take() != nil {
		t.Fatalf("batch %d of %d packets", first.Batch, first.Packets())
	}
	first.Reset()
	b.Return(first)
	u.Advance(50 * ms)
	if r := b.Take(); r == nil || r.Batch != 1 || r.Merged != 3 || r.Packets() != 40 || r.To != 50*ms {
		t.Errorf("%+v", r)
	}
	if tag := u.Tag(50 * ms); tag.Batch != 5 || tag.Stamp != 0 {
		t.Errorf("%+v", tag)
	}
	if tag := u.Tag(60*ms - 1); tag.Stamp != stampMask {
		t.Errorf("the last instant of a batch has stamp %d", tag.Stamp)
	}

	// Downstream: what no digest was free for is counted, and the batch is known
	// to be incomplete.
	empty := box(1)
	d := NewDownstream(Meter{}, DefaultTiming(), empty)
	d.Insert(1, 0, Signature{})
	d.Insert(2, 1, Signature{})
	d.Insert(3, 1, Signature{})
	d.Advance(100 * ms)
	if r := empty.Take(); r == nil || r.Missed != 2 || r.Packets() != 1 {
		t.Errorf("%+v", r)
	}
}

// Numbers of batches go on beyond 255.
func TestUnwrap(t *testing.T) {
	d := NewDownstream(Meter{}, DefaultTiming(), box(1))
	for want := uint64(0); want < 2000; want += 3 {
		if got := d.unwrap(uint8(want)); got != want {
			t.Fatalf("batch %d is taken for %d", want, got)
		}
		if want > 2 {
			if got := d.unwrap(uint8(want - 2)); got != want-2 {
				t.Fatalf("batch %d, a late one, is taken for %d", want-2, got)
			}
		}
	}
}

// A region of one switch without meters, with two entrances whose clocks differ
// by 7 ms and two exits. A digest for each entrance at each exit names exactly
// what was lost; one digest for all (the strawman) cannot even be paired.
func TestRegionWithoutMeters(t *testing.T) {
	timing := DefaultTiming()
	var ups []*Upstream
	var upBox []*telemetry.Outbox[Report]
	downs := map[[2]int]*Downstream{}
	dnBox := map[[2]int]*telemetry.Outbox[Report]{}
	var segments []Segment
	for e := range 2 {
		m := Meter{Node: uint16(e), Of: uint16(e)}
		upBox = append(upBox, box(4))
		ups = append(ups, NewUpstream(m, timing, upBox[e], 0))
		s := Segment{Up: []Meter{m}}
		for x := range 2 {
			dm := Meter{Node: uint16(10 + x), Of: uint16(e), Down: true}
			dnBox[[2]int{e, x}] = box(8)
			downs[[2]int{e, x}] = NewDownstream(dm, timing, dnBox[[2]int{e, x}])
			s.Down = append(s.Down, dm)
		}
		segments = append(segments, s)
	}
	p := NewPairer(timing, ms, segments)
	r := generator(9)
	var want []Signature
	var got []Signature
	for now := frame.Time(0); now < 200*ms; now += 50 * frame.Microsecond {
		for e, u := range ups {
			local := now + frame.Time(e)*7*ms
			u.Advance(local)
			if now < 150*ms {
				tag := u.Tag(local)
				s := random(r)
				u.Insert(s)
				if r.IntN(100) == 0 {
					want = append(want, s)
				} else {
					downs[[2]int{int(tag.Meter), r.IntN(2)}].Insert(now, tag.Batch, s)
				}
			}
			for rep := upBox[e].Take(); rep != nil; rep = upBox[e].Take() {
				p.Add(now, rep)
				rep.Reset()
				upBox[e].Return(rep)
			}
			for x := range 2 {
				at := [2]int{e, x}
				downs[at].Advance(now)
				for rep := dnBox[at].Take(); rep != nil; rep = dnBox[at].Take() {
					p.Add(now, rep)
					rep.Reset()
					dnBox[at].Return(rep)
				}
				p.Seen(segments[e].Down[x].Node, now)
			}
		}
		for _, o := range p.Advance(now) {
			if o.Unknown || o.Residual > 0 || len(o.Extra) > 0 || o.Revision > 0 {
				t.Errorf("at %v: %+v", now, o)
			}
			got = append(got, o.Lost...)
		}
	}
	if !slices.Equal(sorted(got), sorted(want)) || len(want) < 20 {
		t.Errorf("%d losses reported, %d were", len(got), len(want))
	}
}
