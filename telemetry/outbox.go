// Package telemetry holds what the systems share that report on traffic: the way
// of a finished report from a node to its exporter.
package telemetry

import "sync/atomic"

// Outbox carries reports from one node to one exporter and back, without either
// ever waiting for the other. It is made with all the reports that there will
// ever be; the node fills one, publishes it, and takes an empty one in its
// place. The exporter empties what it has sent, so that a worker never clears
// memory between two frames.
//
// Empty and Publish belong to the node's goroutine, Take and Return to the
// exporter's.
type Outbox[T any] struct {
	empty, full ring[T]
}

// NewOutbox returns an outbox with these reports, all empty.
func NewOutbox[T any](reports ...*T) *Outbox[T] {
	o := &Outbox[T]{}
	size := 1
	for size < len(reports) {
		size *= 2
	}
	o.empty.slots, o.full.slots = make([]*T, size), make([]*T, size)
	for _, r := range reports {
		o.empty.push(r)
	}
	return o
}

// Empty returns an empty report, or nil if the exporter has all of them: the
// node then goes on counting into the one that it has.
func (o *Outbox[T]) Empty() *T { return o.empty.pop() }

// Publish gives a filled report to the exporter.
func (o *Outbox[T]) Publish(r *T) { o.full.push(r) }

// Take returns the oldest report that was published, or nil.
func (o *Outbox[T]) Take() *T { return o.full.pop() }

// Return gives a report back, emptied.
func (o *Outbox[T]) Return(r *T) { o.empty.push(r) }

// ring has one writer and one reader. It holds every report of its outbox, so
// that a push always finds room.
type ring[T any] struct {
	slots []*T
	head  atomic.Uint64 // next to read
	tail  atomic.Uint64 // next to write
}

func (r *ring[T]) push(v *T) {
	t := r.tail.Load()
	r.slots[t&uint64(len(r.slots)-1)] = v
	r.tail.Store(t + 1)
}

func (r *ring[T]) pop() *T {
	h := r.head.Load()
	if h == r.tail.Load() {
		return nil
	}
	v := r.slots[h&uint64(len(r.slots)-1)]
	r.head.Store(h + 1)
	return v
}
