package orders

import (
	"math"
	"testing"

	"gswitch/frame"
	"gswitch/scheduler"
)

// lots is Random: the frame that leaves, or is given up, is drawn from all that wait with the
// numbers of the seed. One that was drawn and did not leave is drawn again when another
// one comes, or when one is given up.
type lots struct {
	slice
	rng   frame.Rand
	drawn bool
}

func (m *lots) put(now frame.Time, it item) {
	m.slice.put(now, it)
	m.drawn = false
}

// draw puts the one that was drawn last, and the last in its place.
func (m *lots) draw() int {
	n := len(m.v)
	if !m.drawn {
		i := m.rng.Uint32n(uint32(n))
		m.v[i], m.v[n-1] = m.v[n-1], m.v[i]
		m.drawn = true
	}
	return n - 1
}

func (m *lots) serve() int { return m.draw() }

func (m *lots) victim() int {
	m.drawn = false
	return m.draw()
}

func (m *lots) take(i int, served bool) item {
	m.drawn = false
	return m.slice.take(i, served)
}

var shortCoDel = CoDel{Target: 100, Interval: 400}

// rfc8289 is CoDel in the words of RFC 8289 section 5, with its loop.
type rfc8289 struct {
	firstAbove, dropNext frame.Time
	count, lastCount     int
	dropping             bool
}

func (s *rfc8289) law(t frame.Time) frame.Time {
	return t + frame.Time(float64(shortCoDel.Interval)/math.Sqrt(float64(s.count)))
}

// codels is FQ of RFC 8290 section 4.2 with a CoDel for each flow.
type codels struct {
	turns
	state   map[uint64]*rfc8289
	arrived map[frame.Ref]frame.Time
}

func (m *codels) put(now frame.Time, it item) {
	if m.arrived == nil {
		m.arrived = map[frame.Ref]frame.Time{}
	}
	m.arrived[it.ref] = now
	m.turns.put(now, it)
}

// dodequeue takes the first packet of a flow, -1 if it has none, and says whether
// CoDel may drop it.
func (m *codels) dodequeue(f uint64, now frame.Time) (it item, some, ok bool) {
	s := m.state[f]
	at, bytes := -1, 0
	for i := range m.v {
		if m.flow(&m.v[i]) != f {
			continue
		}
		if at < 0 {
			at = i
		} else {
			bytes += int(m.v[i].wire)
		}
	}
	if at < 0 {
		s.firstAbove = 0
		return item{}, false, false
	}
	it = m.slice.take(at, true)
	switch {
	case now-m.arrived[it.ref] < shortCoDel.Target || bytes <= 1514:
		s.firstAbove = 0
	case s.firstAbove == 0:
		s.firstAbove = now + shortCoDel.Interval
	default:
		ok = now >= s.firstAbove
	}
	return it, true, ok
}

// dequeue returns the frames that are dropped, and the one that leaves, if any does.
func (m *codels) dequeue(now frame.Time) (dropped []item, out item, some bool) {
	for len(m.v) > 0 {
		f := m.flow(&m.v[m.serve()])
		if m.state[f] == nil {
			m.state[f] = &rfc8289{}
		}
		s := m.state[f]
		it, some, ok := m.dodequeue(f, now)
		switch {
		case s.dropping:
			if !ok {
				s.dropping = false
			}
			for s.dropping && now >= s.dropNext {
				dropped = append(dropped, it)
				s.count++
				if it, some, ok = m.dodequeue(f, now); !ok {
					s.dropping = false
				} else {
					s.dropNext = s.law(s.dropNext)
				}
			}
		case ok:
			dropped = append(dropped, it)
			it, some, _ = m.dodequeue(f, now)
			s.dropping = true
			delta := s.count - s.lastCount
			s.count = 1
			if delta > 1 && now-s.dropNext < 16*shortCoDel.Interval {
				s.count = delta
			}
			s.dropNext, s.lastCount = s.law(now), s.count
		}
		if some {
			m.deficit[f] -= int(it.wire)
			return dropped, it, true
		}
	}
	m.idle()
	return dropped, item{}, false
}

// check has a discipline drop and serve what the model does, and returns how many
// frames were dropped.
func (m *codels) check(t *testing.T, a *frame.Arena, d scheduler.Discipline, now frame.Time, free func(frame.Ref)) int {
	t.Helper()
	dropped, out, some := m.dequeue(now)
	s := d.(scheduler.Shedder)
	for i := 0; ; i++ {
		r := d.Head()
		if r == frame.Nil {
			if some || i < len(dropped) {
				t.Fatalf("at %d nobody waits; %d are to be dropped, and one leaves: %v", now, len(dropped)-i, some)
			}
			return i
		}
		drop := s.Sheds(now, a.Meta(r), 0) == scheduler.Drop
		switch {
		case drop && (i >= len(dropped) || dropped[i].ref != r):
			t.Fatalf("at %d %d is dropped, want %v", now, r, dropped[min(i, len(dropped)):])
		case !drop && (i < len(dropped) || !some || out.ref != r):
			t.Fatalf("at %d %d leaves, want %v to be dropped and %d to leave", now, r, dropped[i:], out.ref)
		}
		if got := d.Dequeue(a, now); got != r {
			t.Fatalf("at %d %d is taken out, want the head, %d", now, got, r)
		}
		free(r)
		if !drop {
			return i
		}
	}
}
