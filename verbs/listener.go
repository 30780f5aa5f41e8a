package verbs

import (
	"context"
	"fmt"
	"sync"

	"gswitch/frame"
	"gswitch/hostnic/agent"
)

// ListenConfig describes a listener.
type ListenConfig struct {
	// Offer is told to whoever connects, as its QueuePair.Remote; nil: nothing.
	Offer   *Memory
	Backlog int      // connections that are open and not accepted, at most; 0 = 16
	QP      QPConfig // of the queue pairs. A CQ must have room for all of them
}

// Listener takes connections that other hosts dial. A host has one at a time.
type Listener struct {
	h   *Host
	cfg ListenConfig
	l   agent.Listener

	arrived chan *agent.Conn // as long as the backlog: never full
	gone    chan struct{}
	once    sync.Once
}

// Listen takes connections from now on.
func (h *Host) Listen(cfg ListenConfig) (*Listener, error) {
	if cfg.Backlog == 0 {
		cfg.Backlog = 16
	}
	if cfg.Backlog < 0 || cfg.Backlog > maxQueuePairs {
		return nil, fmt.Errorf("verbs: a Backlog of %d is not within 1 and %d", cfg.Backlog, maxQueuePairs)
	}
	if _, err := cfg.QP.complete(); err != nil {
		return nil, err
	}
	l := &Listener{h: h, cfg: cfg, arrived: make(chan *agent.Conn, cfg.Backlog), gone: make(chan struct{})}
	l.l = agent.Listener{Backlog: cfg.Backlog, Verbs: cfg.QP.verbs()}
	if m := cfg.Offer; m != nil {
		if m.h != h || m.closed.Load() {
			return nil, fmt.Errorf("verbs: the memory to offer is not registered at this host")
		}
		l.l.Region, l.l.Key = m.data, m.key
	}
	busy := false
	if err := h.do(func(frame.Time) {
		if busy = h.node.listener != nil; !busy {
			h.node.listener = l
			h.node.Listen(&l.l)
		}
	}); err != nil {
		return nil, err
	}
	if busy {
		return nil, fmt.Errorf("verbs: the host listens already: close that listener first")
	}
	return l, nil
}

// offer gives a connection to who accepts. The worker calls it.
func (l *Listener) offer(c *agent.Conn) {
	select {
	case l.arrived <- c:
	default: // the agent keeps to the backlog
	}
}

// Accept waits for a connection, until ctx ends or the listener or the host is
// closed (ErrClosed).
func (l *Listener) Accept(ctx context.Context) (*QueuePair, error) {
	for {
		select {
		case c := <-l.arrived:
			q, err := l.take(c)
			if q != nil || err != nil {
				return q, err
			}
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-l.gone:
			return nil, ErrClosed
		case <-l.h.gone:
			return nil, ErrClosed
		}
	}
}

// take makes the queue pair of a connection; nil if that has ended meanwhile.
func (l *Listener) take(c *agent.Conn) (*QueuePair, error) {
	q, err := l.h.newPair(l.cfg.QP, c)
	if err != nil {
		l.refuse(c)
		return nil, err
	}
	ended := false
	if err := l.h.do(func(frame.Time) {
		l.h.node.Take(&l.l)
		if ended = c.State == agent.Ended; ended {
			return
		}
		c.Tag, l.h.node.pairs[q.tag-1] = q.tag, q
		q.opened()
	}); err != nil || ended {
		q.shut()
		q.cq.detach(q)
		l.h.dismiss(q)
		return nil, err
	}
	return q, nil
}

// refuse hangs up on a connection that nobody takes.
func (l *Listener) refuse(c *agent.Conn) {
	_ = l.h.do(func(now frame.Time) {
		l.h.node.Take(&l.l)
		l.h.node.Hangup(now, c)
	})
}

// Close takes no more connections. Those that were accepted stay, the others
// are hung up.
func (l *Listener) Close() error {
	l.once.Do(func() {
		close(l.gone)
		_ = l.h.do(func(frame.Time) { // a host that is closed listens no more
			if l.h.node.listener == l {
				l.h.node.listener = nil
				l.h.node.Listen(nil)
			}
		})
		for {
			select {
			case c := <-l.arrived:
				l.refuse(c)
			default:
				return
			}
		}
	})
	return nil
}
