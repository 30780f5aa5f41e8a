package frame

// Node is a network element without I/O: a switch or a host NIC as a plain
// state machine. An engine steps it: package dataplane in real time over
// AF_XDP, package sim in virtual time, or a test. All methods are called by
// one goroutine, with now never decreasing.
type Node interface {
	// Receive hands over frames that arrived at a port, in order. The node
	// owns them from then on and frees those it drops.
	Receive(now Time, port uint16, v []Ref)

	// Transmit asks which frames leave the port now, in order. At most
	// len(out) are written to out and become the caller's. A caller that can
	// take no frame does not call: what stays inside the node queues there.
	Transmit(now Time, port uint16, out []Ref) int

	// Advance runs what is due: timers, frames from other workers, a new
	// program. The engine calls it once per loop or when Wake says so.
	Advance(now Time)

	// Wake returns the next instant at which Transmit or Advance would do
	// something although nothing is received before: now or earlier if there
	// is work already, Never if there is none.
	Wake(now Time) Time

	// SetLink says that the link of a port came up or went down. Frames
	// queued for a port that goes down are dropped and counted.
	SetLink(now Time, port uint16, up bool)
}

// Stepper is a Node that reports, port by port, what there is to do: an engine
// with hundreds of nodes in virtual time steps only the port and the timer
// that are due, not every port of a node.
type Stepper interface {
	Node

	// Touched writes to out the ports at which Transmit may give out a frame
	// earlier than PortWake last said, since something was queued on an empty
	// port, a pause ended or a control frame waits, and returns how many. It
	// forgets those it wrote; a caller with less room calls again.
	Touched(out []uint16) int

	// PortWake returns the next instant at which Transmit would give out a
	// frame at the port if nothing else happens: now or earlier if it would
	// now, Never if nothing waits or it is held back for good.
	PortWake(now Time, port uint16) Time

	// TimerWake returns the next instant at which Advance would do something
	// if nothing else happens. Wake is the least of it and every PortWake.
	TimerWake(now Time) Time
}

// Expecter is a Stepper that can ask for the memory that it will read when it
// gets a frame (see Prefetch). It changes nothing, and the bytes of the frame
// may be anything.
type Expecter interface {
	Stepper

	// Expect says that Receive will be called with r at a port.
	Expect(port uint16, r Ref)
}

// Command is what changes a node besides the methods of Node: a route, a new
// configuration, a message to send. Whoever wants one makes it, and the worker
// that steps the node carries it out between two steps.
type Command interface {
	// Do makes the change. What can be refused was refused when the command was
	// made, or is reported by a field of the command afterwards.
	Do(now Time)

	// Encode appends the command to b, in a form that stays the same from
	// version to version. The package of the node decodes it.
	Encode(b []byte) []byte
}
