package hostnic

import (
	"gswitch/frame"
	"gswitch/transport"
	"gswitch/wire"
)

// Syndromes of NAKs other than that of a gap (IBTA table 46).
const (
	nakInvalidRequest = wire.AETHNak | 1
	nakRemoteAccess   = wire.AETHNak | 2
)

// maxResponses bounds the responses that a requester which never acknowledges them can
// make us keep.
const maxResponses = 1024

// received is a receive work request that was consumed.
type received struct {
	id        uint64
	bytes     uint64
	start     frame.Time // when the packet arrived that ends the message
	imm       uint32
	immediate bool
	write     bool
}

// response is the response to a read or an atomic, kept until the requester has
// acknowledged all of it.
type response struct {
	first, end uint64 // packets
	bytes      uint64
	data       []byte // nil: virtual
	isAtomic   bool
	original   uint64 // of an atomic: executed once, answered as often as necessary
}

// arrival is a packet that ends a message, or a read or atomic request, and waits until
// everything before it has arrived: IRN's premature completions and its read buffer.
type arrival struct {
	packet
	bytes uint64
	at    frame.Time
	data  []byte // memory that a read or an atomic refers to
}

// responder turns packets of requests into placements, completions and responses. It is a
// pure state machine.
//
// A packet is judged before the transport counts it, since one that is refused must leave
// no trace: it will be sent again.
type responder struct {
	mtu     uint64
	inOrder bool
	mem     *Memory
	qpn     uint32
	rq      receiveQueue

	// The current message, if packets arrive in order and only the first one describes
	// it.
	busy  bool
	now   family
	begin uint64
	reth  wire.RETHFields

	waiting []arrival // by packet
	done    []received

	responses []response // ring
	rHead, rN uint32
	rNext     uint64 // packets of all responses so far

	executed uint64 // atomics
	wrong    uint64 // packets with an impossible receive number, and ends of messages without a request left for them
}

func (r *responder) reset(mtu uint64, inOrder bool, mem *Memory, qpn uint32, shared *SharedReceive) {
	r.rq.reset()
	clear(r.responses)
	clear(r.waiting[:cap(r.waiting)])
	*r = responder{mtu: mtu, inOrder: inOrder, mem: mem, qpn: qpn, waiting: r.waiting[:0], done: r.done[:0], responses: r.responses,
		rq: receiveQueue{recvRing: r.rq.recvRing, shared: shared}}
}

// request processes a packet of a request. If the packet is refused, syndrome is not 0
// and nothing has changed: the answer is a NAK with that syndrome for the packet that rx
// expects, or nothing (drop is true) for an early packet, which will be judged when it is
// in order (IRN, appendix on errors).
func (r *responder) request(now frame.Time, rx *transport.Receiver, p *packet) (v transport.Verdict, syndrome uint8, drop bool) {
	o := operationOf(p.op)
	expected := rx.Expected()
	fresh := p.seq == expected || !r.inOrder && p.seq > expected && !rx.Beyond(p.seq)
	if !fresh {
		return rx.Data(now, p.seq, o.kind()), 0, false
	}
	if r.inOrder {
		if !r.follow(p, o) {
			return v, nakInvalidRequest, false
		}
	}
	dst, syndrome := r.check(p, o, p.seq-expected)
	if syndrome != 0 {
		return v, syndrome, p.seq != expected
	}
	if v = rx.Data(now, p.seq, o.kind()); v.Deliver {
		r.accept(now, p, o, dst)
	}
	if v.InOrder > 0 {
		r.advance(v.Cum)
	}
	return v, 0, false
}

// follow fills in what a packet in order leaves to the first of its message,
// and reports whether it may follow the one before (IBTA 9.7.4.1.2).
func (r *responder) follow(p *packet, o operation) bool {
	if r.busy == o.first || r.busy && r.now != o.family {
		return false
	}
	if o.first {
		r.begin, r.reth, r.now = p.seq, p.reth, o.family
	}
	p.offset = (p.seq - r.begin) * r.mtu
	p.sn = r.rq.oldest()
	if o.family == writeFamily {
		p.reth = r.reth
	}
	return true
}

// check returns where the payload of a packet goes, or what a read or atomic refers to,
// or the syndrome with which it is refused. missing is the largest number of packets that
// may be missing before it.
func (r *responder) check(p *packet, o operation, missing uint64) (dst []byte, syndrome uint8) {
	if !o.last && uint64(p.size) != r.mtu || uint64(p.size) > r.mtu {
		return nil, nakInvalidRequest
	}
	switch o.family {
	case sendFamily:
		w, syndrome := r.receive(p, missing)
		if syndrome != 0 {
			return nil, syndrome
		}
		if p.offset+uint64(p.size) > w.size() {
			return nil, nakInvalidRequest // longer than the buffer (IBTA 9.7.5.2.8)
		}
		if w.Local != nil {
			dst = w.Local[p.offset:][:p.size]
		}
		return dst, 0
	case writeFamily:
		return r.checkWrite(p, o, missing)
	case readFamily:
		if uint64(p.reth.Length) > maxOperation {
			return nil, nakInvalidRequest
		}
		return r.checkResponder(p, RemoteRead)
	case atomicFamily:
		if p.reth.VA%atomicSize != 0 {
			return nil, nakInvalidRequest // IBTA 9.7.5.2.8
		}
		return r.checkResponder(p, RemoteAtomic)
	}
	return nil, nakInvalidRequest
}

// receive returns the receive request of a packet.
func (r *responder) receive(p *packet, missing uint64) (*RecvRequest, uint8) {
	w, wrong := r.rq.get(p.sn, missing)
	switch {
	case wrong:
		r.wrong++
		return nil, nakInvalidRequest
	case w == nil:
		return nil, wire.AETHRNRNak
	}
	return w, 0
}

func (r *responder) checkWrite(p *packet, o operation, missing uint64) ([]byte, uint8) {
	length := uint64(p.reth.Length)
	if end := p.offset + uint64(p.size); end > length || o.last != (end == length) {
		return nil, nakInvalidRequest
	}
	if o.imm {
		if _, syndrome := r.receive(p, missing); syndrome != 0 {
			return nil, syndrome
		}
	}
	if length == 0 {
		return nil, 0 // no bytes, no key (IBTA 9.7.4.1.5)
	}
	g := r.mem.reach(r.qpn, p.reth.RKey, p.reth.VA, length, RemoteWrite)
	if g == nil {
		return nil, nakRemoteAccess
	}
	return g.slice(p.reth.VA+p.offset, uint64(p.size)), 0
}

// checkResponder checks a read or an atomic.
func (r *responder) checkResponder(p *packet, need Access) ([]byte, uint8) {
	if p.size != 0 {
		return nil, nakInvalidRequest
	}
	if int(r.rN)+len(r.waiting) >= maxResponses {
		return nil, wire.AETHRNRNak // no room for the answer yet
	}
	if p.reth.Length == 0 {
		return nil, 0
	}
	g := r.mem.reach(r.qpn, p.reth.RKey, p.reth.VA, uint64(p.reth.Length), need)
	if g == nil {
		return nil, nakRemoteAccess
	}
	return g.slice(p.reth.VA, uint64(p.reth.Length)), 0
}

// accept places a new packet. A packet that ends a message, reads, or executes an atomic
// waits for its turn.
func (r *responder) accept(now frame.Time, p *packet, o operation, dst []byte) {
	if r.inOrder {
		r.busy = !o.last
	}
	if o.family != readFamily && o.family != atomicFamily {
		copy(dst, p.payload)
		if o.kind() != transport.LastCQE {
			return
		}
		dst = nil
	}
	r.waiting = append(r.waiting, arrival{})
	i := len(r.waiting) - 1
	for ; i > 0 && r.waiting[i-1].seq > p.seq; i-- {
		r.waiting[i] = r.waiting[i-1]
	}
	a := &r.waiting[i]
	*a = arrival{packet: *p, bytes: p.offset + uint64(p.size), at: now, data: dst}
	a.payload = nil // the frame's
}

// advance does what has been waiting for the packets below cum.
func (r *responder) advance(cum uint64) {
	k := 0
	for ; k < len(r.waiting) && r.waiting[k].seq < cum; k++ {
		a := &r.waiting[k]
		switch o := operationOf(a.op); o.family {
		case sendFamily, writeFamily:
			w, ok := r.rq.expire()
			if !ok {
				r.wrong++
				break
			}
			r.done = append(r.done, received{id: w.ID, bytes: a.bytes, start: a.at, imm: a.imm, immediate: o.imm, write: o.family == writeFamily})
		case readFamily:
			r.respond(response{bytes: uint64(a.reth.Length), data: a.data})
		case atomicFamily:
			r.executed++
			was := atomic(a.data, a.op == wire.RCCompareSwap, a.operand, a.compare)
			r.respond(response{isAtomic: true, original: was})
		}
	}
	if k > 0 {
		n := copy(r.waiting, r.waiting[k:])
		clear(r.waiting[n:])
		r.waiting = r.waiting[:n]
	}
}

func (r *responder) response(i uint32) *response {
	return &r.responses[(r.rHead+i)&uint32(len(r.responses)-1)]
}

// respond queues a response and assigns its packets.
func (r *responder) respond(s response) {
	if int(r.rN) == len(r.responses) {
		ring := make([]response, max(4, 2*len(r.responses)))
		for i := range r.rN {
			ring[i] = *r.response(i)
		}
		r.responses, r.rHead = ring, 0
	}
	s.first = r.rNext
	s.end = s.first + max(1, (s.bytes+r.mtu-1)/r.mtu)
	r.rNext = s.end
	r.rN++
	*r.response(r.rN - 1) = s
}

// find returns the response of a packet that is not acknowledged.
func (r *responder) find(seq uint64) *response {
	for i := range r.rN {
		if s := r.response(i); seq < s.end {
			return s
		}
	}
	return nil
}

// packet returns the packet seq of the responses.
func (r *responder) packet(seq uint64) (p packet) {
	s := r.find(seq)
	p.seq = seq
	if s.isAtomic {
		p.op, p.operand = wire.RCAtomicAcknowledge, s.original
		return p
	}
	p.op = opcodeOf(readResponse, seq == s.first, seq+1 == s.end, false)
	p.offset = (seq - s.first) * r.mtu
	p.size = uint32(min(r.mtu, s.bytes-p.offset))
	if s.data != nil {
		p.payload = s.data[p.offset:][:p.size]
	}
	return p
}

// acknowledged releases the responses that the requester has received.
func (r *responder) acknowledged(cum uint64) {
	for r.rN > 0 && r.response(0).end <= cum {
		*r.response(0) = response{}
		r.rHead = (r.rHead + 1) & uint32(len(r.responses)-1)
		r.rN--
	}
}
