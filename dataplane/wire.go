package dataplane

import (
	"golang.org/x/sys/unix"

	"gswitch/frame"
)

// wireFrames is the capacity of each direction of a wire in frames.
const wireFrames = 1024

// wire is a link in memory between two ports of an engine. Frames cross it by Ref,
// without a copy, through a single-producer single-consumer ring for each direction,
// whether or not both ends are on the same worker.
type wire struct {
	name  string
	rings [2]*frame.Ring
	ends  [2]*Port // nil if no port is attached
}

// wireEnd is the device of one end.
type wireEnd struct {
	out, in *frame.Ring
	far     *Worker
	noted   int // frames that receive may take; -1: all
}

// end returns the device of end i. Both ends must be attached.
func (l *wire) end(i int) *wireEnd {
	return &wireEnd{out: l.rings[i], in: l.rings[1-i], far: l.ends[1-i].worker, noted: -1}
}

func (e *wireEnd) note() { e.noted = e.in.Len() }

func (e *wireEnd) receive(_ frame.Time, _ *frame.Pool, out []frame.Ref) int {
	if e.noted < 0 {
		return e.in.Pop(out)
	}
	n := e.in.Pop(out[:min(len(out), e.noted)])
	e.noted -= n
	return n
}

func (e *wireEnd) room(depth int) int { return min(depth, wireFrames) - e.out.Len() }

func (e *wireEnd) transmit(_ frame.Time, p *frame.Pool, v []frame.Ref) int {
	for _, r := range v {
		// The far node treats the frame as new: only its geometry is passed on.
		m := p.Meta(r)
		*m = frame.Meta{Head: m.Head, Len: m.Len, Wire: m.Wire, Next: m.Next,
			QNext: frame.Nil, QPrev: frame.Nil, InPort: frame.NoPort, OutPort: frame.NoPort}
	}
	n := e.out.Push(v)
	e.far.sleep.wake()
	return n
}

func (e *wireEnd) wake(now frame.Time) frame.Time {
	if e.in.Len() > 0 {
		return now
	}
	return frame.Never
}

// release empties the receiving direction. The far end does the same with the sending
// one.
func (e *wireEnd) release(p *frame.Pool) {
	var v [vector]frame.Ref
	for n := e.in.Pop(v[:]); n > 0; n = e.in.Pop(v[:]) {
		for _, r := range v[:n] {
			p.Free(r)
		}
	}
}

func (e *wireEnd) eachHeld(a *frame.Arena, f func(chunk frame.Ref)) {
	for _, ring := range []*frame.Ring{e.in, e.out} {
		ring.Each(func(r frame.Ref) { eachChunk(a, r, f) })
	}
}

func (e *wireEnd) complete(*frame.Pool)                    {}
func (e *wireEnd) fill(*frame.Pool)                        {}
func (e *wireEnd) kick() bool                              { return false }
func (e *wireEnd) pollFDs(fds []unix.PollFd) []unix.PollFd { return fds }
