package verbs

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"gswitch/dataplane"
	"gswitch/frame"
	"gswitch/hostnic/agent"
)

// Errors that callers distinguish.
var (
	// ErrClosed is returned where the host, the queue pair or the listener was
	// closed here.
	ErrClosed = errors.New("verbs: it is closed")
	// ErrQueueFull is returned by a post when as many are posted as the depth
	// of the queue allows (ENOMEM of ibv_post_send): poll completions first.
	ErrQueueFull = errors.New("verbs: the queue is full: poll completions first")
)

// maxQueuePairs is how many are open at once. Each has a second one of the NIC
// for its responses.
const maxQueuePairs = 500

// Host is an RDMA host on an interface.
type Host struct {
	cfg    Config
	engine *dataplane.Engine
	own    bool // the engine is this host's alone
	worker *dataplane.Worker
	port   *dataplane.Port
	node   *node

	gone    chan struct{} // closed when Close begins
	flushed chan struct{} // closed when everything has been flushed

	mu     sync.Mutex // guards what follows
	closed bool
	pairs  [maxQueuePairs]*QueuePair // by tag - 1; nil: free
	rest   []uint64                  // tags that are free
}

// Open takes an interface over: its address is answered for here until Close,
// and the kernel sees no frame of it. It needs the rights that AF_XDP needs.
// ctx bounds the opening only.
func Open(ctx context.Context, config Config) (*Host, error) {
	c, err := config.complete()
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	at, err := look(&c)
	if err != nil {
		return nil, err
	}
	ec := dataplane.Config{Chunks: c.Chunks, ChunkSize: 2048, Logger: c.Logger,
		Workers: []dataplane.WorkerConfig{{Poll: c.Poll, Pin: c.Pin, CPU: c.CPU}}}
	if ec.Chunks == 0 {
		// The rings of each queue, and as much as may be on the emulated link.
		ec.Chunks = 2*2048*at.queues + 8192
	}
	if c.Payload > largestPayload {
		ec.ChunkSize = 4096
	}
	engine, err := dataplane.New(ec)
	if err != nil {
		return nil, fmt.Errorf("verbs: %w", err)
	}
	spec := dataplane.PortSpec{Name: c.Interface, Interface: c.Interface, NetNS: c.NetNS}
	for q := range at.queues {
		spec.Queues = append(spec.Queues, q)
	}
	h, err := join(engine, 0, c, c.agent(at.mac), spec)
	if err == nil {
		h.own = true
		err = engine.Start()
	}
	if err != nil {
		return nil, errors.Join(err, engine.Stop())
	}
	return h, nil
}

// ratedDepth is how many frames may wait below the node, where it paces.
const ratedDepth = 64

// join puts a host on a worker of an engine.
func join(engine *dataplane.Engine, worker int, c Config, conf *agent.Config, spec dataplane.PortSpec) (*Host, error) {
	h := &Host{cfg: c, engine: engine, worker: engine.Worker(worker), gone: make(chan struct{}), flushed: make(chan struct{})}
	for tag := uint64(maxQueuePairs); tag > 0; tag-- {
		h.rest = append(h.rest, tag)
	}
	a, err := agent.New(conf, h.worker.Pool())
	if err != nil {
		return nil, fmt.Errorf("verbs: %w", err)
	}
	h.node = newNode(a)
	if err := engine.AddNode(worker, h.node); err != nil {
		return nil, fmt.Errorf("verbs: %w", err)
	}
	spec.Rated, spec.TxDepth = true, ratedDepth
	if h.port, err = engine.AddPort(worker, h.node, 0, spec); err != nil {
		return nil, fmt.Errorf("verbs: %w", errors.Join(err, engine.RemoveNode(worker, h.node)))
	}
	return h, nil
}

// Addr returns the host's address.
func (h *Host) Addr() netip.Addr { return h.cfg.Address.Addr() }

// parting is how long Close waits for the other ends to say that they know.
const parting = 300 * time.Millisecond

// Close ends every connection and gives the interface back. Completions of what
// was under way can still be polled.
func (h *Host) Close() error {
	h.mu.Lock()
	if h.closed {
		h.mu.Unlock()
		return nil
	}
	h.closed = true
	pairs := h.pairs
	h.mu.Unlock()
	close(h.gone)
	for _, q := range pairs {
		if q != nil {
			q.shut()
		}
	}
	err := h.command(unlisten{})
	for _, q := range pairs {
		if q != nil {
			q.hangup()
		}
	}
	_ = h.command(shutdown{}) // a worker that has ended carries out none
	close(h.flushed)
	for end := time.Now().Add(parting); err == nil && !h.idle() && time.Now().Before(end); {
		time.Sleep(100 * time.Microsecond)
	}
	if h.own {
		return h.engine.Stop()
	}
	return errors.Join(h.engine.RemovePort(h.port), h.engine.RemoveNode(h.worker.Index(), h.node))
}

// idle reports whether the other ends know, and what was to be sent has gone.
func (h *Host) idle() bool {
	left := true
	if h.worker.Do(func(now frame.Time) {
		left = h.node.Parting() > 0 || h.node.NIC().PortWake(now, 0) != frame.Never
	}) != nil {
		return true
	}
	for _, p := range h.engine.Stats().Ports {
		left = left || p.Name == h.port.Name() && p.Worker == h.worker.Index() && p.TxWaiting > 0
	}
	return !left
}

// look runs f on the worker, which reads, until Close.
func (h *Host) look(f func(now frame.Time)) error {
	select {
	case <-h.flushed:
		return ErrClosed
	default:
	}
	if err := h.worker.Do(f); err != nil {
		return ErrClosed
	}
	return nil
}

// Stats returns what the engine counted: frames of the port, and how late the
// worker was.
func (h *Host) Stats() dataplane.Stats { return h.engine.Stats() }

// admit gives a queue pair a tag.
func (h *Host) admit(q *QueuePair) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return ErrClosed
	}
	k := len(h.rest)
	if k == 0 {
		return fmt.Errorf("verbs: %d queue pairs are open: close one first", maxQueuePairs)
	}
	q.tag, h.rest = h.rest[k-1], h.rest[:k-1]
	h.pairs[q.tag-1] = q
	return nil
}

// dismiss takes the tag back.
func (h *Host) dismiss(q *QueuePair) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.pairs[q.tag-1] == q {
		h.pairs[q.tag-1] = nil
		h.rest = append(h.rest, q.tag)
	}
}
