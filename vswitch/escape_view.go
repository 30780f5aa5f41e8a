package vswitch

import "gswitch/escape"

// EscapeView is what one port has to do with frames that escape.
type EscapeView struct {
	Port              int
	On                bool
	Free, Kept, Taken int // places
	Parked            int // others, of frames that wait in the queue of their class
	Flows             int // that are known
	Unmarked          uint64
	escape.Counts
}

// Escape appends what the ports of this worker have to do with frames that
// escape. Like every reader of a node's state it is called between two steps
// of it.
func (n *Node) Escape(v []EscapeView) []EscapeView {
	for i := range n.ports {
		if x := n.ports[i].exit; x != nil {
			v = append(v, EscapeView{Port: i, On: x.on, Free: x.Free(), Kept: x.Kept(), Taken: x.Taken(), Parked: x.Parked(), Flows: x.Flows(), Unmarked: x.unmarked, Counts: x.Counts()})
		}
	}
	return v
}
