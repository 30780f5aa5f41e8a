// Package live runs a network (fabric/vnet) on real frames: each link of the topology is
// a veth pair with an AF_XDP socket at both ends, and the workers of package dataplane
// step the nodes. It takes the place of package sim: same nodes, same configuration, same
// callbacks.
//
// # Time
//
// The nodes' clock is slowed by Config.Dilation, so that a machine that cannot forward at
// 100 Gb/s keeps up: rates are divided by it, times are multiplied by it, byte counts
// stay, and the dynamics are the same (time dilation: Gupta et al., "To Infinity and
// Beyond: Time-Warped Network Emulation", NSDI 2006). Nodes, samples and results are
// unaware of it.
//
// A frame is passed to the kernel when its last bit would have reached the end of the
// emulated cable, by the sender's clock. The veth itself takes some microseconds of real
// time. Whatever follows from that instant (the next frame of a queue, a paced packet) is
// timed from the schedule, not from when the worker ran.
//
// If one worker steps all nodes, time advances in small steps while there is something to
// do, and stops while the worker is preempted (dataplane.WorkerConfig.Step): a busy
// machine only makes the run take longer. With several workers each can be late on its
// own, and then sends to the others late. Both are measured, and a run whose lateness is
// not small compared with a round trip is invalid (Timing).
//
// # Threads
//
// All hosts and all callbacks are on one worker. Switches are on the same worker or on
// workers of their own. Callbacks may touch hosts only. State of switches on other
// workers is published there for them (vnet.Engine.EveryOn).
package live
