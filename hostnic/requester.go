package hostnic

import (
	"encoding/binary"
	"fmt"

	"gswitch/frame"
	"gswitch/wire"
)

// Verb is an RDMA operation.
type Verb uint8

const (
	Send Verb = iota
	SendImmediate
	Write
	WriteImmediate
	Read
	FetchAdd
	CompareSwap
	numVerbs
)

var verbNames = [numVerbs]string{"send", "send-immediate", "write", "write-immediate", "read", "fetch-add", "compare-swap"}

func (v Verb) String() string {
	if v < numVerbs {
		return verbNames[v]
	}
	return "unknown"
}

// answers reports whether the operation has a response.
func (v Verb) answers() bool { return v >= Read }

// WorkRequest is an operation for the remote end to perform.
type WorkRequest struct {
	ID   uint64 // chosen by the caller, repeated in the completion
	Verb Verb
	// Local is the data of Send and Write, and the destination of Read and of the
	// previous value of atomics (8 bytes, little-endian). It must not change until the
	// completion. Nil: only Bytes counts, for virtual time.
	Local []byte
	Bytes uint64 // if Local is nil

	RemoteVA uint64 // of Write, Read and atomics; of atomics a multiple of 8
	RKey     uint32
	Imm      uint32

	Operand uint64 // FetchAdd: the value to add; CompareSwap: the value to store
	Compare uint64 // CompareSwap: if this value is there

	// Fence delays the request until all earlier reads and atomics are complete (IBTA
	// 10.8.3.3).
	Fence bool
}

// Size returns the bytes that the request carries or requests.
func (w *WorkRequest) Size() uint64 {
	if w.Local != nil {
		return uint64(len(w.Local))
	}
	return w.Bytes
}

// work is a work request that is not complete.
type work struct {
	WorkRequest
	bytes        uint64
	packets      uint64 // of the request
	first        uint64 // packet of the request
	rFirst, rEnd uint64 // packets of the response
	sn           uint32 // of the receive or read request at the remote end
	start        frame.Time
	rtx          uint32
	acked        bool
	answered     bool
}

// requester turns work requests into packets, and writes responses to memory. It is a
// pure state machine: the transport decides which packet leaves when.
type requester struct {
	mtu      uint64
	maxReads uint32

	ring   []work
	head   uint32
	n      uint32
	base   uint64 // number of the oldest work, counted from the opening
	issued uint64 // number of the next work to become packets
	acked  uint64 // earlier works are acknowledged

	next   uint64 // packets of requests so far
	rNext  uint64 // packets of the responses to them
	recvSN uint32
	readSN uint32

	reads []uint64 // ring of numbers of works whose response is not complete
	rHead uint32
	rN    uint32
}

func (r *requester) reset(mtu uint64, maxReads uint32) {
	clear(r.ring) // keep no memory of the previous user
	*r = requester{mtu: mtu, maxReads: maxReads, ring: r.ring, reads: r.reads}
	if len(r.reads) < int(maxReads) {
		r.reads = make([]uint64, maxReads)
	}
}

func (r *requester) at(number uint64) *work {
	return &r.ring[(uint64(r.head)+number-r.base)&uint64(len(r.ring)-1)]
}

// packetsOf returns how many packets bytes take.
func (r *requester) packetsOf(bytes uint64) uint64 { return max(1, (bytes+r.mtu-1)/r.mtu) }

// maxOperation is the longest message (IBTA 9.7.2: 2^31 bytes), further
// limited by the 24-bit number of a packet in its message.
const maxOperation = 1 << 31

// post queues a work request.
func (r *requester) post(now frame.Time, wr *WorkRequest) error {
	bytes := wr.Bytes
	if wr.Local != nil {
		bytes = uint64(len(wr.Local))
	}
	switch {
	case wr.Verb >= numVerbs:
		return fmt.Errorf("there is no RDMA operation %d", wr.Verb)
	case bytes > maxOperation || r.packetsOf(bytes) > 1<<24:
		return fmt.Errorf("%v of %d bytes is too long", wr.Verb, bytes)
	case wr.Verb >= FetchAdd && wr.Local != nil && bytes != atomicSize:
		return fmt.Errorf("%v needs 8 local bytes for what was there, not %d", wr.Verb, bytes)
	case wr.Verb >= FetchAdd:
		bytes = atomicSize
	}
	if int(r.n) == len(r.ring) {
		ring := make([]work, max(4, 2*len(r.ring)))
		for i := range uint64(r.n) {
			ring[i] = *r.at(r.base + i)
		}
		r.ring, r.head = ring, 0
	}
	w := r.at(r.base + uint64(r.n))
	*w = work{WorkRequest: *wr, bytes: bytes, start: now}
	r.n++
	return nil
}

// issue assigns packets to the next work. It returns nil if there is none, or if it must
// wait for responses to earlier ones.
func (r *requester) issue() *work {
	if r.issued == r.base+uint64(r.n) {
		return nil
	}
	w := r.at(r.issued)
	if w.Fence && r.rN > 0 || w.Verb.answers() && r.rN == r.maxReads {
		return nil
	}
	w.first, w.packets = r.next, 1
	w.answered = !w.Verb.answers()
	switch w.Verb {
	case Send, SendImmediate, WriteImmediate:
		w.packets = r.packetsOf(w.bytes)
		w.sn = r.recvSN & 0xffffff
		r.recvSN++
	case Write:
		w.packets = r.packetsOf(w.bytes)
	default:
		w.sn = r.readSN & 0xffffff
		r.readSN++
		w.rFirst, w.rEnd = r.rNext, r.rNext+r.packetsOf(w.bytes)
		r.rNext = w.rEnd
		r.reads[(r.rHead+r.rN)%uint32(len(r.reads))] = r.issued
		r.rN++
	}
	r.next += w.packets
	r.issued++
	return w
}

// lastLen returns the bytes of payload in the last packet of the request.
func (r *requester) lastLen(w *work) uint32 {
	if w.Verb.answers() {
		return 0
	}
	return uint32(w.bytes - (w.packets-1)*r.mtu)
}

// packet returns the packet seq of work number.
func (r *requester) packet(number, seq uint64) (p packet) {
	w := r.at(number)
	p.seq, p.sn, p.imm = seq, w.sn, w.Imm
	p.reth = wire.RETHFields{VA: w.RemoteVA, RKey: w.RKey, Length: uint32(w.bytes)}
	switch w.Verb {
	case Read:
		p.op = wire.RCReadRequest
		return p
	case FetchAdd:
		p.op, p.operand = wire.RCFetchAdd, w.Operand
		return p
	case CompareSwap:
		p.op, p.operand, p.compare = wire.RCCompareSwap, w.Operand, w.Compare
		return p
	}
	f := sendFamily
	if w.Verb == Write || w.Verb == WriteImmediate {
		f = writeFamily
	}
	i := seq - w.first
	p.op = opcodeOf(f, i == 0, i+1 == w.packets, w.Verb == SendImmediate || w.Verb == WriteImmediate)
	p.offset = i * r.mtu
	p.size = uint32(min(r.mtu, w.bytes-p.offset))
	if w.Local != nil {
		p.payload = w.Local[p.offset:][:p.size]
	}
	return p
}

// acknowledged records that the packets of requests below cum have arrived.
func (r *requester) acknowledged(cum uint64) {
	for r.acked < r.issued {
		w := r.at(r.acked)
		if w.first+w.packets > cum {
			return
		}
		w.acked = true
		r.acked++
	}
}

// expects returns what a response packet must be: the work that it answers, its offset in
// the work's memory and its size. Nil if nothing was requested.
func (r *requester) expects(seq uint64) (w *work, offset uint64, size uint32) {
	for i := range r.rN {
		w := r.at(r.reads[(r.rHead+i)%uint32(len(r.reads))])
		if seq >= w.rFirst && seq < w.rEnd {
			offset = (seq - w.rFirst) * r.mtu
			return w, offset, uint32(min(r.mtu, w.bytes-offset))
		}
	}
	return nil, 0, 0
}

// checkResponse reports whether a response packet, possibly one that arrived before, was
// requested.
func (r *requester) checkResponse(p *packet) bool {
	w, offset, size := r.expects(p.seq)
	if w == nil {
		return p.seq < r.rNext // of a work that is complete: a duplicate
	}
	o := operationOf(p.op)
	if w.Verb != Read {
		return o.family == atomicResponse && p.size == 0
	}
	return o.family == readResponse && o.first == (offset == 0) && o.last == (p.seq+1 == w.rEnd) && p.size == size
}

// place writes a response packet, which was checked and is new, to memory.
func (r *requester) place(p *packet) {
	w, offset, _ := r.expects(p.seq)
	switch {
	case w == nil || w.Local == nil:
	case w.Verb == Read:
		copy(w.Local[offset:], p.payload)
	default:
		binary.LittleEndian.PutUint64(w.Local, p.operand)
	}
}

// answered records that the packets of responses below cum have arrived.
func (r *requester) answered(cum uint64) {
	for r.rN > 0 {
		w := r.at(r.reads[r.rHead])
		if w.rEnd > cum {
			return
		}
		w.answered = true
		r.rHead = (r.rHead + 1) % uint32(len(r.reads))
		r.rN--
	}
}

// complete removes and returns the oldest work if it is done: works complete in the order
// in which they were posted. The pointer is valid until the next post.
func (r *requester) complete() *work {
	if r.n == 0 || r.base == r.issued {
		return nil
	}
	if w := r.at(r.base); !w.acked || !w.answered {
		return nil
	}
	return r.pop()
}

// pop removes and returns the oldest work, done or not, or nil if there is none.
func (r *requester) pop() *work {
	if r.n == 0 {
		return nil
	}
	w := r.at(r.base)
	r.head = (r.head + 1) & uint32(len(r.ring)-1)
	r.n--
	r.base++
	return w
}
