// Package workers runs the parts of a network in virtual time on several cores. It
// implements sim.Workers: an engine starts no goroutine of its own.
package workers

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// Group is a goroutine for each part. That of the caller is part 0's; the others
// start with the first call of Run that needs them, and end with Stop. The zero
// value is ready.
type Group struct {
	workers []*worker    // of the parts from 1 on
	running atomic.Int32 // calls that have not returned
	barrier event        // none is running
	exited  sync.WaitGroup
}

// worker runs a part whenever there is something to do in it: always the same part,
// for the sake of its cache.
type worker struct {
	run    func(part int)
	rounds atomic.Uint32 // that it was given
	start  event
	stop   bool
}

// Run implements sim.Workers.
func (g *Group) Run(parts []int, run func(part int)) {
	for k := len(g.workers) + 1; k <= parts[len(parts)-1]; k++ {
		g.add(k)
	}
	g.running.Store(1)
	for _, p := range parts {
		if p > 0 {
			g.running.Add(1)
			g.workers[p-1].begin(run)
		}
	}
	if parts[0] == 0 {
		run(0)
	}
	if g.running.Add(-1) > 0 {
		g.barrier.wait(func() bool { return g.running.Load() == 0 })
	}
}

// add starts the worker of a part.
func (g *Group) add(part int) {
	if g.barrier.wake == nil {
		g.barrier.wake = make(chan struct{}, 1)
	}
	w := &worker{start: event{wake: make(chan struct{}, 1)}}
	g.workers = append(g.workers, w)
	g.exited.Go(func() {
		for round := uint32(1); ; round++ {
			w.start.wait(func() bool { return w.rounds.Load() == round })
			if w.stop {
				return
			}
			w.run(part)
			if g.running.Add(-1) == 0 {
				g.barrier.signal()
			}
		}
	})
}

// Stop implements sim.Workers.
func (g *Group) Stop() {
	for _, w := range g.workers {
		w.stop = true
		w.begin(nil)
	}
	g.exited.Wait()
	g.workers = nil
}

// begin starts the worker's next round.
func (w *worker) begin(run func(part int)) {
	w.run = run
	w.rounds.Add(1)
	w.start.signal()
}

// event lets one goroutine wait for a condition that others bring about. It spins
// before it sleeps, for as long as a window of a large network takes: parts differ by
// tens of microseconds, and to wake a goroutine whose core went idle takes 70 in a
// virtual machine. Where there are fewer processors than parts, it yields in between.
type event struct {
	asleep atomic.Bool // the goroutine sleeps, or is about to
	wake   chan struct{}
}

// spinsPerYield is how often one looks at the condition before it yields the processor.
const spinsPerYield = 128

// spinsPerSleep is how often one looks before it sleeps: half a millisecond where nobody
// else wants the processor. It is variable for tests, which have workers sleep.
var spinsPerSleep = 4096 * spinsPerYield

// wait returns when the condition holds.
func (e *event) wait(holds func() bool) {
	for spins := 1; !holds(); spins++ {
		switch {
		case spins < spinsPerSleep && spins%spinsPerYield == 0:
			runtime.Gosched()
		case spins >= spinsPerSleep:
			e.asleep.Store(true)
			if !holds() || !e.asleep.CompareAndSwap(true, false) {
				<-e.wake // it holds, or does so now
			}
			spins = 1
		}
	}
}

// signal is called after the condition was made to hold.
func (e *event) signal() {
	if e.asleep.CompareAndSwap(true, false) {
		e.wake <- struct{}{}
	}
}
