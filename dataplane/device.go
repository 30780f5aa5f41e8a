package dataplane

import (
	"golang.org/x/sys/unix"

	"gswitch/frame"
)

// device is what the loop needs of whatever lies below a port. Its methods
// are called by the worker alone, once per vector, and never block.
type device interface {
	// complete frees what has been sent.
	complete(p *frame.Pool)
	// note looks at what has arrived by now; receive returns no more than that
	// then. A worker notes before it reads the clock: whatever it receives was
	// there at that instant, even if it was kept from its processor in between.
	note()
	// receive returns up to len(out) frames that arrived.
	receive(now frame.Time, p *frame.Pool, out []frame.Ref) int
	// room returns how many frames transmit takes now, if no more than depth
	// may wait.
	room(depth int) int
	// transmit takes frames from the front of v and returns how many. They
	// are the device's from then on.
	transmit(now frame.Time, p *frame.Pool, v []frame.Ref) int
	// fill gives the device free chunks to receive into.
	fill(p *frame.Pool)
	// kick makes the kernel send what was handed over, if it must be notified,
	// and reports whether frames are left that need another kick.
	kick() (left bool)
	// wake returns when receive will have something although nothing wakes
	// the worker: now, or Never where the device's descriptors say so.
	wake(now frame.Time) frame.Time
	// pollFDs appends the descriptors that become ready when frames arrive.
	pollFDs(fds []unix.PollFd) []unix.PollFd
	// release frees the frames that the device itself still owns.
	release(p *frame.Pool)
	// eachHeld calls f with every chunk that is the device's.
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
