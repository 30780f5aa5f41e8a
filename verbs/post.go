package verbs

import (
	"encoding/binary"
	"fmt"

	"gswitch/hostnic"
)

// Verb is what a request asks the NIC to do.
type Verb = hostnic.Verb

const (
	Send         = hostnic.Send
	SendImm      = hostnic.SendImmediate
	Write        = hostnic.Write
	WriteImm     = hostnic.WriteImmediate
	Read         = hostnic.Read
	FetchAdd     = hostnic.FetchAdd
	CompareSwap  = hostnic.CompareSwap
	atomicSize   = 8
	maxOperation = 1 << 31 // bytes of a message (IBTA 9.7.2)
	maxPackets   = 1 << 24 // of a message
)

// WorkRequest is an operation to be done (ibv_send_wr).
type WorkRequest struct {
	WRID uint64 // the caller's, returned in the completion
	Verb Verb
	// Local is what Send and Write carry, and where Read puts what it got and
	// atomics what was there, 8 bytes little-endian (see Uint64). It is the
	// NIC's until the completion.
	Local []byte

	RemoteAddr uint64 // of Write, Read and atomics; of atomics a multiple of 8
	RKey       uint32
	Imm        uint32

	Add           uint64 // FetchAdd
	Compare, Swap uint64 // CompareSwap: Swap is put in if Compare is there

	// Fence begins only when all Reads and atomics before are complete. Without
	// it a Read may bring what a Write that was posted after it wrote (IBTA 10.8.3.3).
	Fence bool
}

// Uint64 reads the 8 bytes that an atomic returned, or that other hosts' atomics
// change.
func Uint64(b []byte) uint64 { return binary.LittleEndian.Uint64(b) }

// PutUint64 writes 8 bytes as atomics read them.
func PutUint64(b []byte, v uint64) { binary.LittleEndian.PutUint64(b, v) }

// check refuses what the NIC would refuse, so that posts fail where they are
// made.
func (q *QueuePair) check(w *WorkRequest) error {
	n := len(w.Local)
	switch {
	case w.Verb > CompareSwap:
		return fmt.Errorf("verbs: there is no verb %d", w.Verb)
	case w.Verb >= FetchAdd && n != atomicSize:
		return fmt.Errorf("verbs: %v needs 8 local bytes for what was there, not %d", w.Verb, n)
	case w.Verb >= FetchAdd && w.RemoteAddr%atomicSize != 0:
		return fmt.Errorf("verbs: %v at %#x: the address must be a multiple of 8", w.Verb, w.RemoteAddr)
	case n > maxOperation || (n+q.h.cfg.Payload-1)/q.h.cfg.Payload > maxPackets:
		return fmt.Errorf("verbs: %v of %d bytes is too long", w.Verb, n)
	}
	return nil
}

// PostSend posts requests in their order, and wakes the worker once. It returns
// how many it posted: all, or those before the one that the error is about
// (ErrQueueFull, ErrClosed, or what is wrong with it).
func (q *QueuePair) PostSend(requests []WorkRequest) (n int, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.shutDown {
		return 0, ErrClosed
	}
	tail := q.tail.Load()
	for ; n < len(requests); n++ {
		w := &requests[n]
		if err = q.check(w); err != nil {
			break
		}
		if int(q.sends.Load()) >= q.cfg.SendDepth {
			err = ErrQueueFull
			break
		}
		q.sends.Add(1)
		p := &q.posts[(tail+uint64(n))&uint64(len(q.posts)-1)]
		p.recv = false
		p.wr = hostnic.WorkRequest{ID: w.WRID, Verb: w.Verb, Local: w.Local, RemoteVA: w.RemoteAddr, RKey: w.RKey, Imm: w.Imm, Operand: w.Add, Compare: w.Compare, Fence: w.Fence}
		if w.Verb == CompareSwap {
			p.wr.Operand = w.Swap
		}
	}
	q.publish(tail, n)
	return n, err
}

// publish gives the worker n posts.
func (q *QueuePair) publish(tail uint64, n int) {
	if n == 0 {
		return
	}
	q.tail.Store(tail + uint64(n))
	if q.h.node.ring(q.tag) {
		q.h.worker.Wake()
	}
}

func (q *QueuePair) post1(w WorkRequest) error {
	one := [1]WorkRequest{w}
	_, err := q.PostSend(one[:])
	return err
}

// Send sends data to a buffer that the other end has posted.
func (q *QueuePair) Send(wrID uint64, data []byte) error {
	return q.post1(WorkRequest{WRID: wrID, Verb: Send, Local: data})
}

// SendImm is Send with a number for the other end's completion.
func (q *QueuePair) SendImm(wrID uint64, data []byte, imm uint32) error {
	return q.post1(WorkRequest{WRID: wrID, Verb: SendImm, Local: data, Imm: imm})
}

// Write writes data to memory of the other end, at an address.
func (q *QueuePair) Write(wrID uint64, data []byte, to RemoteMemory, addr uint64) error {
	return q.post1(WorkRequest{WRID: wrID, Verb: Write, Local: data, RemoteAddr: addr, RKey: to.RKey})
}

// WriteImm is Write that also takes a buffer of the other end, and reports to its
// completion a number.
func (q *QueuePair) WriteImm(wrID uint64, data []byte, to RemoteMemory, addr uint64, imm uint32) error {
	return q.post1(WorkRequest{WRID: wrID, Verb: WriteImm, Local: data, RemoteAddr: addr, RKey: to.RKey, Imm: imm})
}

// Read fills into from memory of the other end, at an address.
func (q *QueuePair) Read(wrID uint64, into []byte, from RemoteMemory, addr uint64) error {
	return q.post1(WorkRequest{WRID: wrID, Verb: Read, Local: into, RemoteAddr: addr, RKey: from.RKey})
}

// FetchAdd adds to the 64-bit word at an address of the other end, a multiple of
// 8, and puts what it was into was, 8 bytes (Uint64).
func (q *QueuePair) FetchAdd(wrID uint64, was []byte, at RemoteMemory, addr, add uint64) error {
	return q.post1(WorkRequest{WRID: wrID, Verb: FetchAdd, Local: was, RemoteAddr: addr, RKey: at.RKey, Add: add})
}

// CompareSwap puts swap into the word at an address if compare is there, and
// what it was into was.
func (q *QueuePair) CompareSwap(wrID uint64, was []byte, at RemoteMemory, addr, compare, swap uint64) error {
	return q.post1(WorkRequest{WRID: wrID, Verb: CompareSwap, Local: was, RemoteAddr: addr, RKey: at.RKey, Compare: compare, Swap: swap})
}

// PostRecv posts a buffer for a Send of the other end, or for what its WriteImm
// takes.
func (q *QueuePair) PostRecv(wrID uint64, buf []byte) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.shutDown:
		return ErrClosed
	case int(q.recvs.Load()) >= q.cfg.RecvDepth:
		return ErrQueueFull
	}
	q.recvs.Add(1)
	tail := q.tail.Load()
	p := &q.posts[tail&uint64(len(q.posts)-1)]
	p.recv, p.wr = true, hostnic.WorkRequest{ID: wrID, Local: buf}
	q.publish(tail, 1)
	return nil
}
