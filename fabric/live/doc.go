// Package live runs a network (fabric/vnet) on real frames: each link of the
// topology is a veth pair with an AF_XDP socket at both ends, the nodes are
// stepped by the workers of package dataplane. It is the other engine of
// package sim: same nodes, same configuration, same callbacks.
//
// # Time
//
// The nodes' clock is slowed by Config.Dilation, so that a machine that cannot
// forward at 100 Gb/s keeps up: rates are divided by it, times multiplied,
// bytes stay, and the dynamics are the same (time dilation: Gupta et al., "To
// Infinity and Beyond: Time-Warped Network Emulation", NSDI 2006). Nodes,
// samples and results know nothing of it.
//
// A frame is handed to the kernel when its last bit would have reached the end
// of the emulated cable, by the sender's clock; the veth itself takes some
// microseconds of real time. What follows on that instant (the next frame of a
// queue, a paced packet) counts from the schedule, not from when the worker got
// to it.
//
// Where one worker steps all nodes, time goes on in small steps while there is
// something to do, and stands while the worker is kept from its processor
// (dataplane.WorkerConfig.Step): all that a busy machine does then is that the
// run takes longer. With several workers each is late by itself, and what it
// has to send to others comes late. Either is measured, and a run whose lateness is not
// small against a round trip is not valid (Timing).
//
// # Threads
//
// All hosts and all callbacks are on one worker, switches there too or on
// workers of their own. Callbacks touch hosts only; what they want to know of
// switches elsewhere is published there (vnet.Engine.EveryOn).
package live
