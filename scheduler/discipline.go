package scheduler

import "gswitch/frame"

// Discipline is the order inside a queue, where it is not first-in first-out.
// It holds frames by reference and may use Meta.QNext, Meta.QPrev and
// Meta.Rank of those it holds; Meta.Depart is the port's (instant of
// enqueueing). The port keeps bytes, statistics and everything else, so a
// discipline is only an ordered set.
//
// Where the caller is late, the head may be a frame that was enqueued after
// the link's instant (by at most PortConfig.Burst): the port cannot know what
// order the discipline would have had then.
type Discipline interface {
	// Enqueue takes r, which arrives now.
	Enqueue(a *frame.Arena, now frame.Time, r frame.Ref)
	// Head returns the frame that Dequeue would return, or Nil if empty.
	Head() frame.Ref
	// Dequeue removes and returns Head, which leaves at the given instant:
	// the place to charge waiting time to the frame.
	Dequeue(a *frame.Arena, depart frame.Time) frame.Ref
	// Len returns the number of frames held.
	Len() int
}

// Evictor is a Discipline that can give up its least valuable frame, for
// buffers that push out.
type Evictor interface {
	// Evict removes and returns the least valuable frame, or Nil if empty.
	Evict(a *frame.Arena) frame.Ref
}

// Extractor is a Discipline that can give out a frame from its middle.
type Extractor interface {
	// ExtractFirst removes and returns the first frame in order of service
	// whose Meta.Hash is hash and for which same holds, or Nil. The hash
	// leads an indexed discipline to the flow; same tells flows apart that
	// collide.
	ExtractFirst(a *frame.Arena, hash uint32, same func(frame.Ref) bool) frame.Ref
}

// Selector chooses the queue that is served next, in place of levels and
// weights. It may read the port's queue lengths.
type Selector interface {
	// Next returns one of the queues whose bit is set in ready, which is
	// never empty: those hold a frame and may send it. The queue it names is
	// served.
	Next(p *Port, ready uint8) int
	// Sent tells that a frame of n bytes on the wire left the queue.
	Sent(p *Port, queue int, n uint32)
}
