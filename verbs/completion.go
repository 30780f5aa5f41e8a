package verbs

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"gswitch/hostnic"
)

// Opcode says what a completion is of (ibv_wc_opcode).
type Opcode uint8

const (
	OpSend Opcode = iota
	OpWrite
	OpRead
	OpAtomic
	OpRecv        // a Send of the other end
	OpRecvWithImm // a WriteImm of the other end, which took the buffer and left it as it is
)

var opcodeNames = [...]string{"send", "write", "read", "atomic", "recv", "recv write-with-imm"}

// String returns the name of the opcode.
func (o Opcode) String() string {
	if int(o) < len(opcodeNames) {
		return opcodeNames[o]
	}
	return fmt.Sprintf("opcode %d", uint8(o))
}

// Status says how an operation ended (ibv_wc_status).
type Status uint8

const (
	Success              Status = iota
	WRFlushError                // it was not done when its queue pair failed or was closed
	RemoteAccessError           // the other end refuses this access to its memory
	RemoteInvalidRequest        // the other end cannot do what was asked, such as take a Send longer than its buffer
	RetryExceeded               // the other end answers no more
	RNRRetryExceeded            // the other end had no buffer posted, too many times
)

var statusNames = [...]string{"success", "work request flushed", "remote access error", "remote invalid request", "transport retry counter exceeded", "RNR retry counter exceeded"}

// String returns what ibv_wc_status_str does, without the word error.
func (s Status) String() string {
	if int(s) < len(statusNames) {
		return statusNames[s]
	}
	return fmt.Sprintf("status %d", uint8(s))
}

// Completion reports the end of a request.
type Completion struct {
	WRID   uint64 // of the post
	QP     *QueuePair
	Opcode Opcode
	Status Status
	HasImm bool
	Imm    uint32
	Bytes  uint64        // that were moved
	Took   time.Duration // from when the NIC got the request; of OpRecv: from the arrival of what ended it
}

// Err returns nil for Success, else an error with the request and the status.
func (c *Completion) Err() error {
	if c.Status == Success {
		return nil
	}
	return &CompletionError{WRID: c.WRID, Opcode: c.Opcode, Status: c.Status}
}

// CompletionError is a completion that is no success.
type CompletionError struct {
	WRID   uint64
	Opcode Opcode
	Status Status
}

// Error describes it.
func (e *CompletionError) Error() string {
	return fmt.Sprintf("verbs: %v %d: %v", e.Opcode, e.WRID, e.Status)
}

var opcodes = [...]Opcode{hostnic.SendDone: OpSend, hostnic.RecvDone: OpRecv, hostnic.WriteDone: OpWrite, hostnic.ReadDone: OpRead, hostnic.AtomicDone: OpAtomic}

var statuses = [...]Status{hostnic.StatusOK: Success, hostnic.StatusFlushed: WRFlushError, hostnic.StatusRemote: RemoteAccessError,
	hostnic.StatusInvalid: RemoteInvalidRequest, hostnic.StatusNotReady: RNRRetryExceeded, hostnic.StatusRetries: RetryExceeded}

// CompletionQueue reports the ends of the requests of its queue pairs, in the
// order in which they ended; those of one queue of a queue pair in the order of
// their posting.
type CompletionQueue struct {
	h    *Host
	ring []Completion
	bell chan struct{} // holds a token if a goroutine waits and there is something

	waiting atomic.Int32 // number of goroutines that wait, or are about to
	tail    atomic.Uint64
	_       [56]byte // the worker writes tail, programs write head
	head    atomic.Uint64

	mu       sync.Mutex // of who takes, and of reserved
	reserved int
}

// NewCompletionQueue makes a completion queue that several queue pairs may
// share: it has room for so many completions, which must be the sum of their
// depths at least.
func (h *Host) NewCompletionQueue(entries int) (*CompletionQueue, error) {
	if entries < 1 || entries > 1<<24 {
		return nil, fmt.Errorf("verbs: a completion queue of %d is not within 1 and %d", entries, 1<<24)
	}
	n := 1
	for n < entries {
		n *= 2
	}
	return &CompletionQueue{h: h, ring: make([]Completion, n), bell: make(chan struct{}, 1)}, nil
}

// reserve makes sure that the completions of a queue pair always fit.
func (c *CompletionQueue) reserve(n int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reserved+n > len(c.ring) {
		return fmt.Errorf("verbs: the completion queue has %d entries, %d are taken by the depths of other queue pairs, and this one needs %d: make a longer one", len(c.ring), c.reserved, n)
	}
	c.reserved += n
	return nil
}

// detach gives back what a queue pair that is closed has reserved. Its
// completions that are still here keep their places until they are polled.
func (c *CompletionQueue) detach(q *QueuePair) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !q.detached {
		q.detached = true
		c.reserved -= q.depth() - int(q.sends.Load()) - int(q.recvs.Load())
	}
}

// Poll moves up to len(out) completions to out, oldest first, and returns how
// many. It does not wait, and allocates nothing.
func (c *CompletionQueue) Poll(out []Completion) int {
	if c.head.Load() == c.tail.Load() {
		return 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	head := c.head.Load()
	n := min(len(out), int(c.tail.Load()-head))
	for i := range n {
		e := &c.ring[(head+uint64(i))&uint64(len(c.ring)-1)]
		out[i] = *e
		e.QP = nil
		q := out[i].QP
		if q.detached {
			c.reserved--
		}
		// Last: from then on the worker may put another completion there.
		if out[i].Opcode >= OpRecv {
			q.recvs.Add(-1)
		} else {
			q.sends.Add(-1)
		}
	}
	c.head.Store(head + uint64(n))
	return n
}

// Wait waits until there is something to poll, or ctx ends, or the host is
// closed and nothing is left (ErrClosed). It allocates nothing. To be awakened
// takes some microseconds; a program that must answer faster polls.
func (c *CompletionQueue) Wait(ctx context.Context) error {
	if c.head.Load() != c.tail.Load() {
		return nil
	}
	c.waiting.Add(1)
	defer c.waiting.Add(-1)
	for {
		// After waiting is set: the worker rings for what comes from now on.
		if c.head.Load() != c.tail.Load() {
			c.wakeOne() // others may wait too
			return nil
		}
		select {
		case <-c.bell:
		case <-ctx.Done():
			return ctx.Err()
		case <-c.h.gone:
			select {
			case <-c.h.flushed:
			case <-ctx.Done():
				return ctx.Err()
			}
			if c.head.Load() == c.tail.Load() {
				return ErrClosed
			}
			return nil
		}
	}
}

// wakeOne leaves a token for one who waits.
func (c *CompletionQueue) wakeOne() {
	if c.waiting.Load() > 0 {
		select {
		case c.bell <- struct{}{}:
		default:
		}
	}
}

// push adds a completion. There is room: each is reserved by its queue pair.
// Only the worker calls it, and after its end Close.
func (c *CompletionQueue) push(e *Completion) {
	tail := c.tail.Load()
	c.ring[tail&uint64(len(c.ring)-1)] = *e
	c.tail.Store(tail + 1)
	c.wakeOne()
}
