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
	gone  sync.WaitGroup
}

// mate runs a part in each window that has something for it.
type mate struct {
	p    *part
	to   frame.Time
	turn atomic.Uint32 // windows that it was given
	wait atomic.Bool   // it sleeps, or is about to
	wake chan struct{}
	end  bool
}

// run runs the parts that have something to do before an instant.
func (c *crew) run(parts []*part, to frame.Time) {
	if c.mates == nil {
		c.start(parts[1:])
	}
	for _, m := range c.mates {
		if m.p.queue.next() < to {
			c.busy.Add(1)
			m.give(to)
		}
	}
	if parts[0].queue.next() < to {
		parts[0].runTo(to)
	}
	for spins := 0; c.busy.Load() > 0; spins++ {
		if spins%spinsEach == spinsEach-1 {
			runtime.Gosched()
		}
	}
}

// A mate looks for its turn so often before it sleeps: windows follow each other
// within microseconds, and waking somebody takes as long. Where there are fewer
// processors than parts, others get theirs in between.
const (
	spinsEach = 256
	spinsMost = 64 * spinsEach
)

func (c *crew) start(parts []*part) {
	for _, p := range parts {
		m := &mate{p: p, wake: make(chan struct{}, 1)}
		c.mates = append(c.mates, m)
		c.gone.Add(1)
		go func() {
			defer c.gone.Done()
			for turn := uint32(1); ; turn++ {
				if m.await(turn); m.end {
					return
				}
				m.p.runTo(m.to)
				c.busy.Add(-1)
			}
		}()
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
	m.turn.Add(1)
	if m.wait.CompareAndSwap(true, false) {
		m.wake <- struct{}{}
	}
}

// await returns when a turn has begun.
func (m *mate) await(turn uint32) {
	for spins := 0; m.turn.Load() != turn; spins++ {
		switch {
		case spins < spinsMost && spins%spinsEach == spinsEach-1:
			runtime.Gosched()
		case spins >= spinsMost:
			m.wait.Store(true)
			if m.turn.Load() != turn || !m.wait.CompareAndSwap(true, false) {
				<-m.wake // it has begun, or begins now
			}
			spins = 0
		}
	}
}

// rest ends what Run began.
func (e *Engine) rest() { e.ahead.crew.stop() }
