package rocc

import (
	"bytes"
	"gswitch/notice"
	"math"
	"testing"

	"pgregory.net/rapid"

	"gswitch/frame"
)

func someReading() Reading {
	r := Reading{Stretch: 2, Class: 3, Port: 0x0102, Switch: 77, Queue: 163_154, Before: 150_000, Sequence: 9, Params: For(40e9)}
	r.Params.Period = 0
	r.Params.Alpha = 19661.0 / 65536 // 0.3 as it travels
	return r
}

func TestReading(t *testing.T) {
	n := someReading()
	b := make([]byte, 200)
	quote := []byte{0x45, 1, 2, 3}
	k := n.Encode(b, notice.Type4, quote)
	want := []byte{253, 1, 0, 0, 0x12, 3, 1, 2, 0, 0, 0, 77, 0, 2, 0x7d, 0x52, 0, 2, 0x49, 0xf0, 0, 0, 0, 9, 0, 0, 2, 0x58, 0, 0x98, 0x96, 0x80, 0, 0, 0, 10, 0, 0, 0x0f, 0xa0,
		0, 2, 0x49, 0xf0, 0, 4, 0x93, 0xe0, 0, 5, 0x7e, 0x40, 0, 0, 0x4c, 0xcd, 0, 1, 0x80, 0, 0, 0, 0, 0, 0x45, 1, 2, 3}
	if !bytes.Equal(b[:k], want) {
		t.Errorf("on the wire\n%x, want\n%x", b[:k], want)
	}
	var got Reading
	q, err := got.Decode(b[:k], notice.Type4)
	if err != nil || got != n || !bytes.Equal(q, quote) || got.Point() != 77<<32|0x102<<8|3 {
		t.Errorf("%+v, quoting %x: %v", got, q, err)
	}
	var rate Notice
	if _, err := rate.Decode(b[:k], notice.Type4); err != ErrForeign {
		t.Errorf("a reading is taken for a rate: %v", err)
	}
	refuses(t, &got, b[:k], ReadingLen, map[string]func(b []byte){"type": func(b []byte) { b[0] = 200 }, "code": func(b []byte) { b[1] = 0 }, "version": func(b []byte) { b[4] = 0x20 }, "class": func(b []byte) { b[5] = 8 },
		"unit": func(b []byte) { clear(b[24:28]) }, "order": func(b []byte) { clear(b[48:52]) }, "gain": func(b []byte) { clear(b[52:56]) }, "cut": func(b []byte) { b[60] = 3 }, "regions": func(b []byte) { b[61] = 17 }, "rest": func(b []byte) { b[63] = 1 }})
}

// A host that gets every reading computes what the switch would have.
func TestFollowerIsTheController(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		r := someReading()
		r.Sequence = rapid.Uint32().Draw(rt, "sequence")
		p := r.Params
		p.Period = 1
		c := NewController(&p)
		var f Followers
		before := uint32(0)
		for _, q := range rapid.SliceOfN(rapid.Uint32Range(0, 1<<20), 1, 60).Draw(rt, "lengths") {
			r.Sequence, r.Queue, r.Before = r.Sequence+1, q, before
			c.Update(uint64(q))
			for range rapid.IntRange(1, 3).Draw(rt, "flows of the host") {
				if got := f.Take(1, &r); got != float64(c.Rate()) {
					rt.Fatalf("%v, at the switch %v", got, c.Rate())
				}
			}
			before = q
		}
	})
}

// A reading that comes late, or twice, changes nothing; missed ones are made
// up for with what is known of them: one is exact.
func TestFollowerMisses(t *testing.T) {
	r := someReading()
	var all, some Follower
	lengths := []uint32{0, 100_000, 200_000, 260_000, 240_000, 200_000, 180_000}
	before := uint32(0)
	for i, q := range lengths {
		r.Sequence, r.Queue, r.Before = uint32(i+1), q, before
		want := all.Take(&r)
		if i%2 == 0 {
			if got := some.Take(&r); got != want {
				t.Errorf("update %d: %v, of one that misses none %v", i, got, want)
			}
		}
		before = q
	}
	rate := some.Take(&r)
	if r.Sequence--; some.Take(&r) != rate {
		t.Error("an old reading is taken")
	}
	// The point began anew, far below.
	r.Sequence, r.Queue, r.Before = 1, 0, 0
	some.last = 1 << 20
	some.Take(&r)
	if some.last != 1 {
		t.Error("a point that began anew is not followed")
	}
	// After a long gap the work is bounded.
	r.Sequence += 1 << 30
	if got := some.Take(&r); math.IsNaN(got) || some.last != r.Sequence {
		t.Error("a gap is not taken")
	}
}

// More points than there is memory for: the ones that send are followed.
func TestFollowersForget(t *testing.T) {
	var f Followers
	r := someReading()
	for i := range uint32(10_000) {
		r.Switch, r.Sequence, r.Queue, r.Before = i, 1, 0, 0
		f.Take(frame.Time(i), &r)
	}
	r.Sequence, r.Queue = 2, 250_000 // the last of them
	if got := f.Take(10_000, &r); got >= 40e9 {
		t.Errorf("%v", got)
	}
	if n := testing.AllocsPerRun(100, func() { r.Sequence++; r.Switch += 7; f.Take(1, &r) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzReading(f *testing.F) {
	b := make([]byte, 100)
	n := someReading()
	f.Add(b[:n.Encode(b, notice.Type4, []byte{1, 2})])
	f.Add([]byte{253, 1, 0, 0, 16, 0, 0})
	f.Fuzz(func(t *testing.T, in []byte) {
		var n Reading
		if !comesBack(t, &n, in) {
			return
		}
		var fs Followers
		for range 3 {
			if rate := fs.Take(1, &n); !(rate > 0) || math.IsInf(rate, 0) {
				t.Errorf("a rate of %v", rate)
			}
			n.Sequence += 5
		}
	})
}
