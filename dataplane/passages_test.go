package dataplane

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"gswitch/frame"
	"gswitch/histogram"
)

// What two processes noted of the same frames gives how long each took, however
// many there were, at whichever of them both know.
func TestPassages(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		takes := frame.Time(rapid.Int64Range(0, 1000).Draw(t, "takes"))
		left, came := newPassages(), newPassages()
		sent, got := uint64(0), uint64(0)
		all := rapid.Uint64Range(1, 5*maxPassages).Draw(t, "frames")
		for sent < all {
			sent = min(all, sent+rapid.Uint64Range(1, 64).Draw(t, "vector"))
			left.pass(frame.Time(sent)*10, sent, 0)
		}
		for got < all { // frame n comes takes after the loop that sent it
			got++
			i := got/left.Stride - 1
			if got%left.Stride == 0 {
				came.pass(left.At[i]+takes, got, 0)
			} else {
				came.pass(0, got, 0)
			}
		}
		var h histogram.Histogram
		Transit(left, came, &h)
		if want := all / max(left.Stride, came.Stride); h.Total() != want || h.Sum != want*uint64(takes) {
			t.Fatalf("%d samples of %d ns in all; %d frames with strides %d and %d took %d each", h.Total(), h.Sum, all, left.Stride, came.Stride, takes)
		}
		if len(left.At) > maxPassages {
			t.Fatalf("%d passages are kept", len(left.At))
		}
	})
}

// Frames for a node that stood still when they were sent do not count, nor do those
// that were not noted.
func TestPassagesStill(t *testing.T) {
	left, came := newPassages(), newPassages()
	left.pass(10, 1, 0)
	left.pass(60, 2, 0)
	left.pass(70, 3, 0)
	came.pass(100, 1, 50)
	came.pass(100, 2, 50)
	var h histogram.Histogram
	Transit(left, came, &h)
	if h.Total() != 1 || h.Sum != 40 {
		t.Errorf("%d samples of %d ns, want one of 40", h.Total(), h.Sum)
	}
	Transit(&Passages{}, came, &h)
	Transit(left, &Passages{Stride: 1, At: []frame.Time{1}}, &h)
	if h.Total() != 1 {
		t.Error("what was not noted counts")
	}
}

func TestPassagesDoNotAllocate(t *testing.T) {
	p, n := newPassages(), uint64(0)
	if k := testing.AllocsPerRun(10_000, func() { n += 3; p.pass(frame.Time(n), n, 0) }); k != 0 {
		t.Errorf("%v allocations for a vector", k)
	}
}

// Time stands at 0 until the instant that was agreed on.
func TestReleaseAt(t *testing.T) {
	e, err := New(Config{Chunks: 64, Dilation: 1000, Held: true})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Stop()
	e.ReleaseAt(time.Now().Add(time.Hour))
	if now := e.Now(); now != 0 {
		t.Errorf("an hour before time begins it is %d", now)
	}
	e.ReleaseAt(time.Now()) // only the first counts
	if now := e.Now(); now != 0 {
		t.Errorf("it began at another instant: %d", now)
	}
	origin := time.Now().Add(-time.Second)
	f, err := New(Config{Chunks: 64, Dilation: 1000, Held: true})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Stop()
	f.ReleaseAt(origin) // before the engine was made: it begins when the engine does
	if now := f.Now(); now < 0 || now > frame.Time(time.Since(origin)/1000) {
		t.Errorf("it is %d", now)
	}
}
