package hostnic

import (
	"math"

	"gswitch/frame"
)

// service is the purpose of a queue pair: what its frames carry, and how arriving frames
// are processed. Reliable delivery, pacing, windows and congestion control are the same
// for all. A service has all functions that its flags name and all that are not called for
// each frame, so that nobody asks which one a queue pair has.
type service struct {
	flags duties
	// messages says that it takes messages (NIC.SendMessage), the longest of so many
	// bytes, and that only the last frames of one end it (NIC.MayEnd).
	messages bool
	longest  uint64

	// receive processes a frame of the queue pair, and data one with payload, including
	// one that waited for a slow host.
	receive, data func(n *NIC, now frame.Time, r frame.Ref, m *frame.Meta, b []byte, bth int, q *queuePair)
	// prepare prepares the next packet and returns the length of its headers after the
	// BTH. write writes its frame.
	prepare func(n *NIC, q *queuePair, msg *message, seq uint64) uint32
	write   func(n *NIC, q *queuePair, r frame.Ref, m *frame.Meta, msg *message, seq uint64, payload, extra uint32)
	// retire releases what is acknowledged. The caller schedules q.
	retire func(n *NIC, now frame.Time, q *queuePair)
	// connect and close are called with the connection.
	connect func(n *NIC, q *queuePair)
	close   func(n *NIC, now frame.Time, q *queuePair)
	// exhausted processes a timeout and reports whether it ended the connection.
	exhausted func(n *NIC, now frame.Time, q *queuePair) bool
	// extension returns how many bytes of headers a packet to the queue pair has after
	// those of its opcode.
	extension func(q *queuePair, opcode byte) int
}

// duties are what a service does for each frame beyond plainService. A queue pair has a copy:
// calls of functions that do nothing made frames 3 % slower (BenchmarkNIC).
type duties uint8

const (
	receives duties = 1 << iota // service.receive processes all frames
	prepares                    // service.prepare is called
	writes                      // data frames are RDMA Writes, not Sends
)

// serve sets what a queue pair is for.
func (q *queuePair) serve(s *service) { q.service, q.duties = s, s.flags }

// plainService is a service whose frames are acknowledgements, notifications and RDMA Sends,
// and which has nothing else to do. What takes data and sends it is missing.
var plainService = service{
	connect:   func(*NIC, *queuePair) {},
	close:     func(*NIC, frame.Time, *queuePair) {},
	exhausted: func(*NIC, frame.Time, *queuePair) bool { return false },
	extension: func(*queuePair, byte) int { return 0 },
}

// The services. A queue pair's is chosen when it is opened.
var messageService, writeService, packetService, requestService, responseService service

func init() { // not where they are declared, since their functions refer to them
	// Messages (message.go), as the programs of runs and transfers send them.
	messageService = plainService
	messageService.messages, messageService.longest = true, math.MaxUint64
	messageService.data, messageService.write, messageService.retire = (*NIC).takeData, (*NIC).writeMessage, (*NIC).retireMessages
	writeService = messageService
	writeService.flags, writeService.longest, writeService.prepare = prepares|writes, maxWrite, (*NIC).prepareWrite
	// Packets of a caller (packets.go), as the transparent mode carries them.
	packetService = plainService
	packetService.data, packetService.write, packetService.retire, packetService.close = (*NIC).takeFrame, (*NIC).writeFrame, (*NIC).retireFrames, (*NIC).closeFrames
	// RDMA operations (verbs.go), and the responses to them, which are sent by a queue
	// pair without a number on the wire. Frames for either arrive on the first.
	requestService = service{flags: receives | prepares, receive: (*NIC).verb, data: (*NIC).takeVerb, prepare: (*NIC).prepareRequest, write: (*NIC).writeRequest, retire: (*NIC).retireRequests,
		connect: (*NIC).connectVerbs, close: (*NIC).closeVerbs, exhausted: (*NIC).exhaustedVerbs, extension: (*queuePair).extensionOfVerbs}
	responseService = plainService
	responseService.flags = prepares
	responseService.prepare, responseService.write, responseService.retire, responseService.exhausted = (*NIC).prepareResponse, (*NIC).writeResponse, (*NIC).retireResponses, (*NIC).exhaustedVerbs
}
