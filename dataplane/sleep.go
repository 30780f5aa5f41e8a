package dataplane

import (
	"fmt"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"gswitch/frame"
)

// In real time, even if the nodes' time is dilated.
const (
	// A wake-up takes some tens of microseconds, so an adaptive worker spins through
	// shorter gaps between timers.
	spinMargin = 50 * frame.Microsecond
	// A port that accepts no frames is retried after this time.
	retryBlocked = 50 * frame.Microsecond
	// The longest sleep. A worker is woken for all work; this bounds the damage of a
	// driver that fails to do so.
	longestSleep = 1 * frame.Second
)

// pace holds a worker's waiting times in the nodes' time. If time is dilated, a span
// below one nanosecond of the nodes is 0.
type pace struct {
	clock                    *clock
	idle, margin, retry, max frame.Time
}

func (p *pace) init(c *clock, idle frame.Time) {
	*p = pace{c, c.local(idle), c.local(spinMargin), max(1, c.local(retryBlocked)), max(1, c.local(longestSleep))}
}

// sleeper is how a worker waits and is woken.
type sleeper struct {
	// asleep is set before the last check for work and cleared after waking: whatever
	// adds work after that check sees it and wakes the worker.
	asleep   atomic.Bool
	bell     int // eventfd
	fds      []unix.PollFd
	stale    bool // fds must be rebuilt: ports changed
	timeout  unix.Timespec
	lastBusy frame.Time
}

func (s *sleeper) open() error {
	fd, err := unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC)
	if err != nil {
		return fmt.Errorf("eventfd: %w", err)
	}
	s.bell, s.stale = fd, true
	return nil
}

func (s *sleeper) close() { unix.Close(s.bell) }

var one = []byte{1, 0, 0, 0, 0, 0, 0, 0}

// wake ends the worker's sleep, if it is asleep. Any goroutine may call it. It costs one
// atomic load if the worker is awake.
func (s *sleeper) wake() {
	if s.asleep.Load() {
		unix.Write(s.bell, one)
	}
}

// Wake makes the worker check its nodes now if it is asleep. It is for callers that give
// a node work through shared memory that the node's Wake checks. It costs one atomic load
// if the worker is awake.
func (w *Worker) Wake() { w.sleep.wake() }

// idle decides what to do before the next loop.
func (w *Worker) idle(now frame.Time) {
	s := &w.sleep
	w.due = 0
	if w.moved {
		s.lastBusy = now
		w.noteWakes(now)
		return
	}
	wake := w.nextWake(now)
	w.due = wake
	switch w.config.Poll {
	case Spin:
		return
	case Adaptive:
		if now-s.lastBusy < w.pace.idle || wake-now < w.pace.margin {
			return
		}
	case Sleep:
		if wake <= now {
			return
		}
	}

	s.asleep.Store(true)
	wake = w.nextWake(now)
	w.due = wake
	if wake > now && !w.mail.pending.Load() {
		w.doze(now, min(wake-now, w.pace.max))
	}
	s.asleep.Store(false)
}

// doze waits for a frame, a wake-up call or the timeout, which is in the nodes' time.
// Frames for a node that is paused or full do not wake the worker.
func (w *Worker) doze(now, timeout frame.Time) {
	s := &w.sleep
	if s.stale {
		s.fds = append(s.fds[:0], unix.PollFd{Fd: int32(s.bell), Events: unix.POLLIN})
		s.stale = false
		for _, l := range w.ports {
			switch {
			case l.dev == nil:
			case !l.node.accepts(now):
				s.stale = true
			default:
				s.fds = l.dev.pollFDs(s.fds)
			}
		}
	}
	ns := w.pace.clock.real(timeout)
	if w.config.Poll == Adaptive && ns > int64(spinMargin) {
		ns -= int64(spinMargin) // spin for the rest, so that the thread acts on time
	}
	s.timeout = unix.NsecToTimespec(ns)
	w.stats.Sleeps++
	// The result does not matter: the next loop checks everything.
	unix.Ppoll(s.fds, &s.timeout, nil)
	if s.fds[0].Revents != 0 {
		var b [8]byte
		unix.Read(s.bell, b[:])
		w.stats.Wakeups++
	}
}

// nextWake returns when there will be work even if nothing arrives, and keeps it for the
// lateness histogram.
func (w *Worker) nextWake(now frame.Time) frame.Time {
	wake, blocked, gate := w.noteWakes(now), false, frame.Never
	for _, l := range w.ports {
		if l.dev == nil {
			continue
		}
		if l.node.accepts(now) {
			wake = min(wake, l.dev.wake(now))
		}
		if l.blocked {
			blocked = true
		} else if l.delay != nil {
			wake = min(wake, l.arrives())
		}
		if l.fault != nil && l.fault.free > now {
			blocked, gate = true, min(gate, l.fault.free)
		}
	}
	if blocked {
		// A node that returns now has work that its port cannot take. Everything else
		// that was due has just been done.
		if wake <= now {
			wake = now + w.pace.retry
		}
		wake = min(wake, now+w.pace.retry, gate)
	}
	return wake
}

// noteWakes asks every node for its next instant.
func (w *Worker) noteWakes(now frame.Time) frame.Time {
	wake := frame.Never
	for _, n := range w.nodes {
		at := n.until
		if at <= now {
			at = n.Wake(now)
		}
		n.wake = frame.Never
		if at > now {
			n.wake = at
		}
		wake = min(wake, at)
	}
	return wake
}
