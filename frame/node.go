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

	// SetLink tells that the link of a port came up or went down. Frames
	// queued for a port that goes down are dropped and counted.
	SetLink(now Time, port uint16, up bool)
}
