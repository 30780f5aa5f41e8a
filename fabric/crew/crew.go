// Package crew runs the parts of a network in virtual time on several cores. It is
// the sim.Crew of fabric: an engine starts no goroutine of its own.
package crew

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// Crew is goroutines that run parts. That of the caller is one of them, for part 0;
// the others come with the first call of Side, and go with Rest. The zero value is
// ready.
type Crew struct {
	mates []*mate
	busy  atomic.Int32 // who has not returned
	ended signal       // nobody is busy
	gone  sync.WaitGroup
}

// mate runs a part whenever there is something for it: always the same, for the sake
// of its cache.
type mate struct {
	run   func(part int)
	turns atomic.Uint32 // that it was given
	given signal
	end   bool
}

// Side implements sim.Crew.
func (c *Crew) Side(parts []int, run func(part int)) {
	for k := len(c.mates) + 1; k <= parts[len(parts)-1]; k++ {
		c.hire(k)
	}
	c.busy.Store(1)
	for _, p := range parts {
		if p > 0 {
			c.busy.Add(1)
			c.mates[p-1].give(run)
		}
	}
	if parts[0] == 0 {
		run(0)
	}
	if c.busy.Add(-1) > 0 {
		c.ended.await(func() bool { return c.busy.Load() == 0 })
	}
}

func (c *Crew) hire(part int) {
	if c.ended.wake == nil {
		c.ended.wake = make(chan struct{}, 1)
	}
	m := &mate{given: signal{wake: make(chan struct{}, 1)}}
	c.mates = append(c.mates, m)
	c.gone.Go(func() {
		for turn := uint32(1); ; turn++ {
			m.given.await(func() bool { return m.turns.Load() == turn })
			if m.end {
				return
			}
			m.run(part)
			if c.busy.Add(-1) == 0 {
				c.ended.give()
			}
		}
	})
}

// Rest implements sim.Crew.
func (c *Crew) Rest() {
	for _, m := range c.mates {
		m.end = true
		m.give(nil)
	}
	c.gone.Wait()
	c.mates = nil
}

// give begins the next turn.
func (m *mate) give(run func(part int)) {
	m.run = run
	m.turns.Add(1)
	m.given.give()
}

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
