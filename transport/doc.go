// Package transport is reliable delivery for the host NIC, in packet sequence
// space: what to send next, what an acknowledgement means, what to answer.
//
//	Sender    one direction of a queue pair at its source: which packet may
//	          leave now, what an ACK or NAK does, the retransmission timer.
//	Receiver  the same direction at its sink: is a packet new, is it placed,
//	          what is answered, how many messages became complete.
//
// Both are plain state machines over numbers. Bytes, headers, queue pairs and
// congestion control are the NIC's; a Kind says how losses are repaired:
// go-back-N as RoCE NICs do it, IRN (Mittal et al., "Revisiting Network
// Support for RDMA", SIGCOMM 2018) with its ablations, or TCP's SACK recovery
// (RFC 6675, RFC 6298) as iWARP uses it.
//
// Sequence numbers are uint64 and count packets since the direction opened;
// on the wire travel the low 24 bits, and Unwrap brings them back. "Cum" is
// always the next packet that the receiver expects, in ACK and NAK alike.
package transport
