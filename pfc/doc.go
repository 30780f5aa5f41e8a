// Package pfc is flow control on one port, both ways: it keeps what the
// neighbour asked us to pause, and asks the neighbour to pause what the
// buffer cannot take. It uses priority-based flow control (IEEE Std 802.1Q
// clause 36, first in 802.1Qbb) or the pause of the whole link (IEEE Std
// 802.3 annex 31B, "802.3x").
//
// The owner of the port hands in received frames (Receive, ReceivePause), the
// requests of the buffer (Request), which classes have frames waiting (Advance),
// and takes out frames to send (NextFrame) and what has changed for the
// scheduler (Changed, Until, Dropping). Frames to send go past all queues.
//
// # Watchdog
//
// A neighbour that pauses for ever, broken or part of a deadlock, stops a
// queue, then all that feed it. A class that has been paused without a break
// for Detect while frames of it waited is in a storm: its pause is ignored,
// or its frames are dropped, or it is only reported, until the neighbour has
// not paused it for Restore. Frames that arrive in between can make it wait
// again: storms are judged by what the neighbour requests, not by what we honour.
//
// The other way round, a neighbour that goes on after it was asked to pause is
// asked again, and in the end reported as unresponsive: see ViolationLimit.
//
// Time is an argument; a Port is used by one goroutine with time never
// decreasing.
package pfc
