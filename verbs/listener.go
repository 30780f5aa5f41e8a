package verbs

import (
	"context"
	"fmt"
	"sync"

	"gswitch/hostnic/agent"
)

// ListenConfig describes a listener.
type ListenConfig struct {
	// Offer is sent to peers that connect, as their QueuePair.Remote; nil: nothing.
	Offer   *Memory
	Backlog int      // connections that are open and not accepted, at most; 0 = 16
	QP      QPConfig // of the queue pairs. A CQ must have room for all of them
}

// Listener takes connections that other hosts dial. A host has one at a time.
type Listener struct {
	h   *Host
	cfg ListenConfig
	l   agent.Listener

	arrived chan offered // as long as the backlog: never full
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
	l := &Listener{h: h, cfg: cfg, arrived: make(chan offered, cfg.Backlog), gone: make(chan struct{})}
	l.l = agent.Listener{Backlog: cfg.Backlog, Verbs: cfg.QP.verbs()}
	if m := cfg.Offer; m != nil {
		if m.h != h || m.closed.Load() {
			return nil, fmt.Errorf("verbs: the memory to offer is not registered at this host")
		}
		l.l.Region, l.l.Key = m.data, m.key
	}
	c := &listen{listener: l}
	if err := h.command(c); err != nil {
		return nil, err
	}
	if c.busy {
		return nil, fmt.Errorf("verbs: the host listens already: close that listener first")
	}
	return l, nil
}

// offer gives a connection to who accepts. The worker calls it.
func (l *Listener) offer(o offered) {
	select {
	case l.arrived <- o:
	default: // the agent keeps to the backlog
	}
}

// Accept waits for a connection, until ctx ends or the listener or the host is
// closed (ErrClosed).
func (l *Listener) Accept(ctx context.Context) (*QueuePair, error) {
	for {
		select {
		case o := <-l.arrived:
			q, err := l.take(o)
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
func (l *Listener) take(o offered) (*QueuePair, error) {
	q, err := l.h.newPair(l.cfg.QP, o.conn)
	if err != nil {
		_ = l.h.command(refuse{o.number})
		return nil, err
	}
	c := &take{offer: o.number, tag: q.tag, pair: q}
	if err := l.h.command(c); err != nil || c.ended {
		q.shut()
		q.cq.detach(q)
		l.h.dismiss(q)
		return nil, err
	}
	return q, nil
}

// Close takes no more connections. Those that were accepted stay, the others
// are hung up.
func (l *Listener) Close() error {
	l.once.Do(func() {
		close(l.gone)
		_ = l.h.command(unlisten{}) // a host that is closed listens no more
		for {
			select {
			case o := <-l.arrived:
				_ = l.h.command(refuse{o.number})
			default:
				return
			}
		}
	})
	return nil
}
