package scheduler

import "gswitch/frame"

// Discipline is a queue that is not simply first-in first-out. It holds frames
// by reference and may use Meta.QNext, Meta.QPrev and Meta.Rank of those it
// holds; Meta.Depart is the port's (instant of enqueueing). The port keeps
// bytes, statistics and everything else, so a discipline is only an ordered set.
//
// A frame enters when the instant has come at which the port must choose: where
// the caller is late, frames that arrived after the link's instant do not compete
// for it. One that is a Gate or Timed, or was made elsewhere, takes frames
// at once, and then the head may have arrived after the instant at which it leaves
// (by at most PortConfig.Burst).
type Discipline interface {
	// Enqueue takes r, which arrived at now.
	Enqueue(a *frame.Arena, now frame.Time, r frame.Ref)
	// Head returns the frame that Dequeue would return, or Nil if empty.
	Head() frame.Ref
	// Dequeue removes and returns Head, which leaves at the given instant:
	// the place to charge waiting time to the frame.
	Dequeue(a *frame.Arena, depart frame.Time) frame.Ref
	// Len returns the number of frames held.
	Len() int
	// Each calls visit with the frames until it returns false.
	Each(a *frame.Arena, visit func(frame.Ref) bool)
}

// Timed is a Discipline whose head is held back.
type Timed interface {
	// HeadAt returns the instant from which on Head may leave.
	HeadAt() frame.Time
}

// Evictor is a Discipline that can evict its least valuable frame, for
// buffers that push out.
type Evictor interface {
	// Evict removes and returns the least valuable frame, or Nil if empty.
	Evict(a *frame.Arena) frame.Ref
}

// PushOuter is a Discipline that says by itself which frames go when one has come:
// they are in none of its queues any more.
type PushOuter interface {
	// PushedOut returns a frame that was pushed out for one that came, or Nil if there
	// is none: each of them once.
	PushedOut() frame.Ref
}

// Spanner is a PushOuter whose frames share memory with those of other ports, one of
// which may have to drop a frame for one that came here.
type Spanner interface {
	// PushedElsewhere returns a frame that waits at another port in the port's own
	// account and was pushed out, or Nil if there is none: each of them until its port
	// was asked by PushOut.
	PushedElsewhere() frame.Ref
}

// Extractor is a Discipline that can give out a frame from its middle.
type Extractor interface {
	// ExtractFirst removes and returns the first frame in order of service
	// whose Meta.Hash is hash and for which same holds, or Nil. The hash
	// leads an indexed discipline to the flow; same distinguishes flows that
	// collide.
	ExtractFirst(a *frame.Arena, hash uint32, same func(frame.Ref) bool) frame.Ref
}
