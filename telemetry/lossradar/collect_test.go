package lossradar

import (
	"testing"

	"gswitch/frame"
)

// Losses get their cause when the interval in which they were is over: a burst of
// a flow is a blackhole, what is spread over the interval is random; a batch that
// is amended counts by its last word, and one without a report as unknown.
func TestCollector(t *testing.T) {
	timing := Timing{Period: ms, Timeout: 200 * us}
	up, down := Meter{Node: 1, Port: 1}, Meter{Node: 2, Port: 0, Down: true}
	judge := DefaultThresholds(10e9)
	judge.Interval = 10 * ms
	c := NewCollector(timing, ms, []Segment{{Name: "a>b", Up: []Meter{up}, Down: []Meter{down}}}, []Thresholds{judge})
	report := func(m Meter, batch uint64, s ...Signature) *Report {
		r := &Report{Meter: m, Batch: batch, From: frame.Time(batch) * ms, To: frame.Time(batch+1) * ms, Digest: NewDigest(DefaultShape())}
		for _, x := range s {
			r.Insert(x)
		}
		return r
	}
	packet := func(flow uint32, id uint16, stamp int) Signature {
		return Fields{Src: flow, Dst: 9, SrcPort: 1, DstPort: 2, Proto: 17, ID: id, Stamp: uint16(stamp)}.Pack()
	}
	var found []Finding
	for b := range uint64(40) {
		now := frame.Time(b+1) * ms
		var sent, arrived []Signature
		for k := range 100 {
			s := packet(uint32(k%7), uint16(int(b)*100+k), k*160)
			sent = append(sent, s)
			switch {
			case b >= 10 && b < 20 && k%50 == int(b)%50: // two in a millisecond, spread
			case b == 25 && k < 40: // a run of one flow, see below
				sent[k] = packet(1, uint16(k), k*20)
			case b == 31 && k == 5: // comes late
			default:
				arrived = append(arrived, s)
			}
		}
		c.Add(now, report(up, b, sent...))
		if b == 35 {
			c.Seen(2, now)
			continue // nothing of it arrives, and its exporter is up
		}
		c.Add(now, report(down, b, arrived...))
		if b == 31 {
			late := report(down, b, sent[5])
			late.Amends = true
			c.Add(now+ms, late)
		}
		found = append(found, c.Advance(now)...)
	}
	found = append(found, c.Flush()...)
	by := map[frame.Time]map[Cause]int{}
	for _, f := range found {
		k := f.At / (10 * ms)
		if by[k] == nil {
			by[k] = map[Cause]int{}
		}
		by[k][f.Cause]++
		if f.Seen < f.At || f.Seen > f.At+6*ms {
			t.Errorf("lost at %v, seen at %v", f.At, f.Seen)
		}
	}
	if by[1][Random] != 20 || len(by[1]) != 1 || by[2][Blackhole] != 40 || len(by[2]) != 1 || len(by[0]) != 0 || by[3][Congestion] != 100 || len(by[3]) != 1 {
		t.Errorf("causes by interval: %v", by)
	}
	s := c.Sums()[0]
	if s.Sent != 4000 || s.Lost != 20+40+100 || s.Found != s.Lost || s.Extra != 0 || s.Unknown != 0 || s.Lossy != 12 || s.Complete != 12 {
		t.Errorf("sums %+v", s)
	}
}

// A table sends five flows nowhere, which lose more in a batch than its digest can name.
// What is named of them has gaps, but no more than what is not named: it is called a blackhole.
// A full queue that takes every eighth packet of theirs is none.
func TestBlackholeThatOverfillsADigest(t *testing.T) {
	up, down := Meter{Node: 1, Port: 1}, Meter{Node: 2, Port: 0, Down: true}
	for _, every := range []int{1000, 8} {
		c := NewCollector(DefaultTiming(), ms, []Segment{{Up: []Meter{up}, Down: []Meter{down}}}, []Thresholds{DefaultThresholds(10e9)})
		sent := &Report{Meter: up, To: 10 * ms, Digest: NewDigest(DefaultShape())}
		arrived := &Report{Meter: down, To: 10 * ms, Digest: NewDigest(DefaultShape())}
		for k := 0; sent.Packets()-arrived.Packets() < 335; k++ {
			s := Fields{Src: uint32(k % 5), Dst: 9, Proto: 17, ID: uint16(k / 5), Stamp: uint16(2 * k)}.Pack()
			sent.Insert(s)
			if k%every == every-1 {
				arrived.Insert(s)
			}
		}
		c.Add(10*ms, sent)
		c.Add(12*ms, arrived)
		c.Advance(12 * ms)
		by := map[Cause]int{}
		for _, f := range c.Flush() {
			by[f.Cause]++
		}
		named := int(c.Sums()[0].Found)
		if named < 100 || named > 300 || c.Sums()[0].Lost != 335 {
			t.Fatalf("%d of %d losses are named", named, c.Sums()[0].Lost)
		}
		if every == 8 && by[Congestion] != named || every > 8 && by[Blackhole] == 0 {
			t.Errorf("one in %d passed: %v", every, by)
		}
	}
}
