package qcn

import (
	"bytes"
	"math"
	"testing"

	"pgregory.net/rapid"
)

// Fb = 26000 - Q - 2 (Q - Qold), of at most 130000, in 63 steps.
func TestVectors(t *testing.T) {
	for _, v := range []struct {
		old  int64
		q    uint64
		want Sample
	}{
		{0, 0, Sample{0, 26_000, 0}},
		{26_000, 26_000, Sample{0, 0, 0}},
		{0, 8_666, Sample{0, 17_334, 8_666}},          // Fb = +2
		{0, 10_000, Sample{1, 16_000, 10_000}},        // 4000 of 130000: 1.94
		{26_000, 30_000, Sample{5, -4_000, 4_000}},    // 12000: 5.8
		{30_000, 30_000, Sample{1, -4_000, 0}},        // 4000
		{60_000, 30_000, Sample{0, -4_000, -30_000}},  // falls: Fb = +56000
		{26_000, 52_000, Sample{37, -26_000, 26_000}}, // 78000: 37.8
		{0, 52_000, Sample{63, -26_000, 52_000}},      // exactly the most
		{0, 10_000_000, Sample{63, -9_974_000, 10_000_000}},
	} {
		p := Default()
		c := NewPoint(&p, 1)
		c.old = v.old
		if got := c.Judge(v.q); got != v.want {
			t.Errorf("from %d to %d: %+v, want %+v", v.old, v.q, got, v.want)
		}
	}
}

// The stronger the feedback, the closer the samples: the standard's table,
// within 15 %, and on average.
func TestIntervals(t *testing.T) {
	p := Default()
	c := NewPoint(&p, 1)
	for i, kb := range []float64{150, 75, 50, 37.5, 30, 25, 21.5, 18.5} {
		sum := 0.0
		for range 2000 {
			n := float64(c.interval(uint8(8*i + 7)))
			if sum += n; n < 850*kb-1 || n > 1150*kb {
				t.Fatalf("feedback of %d: %v bytes to the next sample, want %v KB within 15 %%", 8*i+7, n, kb)
			}
		}
		if mean := sum / 2000 / 1000; math.Abs(mean-kb) > kb/50 {
			t.Errorf("feedback of %d: %.1f KB between samples, want %v", 8*i+7, mean, kb)
		}
	}
}

// The longer the queue, the stronger the feedback; a queue at its set point
// that does not grow sends no feedback.
func TestProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := Params{SetPoint: rapid.Uint32Range(1, 1<<30).Draw(t, "set point"), Weight: rapid.Uint32Range(0, 64).Draw(t, "weight"), Sample: rapid.Uint32Range(64, 1<<30).Draw(t, "sample")}
		if err := p.Validate(); err != nil {
			t.Fatal(err)
		}
		c := NewPoint(&p, rapid.Uint64().Draw(t, "seed"))
		for _, q := range rapid.SliceOfN(rapid.Uint64(), 1, 20).Draw(t, "lengths") {
			longer := *c
			got := c.Judge(q)
			if got.Feedback > MaxFeedback || c.left <= 0 {
				t.Fatalf("feedback %d, %d bytes to the next", got.Feedback, c.left)
			}
			if more := longer.Judge(q + min(q, 1<<62)); more.Feedback < got.Feedback {
				t.Fatalf("with twice the queue feedback falls from %d to %d", got.Feedback, more.Feedback)
			}
		}
		c.old = int64(p.SetPoint)
		if got := c.Judge(uint64(p.SetPoint)); got.Feedback != 0 {
			t.Fatalf("feedback of %d at the set point", got.Feedback)
		}
	})
}

func TestMessage(t *testing.T) {
	m := Message{Point: 0x0102030405060708, Priority: 3}
	m.Set(Sample{Feedback: 37, Offset: -26_000, Delta: 1 << 40})
	b := make([]byte, 100)
	k := m.Encode(b, 253, []byte{0x45, 1})
	want := []byte{253, 0, 0, 0, 0x20, 0, 0, 0, 0, 37, 1, 2, 3, 4, 5, 6, 7, 8, 0xfe, 0x6a, 0x7f, 0xff, 0x60, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0x45, 1}
	if !bytes.Equal(b[:k], want) {
		t.Errorf("on the wire\n%x, want\n%x", b[:k], want)
	}
	var got Message
	q, err := got.Decode(b[:k+5], 253) // padded
	if err != nil || got != m || !bytes.Equal(q, []byte{0x45, 1}) {
		t.Errorf("%+v, quoting %x: %v", got, q, err)
	}
	for name, change := range map[string]func(){"type": func() { b[0] = 200 }, "code": func() { b[1] = 1 }, "version": func() { b[4] = 0x10 }, "feedback": func() { b[9] = 0 }, "reserved": func() { b[9] = 64 }, "priority": func() { b[22] |= 1 }} {
		m.Encode(b, 253, nil)
		if change(); func() error { _, err := got.Decode(b[:k], 253); return err }() != ErrForeign {
			t.Errorf("wrong %s is taken", name)
		}
	}
	m.Encode(b, 253, []byte{1, 2, 3})
	for _, k := range []int{0, 7, MessageLen - 1, MessageLen + 2} {
		if _, err := got.Decode(b[:k], 253); err != ErrShort {
			t.Errorf("%d bytes: %v", k, err)
		}
	}
}

func TestValidate(t *testing.T) {
	for _, p := range []Params{{}, {SetPoint: 1}, {SetPoint: 1, Sample: 63}, {SetPoint: 1, Sample: 100, Weight: 65}, {SetPoint: 1<<30 + 1, Sample: 100}} {
		if p.Validate() == nil {
			t.Errorf("%+v is taken", p)
		}
	}
}

func TestAllocs(t *testing.T) {
	p := Default()
	c := NewPoint(&p, 1)
	if n := testing.AllocsPerRun(1000, func() {
		if c.Arrive(1500) {
			c.Judge(100_000)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzMessage(f *testing.F) {
	b := make([]byte, 100)
	m := Message{Feedback: 1, Priority: 7}
	f.Add(b[:m.Encode(b, 253, []byte{1, 2})])
	f.Add([]byte{253, 0, 0, 0, 32, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, in []byte) {
		var m Message
		quote, err := m.Decode(in, 253)
		if err != nil {
			return
		}
		out := make([]byte, len(in))
		k := m.Encode(out, 253, quote)
		copy(in[2:4], []byte{0, 0})
		copy(in[24:30], make([]byte, 6))
		if !bytes.Equal(in[:k], out[:k]) {
			t.Errorf("%x became %x", in[:k], out[:k])
		}
	})
}

func BenchmarkPoint(b *testing.B) {
	p := Default()
	c := NewPoint(&p, 1)
	for b.Loop() {
		if c.Arrive(1000) {
			c.Judge(30_000)
		}
	}
}
