package replay

import (
	"sync/atomic"

	"gswitch/frame"
)

// Segment is a piece of a record.
type Segment struct {
	First, Last frame.Time // instants between which it was recorded
	Step, End   uint64     // calls before it, and at its end
	Epoch       *Epoch     // begins with it; nil: none does
	b           []byte
	rows        []byte // telemetry of frames
}

// Epoch is a part of a record that can be replayed on its own.
type Epoch struct {
	Header Header // as the node was at its beginning
	Image  []byte // of the node
}

// Feed takes segments from the recorder to the writer: the worker
// never waits. It holds a fixed number.
type Feed struct {
	free, full queue
	lost       atomic.Pointer[string]
}

// NewFeed returns a feed of n segments, at least two, for frames in chunks of so many bytes:
// behind segmentSize each has room for one more vector.
func NewFeed(n, chunk int) *Feed {
	n = max(n, 2)
	f := &Feed{free: newQueue(n), full: newQueue(n)}
	for range n {
		f.free.push(&Segment{b: make([]byte, 0, segmentSize+entryRoom+mostVector*(chunk+frameRoom)), rows: make([]byte, 0, segmentSize/2)})
	}
	return f
}

// take and give are the recorder's.
func (f *Feed) take() *Segment  { return f.free.pop() }
func (f *Feed) give(s *Segment) { f.full.push(s) }

// lose says that nothing follows what was given, and why.
func (f *Feed) lose(why string) { f.lost.Store(&why) }

// Next returns the next segment that is full, or nil, to the goroutine that
// writes them. Return gives it back.
func (f *Feed) Next() *Segment    { return f.full.pop() }
func (f *Feed) Return(s *Segment) { s.b, s.rows = s.b[:0], s.rows[:0]; f.free.push(s) }

// Lost returns why nothing follows what was given although the recording was
// not ended, or "".
func (f *Feed) Lost() string {
	if why := f.lost.Load(); why != nil {
		return *why
	}
	return ""
}

// queue is a ring from one goroutine to another. It has room for all segments
// that there are.
type queue struct {
	slots      []*Segment
	head, tail *atomic.Uint64
}

func newQueue(n int) queue {
	return queue{slots: make([]*Segment, n), head: new(atomic.Uint64), tail: new(atomic.Uint64)}
}

func (q *queue) push(s *Segment) {
	tail := q.tail.Load()
	q.slots[tail%uint64(len(q.slots))] = s
	q.tail.Store(tail + 1)
}

func (q *queue) pop() *Segment {
	head := q.head.Load()
	if head == q.tail.Load() {
		return nil
	}
	s := q.slots[head%uint64(len(q.slots))]
	q.head.Store(head + 1)
	return s
}
