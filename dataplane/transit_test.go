package dataplane

import (
	"testing"

	"gswitch/frame"
	"gswitch/histogram"
)

// A sample begins when frames leave and ends with the last of them, and one at
// a time is under way.
func TestTransit(t *testing.T) {
	var h histogram.Histogram
	tr := &transit{}
	tr.came(5, 0, 0, &h)
	tr.left(10, 3)
	tr.left(20, 4)
	tr.came(30, 2, 0, &h)
	if h.Total() != 0 {
		t.Fatal("two of three frames are no sample")
	}
	tr.came(40, 4, 0, &h)
	if h.Total() != 1 || h.Sum != 30 {
		t.Fatalf("%d samples of %d ns, want 30", h.Total(), h.Sum)
	}
	tr.came(50, 4, 0, &h)
	tr.left(60, 5)
	tr.came(100, 5, 90, &h) // its node stood still meanwhile
	tr.left(100, 6)
	tr.came(101, 6, 90, &h)
	if h.Total() != 2 || h.Sum != 31 {
		t.Errorf("%d samples of %d ns, want 2 of 31", h.Total(), h.Sum)
	}
}

// A worker that comes late to what has arrived has no timer that shows it, but
// frames take longer. Those that wait for a node that stands still do not count.
func TestMeasure(t *testing.T) {
	x := newFaultyWire(t, PortSpec{})
	if err := x.e.Measure(x.port, x.far); err != nil {
		t.Fatal(err)
	}
	send := func(n uint64, steps int, by frame.Time) {
		x.left.toSend += n
		x.run(steps, by)
	}
	send(1000, 100, frame.Microsecond)
	h := &x.w.stats.Transit
	if h.Total() == 0 || h.Sum != 1000*h.Total() {
		t.Errorf("%d samples of %d ns in all, want 1000 each", h.Total(), h.Sum)
	}
	n := h.Total()
	send(1, 2, 5*frame.Millisecond)
	if h.Total() != n+1 || h.Max != uint64(5*frame.Millisecond) || x.w.stats.Lateness.Max != 0 {
		t.Errorf("%d more samples, the longest of %d ns; lateness of timers %d", h.Total()-n, h.Max, x.w.stats.Lateness.Max)
	}
	n = h.Total()
	if err := x.e.SetLink(x.far, false); err != nil { // what it receives is lost, but has come
		t.Fatal(err)
	}
	send(3, 2, frame.Microsecond)
	if h.Total() != n+1 {
		t.Errorf("%d samples of frames that a port lost", h.Total()-n)
	}
	if err := x.e.SetLink(x.far, true); err != nil {
		t.Fatal(err)
	}
	n = h.Total()
	if err := x.e.Pause(0, x.right, x.now+frame.Second); err != nil {
		t.Fatal(err)
	}
	send(1, 1, frame.Microsecond)
	x.run(3, frame.Second)
	if h.Total() != n || x.right.received != 1002 {
		t.Errorf("%d samples of a node that stood still, %d frames", h.Total()-n, x.right.received)
	}
	send(1, 2, frame.Microsecond)
	if h.Total() != n+1 {
		t.Errorf("%d samples afterwards", h.Total()-n)
	}
}

// What has gone before it is asked for cannot be distinguished from what comes later.
func TestMeasureFromTheStart(t *testing.T) {
	x := newFaultyWire(t, PortSpec{})
	if err := x.e.Start(); err != nil {
		t.Fatal(err)
	}
	if x.e.Measure(x.port, x.far) == nil {
		t.Error("measured while frames may be under way")
	}
}
