package dataplane

import (
	"errors"
	"sync"
	"sync/atomic"

	"gswitch/frame"
)

// ErrStopped is returned where the engine has been stopped.
var ErrStopped = errors.New("the engine has been stopped")

// mailbox holds the functions that wait to run on a worker.
type mailbox struct {
	pending atomic.Bool // letters is not empty: all that the loop looks at

	mu      sync.Mutex
	letters []letter
	running bool // the thread serves the mailbox
	closed  bool
}

type letter struct {
	f    func(now frame.Time)
	last bool // the worker ends after it
	done chan struct{}
}

// Do runs f on the worker, between two loops, and returns when it has run.
// Everything that a worker owns is touched only so. While the engine has not
// been started f runs on the caller; after it was stopped Do does not run f
// and returns ErrStopped. f must not block and must not call Do.
func (w *Worker) Do(f func(now frame.Time)) error {
	m := &w.mail
	m.mu.Lock()
	switch {
	case m.closed:
		m.mu.Unlock()
		return ErrStopped
	case !m.running:
		f(w.engine.Now())
		m.mu.Unlock()
		return nil
	}
	done := m.post(f, false)
	m.mu.Unlock()
	w.sleep.wake()
	<-done
	return nil
}

// Post lets f run on the worker as Do does, and does not wait for it: it may be
// called by other workers. How much later than now, the time of the caller, it
// runs goes into WorkerStats.Lateness.
func (w *Worker) Post(now frame.Time, f func(now frame.Time)) error {
	m := &w.mail
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.closed:
		return ErrStopped
	case !m.running:
		f(w.engine.Now())
		return nil
	}
	m.post(func(at frame.Time) {
		w.stats.Lateness.Observe(at - now)
		f(at)
	}, false)
	w.sleep.wake()
	return nil
}

// post adds a letter. The caller holds mu.
func (m *mailbox) post(f func(now frame.Time), last bool) chan struct{} {
	done := make(chan struct{})
	m.letters = append(m.letters, letter{f, last, done})
	m.pending.Store(true)
	return done
}

// deliver runs what waits and reports whether the worker goes on.
func (m *mailbox) deliver(now frame.Time) bool {
	m.mu.Lock()
	letters := m.letters
	m.letters = nil
	m.pending.Store(false)
	m.mu.Unlock()
	goOn := true
	for _, l := range letters {
		if l.f != nil {
			l.f(now)
		}
		goOn = goOn && !l.last
		close(l.done)
	}
	return goOn
}

// halt ends the thread. Do then runs on the caller again, until close.
func (w *Worker) halt() {
	m := &w.mail
	m.mu.Lock()
	if !m.running {
		m.mu.Unlock()
		return
	}
	m.post(nil, true)
	m.mu.Unlock()
	w.sleep.wake()
	<-w.gone
	m.mu.Lock()
	defer m.mu.Unlock()
	m.running = false
	for _, l := range m.letters { // after the last one
		l.f(w.engine.Now())
		close(l.done)
	}
	m.letters = nil
}
