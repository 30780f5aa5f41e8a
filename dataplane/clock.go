package dataplane

import (
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"gswitch/frame"
)

// MaxDilation is the largest Config.Dilation. With it, 63 bits of real nanoseconds still
// hold hours of the nodes' time, and one of their nanoseconds takes at most a real
// millisecond.
const MaxDilation = 1_000_000

// maxDelay keeps sums of instants and spans far from overflow.
const maxDelay = 3600 * frame.Second

// clock is the time of the nodes.
type clock struct {
	start  time.Time
	slowed bool  // the next fields apply
	by     int64 // Config.Dilation, at least 1
	held   atomic.Int64
	at     frame.Time // time before Release: Config.At
	began  int64      // CLOCK_MONOTONIC at start, in nanoseconds
	within int64      // uncertainty of began, in nanoseconds
}

// standing is the value of clock.held before Release, while time stands at clock.at.
// After Release, clock.held is the real time since the start during which the clock was
// stopped.
const standing = -1

func (c *clock) init(cfg *Config) (err error) {
	if cfg.Dilation < 0 || cfg.Dilation > MaxDilation {
		return fmt.Errorf("dataplane: a dilation of %d is not from 1 to %d", cfg.Dilation, MaxDilation)
	}
	if c.start, c.began, c.within, err = beginning(); err != nil {
		return err
	}
	c.by, c.slowed = max(1, cfg.Dilation), cfg.Dilation > 1 || cfg.Held || steps(cfg)
	if steps(cfg) && len(cfg.Workers) > 1 {
		return fmt.Errorf("dataplane: a worker with a step must be the only one, there are %d", len(cfg.Workers))
	}
	for _, w := range cfg.Workers {
		if w.Step < 0 || w.Step > maxDelay || w.IdleSpin < 0 || w.IdleSpin > maxDelay {
			return fmt.Errorf("dataplane: a step of %v or an idle spin of %v is not from 0 to %v", w.Step.Duration(), w.IdleSpin.Duration(), maxDelay.Duration())
		}
	}
	if cfg.Held {
		c.held.Store(standing)
		c.at = cfg.At
	}
	return nil
}

func steps(cfg *Config) bool {
	return slices.ContainsFunc(cfg.Workers, func(w WorkerConfig) bool { return w.Step > 0 })
}

// now returns the time of the nodes.
func (c *clock) now() frame.Time {
	t := time.Since(c.start)
	if c.slowed {
		return c.slow(t)
	}
	return frame.Time(t)
}

// slow returns the time of the nodes at real time t after the start.
func (c *clock) slow(t time.Duration) frame.Time {
	from := c.held.Load()
	if from == standing {
		return c.at
	}
	return frame.Time(max(0, int64(t)-from) / c.by)
}

// stand stops the clock for a time t that has already passed.
func (c *clock) stand(t frame.Time) { c.held.Add(c.real(t)) }

// real returns the real duration, in nanoseconds, of a span of the nodes' time.
func (c *clock) real(t frame.Time) int64 {
	if t > frame.Never/frame.Time(c.by) {
		return int64(frame.Never)
	}
	return int64(t) * c.by
}

// local returns the duration to the nodes of a real span, rounded down.
func (c *clock) local(t frame.Time) frame.Time { return t / frame.Time(c.by) }

// Now returns the time of the nodes: the time since the engine was made or, if it was
// held, since Release, divided by the dilation.
func (e *Engine) Now() frame.Time { return e.clock.now() }

// Dilation returns how many real nanoseconds one nanosecond of the nodes takes.
func (e *Engine) Dilation() int64 { return e.clock.by }

// Monotonic returns the value of CLOCK_MONOTONIC at an instant of the nodes, in
// nanoseconds, and its uncertainty.
func (e *Engine) Monotonic(t frame.Time) (at, within int64) {
	return e.clock.began + max(0, e.clock.held.Load()) + e.clock.real(t), e.clock.within
}

// Epoch returns the wall clock's time at frame.Time zero. If time is dilated, the two can
// only be compared at this instant.
func (e *Engine) Epoch() time.Time {
	return e.clock.start.Add(time.Duration(max(0, e.clock.held.Load())))
}

// Release starts the clock that Config.Held has stopped.
func (e *Engine) Release() { e.ReleaseAt(time.Now()) }

// ReleaseAt starts the clock at an instant on which the engines of several processes
// agree. Until then the clock stands at 0.
func (e *Engine) ReleaseAt(origin time.Time) {
	if e.clock.held.CompareAndSwap(standing, max(0, int64(origin.Sub(e.clock.start)))) {
		for _, w := range e.workers {
			w.sleep.wake() // it may be in a sleep that was computed at time 0
		}
	}
}
