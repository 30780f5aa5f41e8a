package sim

import (
	"runtime"
	"sync"
	"sync/atomic"

	"gswitch/frame"
)

// crew is the goroutines that run parts. That of Run is one of them; the others
// come when there is the first window, and go when Run returns.
type crew struct {
	mates []*mate
	busy  atomic.Int32 // who has not ended the window
	ended signal       // nobody is busy
	gone  sync.WaitGroup
}

// mate runs a part in each window that has something for it.
type mate struct {
	p     *part
	to    frame.Time
	turns atomic.Uint32 // windows that it was given
	given signal
	end   bool
}

// run runs the parts that have something to do before an instant.
func (c *crew) run(parts []*part, to frame.Time) {
	if c.mates == nil {
		c.start(parts[1:])
	}
	c.busy.Store(1)
	for _, m := range c.mates {
		if m.p.queue.next() < to {
			c.busy.Add(1)
			m.give(to)
		}
	}
	if parts[0].queue.next() < to {
		parts[0].runTo(to)
	}
	if c.busy.Add(-1) > 0 {
		c.ended.await(func() bool { return c.busy.Load() == 0 })
	}
}

func (c *crew) start(parts []*part) {
	c.ended.wake = make(chan struct{}, 1)
	for _, p := range parts {
		m := &mate{p: p, given: signal{wake: make(chan struct{}, 1)}}
		c.mates = append(c.mates, m)
		c.gone.Go(func() {
			for turn := uint32(1); ; turn++ {
				m.given.await(func() bool { return m.turns.Load() == turn })
				if m.end {
					return
				}
				m.p.runTo(m.to)
				if c.busy.Add(-1) == 0 {
					c.ended.give()
				}
			}
		})
	}
}

// stop ends the goroutines.
func (c *crew) stop() {
	for _, m := range c.mates {
		m.end = true
		m.give(0)
	}
	c.gone.Wait()
	c.mates = nil
}

// give begins the next turn.
func (m *mate) give(to frame.Time) {
	m.to = to
	m.turns.Add(1)
	m.given.give()
}

// rest ends what Run began.
func (e *Engine) rest() { e.ahead.crew.stop() }

// signal lets one goroutine wait for what others bring about. It looks for a while
// before it sleeps: windows follow each other within microseconds, and to wake
// somebody takes as long. Where there are fewer processors than parts, others get
// theirs in between.
type signal struct {
	asleep atomic.Bool // it sleeps, or is about to
	wake   chan struct{}
}

const (
	looksEach = 128            // looks before others get the processor
	looksMost = 64 * looksEach // looks before it sleeps
)

// await returns when what was waited for is so.
func (s *signal) await(so func() bool) {
	for looks := 1; !so(); looks++ {
		switch {
		case looks < looksMost && looks%looksEach == 0:
			runtime.Gosched()
		case looks >= looksMost:
			s.asleep.Store(true)
			if !so() || !s.asleep.CompareAndSwap(true, false) {
				<-s.wake // it is so, or becomes so now
			}
			looks = 1
		}
	}
}

// give is called by who has made it so.
func (s *signal) give() {
	if s.asleep.CompareAndSwap(true, false) {
		s.wake <- struct{}{}
	}
}
