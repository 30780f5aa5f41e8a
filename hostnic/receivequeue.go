package hostnic

import "gswitch/transport"

// RecvRequest is a buffer for a Send of the remote end, or a request that a Write with
// immediate consumes.
type RecvRequest struct {
	ID    uint64
	Local []byte // nil: only Bytes counts
	Bytes uint64 // if Local is nil
}

func (w *RecvRequest) size() uint64 {
	if w.Local != nil {
		return uint64(len(w.Local))
	}
	return w.Bytes
}

// recvRing is a queue of receive work requests.
type recvRing struct {
	ring []RecvRequest
	head uint32
	n    uint32
}

func (q *recvRing) at(i uint32) *RecvRequest { return &q.ring[(q.head+i)&uint32(len(q.ring)-1)] }

func (q *recvRing) push(w RecvRequest) {
	if int(q.n) == len(q.ring) {
		ring := make([]RecvRequest, max(4, 2*len(q.ring)))
		for i := range q.n {
			ring[i] = *q.at(i)
		}
		q.ring, q.head = ring, 0
	}
	q.n++
	*q.at(q.n - 1) = w
}

func (q *recvRing) pop() RecvRequest {
	w := *q.at(0)
	*q.at(0) = RecvRequest{}
	q.head = (q.head + 1) & uint32(len(q.ring)-1)
	q.n--
	return w
}

func (q *recvRing) reset() {
	clear(q.ring)
	q.head, q.n = 0, 0
}

// SharedReceive is a receive queue that several queue pairs of a NIC share (IBTA
// 10.2.9.1).
type SharedReceive struct{ queue recvRing }

// Post adds a buffer.
func (s *SharedReceive) Post(w RecvRequest) { s.queue.push(w) }

// Len returns how many buffers wait.
func (s *SharedReceive) Len() int { return int(s.queue.n) }

// receiveQueue is the receive queue of a queue pair: its requests, numbered from 0 at
// opening, and the source of further ones.
type receiveQueue struct {
	recvRing
	base   uint64 // number of the oldest
	shared *SharedReceive
}

// get returns the request with the 24-bit number sn. With a shared queue all requests up
// to it are dequeued and become this queue pair's, in order (IRN, appendix on shared
// receive queues). It returns nil if the request is not there. wrong means that it was
// used up, or is further ahead than the missing packets before this one can account for:
// each request takes at least one, and a packet must not take what the other queue pairs
// share.
func (q *receiveQueue) get(sn uint32, missing uint64) (w *RecvRequest, wrong bool) {
	number := transport.Unwrap(q.base, sn)
	if number < q.base || number-q.base > missing {
		return nil, true
	}
	i := number - q.base
	if i >= uint64(q.n) {
		if lack := i + 1 - uint64(q.n); q.shared == nil || lack > uint64(q.shared.queue.n) {
			return nil, false
		}
		for uint64(q.n) <= i {
			q.push(q.shared.queue.pop())
		}
	}
	return q.at(uint32(i)), false
}

// oldest returns the number of the oldest request, 24 bits.
func (q *receiveQueue) oldest() uint32 { return uint32(q.base) & 0xffffff }

// expire removes the oldest request; false if there is none.
func (q *receiveQueue) expire() (RecvRequest, bool) {
	if w, _ := q.get(q.oldest(), 0); w == nil {
		return RecvRequest{}, false
	}
	q.base++
	return q.pop(), true
}
