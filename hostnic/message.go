package hostnic

import (
	"fmt"

	"gswitch/frame"
)

// Op is the kind of a completion.
type Op uint8

const (
	SendDone  Op = iota // a message of ours has been acknowledged completely
	RecvDone            // a message has arrived completely
	WriteDone           // RDMA operations of ours are done
	ReadDone
	AtomicDone
)

// String returns the name of the operation.
func (o Op) String() string {
	switch o {
	case SendDone:
		return "send"
	case RecvDone:
		return "recv"
	case WriteDone:
		return "write"
	case ReadDone:
		return "read"
	case AtomicDone:
		return "atomic"
	}
	return "unknown"
}

// Status says how an operation ended.
type Status uint8

const (
	StatusOK       Status = iota
	StatusFlushed         // the queue pair was closed before the end
	StatusRemote          // the other end refused the access to its memory
	StatusInvalid         // the other end refused the request as invalid
	StatusNotReady        // the other end had no receive request, too many times
	StatusRetries         // no answer, too many times
)

// Completion reports the end of an operation.
type Completion struct {
	Op  Op
	QPN uint32
	// ID is chosen by the caller; for RecvDone it numbers the messages that the queue
	// pair received, from 0.
	ID    uint64
	Bytes uint64 // payload
	// Start is when the message was posted, and End when the last acknowledgement
	// arrived; for RecvDone, when the first frame of the message arrived in sequence and
	// when its last byte did.
	Start, End    frame.Time
	Retransmitted uint32 // frames of the request sent again; for our operations
	Timeouts      uint32 // while its packets were the oldest in flight; for our Sends
	Status        Status

	Imm    uint32 // of RecvDone: immediate data
	HasImm bool
	Write  bool // of RecvDone: a Write with immediate, not a Send
}

// message is a message that is posted and not completely acknowledged.
type message struct {
	id         uint64
	bytes      uint64
	first, end uint64 // its packets are [first, end)
	lastLen    uint32 // payload of the last packet
	rtx        uint32
	timeouts   uint32
	start      frame.Time
	data       []byte // to be sent; nil: zeros
}

// messages is a ring of messages in the order of their packets.
type messages struct {
	ring []message
	head uint32
	n    uint32
	cur  uint32 // offset from head of the one that was looked up last
}

func (m *messages) at(i uint32) *message { return &m.ring[(m.head+i)&uint32(len(m.ring)-1)] }

func (m *messages) push() *message {
	if int(m.n) == len(m.ring) {
		ring := make([]message, max(4, 2*len(m.ring)))
		for i := uint32(0); i < m.n; i++ {
			ring[i] = *m.at(i)
		}
		m.ring, m.head = ring, 0
	}
	m.n++
	return m.at(m.n - 1)
}

func (m *messages) pop() {
	m.at(0).data = nil
	m.head = (m.head + 1) & uint32(len(m.ring)-1)
	m.n--
	if m.cur > 0 {
		m.cur--
	}
}

func (m *messages) reset() {
	for m.n > 0 {
		m.pop()
	}
	m.head, m.cur = 0, 0
}

// find returns the message of a packet that is posted and not acknowledged.
func (m *messages) find(seq uint64) *message {
	if c := m.at(m.cur); m.cur < m.n && c.first <= seq && seq < c.end {
		return c
	}
	if m.cur+1 < m.n { // usually the next one
		if c := m.at(m.cur + 1); c.first <= seq && seq < c.end {
			m.cur++
			return c
		}
	}
	lo, hi := uint32(0), m.n-1
	for lo < hi {
		if mid := (lo + hi) / 2; m.at(mid).end <= seq {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	m.cur = lo
	return m.at(lo)
}

// maxWrite is the length of the longest RDMA Write (IBTA 9.3.3).
const maxWrite = 1 << 31

// maxPackets bounds the packets of a message, 8 TiB of 4096 bytes each: 32 bits count them
// (Completion.Retransmitted, Waiting.Left), and no sum of their bytes overflows. The 24
// bits of a PSN are no bound: packets are numbered in 64 bits, of which the low 24 travel,
// and at most transport.MaxFlight are in flight.
const maxPackets = 1 << 31

// SendMessage posts a message on a queue pair: an RDMA Send of up to 2^31 packets, also of
// 0 bytes, or with QPConfig.Writes an RDMA Write of at most 2 GiB. A completion with the given id
// reports its end.
func (n *NIC) SendMessage(now frame.Time, qpn uint32, bytes uint64, id uint64) error {
	return n.post(now, qpn, bytes, nil, id)
}

// SendBytes is SendMessage with the given bytes, which must not change until the
// completion. In virtual time only their number matters.
func (n *NIC) SendBytes(now frame.Time, qpn uint32, data []byte, id uint64) error {
	return n.post(now, qpn, uint64(len(data)), data, id)
}

func (n *NIC) post(now frame.Time, qpn uint32, bytes uint64, data []byte, id uint64) error {
	q, why := n.lookup(qpn)
	if why != frame.Keep {
		return fmt.Errorf("nic %s: there is no queue pair %#x: %v", n.cfg.Name, qpn, why)
	}
	if !q.service.messages {
		return fmt.Errorf("nic %s: queue pair %#x is not for messages", n.cfg.Name, qpn)
	}
	if bytes >= maxPackets*uint64(n.cfg.Payload) {
		return fmt.Errorf("nic %s: a message of %d bytes is too long", n.cfg.Name, bytes)
	}
	if bytes > q.service.longest {
		return fmt.Errorf("nic %s: an RDMA Write of %d bytes is longer than 2 GiB", n.cfg.Name, bytes)
	}
	m := q.msgs.push()
	mtu := uint64(n.cfg.Payload)
	packets := max(1, (bytes+mtu-1)/mtu)
	*m = message{id: id, bytes: bytes, first: q.posted, end: q.posted + packets,
		lastLen: uint32(bytes - (packets-1)*mtu), start: now, data: data}
	q.posted = m.end
	q.tx.Posted(m.first, m.end)
	n.schedule(now, q)
	return nil
}

// TakeCompletions moves up to len(out) completions to out, oldest first, and
// returns how many.
func (n *NIC) TakeCompletions(out []Completion) int {
	k := copy(out, n.done[n.doneHead:])
	// Move what is left to the front once it is the smaller part: the list must not grow
	// if the caller never takes all.
	if n.doneHead += k; 2*n.doneHead >= len(n.done) {
		n.done, n.doneHead = n.done[:copy(n.done, n.done[n.doneHead:])], 0
	}
	return k
}

// Completed returns how many completions wait to be taken.
func (n *NIC) Completed() int { return len(n.done) - n.doneHead }

// retireMessages completes the messages that are acknowledged to their end.
func (n *NIC) retireMessages(now frame.Time, q *queuePair) {
	for cum := q.tx.Cum(); q.msgs.n > 0; {
		m := q.msgs.at(0)
		if m.end > cum {
			return
		}
		n.count.MessagesSent++
		n.done = append(n.done, Completion{Op: SendDone, QPN: q.qpn, ID: m.id, Bytes: m.bytes, Start: m.start, End: now, Retransmitted: m.rtx, Timeouts: m.timeouts})
		q.msgs.pop()
	}
}
