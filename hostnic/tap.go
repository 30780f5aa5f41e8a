package hostnic

import "gswitch/frame"

// TapDrops gives the NIC the memory in which to list the frames that it drops, with
// Meta.Reason set, instead of freeing them. Frames that do not fit are freed. nil
// disables the list.
func (n *NIC) TapDrops(buf []frame.Ref) { n.dropped = buf }

// TakeDrops returns the listed frames and empties the list. The caller owns the frames;
// the slice is valid until the next call of any method.
func (n *NIC) TakeDrops() []frame.Ref {
	v := n.dropped
	n.dropped = n.dropped[:0]
	return v
}
