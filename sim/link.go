package sim

import (
	"gswitch/fault"
	"gswitch/frame"
)

// direction is one way of a link: from the egress port of a node to a port of
// another. Frames in flight are a queue, since a link delivers in order, so a
// direction has one arrival pending, that of the first.
type direction struct {
	flight   flight
	free     frame.Time // when the sender's side has sent what it was given
	last     frame.Time // when the last frame in flight arrives
	delay    frame.Time
	txAt     frame.Time // when the port has a frame to send, as the queue knows it
	digest   uint64
	from, to int32
	fromPort uint16
	toPort   uint16
	up       bool
	apart    bool    // its ends are in two parts
	foreseen bool    // the node at its end is asked of each frame whether it may end something
	fault    *faulty // nil: nothing ever went wrong here

	handed, delivered uint64
}

// flight is a ring of the frames in flight. It grows to what the link holds.
type flight struct {
	ring       []inFlight // a power of two
	head, tail uint32
}

type inFlight struct {
	at    frame.Time
	ref   frame.Ref
	cause fault.Loss // why it does not arrive, if so
}

func (f *flight) len() int { return int(f.tail - f.head) }

// due reports whether the first frame arrives at now or before.
func (f *flight) due(now frame.Time) bool { return f.head != f.tail && f.first().at <= now }

// first returns the frame that arrives first; there must be one.
func (f *flight) first() *inFlight { return &f.ring[f.head&uint32(len(f.ring)-1)] }

func (f *flight) pop() inFlight {
	x := *f.first()
	f.head++
	return x
}

// push appends a frame and reports whether it is alone.
func (f *flight) push(at frame.Time, r frame.Ref) bool { return f.add(inFlight{at: at, ref: r}) }

func (f *flight) add(x inFlight) bool {
	if f.len() == len(f.ring) {
		f.grow()
	}
	f.ring[f.tail&uint32(len(f.ring)-1)] = x
	f.tail++
	return f.tail-f.head == 1
}

func (f *flight) grow() {
	ring := make([]inFlight, max(16, 2*len(f.ring)))
	n := 0
	for ; f.len() > 0; n++ {
		ring[n] = f.pop()
	}
	f.ring, f.head, f.tail = ring, 0, uint32(n)
}
