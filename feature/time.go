package feature

// Time is what a node's synchronised clock says at an instant: the root's time lies
// between Time-Eps and Time+Eps.
type Time struct {
	Time  int64  // nanoseconds since 1970
	Eps   int64  // nanoseconds; -1: it is not known
	Drift int64  // by how many parts in 10^9 Eps grows while no message comes
	State uint8  // state of the clock, by the numbers of the feature
	Epoch uint32 // of the plan that the root announces
	Root  uint64 // identity of the root: two times can be compared if it is the same
	// SecondRoots is how many messages named another root than that, and Rival the last one
	// that was named. There must not be any.
	SecondRoots, Rival uint64
}

// Timekeeper is implemented by the State of a feature that keeps synchronised time. now
// is the node's own, in nanoseconds. Like every reader of a node's state it is called
// between two steps of it.
type Timekeeper interface {
	ReadTime(now int64) Time
}
