package hull

import (
	"testing"

	"gswitch/frame"
)

// At the rate of the drain nothing is marked; at the rate of the link the queue
// grows by what the drain leaves over, and frames are marked from the threshold
// on; after a rest it is empty.
func TestPhantomMarksAboveItsDrain(t *testing.T) {
	const rate = 10_000_000_000
	p := Params{Drain: 0.8, Threshold: 6000}
	q := NewPhantom(&p, rate)
	now := frame.Time(1000)
	for i := range 1000 { // 1000 bytes each microsecond are 8 Gb/s
		if q.Depart(now, 1000) {
			t.Fatalf("frame %d is marked at the rate of the drain", i)
		}
		now += frame.Microsecond
	}
	first := 0
	for i := 1; first == 0; i++ { // each 800 ns: 10 Gb/s, 200 bytes more with each
		if q.Depart(now, 1000) {
			first = i
		}
		now += 800
	}
	if first != 32 { // the 31 before it left 31 * 200 bytes
		t.Errorf("frame %d is the first that is marked, want 32", first)
	}
	if n := q.Bytes(now); n < 6300 || n > 6500 {
		t.Errorf("the queue has %d bytes, want 6400", n)
	}
	now += 10 * frame.Microsecond
	if q.Depart(now, 1000) || q.Bytes(now) != 1000 {
		t.Errorf("after a rest the queue has %d bytes", q.Bytes(now))
	}
}

func TestParamsAreChecked(t *testing.T) {
	if p := Default(); p.Validate() != nil {
		t.Error(p.Validate())
	}
	for _, p := range []Params{{}, {Drain: 1.1, Threshold: 1}, {Drain: 0.9}, {Drain: -1, Threshold: 1000}, {Drain: 0.9, Threshold: 2 << 30}} {
		if p.Validate() == nil {
			t.Errorf("%+v is taken", p)
		}
	}
}
