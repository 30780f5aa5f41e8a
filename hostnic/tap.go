package hostnic

import "gswitch/frame"

// TapDrops gives the NIC the memory in which to list the frames that it drops,
// with Meta.Reason set, instead of freeing them. What does not fit is freed. nil
// ends it; nothing is listed then.
func (n *NIC) TapDrops(buf []frame.Ref) { n.dropped = buf }

// TakeDrops returns what was listed and empties the list. The frames are the
// caller's, the slice until the next call of any method.
func (n *NIC) TakeDrops() []frame.Ref {
	v := n.dropped
	n.dropped = n.dropped[:0]
	return v
}
