// Package tcp is a byte stream between two hosts without I/O (RFC 9293): a
// connection takes segments, calls of its application and instants, and gives
// segments. It reads no clock and starts nothing by itself, so what it did can be
// done again to the bit, in virtual time and from a record.
//
//	Conn       one end of a connection
//	Segment    what is sent and received, before it is a frame
//	Control    congestion control: Reno, CUBIC, DCTCP
//
// Loss is found by selective acknowledgements and by time (RFC 6675, RFC 8985);
// windows are scaled and round trips measured by time stamps (RFC 7323); the
// receive window follows the rate at which the application reads.
package tcp
