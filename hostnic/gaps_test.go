package hostnic

import (
	"testing"

	"gswitch/frame"
	"gswitch/wire"
)

// grade sends host a the stages of two classes.
func (p *pair) grade(stage3, stage4 uint16) {
	f := wire.PFCFields{Src: testMAC(9), Enable: 1<<3 | 1<<4}
	f.Quanta[3], f.Quanta[4] = stage3, stage4
	b := make([]byte, wire.MinFrame)
	f.Encode(b)
	p.inject(b)
}

// TestStagesAreFollowed: in stage k the frames of a class keep to the rate of the
// link divided by 2^k, other classes take what is left, and a change counts at
// once.
func TestStagesAreFollowed(t *testing.T) {
	p := newPair(t, func(_ int, c *Config) { c.PFC, c.PFCClasses, c.PFCStages, c.AckClass = true, 1<<3|1<<4, 15, 7 })
	var sent [8][]frame.Time
	var span frame.Time
	p.seen = func(from int, m *frame.Meta, _ []byte) {
		if from == 0 {
			sent[m.Class] = append(sent[m.Class], m.Depart)
			span = max(span, frame.Time(m.Span))
		}
	}
	for _, class := range []uint8{3, 1} {
		qa, _ := p.connect(func(c *QPConfig) { c.Class, c.Transport.RTOHigh = class, 0 })
		must(t, p.a.SendMessage(0, qa, 1_000_000, 0))
	}
	expect := func(from frame.Time, gap frame.Time) {
		t.Helper()
		n := 0
		for i := 1; i < len(sent[3]); i++ {
			if sent[3][i-1] >= from {
				n++
				// Within a frame of class 1 that has just begun, and a nanosecond of each.
				if d := sent[3][i] - sent[3][i-1]; d < gap-2 || d > gap+span+1<<4 {
					t.Fatalf("%d ns after %d, want %d", d, sent[3][i-1], gap)
				}
			}
		}
		if n < 10 {
			t.Fatalf("%d frames of class 3 from %d on", n, from)
		}
	}
	p.run(2000)
	expect(0, span)
	p.grade(3, 0)
	p.run(20_000)
	expect(2100, 8*span)
	busy := len(sent[1]) + len(sent[3])
	if want := int(19_900 / span); busy < want-1 {
		t.Fatalf("%d frames in 20 us, the link has room for %d", busy, want)
	}
	p.grade(12, 0) // 340 us
	p.run(100_000)
	last := sent[3][len(sent[3])-1]
	if last > 21_000 {
		t.Fatalf("stage 12: a frame at %d", last)
	}
	p.grade(1, 0)
	p.run(110_000)
	expect(100_001, 2*span)
	if first := sent[3][len(sent[3])-1]; first < 100_000 {
		t.Fatalf("no frame after the stage fell: %d", first)
	}
	p.grade(0, 0)
	p.run(115_000)
	expect(111_000, span)
	if p.a.Paused() != 0 {
		t.Fatalf("%08b count as paused", p.a.Paused())
	}
	p.run(frame.Millisecond)
	p.drained()
}

// TestStagesOfReplies: acknowledgements of a class that is slowed are slowed
// with it, and leave in the end.
func TestStagesOfReplies(t *testing.T) {
	p := newPair(t, func(_ int, c *Config) { c.PFC, c.PFCClasses, c.PFCStages, c.AckClass = true, 1<<3|1<<4, 15, -1 })
	var acks []frame.Time
	p.seen = func(from int, m *frame.Meta, _ []byte) {
		if from == 0 {
			acks = append(acks, m.Depart)
		}
	}
	_, qb := p.connect(func(c *QPConfig) { c.Transport.RTOHigh, c.Transport.AckEvery = 0, 1 })
	p.grade(10, 0)
	must(t, p.b.SendMessage(0, qb, 10_000, 0))
	p.run(frame.Millisecond)
	if len(acks) != 10 {
		t.Fatalf("%d acknowledgements", len(acks))
	}
	for i := 1; i < len(acks); i++ {
		if d := acks[i] - acks[i-1]; d < 4000 || d > 8000 {
			t.Fatalf("acknowledgement %d came %d ns behind the last one", i, d)
		}
	}
	p.drained()
}

// TestStagesOfPlainFrames: frames without a queue pair leave by themselves when
// the gap of their class is over.
func TestStagesOfPlainFrames(t *testing.T) {
	p := newPair(t, func(_ int, c *Config) { c.PFC, c.PFCClasses, c.PFCStages = true, 1<<3|1<<4, 15 })
	var sent []frame.Time
	p.seen = func(from int, m *frame.Meta, b []byte) {
		if from == 0 && m.Class == 3 {
			sent = append(sent, m.Depart)
		}
	}
	p.grade(10, 0)
	for range 5 {
		r := p.pool.New(make([]byte, 60))
		p.pool.Meta(r).Wire, p.pool.Meta(r).Class = 1000, 3
		if !p.a.QueueFrame(p.now, r, false, 20) {
			t.Fatal("not queued")
		}
	}
	p.run(frame.Millisecond)
	if len(sent) != 5 {
		t.Fatalf("%d of 5 frames left", len(sent))
	}
	for i := 1; i < len(sent); i++ {
		if d := sent[i] - sent[i-1]; d < 81_920 || d > 82_000 { // 1000 B at 100 Gb/s / 2^10
			t.Errorf("frame %d left %d ns behind the last one", i, d)
		}
	}
}
