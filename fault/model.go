package fault

import (
	"math/bits"

	"gswitch/frame"
)

// Model decides about the frames of one direction, in the order in which they
// are sent. With the same seed, faults and frames it decides the same.
type Model struct {
	cfg     Config
	rng     frame.Rand
	bad     bool     // state of the burst model
	seen    []uint64 // frames that matched, by Drop
	stretch uint64   // Slow in units of 2^-stretchBits, 0 = not slow
}

const stretchBits = 20

// Verdict is what happens to one frame.
type Verdict struct {
	Loss      Loss       // why it is lost, if so; the rest is of no account then, but for Late
	Late      frame.Time // how much longer it takes, in order
	Held      bool       // it is held back by ReorderBy and overtaken meanwhile
	Duplicate bool       // it arrives twice
	Flipped   bool       // bits of its headers were inverted
}

// NewModel returns a model without faults. Neighbouring seeds are unrelated
// streams.
func NewModel(seed uint64) Model { return Model{rng: frame.NewRand(seed)} }

// Set puts c, which is valid, in place of what was set before. Chains and
// counts begin anew, random numbers go on.
func (m *Model) Set(c Config) {
	m.cfg, m.bad = c, false
	m.seen = make([]uint64, len(c.Drop))
	m.stretch = 0
	if c.Slow > 1 {
		m.stretch = uint64(c.Slow * (1 << stretchBits))
	}
}

// ReorderBy returns by how long frames are held back that others overtake.
func (m *Model) ReorderBy() frame.Time { return m.cfg.ReorderBy }

// Slows reports whether frames occupy the link longer than they should.
func (m *Model) Slows() bool { return m.stretch != 0 }

// Span returns how long a frame occupies the link that should occupy it for
// span.
func (m *Model) Span(span frame.Time) frame.Time {
	if m.stretch == 0 {
		return span
	}
	hi, lo := bits.Mul64(uint64(span), m.stretch)
	return frame.Time(hi<<(64-stretchBits) | lo>>stretchBits)
}

// Judge decides about a frame: b are its materialised bytes, in which it may
// invert bits, and f of its Meta what Drop.Match takes. It does not allocate.
func (m *Model) Judge(b []byte, f *frame.Meta) (v Verdict) {
	v.Loss = m.lose(b, f)
	if v.Loss == LossNone && m.chance(m.cfg.Flip) {
		m.flip(b)
		v.Flipped = true
	}
	v.Late = m.Late()
	if v.Loss == LossNone {
		v.Held = m.chance(m.cfg.Reorder)
		v.Duplicate = m.chance(m.cfg.Duplicate)
	}
	return v
}

// Late draws how much longer a frame takes.
func (m *Model) Late() frame.Time {
	if m.cfg.Jitter == 0 {
		return 0
	}
	return frame.Time(m.rng.Float64() * float64(m.cfg.Jitter+1))
}

// chance draws whether something of probability p happens. Without a chance it
// draws nothing.
func (m *Model) chance(p float64) bool { return p > 0 && m.rng.Float64() < p }

// lose decides whether a frame is lost, and why. What is lost for one reason
// still moves the chains and counts of the others.
func (m *Model) lose(b []byte, f *frame.Meta) Loss {
	c := &m.cfg
	cause := LossNone
	for i := range c.Drop {
		if m.chosen(i, b, f) {
			cause = LossChosen
		}
	}
	if g := &c.Burst; g.ToBad > 0 || g.LossGood > 0 || m.bad {
		p, leave := g.LossGood, g.ToBad
		if m.bad {
			p, leave = g.LossBad, g.ToGood
		}
		if m.chance(p) && cause == LossNone {
			cause = LossBurst
		}
		if m.chance(leave) {
			m.bad = !m.bad
		}
	}
	if m.chance(c.Loss) && cause == LossNone {
		cause = LossRandom
	}
	if m.chance(c.Corrupt) && cause == LossNone {
		cause = LossFCS
	}
	return cause
}

func (m *Model) chosen(i int, b []byte, f *frame.Meta) bool {
	d := &m.cfg.Drop[i]
	if d.Match != nil && !d.Match(b, f) {
		return false
	}
	if d.Share > 0 {
		return m.chance(d.Share)
	}
	m.seen[i]++
	n, first := m.seen[i], max(d.First, 1)
	switch {
	case n < first:
		return false
	case d.Every > 0:
		return (n-first)%d.Every == 0 && (d.Count == 0 || (n-first)/d.Every < d.Count)
	}
	return n-first < max(d.Count, 1)
}

// flip inverts random bits of the headers.
func (m *Model) flip(b []byte) {
	for range max(m.cfg.FlipBits, 1) {
		if i := m.rng.Uint32n(uint32(8 * max(len(b), 1))); int(i/8) < len(b) {
			b[i/8] ^= 1 << (i % 8)
		}
	}
}
