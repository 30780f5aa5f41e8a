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
