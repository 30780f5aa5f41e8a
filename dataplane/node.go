package dataplane

import "gswitch/frame"

// Handoff is implemented by nodes that hand frames to nodes of other workers
// through rings of their own.
type Handoff interface {
	// Handoff returns the workers, as a bitmap of their indexes, that were
	// handed frames since the last call. Those that sleep are woken. The Wake
	// of the receiving node must return now while its rings hold frames.
	Handoff() uint64
}

// DropTap is implemented by nodes whose dropped frames can be captured. While
// it is off, which is the initial state, a drop costs the node one comparison
// of len and cap of an empty slice:
//
//	if len(s.dropped) < cap(s.dropped) {
//		a.Meta(r).Reason = reason
//		s.dropped = append(s.dropped, r)
//	} else {
//		pool.Free(r)
//	}
type DropTap interface {
	// TapDrops gives the node the memory in which to list the frames it
	// drops, with Meta.Reason set, instead of freeing them. What does not fit
	// is freed. nil ends it; nothing is listed then.
	TapDrops(buf []frame.Ref)
	// TakeDrops returns what was listed and empties the list. The frames are
	// the caller's, the slice until the next call of any method.
	TakeDrops() []frame.Ref
}

// Backpressured is implemented by nodes that do not always take what arrives.
type Backpressured interface {
	// Full reports that the node has no room for MaxVector frames: until it has,
	// what arrives waits below it, as far as the rings of its ports go. It is
	// called before each call of Receive.
	Full() bool
}

// MaxVector is how many frames a node is handed at once, at most.
const MaxVector = vector

// Flusher is implemented by nodes that hold frames outside the queues of
// their ports (frames that wait for a neighbour, rings between workers).
type Flusher interface {
	// Flush frees every frame that the node holds. The engine calls it when
	// the node is removed, after all its links went down.
	Flush(now frame.Time)
}

// Posted is implemented by nodes that programs give work to without waiting for it, such
// as the requests of RDMA. Their Wake must return now while there is some.
type Posted interface {
	// Posted returns the next piece of it, which the worker carries out before anything
	// else is asked of the node; nil if there is none. It is good until the next call.
	Posted() frame.Command
}
