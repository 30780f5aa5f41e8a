package replay

import (
	"bytes"
	"testing"

	"gswitch/frame"
)

// grab is a command that takes chunks, as many as there are.
type grab struct {
	pool *frame.Pool
	n    int
}

func (g grab) Encode(b []byte) []byte { return append(b, byte(g.n)) }

func (g grab) Do(frame.Time) {
	for range g.n {
		g.pool.Alloc()
	}
}

// Two nodes of a worker share its chunks, and both are recorded. The record of one ends, and
// the node goes on; the record of the other has still which allocations failed.
func TestRecordersShareAPool(t *testing.T) {
	pool := frame.NewPool(frame.MustArena(1, 2048, frame.DefaultHeadroom))
	var recs [2]*Recorder
	for i := range recs {
		var err error
		if recs[i], err = NewRecorder(1, nil, pool, NewFeed(2, 2048)); err != nil {
			t.Fatal(err)
		}
	}
	notes := func(i int, first, n byte) {
		t.Helper()
		if want := []byte{missTag, 1, first, n}; !bytes.HasSuffix(recs[i].b, want) {
			t.Errorf("the record of node %d ends with % x, not with the allocations that failed: % x", i, recs[i].b, want)
		}
	}
	recs[0].Command(2, grab{pool, 3})
	notes(0, 2, 2)
	recs[1].Command(3, grab{pool, 4})
	notes(1, 1, 4)
	recs[0].End(4)
	recs[1].Command(5, grab{pool, 5})
	notes(1, 1, 5)
	recs[0].Command(6, grab{pool, 6}) // what is not recorded any more
	recs[1].Command(7, grab{pool, 7})
	notes(1, 1, 7)
}
