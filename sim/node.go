package sim

import "gswitch/frame"

// node is what the engine keeps of a node.
type node struct {
	step  frame.Stepper
	warm  frame.Expecter // step, if it is one
	after func(now frame.Time)
	// What after will be wanted for, nil if that is not known.
	foresight Foresight
	part      int32
	ports     []int32 // direction that leaves by each port, noDir where none is connected

	timerAt     frame.Time  // when the node's timers are due; its slot may be earlier
	pausedUntil frame.Time  // the node does nothing before
	gap         frame.Time  // between two frames that a slow node takes
	takesAt     frame.Time  // when it takes the next
	clock       *Oscillator // nil: the engine's time is the node's
	dirty       bool
}

const noDir int32 = -1

func newNode(n frame.Stepper, after func(now frame.Time)) node {
	warm, _ := n.(frame.Expecter)
	return node{step: n, warm: warm, after: after, timerAt: frame.Never}
}

// dir returns the direction that leaves by a port, or noDir.
func (n *node) dir(port uint16) int32 {
	if int(port) < len(n.ports) {
		return n.ports[port]
	}
	return noDir
}

func (n *node) attach(port uint16, d int32) {
	for len(n.ports) <= int(port) {
		n.ports = append(n.ports, noDir)
	}
	n.ports[port] = d
}

// local returns the node's own time.
func (n *node) local(t frame.Time) frame.Time {
	if n.clock == nil {
		return t
	}
	return n.clock.Local(t)
}

// engine returns the first instant of the engine at which the node's own time
// is t or later.
func (n *node) engine(t frame.Time) frame.Time {
	if n.clock == nil || t == frame.Never {
		return t
	}
	return n.clock.Engine(t)
}
