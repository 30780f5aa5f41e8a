package orders

import (
	"slices"

	"gswitch/frame"
)

// gated is a model of an order that refuses frames as they come.
type gated interface {
	model
	admits(it *item) bool
}

// strict is a model by strict queues, first in first out each: key is the queue.
type strict struct {
	slice
	depth int // of each, 0: any
	pick  func(m *strict, it *item) (queue int64, ok bool)
	at    int64
}

func (m *strict) waiting(queue int64) (n int) {
	for i := range m.v {
		if m.v[i].key == queue {
			n++
		}
	}
	return n
}

func (m *strict) admits(it *item) (ok bool) {
	m.at, ok = m.pick(m, it)
	return ok
}

func (m *strict) put(_ frame.Time, it item) {
	it.key = m.at
	m.v = append(m.v, it)
}

// spPIFO is algorithm 1 of SP-PIFO: from the lowest queue up, the first whose bound is
// not above the rank takes it, and its bound is the rank then; where none does, all
// bounds go down by what the highest lacks.
func spPIFO(queues, depth int) *strict {
	bounds := make([]int64, queues)
	return &strict{depth: depth, pick: func(m *strict, it *item) (int64, bool) {
		at := 0
		for i := range slices.Backward(bounds) {
			if it.rank >= bounds[i] {
				at = i
				break
			}
		}
		if lack := bounds[0] - it.rank; at == 0 && lack > 0 {
			for i := range bounds {
				bounds[i] -= lack
			}
		} else {
			bounds[at] = it.rank
		}
		return int64(at), depth == 0 || m.waiting(int64(at)) < depth
	}}
}

// quantiles is algorithm 1 of PACKS, without headroom.
func quantiles(queues, depth, window int) *strict {
	var seen []int64
	return &strict{depth: depth, pick: func(m *strict, it *item) (int64, bool) {
		seen = append(seen, it.rank)
		seen = seen[max(0, len(seen)-window):]
		below := 0
		for _, r := range seen {
			if r < it.rank {
				below++
			}
		}
		free := 0
		for q := range queues {
			room := depth - m.waiting(int64(q))
			free += room
			if room > 0 && below*queues*depth <= free*len(seen) {
				return int64(q), true
			}
		}
		return 0, false
	}}
}

// ports is VOQ: frames of an ingress port in their order, the ports in turn.
type ports struct {
	slice
	turn uint32
}

const inPorts = 7

func (m *ports) put(now frame.Time, it item) {
	if len(m.v) == 0 {
		m.turn = it.hash % inPorts
	}
	m.slice.put(now, it)
}

func (m *ports) serve() int {
	return slices.IndexFunc(m.v, func(it item) bool { return it.hash%inPorts == m.turn })
}

func (m *ports) take(i int, served bool) item {
	it := m.slice.take(i, served)
	for range inPorts {
		if m.turn = (m.turn + 1) % inPorts; m.serve() >= 0 {
			break
		}
	}
	return it
}
