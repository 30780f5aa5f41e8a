package workload

import (
	"fmt"

	"gswitch/frame"
)

// Flow is one message.
type Flow struct {
	At       frame.Time // when it is posted
	Src, Dst int32      // hosts
	Bytes    uint64     // payload
	// Conn is the connection that carries it: -1 for one of its own, opened
	// for it and closed after it; else a number, which together with Src and
	// Dst names a connection of this source that stays open.
	Conn int32
	// Event is the number of the incast, round, request or query that the
	// flow belongs to. What belongs together is complete when all its flows are.
	Event uint32
	// Step distinguishes the flows of an event that follow each other: 0 for
	// requests and queries, 1 for what answers them.
	Step uint8

	// Retrieval is the number, from 1 on, of the request with its answer that
	// the message is a part of; 0: the message is a flow of its own. Answer is
	// the bytes of the answer, which count as those of the whole, and Final
	// returns the answer itself.
	Retrieval uint32
	Answer    uint64
	Final     bool
}

// Opens reports whether the message stands for what opens a TCP connection: a
// SYN, or the SYN with the acknowledgement that answers it.
func (f *Flow) Opens() bool { return f.Retrieval != 0 && f.Step <= accepting }

// Source is a stream of flows. A source whose flows wait for others to end
// is informed by Done.
type Source interface {
	// Peek returns when the next flow starts, frame.Never if none is known
	// before the next Done.
	Peek() frame.Time
	// Pop takes the next flow. Only after Peek returned an instant.
	Pop() Flow
	// Done says that a flow of this source has arrived wholly.
	Done(now frame.Time, f *Flow)
}

// pending holds flows that are known, ordered by time and then by the order
// in which they were pushed.
type pending struct {
	heap []entry
	seq  uint64
}

type entry struct {
	f   Flow
	seq uint64
}

func (p *pending) Peek() frame.Time {
	if len(p.heap) == 0 {
		return frame.Never
	}
	return p.heap[0].f.At
}

func (p *pending) push(f Flow) {
	p.heap = append(p.heap, entry{f, p.seq})
	p.seq++
	for i := len(p.heap) - 1; i > 0; {
		up := (i - 1) / 2
		if !p.heap[i].before(&p.heap[up]) {
			return
		}
		p.heap[i], p.heap[up] = p.heap[up], p.heap[i]
		i = up
	}
}

// Pop implements Source for those that only push.
func (p *pending) Pop() Flow {
	f := p.heap[0].f
	last := len(p.heap) - 1
	p.heap[0] = p.heap[last]
	p.heap = p.heap[:last]
	for i := 0; ; {
		least := i
		for c := 2*i + 1; c <= 2*i+2 && c < last; c++ {
			if p.heap[c].before(&p.heap[least]) {
				least = c
			}
		}
		if least == i {
			return f
		}
		p.heap[i], p.heap[least] = p.heap[least], p.heap[i]
		i = least
	}
}

func (e *entry) before(o *entry) bool {
	return e.f.At < o.f.At || e.f.At == o.f.At && e.seq < o.seq
}

// gap draws the time to the next event of a Poisson process, in whole
// nanoseconds.
func gap(r *frame.Rand, perSecond float64) frame.Time {
	g := float64(-ln(1-r.Float64()) / perSecond * 1e9)
	return frame.Time(min(g+0.5, 1<<62))
}

// maxRate is one event a nanosecond: of a faster process most gaps are rounded
// to nothing, so that time would not go on.
const maxRate = 1e9

// checkRate says whether a Poisson process can be that fast.
func checkRate(perSecond float64, what string) error {
	if perSecond > maxRate {
		return fmt.Errorf("%.3g %s per second are more than one a nanosecond; lower the load or the rate, or make them larger", perSecond, what)
	}
	return nil
}

// maxPosted bounds what a source keeps posted at once: its entries take some
// hundred bytes each, and so do their connections.
const maxPosted = 1 << 22

// checkPosted says whether n of them may each keep so much posted.
func checkPosted(n int, who string, each int, what string) error {
	if each > 0 && n > maxPosted/each {
		return fmt.Errorf("%d %s with %d %s each are more than the %d that can be posted at once; lower them", n, who, each, what, maxPosted)
	}
	return nil
}

// shuffle permutes v (Fisher and Yates).
func shuffle(r *frame.Rand, v []int32) {
	for i := len(v) - 1; i > 0; i-- {
		j := r.Uint32n(uint32(i + 1))
		v[i], v[j] = v[j], v[i]
	}
}

// derangement pairs every host of from with another one of to, such that no
// host is paired with itself. Hosts of to repeat only where from has more.
func derangement(r *frame.Rand, from, to []int32) ([]int32, error) {
	if len(to) == 1 && len(from) >= 1 && from[0] == to[0] && len(from) == 1 {
		return nil, fmt.Errorf("host %d has no other host to send to", from[0])
	}
	var dst []int32
	for len(dst) < len(from) {
		part := append([]int32(nil), to...)
		shuffle(r, part)
		dst = append(dst, part...)
	}
	dst = dst[:len(from)]
	for i := range from {
		if dst[i] != from[i] {
			continue
		}
		// A swap with any place that keeps both apart resolves it.
		start, resolved := int(r.Uint32n(uint32(len(from)))), false
		for k := range from {
			j := (start + k) % len(from)
			if dst[j] != from[i] && dst[i] != from[j] {
				dst[i], dst[j], resolved = dst[j], dst[i], true
				break
			}
		}
		if !resolved {
			return nil, fmt.Errorf("host %d cannot be paired with another one", from[i])
		}
	}
	return dst, nil
}

// other draws a host of v that is not h. v has one.
func other(r *frame.Rand, v []int32, h int32) int32 {
	for {
		if d := v[r.Uint32n(uint32(len(v)))]; d != h {
			return d
		}
	}
}

// checkPair says whether every host of from has another one in to.
func checkPair(from, to []int32) error {
	switch {
	case len(from) == 0:
		return fmt.Errorf("no host sends")
	case len(to) == 0:
		return fmt.Errorf("no host receives")
	}
	first := to[0]
	for _, d := range to {
		if d != first {
			return nil
		}
	}
	for _, s := range from {
		if s == first {
			return fmt.Errorf("the only receiver is also a sender and would send to itself")
		}
	}
	return nil
}
