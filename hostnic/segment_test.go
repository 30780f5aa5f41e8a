package hostnic

import (
	"testing"

	"gswitch/frame"
)

// With a rate of its own a segment's frames are spaced, other queue pairs send
// between them, and a flow alone does not exceed that rate.
func TestSegmentRate(t *testing.T) {
	const us = frame.Microsecond
	p := newPair(t, func(_ int, c *Config) { c.Rate, c.Payload, c.Sizes.Data, c.RTTSamples = 10e9, 940, 60, true })
	all := p.starts(900)
	slow, fast := newFixed(0.5e9), newFixed(10e9)
	qs, _ := p.connect(func(q *QPConfig) { q.CC, q.Segment, q.SegmentRate = slow.make, 4*940, 1e9 })
	must(t, p.a.SendMessage(0, qs, 8*940, 0))
	p.run(frame.Millisecond)
	// 8 us between the frames, 64 us between the segments.
	equal(t, "slow", *all, []frame.Time{0, 8 * us, 16 * us, 24 * us, 64 * us, 72 * us, 80 * us, 88 * us})

	*all = (*all)[:0]
	at := p.now
	qf, _ := p.connect(func(q *QPConfig) { q.CC, q.Segment, q.SegmentRate = fast.make, 4*940, 1e9 })
	must(t, p.a.SendMessage(at, qf, 8*940, 0))
	must(t, p.a.SendMessage(at, qs, 940, 0))
	p.run(at + frame.Millisecond)
	if n := len(*all); n != 9 || (*all)[1]-at > us || (*all)[8]-at != 56*us {
		t.Errorf("frames at %v after %v: want 8 us apart, and one between", *all, at)
	}
	// What the frames take at their own rate is taken off; with the last frame
	// at line rate that is 7.2 us more than it took.
	var out [8]RTTSample
	n := p.a.TakeRTTs(out[:])
	if n != 5 || out[0].QPN != qs || out[0].RTT != 0 || p.a.RTTs() != 0 {
		t.Errorf("%d samples: %+v", n, out[:n])
	}
}

// Samples are kept with and without congestion control; noise is for the
// latter alone, never negative and the same for the same seed.
func TestRTTSamplesAndNoise(t *testing.T) {
	rtts := func(noise frame.Time) (kept, seen []frame.Time) {
		p := newPair(t, func(_ int, c *Config) { c.RTTSamples, c.RTTNoise = true, noise })
		f := newFixed(100e9)
		qa, _ := p.connect(func(q *QPConfig) { q.CC = f.make })
		plain, _ := p.connect(func(q *QPConfig) { q.Segment = 3000 })
		must(t, p.a.SendMessage(0, qa, 50_000, 0))
		p.run(frame.Millisecond)
		var out [3]RTTSample
		for k := p.a.TakeRTTs(out[:]); k > 0; k = p.a.TakeRTTs(out[:]) {
			for _, s := range out[:k] {
				kept = append(kept, s.RTT)
			}
		}
		for _, a := range f.acks {
			seen = append(seen, a.RTT)
		}
		must(t, p.a.SendMessage(p.now, plain, 6000, 0))
		p.run(p.now + frame.Millisecond)
		if n := p.a.RTTs(); n != 2 {
			t.Errorf("%d samples of two segments without congestion control", n)
		}
		return kept, seen
	}
	kept, exact := rtts(0)
	again, noisy := rtts(10 * frame.Microsecond)
	_, repeated := rtts(10 * frame.Microsecond)
	if len(kept) != 50 || len(exact) != 50 {
		t.Fatalf("%d kept, %d seen of 50 frames", len(kept), len(exact))
	}
	equal(t, "kept with noise", again, kept)
	equal(t, "the same seed", noisy, repeated)
	sum := frame.Time(0)
	for i := range noisy {
		if d := noisy[i] - exact[i]; d < 0 || d > 10*frame.Microsecond {
			t.Fatalf("sample %d: noise of %d", i, d)
		}
		sum += noisy[i] - exact[i]
		if d := exact[i] - kept[i]; d < 84 || d > 85 {
			t.Fatalf("sample %d: %d seen, %d kept", i, exact[i], kept[i])
		}
	}
	if mean := sum / 50; mean < 3500 || mean > 6500 {
		t.Errorf("the mean noise is %d, want about half of 10 us", mean)
	}
}

// A frame's round-trip time begins with its transmission: what the NIC sent before it is
// not in it. That of a segment, be it of one frame, begins when its pace lets it go, so that
// waiting for the NIC's other queue pairs is (TIMELY section 3.2.1: the time is read just
// before the segment is posted to the NIC).
func TestRTTOfWaitingInTheNIC(t *testing.T) {
	const takes = 800 // ns of a frame on the link
	rtts := func(segment uint32) (x, y []frame.Time) {
		p := newPair(t, func(_ int, c *Config) { c.Rate, c.Payload, c.Sizes.Data = 10e9, 940, 60 })
		for _, to := range []*[]frame.Time{&x, &y} {
			f := newFixed(10e9)
			q, _ := p.connect(func(q *QPConfig) { q.CC, q.Segment = f.make, segment })
			must(t, p.a.SendMessage(0, q, 4*940, 0))
			defer func() {
				for _, a := range f.acks {
					*to = append(*to, a.RTT)
				}
			}()
		}
		p.run(frame.Millisecond)
		return
	}
	x, y := rtts(0)
	if len(x) != 4 || x[0] <= takes {
		t.Fatalf("samples of frames: %v", x)
	}
	alone := x[0]
	equal(t, "frames of the first", x, []frame.Time{alone, alone, alone, alone})
	equal(t, "frames of the second", y, x)
	// The two take turns, the second first: but for that frame each waits for one of the other.
	wait := alone + takes
	x, y = rtts(940)
	equal(t, "segments of the first", x, []frame.Time{wait, wait, wait, wait})
	equal(t, "segments of the second", y, []frame.Time{alone, wait, wait, wait})
}
