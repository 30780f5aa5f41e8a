package dataplane

import (
	"errors"
	"sync"
	"sync/atomic"

	"gswitch/frame"
)

// ErrStopped reports that the engine has been stopped.
var ErrStopped = errors.New("the engine has been stopped")

// mailbox holds functions that are to run on a worker.
type mailbox struct {
	pending atomic.Bool // letters is not empty; the loop checks nothing else

	mu      sync.Mutex
	letters []letter
	running bool // the thread processes the mailbox
	closed  bool
}

type letter struct {
	f    func(now frame.Time)
	last bool // the worker ends after it
	done chan struct{}
}

// Do runs f on the worker, between two loops, and returns when f has run. State that a
// worker owns must be accessed only in this way. Before the engine is started, f runs on
// the caller. After it was stopped, Do does not run f and returns ErrStopped. f must not
// block and must not call Do.
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

// Post makes f run on the worker as Do does, but does not wait for it. Other workers may
// call it. now is the caller's time; the delay until f runs is recorded in
// WorkerStats.Lateness.
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

// deliver runs the waiting functions and reports whether the worker continues.
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

// halt ends the thread. After that Do runs on the caller again, until close.
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
	for _, l := range m.letters { // posted after the last one
		l.f(w.engine.Now())
		close(l.done)
	}
	m.letters = nil
}
