package dataplane

import (
	"golang.org/x/sys/unix"

	"gswitch/frame"
)

// device is the loop's interface to what is below a port. Only the worker calls its
// methods, once per vector, and they never block.
type device interface {
	// complete frees what has been sent.
	complete(p *frame.Pool)
	// note records what has arrived so far; receive then returns no more than that. A
	// worker calls note before it reads the clock, so whatever it receives had arrived by
	// that instant, even if the worker was preempted in between.
	note()
	// receive returns up to len(out) frames that have arrived.
	receive(now frame.Time, p *frame.Pool, out []frame.Ref) int
	// room returns how many frames transmit accepts now if at most depth may wait.
	room(depth int) int
	// transmit accepts frames from the front of v and returns how many. The device then
	// owns them.
	transmit(now frame.Time, p *frame.Pool, v []frame.Ref) int
	// fill gives the device free chunks to receive into.
	fill(p *frame.Pool)
	// kick makes the kernel send what was handed over, if the kernel must be told, and
	// reports whether frames are left that need another kick.
	kick() (left bool)
	// wake returns when receive will have something without any notification of the
	// worker: now, a later time, or Never if the device's descriptors signal it.
	wake(now frame.Time) frame.Time
	// pollFDs appends the descriptors that become ready when frames arrive.
	pollFDs(fds []unix.PollFd) []unix.PollFd
	// release frees the frames that the device itself still owns.
	release(p *frame.Pool)
	// eachHeld calls f with every chunk that the device owns.
	eachHeld(a *frame.Arena, f func(chunk frame.Ref))
}

// null discards what is sent and receives nothing.
type null struct{}

func (null) complete(*frame.Pool)                             {}
func (null) note()                                            {}
func (null) receive(frame.Time, *frame.Pool, []frame.Ref) int { return 0 }
func (null) room(depth int) int                               { return depth }
func (null) fill(*frame.Pool)                                 {}
func (null) kick() bool                                       { return false }
func (null) wake(frame.Time) frame.Time                       { return frame.Never }
func (null) pollFDs(fds []unix.PollFd) []unix.PollFd          { return fds }
func (null) release(*frame.Pool)                              {}
func (null) eachHeld(*frame.Arena, func(frame.Ref))           {}
func (null) transmit(_ frame.Time, p *frame.Pool, v []frame.Ref) int {
	for _, r := range v {
		p.Free(r)
	}
	return len(v)
}
