package dataplane

import "gswitch/frame"

// Handoff is implemented by nodes that pass frames to nodes of other workers through
// rings of their own.
type Handoff interface {
	// Handoff returns the workers, as a bitmap of their indexes, that were passed frames
	// since the last call. Sleeping ones are woken. The Wake of the receiving node must
	// return now while its rings hold frames.
	Handoff() uint64
}

// DropTap is implemented by nodes whose dropped frames can be captured. While it is
// disabled, which is the initial state, a drop costs the node one comparison of len and
// cap of an empty slice:
//
//	if len(s.dropped) < cap(s.dropped) {
//		a.Meta(r).Reason = reason
//		s.dropped = append(s.dropped, r)
//	} else {
//		pool.Free(r)
//	}
type DropTap interface {
	// TapDrops gives the node the memory in which to list dropped frames, with
	// Meta.Reason set, instead of freeing them. Frames that do not fit are freed. nil
	// disables the list.
	TapDrops(buf []frame.Ref)
	// TakeDrops returns the listed frames and empties the list. The caller owns the
	// frames; the slice is valid until the next call of any method.
	TakeDrops() []frame.Ref
}

// Backpressured is implemented by nodes that do not always accept arriving frames.
type Backpressured interface {
	// Full reports that the node has no room for MaxVector frames. Until it has, arriving
	// frames wait below it, as far as the rings of its ports have room. It is called
	// before each call of Receive.
	Full() bool
}

// MaxVector is the largest number of frames that a node is passed at once.
const MaxVector = vector

// Flusher is implemented by nodes that hold frames outside the queues of
// their ports (frames that wait for a neighbour, rings between workers).
type Flusher interface {
	// Flush frees every frame that the node holds. The engine calls it when
	// the node is removed, after all its links went down.
	Flush(now frame.Time)
}

// Posted is implemented by nodes to which programs give work without waiting, such as
// RDMA requests. Their Wake must return now while there is some.
type Posted interface {
	// Posted returns the next command, which the worker carries out before anything else
	// is asked of the node, or nil if there is none. It is valid until the next call.
	Posted() frame.Command
}
