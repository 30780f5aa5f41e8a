// Package escape lets frames out of queues that priority flow control has
// stopped, where the next queue of their flow is open: Escape (Menikkumbura,
// "Congestion Management in Data Center Networks", Purdue 2022, chapter 4).
//
// A switch that has paused a neighbour sends it tokens, each for one frame of
// a flow whose way on is open. The neighbour takes the first frame of that flow
// out of its paused queue, wherever in it that stands, marks it and sends it
// past the pause. If it has none it passes the token on, against the direction
// of the flow. Each switch that a token passes keeps a place in its escape
// queue for the frame, so none is lost. A circle of queues that wait for each
// other, a deadlock, thus dissolves.
//
//	Egress  of one egress port: its places, the last flows that left by it, and
//	        what becomes of tokens and of frames that escape
//
// The switch, package vswitch, moves the frames and the tokens; nothing here
// knows about queues. Times are arguments; nothing allocates per frame.
package escape
