// Package hostnic is a host's network interface as a node without I/O: queue
// pairs that send and receive RoCEv2 frames over one port. It implements
// frame.Stepper, so the engine in virtual time, the one over AF_XDP and a test
// step it alike.
//
// # The life of a message
//
// SendMessage queues it behind the others of its queue pair (message.go), and schedule
// asks the transport which packet comes next, the window whether it fits, and the pacer
// when it may leave (send.go, pace.go). A queue pair that may send now has a bit in the
// ready set of its class; one that must wait for its pace is in the pacing wheel; all others
// are on no list, so that the cost of a frame does not depend on the number of queue
// pairs. Transmit serves flow control frames, then the classes by priority or weight,
// each with its replies first, and within a class one packet of each ready queue pair in
// turn, or as much as Config.Turn says. The header is a copy of the queue pair's template
// with a few fields patched (template.go).
//
// At the other end a data frame passes the receiver of the transport and is turned into
// its own acknowledgement (receive.go, data.go, reply.go), which echoes the telemetry
// that it carried. Back at the sender the acknowledgement goes to the transport and to
// congestion control (ack.go), whose rate and window are kept beside the queue pair.
//
// # Frames
//
// Data is RDMA Send (IBTA volume 1, chapter 9) over UDP, with telemetry between
// UDP and BTH where the queue pair asks for it. An acknowledgement is
//
//	BTH, AETH, [3+1 bytes: number of the packet that caused a NAK], [telemetry of the frame]
//
// where the third part is there only in NAKs of transports that retransmit
// selectively (IRN section 5.2; its first byte is 0). The PSN of an ACK is the last
// one received in order, that of a NAK the one missing (IBTA 9.7.5.1). A data
// frame that arrived with CE sets BECN in the next acknowledgement, or sends a
// congestion notification packet. In virtual time payload and ICRC are only
// counted in Meta.Wire. Where Config.Sizes makes frames smaller than their
// headers, seven reserved bits of the BTH carry the difference.
//
// # Feedback
//
// cc.Feedback counts payload bytes: Ack those acknowledged, SndNxt those sent
// for the first time, and the window limits those in flight. RTT is the time
// from the start of the frame's own transmission on this NIC's link to the
// arrival of the acknowledgement, so it includes the serialisation of the frame
// on the first link. Bytes is what the frame occupies there, with Overhead: an
// algorithm that wants the RTT without it takes Bytes at line rate off (TIMELY
// section 3.1). With QPConfig.Segment the sample is that of a whole segment: from
// the instant at which its pace let it go, waiting for other queue pairs of the
// NIC included, to the acknowledgement of its last frame; Bytes is the segment.
// What was sent twice gives no sample.
package hostnic
