// Package crossbar is the inside of a switch with combined input and output
// queues: what arrives waits in the queue of its ingress port until a crossbar
// has carried it to the egress queue that it was forwarded to. It is the switch
// of DeTail (Zats et al., "DeTail: Reducing the Flow Completion Time Tail in
// Datacenter Networks", UCB/EECS-2012-33, section 4).
//
// Every queue is one first-in first-out list for each of eight classes. Its
// drain bytes of class p are the bytes of class p and of all classes above it:
// what a frame of class p that comes now has to wait for. Drain bytes of the
// ingress side say for which classes a neighbour should pause; those of the
// egress side say whether there is room for a frame.
//
// Where frames lie in chunks of memory these are counted beside the bytes (Chunks), so
// that small frames of one port leave room for those of others; papers count bytes
// alone.
//
// The crossbar carries one frame at a time from each ingress port and to each
// egress port, at its own rate: the speed-up times the rate of a link. A free
// egress port takes the highest class that is offered, and of equals the
// ingress port whose turn it is. An ingress port offers its highest class; where
// SkipBlocked is set and the egress queue of that frame is full, the class
// below. Inside a class nothing overtakes: there are no virtual output queues.
//
// The owner hands in what was forwarded (Arrive), takes out what has crossed
// (Next) and says what left the egress queue (Leave). Time is an argument and
// never decreases; a Crossbar is used by one goroutine.
package crossbar
