// Package bump is a host's bump in the wire as a node without I/O: what a
// kernel sends to hosts that have a bump too travels in channels, paced and
// limited by congestion control, and programs do not know. Everything else
// passes untouched.
//
//	port 0, outer   the link to the fabric: rate clock, pauses and queue pairs
//	                of package hostnic
//	port 1, inner   the host's kernel
//
// A frame from the kernel meets inner.go (what is it, which channel), flow.go
// (tuples), packet.go (segment size, checksum, packet too big) and the queue
// pair of its channel, whose every frame is one packet of the kernel, from its
// IP header on. At the other end outer.go gives it back to the kernel, in order
// and once. peer.go finds out who has a bump, channel.go opens and closes
// channels, message.go has their messages.
//
// # Peers
//
// The first frame to an address asks it, by a datagram to UDP port 18515 (the
// port of package agent, whose datagrams begin otherwise) with the address of
// the kernel's frame on it. Until there is an answer, and where there is none,
// frames pass untouched; a host that does not answer is asked again after a
// minute, while there is traffic. Every datagram is 112 bytes, big-endian:
//
//	 0  "gbw1"          24  number asked     64  first PSN       76  recovery
//	 4  kind            32  number answered  68  bytes that a    77  telemetry
//	 5  reason          40  channel              packet may have 78  class
//	 6  protocol        48  queue pair       72  cap, packets    80  congestion control,
//	 7  of the host     52  queue pair                               16 bytes
//	 8  incarnation     56  port             60  UDP source      96  0
//	16  and the other's 58  port                 port of frames
//
// Hello asks with a number, Welcome gives it back with one of its own, Confirm
// gives that back: only a peer that proves by a number that it is there now can make
// its incarnation known, so that datagrams of an earlier one that come late do
// nothing. With a new incarnation all channels of the old one are dropped. Each peer
// gets another incarnation of the same start: who knows that which it got
// itself cannot send in the name of another peer.
//
//	opener                        other end
//	Open       ->                 tuple, queue pair, first PSN, formats
//	           <-   Accept        queue pair
//	           <-   Refuse        reason
//	   packets, both ways
//	Close      ->                 when nothing was sent for a while
//	           <-   Closed, Busy
//	Reset      either way         a frame came for a queue pair that is not there
//
// Where both ends open a channel for the same tuple at once, that of the lower
// address stays. Numbers are drawn from the seed of the NIC's configuration, so
// it must differ from start to start. There is no authentication, as there is
// none in RoCEv2; a packet is delivered only if it is from the address at the
// other end of its channel, to the one at this end.
package bump
