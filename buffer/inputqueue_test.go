package buffer

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"gswitch/frame"
)

// detail is the link of the DeTail report, section 4.2: 1 Gb/s, frames of 1530
// bytes, 0.476 us of cable, 5 us of transceivers, two quanta to react.
var detail = Link{Rate: 1e9, Delay: 5476, MaxFrame: 1530, Response: 1024}

// The thresholds that the report prints, what its formula gives, and the
// highest one that holds for whole frames.
func TestInputQueueVectors(t *testing.T) {
	got, err := InputQueue{Size: 131072, Classes: 8, Link: detail}.Thresholds()
	if err != nil {
		t.Fatal(err)
	}
	if got.Skid != 4557 || got.PauseMax != 11827 || got.Unpause != 4557 || got.Pause != 8192 || got.FrameSafe != 10297 {
		t.Fatalf("%+v", got)
	}
	if got.Safe != 10297-pfcFrame || got.Peak != 114232 || got.Frame != 1530 || got.Hold != 1530 {
		t.Fatalf("%+v", got)
	}

	// Two classes in software: batches of 6 KiB at both ends.
	got, err = InputQueue{Size: 131072, Classes: 2, Link: detail, Batch: 6144}.Thresholds()
	if err != nil {
		t.Fatal(err)
	}
	if got.Skid != 13785 || got.PauseMax != 51751 || got.Unpause != 13785 || got.Pause != 32768 {
		t.Fatalf("%+v", got)
	}
}

// What arrives in the worst case at a threshold: classes reach it in ascending
// order, each stops a byte below it, gets a full frame, then the skid. In
// descending order the highest class holds all below it back.
func TestInputQueueWorstCase(t *testing.T) {
	q := InputQueue{Size: 131072, Classes: 8, Link: detail}
	th, err := q.Thresholds()
	if err != nil {
		t.Fatal(err)
	}
	worst := func(at uint64) uint64 { return q.Classes * (at - 1 + th.Frame + th.Skid) }
	for _, v := range []struct{ at, want uint64 }{{8192, 114224}, {11827, 143304}, {10297, 131064}} {
		if got := worst(v.at); got != v.want {
			t.Errorf("at %d: %d, not %d", v.at, got, v.want)
		}
	}
	if got := 8192 - 1 + th.Frame + th.Skid; got != 14278 {
		t.Errorf("descending: %d", got)
	}
}

func TestInputQueueCheck(t *testing.T) {
	q := InputQueue{Size: 131072, Classes: 8, Link: detail}
	for _, v := range []struct {
		pause, unpause uint64
		want           string
	}{
		{8192, 4557, ""},
		{10213, 4557, ""},
		{10214, 4557, "at most 10213 B, and 8192 B is usual"},
		{11827, 4557, "is not safe"},
		{8192, 8192, "cannot end at 8192 B"},
	} {
		err := q.Check(v.pause, v.unpause)
		if (err == nil) != (v.want == "") || err != nil && !strings.Contains(err.Error(), v.want) {
			t.Errorf("%d, %d: %v", v.pause, v.unpause, err)
		}
	}
	for _, batch := range []uint64{1 << 35, 1 << 63, 1<<64 - 1} {
		q.Batch = batch
		if err := q.Check(8192, 4557); err == nil || !strings.Contains(err.Error(), "more than any queue holds") {
			t.Errorf("batch %d: %v", batch, err)
		}
	}
	q.Batch = 0
	q.Size = 30000
	if err := q.Check(1000, 500); err == nil || !strings.Contains(err.Error(), "at least 49376 B") {
		t.Error(err)
	}
	if _, err := (InputQueue{Size: 49376, Classes: 8, Link: detail}).Thresholds(); err != nil {
		t.Error(err)
	}
}

// Whatever the link: the named threshold never loses, one byte more might, and
// from Enough on the queue does not run dry either.
func TestInputQueueProperties(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		q := InputQueue{
			Size: rapid.Uint64Range(1, 1<<26).Draw(r, "size"), Classes: rapid.Uint64Range(1, 8).Draw(r, "classes"),
			Link: Link{Rate: rapid.Uint64Range(1e6, 800e9).Draw(r, "rate"), Delay: rapidTime(r, "delay"), Response: rapidTime(r, "response"),
				MaxFrame: rapid.Uint32Range(64, 9234).Draw(r, "frame"), Overhead: rapid.SampledFrom([]uint32{0, 24}).Draw(r, "overhead")},
			Batch: rapid.Uint64Range(0, 1<<16).Draw(r, "batch"),
		}
		th, err := q.Thresholds()
		if err != nil {
			return
		}
		need := func(at uint64) uint64 { return q.Classes * (at + th.Frame + th.Skid + pfcFrame) }
		if need(uint64(th.Safe)) > q.Size || need(uint64(th.Safe)+1) <= q.Size {
			r.Fatalf("%+v of %+v", th, q)
		}
		if th.Pause > uint64(th.Safe) || th.Unpause > th.Pause {
			r.Fatalf("%+v of %+v", th, q)
		}
		if q.Size >= th.Enough && th.Safe < int64(th.Skid) {
			r.Fatalf("enough is not: %+v of %+v", th, q)
		}
	})
}

func rapidTime(r *rapid.T, name string) frame.Time {
	return frame.Time(rapid.Int64Range(0, int64(100*frame.Microsecond)).Draw(r, name))
}
