package verbs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"gswitch/frame"
	"gswitch/hostnic"
	"gswitch/hostnic/agent"
	"gswitch/transport"
)

// QPConfig describes a queue pair. The zero value of each field is a sensible
// default.
type QPConfig struct {
	SendDepth int              // requests posted whose completions were not polled, at most; 0 = 128
	RecvDepth int              // buffers likewise; 0 = 128
	CQ        *CompletionQueue // nil: one of its own

	Retry    int           // timeouts in a row that end the connection; 0 = 100, at most 255
	RNRRetry int           // answers in a row that there is no buffer that end it; 0: it waits for ever (rnr_retry 7 of ibv_qp_attr)
	RNRTimer time.Duration // how long the other end is asked to wait when there is no buffer; 0 = 10 us
	MaxReads int           // Reads and atomics under way; 0 = 16, at most 128
}

func (c QPConfig) complete() (QPConfig, error) {
	c.SendDepth, c.RecvDepth = cmp.Or(c.SendDepth, 128), cmp.Or(c.RecvDepth, 128)
	switch {
	case c.SendDepth < 1 || c.SendDepth > 1<<16 || c.RecvDepth < 1 || c.RecvDepth > 1<<16:
		return c, fmt.Errorf("verbs: SendDepth %d and RecvDepth %d must be within 1 and %d", c.SendDepth, c.RecvDepth, 1<<16)
	case c.Retry < 0 || c.Retry > 255 || c.RNRRetry < 0 || c.RNRRetry > 255:
		return c, fmt.Errorf("verbs: Retry %d and RNRRetry %d must be within 0 and 255", c.Retry, c.RNRRetry)
	case c.RNRTimer < 0 || c.RNRTimer > 655360*time.Microsecond: // IBTA table 45
		return c, fmt.Errorf("verbs: RNRTimer %v is not within 0 and 655.36ms", c.RNRTimer)
	case c.MaxReads < 0 || c.MaxReads > 128:
		return c, fmt.Errorf("verbs: MaxReads %d is not within 0 and 128", c.MaxReads)
	}
	return c, nil
}

func (c *QPConfig) verbs() hostnic.VerbsConfig {
	return hostnic.VerbsConfig{MaxReads: uint32(c.MaxReads), Retries: uint8(c.Retry), RNRRetries: uint8(c.RNRRetry), RNRTimer: frame.Time(c.RNRTimer)}
}

// QueuePair is one end of a connection.
type QueuePair struct {
	h    *Host
	cfg  QPConfig
	cq   *CompletionQueue
	conn *agent.Conn // the worker's, but for what never changes
	tag  uint64

	up     chan struct{} // closed when the connection is open
	down   chan struct{} // closed when it has ended
	isUp   bool          // the worker's
	isDown bool
	why    error // of the end; read after down

	remote RemoteMemory // read after up

	sends, recvs atomic.Int32 // posted and not polled

	flushed chan struct{} // closed when Close has ended

	mu       sync.Mutex // of who posts
	shutDown bool
	tail     atomic.Uint64
	posts    []post
	_        [56]byte // programs write tail, the worker writes head
	head     atomic.Uint64

	detached bool // guarded by cq.mu
}

// post is what crosses to the worker.
type post struct {
	wr   hostnic.WorkRequest
	recv bool
}

// newPair makes the queue pair of a connection, which Close of the host ends
// from then on.
func (h *Host) newPair(cfg QPConfig, conn *agent.Conn) (*QueuePair, error) {
	cfg, err := cfg.complete()
	if err != nil {
		return nil, err
	}
	q := newQueuePair(conn)
	q.h, q.cfg, q.cq = h, cfg, cfg.CQ
	if q.cq == nil {
		if q.cq, err = h.NewCompletionQueue(q.depth()); err != nil {
			return nil, err
		}
	} else if q.cq.h != h {
		return nil, fmt.Errorf("verbs: the completion queue is of another host")
	}
	if err := q.cq.reserve(q.depth()); err != nil {
		return nil, err
	}
	n := 1
	for n < q.depth() {
		n *= 2
	}
	q.posts = make([]post, n)
	if err := h.admit(q); err != nil {
		q.cq.detach(q)
		return nil, err
	}
	return q, nil
}

func newQueuePair(conn *agent.Conn) *QueuePair {
	return &QueuePair{conn: conn, up: make(chan struct{}), down: make(chan struct{}), flushed: make(chan struct{})}
}

func (q *QueuePair) depth() int { return q.cfg.SendDepth + q.cfg.RecvDepth }

// Dial connects to the listener of another host, or to a ghost that serves. ctx
// bounds the dialing only.
func (h *Host) Dial(ctx context.Context, to netip.Addr, cfg QPConfig) (*QueuePair, error) {
	c := &h.cfg
	made, err := c.algorithm(c.Congestion)
	if err != nil { // Open has tried it
		return nil, err
	}
	conn := &agent.Conn{To: to.Unmap(), Class: c.Class, CC: c.Congestion, New: made, INT: modes[c.Telemetry], Recovery: c.Recovery, Verbs: cfg.verbs()}
	if c.Recovery != nil && c.Recovery != transport.GoBackN {
		conn.Cap = c.cap()
	}
	q, err := h.newPair(cfg, conn)
	if err != nil {
		return nil, err
	}
	conn.Tag = q.tag
	d := &dial{conn: conn, pair: q}
	if err = h.command(d); err == nil && d.refused != nil {
		err = closing(d.refused)
	}
	if err == nil {
		select {
		case <-q.up:
			return q, nil
		case <-q.down:
			err = closing(q.why)
		case <-h.flushed:
			err = ErrClosed
		case <-ctx.Done():
			err = fmt.Errorf("verbs: dialing %v: %w", to, ctx.Err())
		}
	}
	_ = q.Close()
	return nil, err
}

// closing is the error of a connection that ended for this reason:
// a host that is being closed counts as closed, whichever end was faster.
func closing(why error) error {
	if why == nil || errors.Is(why, agent.ErrClosing) {
		return ErrClosed
	}
	return fmt.Errorf("verbs: %w", why)
}

// opened lets the program know that the connection is open.
func (q *QueuePair) opened() {
	if !q.isUp {
		q.isUp, q.remote = true, RemoteMemory{q.conn.RKey, q.conn.Size}
		close(q.up)
	}
}

// ended lets it know that it has ended.
func (q *QueuePair) ended() {
	if !q.isDown {
		q.isDown, q.why = true, q.conn.Err
		close(q.down)
	}
}

// Remote returns the memory that the passive end offers; of length 0 if none.
// The passive end has none of the active one unless that sends it.
func (q *QueuePair) Remote() RemoteMemory { return q.remote }

// Peer returns the address of the other end.
func (q *QueuePair) Peer() netip.Addr { return q.conn.To }

// CQ returns the completion queue.
func (q *QueuePair) CQ() *CompletionQueue { return q.cq }

// Poll is CQ().Poll.
func (q *QueuePair) Poll(out []Completion) int { return q.cq.Poll(out) }

// Done is closed when the connection has ended, by whichever end. What is
// posted from then on is flushed.
func (q *QueuePair) Done() <-chan struct{} { return q.down }

// Err returns why the connection has ended: nil while it has not, or if one of
// both ends closed it.
func (q *QueuePair) Err() error {
	select {
	case <-q.down:
		return q.why
	default:
		return nil
	}
}

// Stats returns what the NIC counted of the queue pair: its rate and window
// too. It is zero once the connection has ended.
func (q *QueuePair) Stats() (v hostnic.QPView) {
	_ = q.h.look(func(frame.Time) {
		if v, _ = q.h.node.NIC().QP(q.conn.Local); v.CC != nil {
			v.CC = nil // the worker's
		}
	})
	return v
}

// Close ends the connection. When it returns the NIC touches none of the memory
// that was posted, and each request has its completion, most with WRFlushError.
// The other end is notified.
func (q *QueuePair) Close() error {
	if !q.shut() {
		select { // whoever else closes it
		case <-q.flushed:
		case <-q.h.flushed:
		}
		return nil
	}
	defer close(q.flushed)
	q.hangup()
	q.cq.detach(q)
	q.h.dismiss(q)
	return nil
}

// hangup ends the connection, after shut. When it returns every post has its completion,
// unless the host is closed, which has done it.
func (q *QueuePair) hangup() {
	if q.h.command(&posted{tag: q.tag, pair: q, tail: q.tail.Load()}) == nil {
		_ = q.h.command(hangup{q.tag})
	}
}

// shut refuses posts from now on. It reports whether they were not before.
func (q *QueuePair) shut() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	was := q.shutDown
	q.shutDown = true
	return !was
}
