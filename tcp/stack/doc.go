// Package stack runs the connections of TCP that a host has, without I/O: it takes
// frames, instants and what applications write, and gives frames as its link has
// room, a segment of each connection in turn. The same code serves hosts in virtual
// time, where frames are headers with lengths, and on real links.
//
// Applications send messages over a connection, of which only the lengths are kept:
// Send at one end and Expect at the other, and both ends say when a message is
// there. What is sent waits in the connection and not in the queue of the link, as
// with the small queues of Linux, so that every segment says what is known when it
// leaves.
package stack
