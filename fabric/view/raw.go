package view

import (
	"sync/atomic"

	"gswitch/frame"
)

// A part is what one thread of the engine samples: the hosts, the flows and
// the switches that are stepped beside them, or one switch that is stepped
// elsewhere. Its two buffers go around between that thread, which fills one,
// and the collector, which reads the other: neither ever waits.
type part struct {
	nodes []int // of the topology
	flows bool

	ready atomic.Pointer[raw] // filled, not read yet
	free  atomic.Pointer[raw] // read
	own   *raw                // of the engine's thread
	last  *raw                // of the collector: what it read last
}

// raw is what nodes showed at an instant, all of it counted since the start.
type raw struct {
	at    frame.Time
	ports []rawPort // those of the part's nodes, in order
	drops uint64    // frames lost at the part's nodes

	flows  []rawFlow
	losses []Loss
	ways   []Way
	open   int
	ended  uint64
}

type rawPort struct {
	up, host             bool
	sent, queue, peak    uint64
	drops, marks, pauses uint64
	paused, asked        uint8
	stopped              [8]frame.Time // how long the neighbour stopped each class
	class                [8]Class
}

// rawFlow is a connection.
type rawFlow struct {
	key           uint64 // of the connection
	id            uint64
	group         int
	src, dst      int // nodes
	path          []End
	control       string
	rate, window  float64
	flight        uint64
	acked, posted uint64
	inside        [maxInside]inside
	insides       int
}

type inside struct {
	name  string
	value float64
}

// Bounds of what is noted of flows: how many, and how many internals of each.
const (
	maxRawFlows = 1024
	maxInside   = 12
)

// buffer returns the buffer to fill, nil if the collector has not read the one
// before.
func (p *part) buffer() *raw {
	if p.ready.Load() != nil {
		return nil
	}
	if p.own == nil {
		p.own = p.free.Swap(nil)
	}
	return p.own
}

// hand gives the filled buffer to the collector.
func (p *part) hand() {
	p.ready.Store(p.own)
	p.own = p.free.Swap(nil)
}

// take returns what was handed over last, nil if nothing ever was.
func (p *part) take() *raw {
	if r := p.ready.Swap(nil); r != nil {
		if p.last != nil {
			p.free.Store(p.last)
		}
		p.last = r
	}
	return p.last
}
