// Package agent is a host as a node without I/O: a NIC (package hostnic) with
// a connection manager, so that a queue pair can be opened at an address, and
// with transfers, which open one, move messages over it and measure them.
//
//	Agent      the node: frames go to the NIC; datagrams and completions come
//	           from it (agent.go)
//	handshake  the active end of the connection manager: resolve, ask, connect (handshake.go)
//	Transfer   opens a queue pair, posts messages, closes it (transfer.go)
//	Conn       one end of a connection that a program uses (conn.go)
//	session    the passive end (session.go)
//	Watch      what acknowledgements showed on the way (watch.go)
//
// # Connection manager
//
// It is an exchange of UDP datagrams on Port at both ends, much shorter than
// that of InfiniBand's CM on QP 1 (IBTA chapter 12), whose parameters mostly
// have no meaning here:
//
//	active            passive
//	Request    ->                 queue pair, first PSN, service, formats
//	           <-      Challenge  cookie, where the Request had none
//	Request    ->                 the same with the cookie
//	           <-      Accept     queue pair, memory region
//	           <-      Reject     reason
//	   frames of the queue pairs, both ways
//	Close      ->
//	           <-      Closed     what was received, and whether it was right
//
// The active end repeats what is not answered. The passive end keeps the
// exchange by address and the active end's 64-bit number, so an answer that
// was lost is given again. There is no third step: data of the active end says
// that Accept arrived. A datagram is 88 bytes, big-endian:
//
//	 0  "gcm1"             24  payload of a full frame   48  bytes received,
//	 4  kind               28  cap, packets              56  messages received
//	 5  service            32  R_key                     64  frames not as sent
//	 6  recovery           36  class                     72  congestion control,
//	 7  telemetry          37  reason                        16 bytes, 0 after it
//	 8  number             38  UDP source port
//	16  queue pair         40  bytes of a message, of the
//	20  first PSN              region, or written to it
//
// Request and Challenge have the cookie where others have the bytes received.
//
// Numbers, keys and cookies are drawn from the seed of the NIC's configuration,
// which is random in daemons, so that those that a peer sees reveal nothing about those
// of others (hostnic.Draws). Request and Accept say from which UDP port the frames of
// their queue pair come: others are none of it, whatever number they name. Who is not
// on the way between two hosts sees none of this, and can neither open a queue pair in
// another host's name, nor slow one down, nor read memory with one that is open. Who is
// on the way can do all: there is no authentication, as there is none in RoCEv2.
package agent
