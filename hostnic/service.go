package hostnic

import "gswitch/frame"

// service is what a queue pair is for: what its frames carry, and what becomes of
// what arrives. Reliable delivery, paces, windows and congestion control are the
// same for all.
type service struct {
	// receive takes in a frame of the queue pair; nil: it is an acknowledgement, a
	// notification, or an RDMA Send. data takes in one with payload, also after it
	// waited for a slow host.
	receive, data func(n *NIC, now frame.Time, r frame.Ref, m *frame.Meta, b []byte, bth int, q *queuePair)
	// prepare readies the next packet and returns the bytes of its headers behind
	// the BTH; nil: there are none. write writes its frame.
	prepare func(n *NIC, q *queuePair, msg *message, seq uint64) uint32
	write   func(n *NIC, q *queuePair, r frame.Ref, m *frame.Meta, msg *message, seq uint64, payload, extra uint32)
	// retire lets go of what is acknowledged. The caller schedules q.
	retire func(n *NIC, now frame.Time, q *queuePair)
	// connect and close follow the connection; nil: nothing is to be done.
	connect func(n *NIC, q *queuePair)
	close   func(n *NIC, now frame.Time, q *queuePair)
	// exhausted takes a timeout and reports whether it ended the connection;
	// nil: none does.
	exhausted func(n *NIC, now frame.Time, q *queuePair) bool
}

// The services. That of a queue pair is chosen when it is opened.
var messageService, writeService, packetService, requestService, responseService service

func init() {
	// Messages (message.go), as the programs of runs and transfers send them.
	messageService = service{data: (*NIC).takeData, write: (*NIC).writeMessage, retire: (*NIC).retireMessages}
	writeService = service{data: (*NIC).takeData, prepare: (*NIC).prepareWrite, write: (*NIC).writeMessage, retire: (*NIC).retireMessages}
	// Packets of others (frames.go), as the transparent mode carries them.
	packetService = service{data: (*NIC).takeFrame, write: (*NIC).writeFrame, retire: (*NIC).retireFrames, close: (*NIC).closeFrames}
	// RDMA operations (verbs.go), and the responses to them, which are sent by a
	// queue pair without a number on the wire. What arrives for either comes by the
	// first.
	requestService = service{receive: (*NIC).verb, data: (*NIC).takeVerb, prepare: (*NIC).prepareRequest, write: (*NIC).writeVerb, retire: (*NIC).retireRequests,
		connect: (*NIC).connectVerbs, close: (*NIC).closeVerbs, exhausted: (*NIC).exhaustedVerbs}
	responseService = service{prepare: (*NIC).prepareResponse, write: (*NIC).writeVerb, retire: (*NIC).retireResponses, exhausted: (*NIC).exhaustedVerbs}
}
