package capture

import (
	"sync/atomic"

	"gswitch/frame"
)

// Tap is one worker's share of a Session: the worker offers it vectors, it
// copies what the filter selects into its own Ring. A nil *Tap is off; the
// worker checks that once per vector.
type Tap struct {
	ring    *Ring
	filter  *Filter // nil: everything
	snap    int
	scratch []byte // for frames of several chunks

	captured atomic.Uint64 // written by the worker only
	dropped  atomic.Uint64
}

// Frames offers the frames of v, which went through iface in direction dir.
// It neither keeps nor changes them. For DirDrop the reason is taken from
// each frame's Meta.
func (t *Tap) Frames(now frame.Time, a *frame.Arena, iface uint32, dir Dir, v []frame.Ref) {
	for _, r := range v {
		m := a.Meta(r)
		b := a.Bytes(r)
		if m.Next != frame.Nil {
			b = t.gather(a, r)
		}
		if t.filter != nil && !t.filter.Match(b, int(m.Wire)) {
			continue
		}
		rec := Record{Time: int64(now), Iface: iface, Wire: m.Wire, Dir: dir}
		if dir == DirDrop {
			rec.Reason = m.Reason
		}
		// One writer: plain arithmetic, published for the readers.
		if t.ring.Put(rec, b[:min(len(b), t.snap)]) {
			t.captured.Store(t.captured.Load() + 1)
		} else {
			t.dropped.Store(t.dropped.Load() + 1)
		}
	}
}

// gather copies the chunks of r, up to the snap length, into one piece.
func (t *Tap) gather(a *frame.Arena, r frame.Ref) []byte {
	b := t.scratch[:0]
	for ; r != frame.Nil && len(b) < cap(b); r = a.Meta(r).Next {
		c := a.Bytes(r)
		b = append(b, c[:min(len(c), cap(b)-len(b))]...)
	}
	return b
}

// Room reports whether the ring takes n frames of any length now. The worker
// asks where a frame must not be lost to the capture.
func (t *Tap) Room(n int) bool {
	// One more, for what is skipped at the end of the buffer.
	need := uint64(n+1) * uint64(t.snap+recordHeader+8)
	return t.ring.space(need) >= need
}
