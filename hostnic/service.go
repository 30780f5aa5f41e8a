package hostnic

import "gswitch/frame"

// service is the purpose of a queue pair: what its frames carry, and how arriving frames
// are processed. Reliable delivery, pacing, windows and congestion control are the same
// for all.
type service struct {
	// receive processes a frame of the queue pair; nil: frames are acknowledgements,
	// notifications, or RDMA Sends. data processes a frame with payload, including one
	// that waited for a slow host.
	receive, data func(n *NIC, now frame.Time, r frame.Ref, m *frame.Meta, b []byte, bth int, q *queuePair)
	// prepare prepares the next packet and returns the length of its headers after the
	// BTH; nil: none. write writes its frame.
	prepare func(n *NIC, q *queuePair, msg *message, seq uint64) uint32
	write   func(n *NIC, q *queuePair, r frame.Ref, m *frame.Meta, msg *message, seq uint64, payload, extra uint32)
	// retire releases what is acknowledged. The caller schedules q.
	retire func(n *NIC, now frame.Time, q *queuePair)
	// connect and close are called with the connection; nil: nothing to do.
	connect func(n *NIC, q *queuePair)
	close   func(n *NIC, now frame.Time, q *queuePair)
	// exhausted processes a timeout and reports whether it ended the connection; nil:
	// timeouts never do.
	exhausted func(n *NIC, now frame.Time, q *queuePair) bool
}

// The services. A queue pair's is chosen when it is opened.
var messageService, writeService, packetService, requestService, responseService service

func init() { // not where they are declared, since their functions refer to them
	// Messages (message.go), as the programs of runs and transfers send them.
	messageService = service{data: (*NIC).takeData, write: (*NIC).writeMessage, retire: (*NIC).retireMessages}
	writeService = service{data: (*NIC).takeData, prepare: (*NIC).prepareWrite, write: (*NIC).writeMessage, retire: (*NIC).retireMessages}
	// Packets of a caller (packets.go), as the transparent mode carries them.
	packetService = service{data: (*NIC).takeFrame, write: (*NIC).writeFrame, retire: (*NIC).retireFrames, close: (*NIC).closeFrames}
	// RDMA operations (verbs.go), and the responses to them, which are sent by a queue
	// pair without a number on the wire. Frames for either arrive on the first.
	requestService = service{receive: (*NIC).verb, data: (*NIC).takeVerb, prepare: (*NIC).prepareRequest, write: (*NIC).writeVerb, retire: (*NIC).retireRequests,
		connect: (*NIC).connectVerbs, close: (*NIC).closeVerbs, exhausted: (*NIC).exhaustedVerbs}
	responseService = service{prepare: (*NIC).prepareResponse, write: (*NIC).writeVerb, retire: (*NIC).retireResponses, exhausted: (*NIC).exhaustedVerbs}
}
