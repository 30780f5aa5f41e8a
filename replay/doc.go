// Package replay records what a node is given and replays it, to the bit.
//
// A node (package frame) does no I/O: what it does follows from the calls of its
// methods, from commands, and from which of its allocations failed. A Recorder
// stands in the place of a node and notes all of that; a Player makes the same
// node anew and gives it the same, in virtual time. Both take a rolling hash
// of what the node sends, so that a replay that is not the run that was
// recorded stops, and says where. The idea is that of DETER (Li et al., NSDI 2019):
// record what is not determined, and replay the code.
//
// # What is recorded
//
// Of a frame its headers: a player fills in zeros for the payload, which no
// switch reads. TCP and UDP checksums, which are over it, are left out with it.
// Frames are coded as the difference to what their flow lets expect (flow.go):
// of bulk traffic a frame costs less than a byte.
//
// Of calls, those that change something. Advance before the instant that
// the node itself named (Stepper.TimerWake) does nothing, nor does Transmit at a
// port that has nothing (Stepper.PortWake): package sim never makes such calls,
// an engine that polls makes millions. The last Advance before a call that is
// noted is, since it gives the node the time.
//
// # What is not
//
// A node of a switch with several workers reads what other workers write: it
// cannot be recorded so, and who makes a Recorder refuses that.
//
// # Files
//
// A file is a header and segments (file.go): each compressed and with a
// checksum, so that a file that was cut off opens up to its last whole segment.
package replay
