package qcn

import (
	"fmt"

	"gswitch/frame"
)

// Params configure a congestion point.
type Params struct {
	SetPoint uint32 // Q_SP: bytes that are held
	Weight   uint32 // w: how much growth counts beside length
	Sample   uint32 // bytes between two samples of a queue without congestion
}

// Default returns the values of IEEE 802.1Qau, table 30-1 and clause 32.8:
// 26000 bytes, w = 2, 150000 bytes.
func Default() Params { return Params{SetPoint: 26_000, Weight: 2, Sample: 150_000} }

// Validate reports the first number that cannot be meant.
func (p *Params) Validate() error {
	switch {
	case p.SetPoint == 0 || p.SetPoint > 1<<30:
		return fmt.Errorf("qcn: a set point of %d bytes is not between 1 and 2^30", p.SetPoint)
	case p.Weight > 64:
		return fmt.Errorf("qcn: a weight of %d is more than 64", p.Weight)
	case p.Sample < 64 || p.Sample > 1<<30:
		return fmt.Errorf("qcn: %d bytes between two samples are not between 64 and 2^30", p.Sample)
	}
	return nil
}

// MaxFeedback is the largest quantized feedback: six bits.
const MaxFeedback = 63

// Point is the congestion point of one queue.
type Point struct {
	p    Params
	old  int64 // length at the last sample
	left int64 // bytes until the next
	rng  frame.Rand
}

// NewPoint returns a congestion point of an empty queue. The seed decides how
// far its samples are apart.
func NewPoint(p *Params, seed uint64) *Point {
	c := &Point{p: *p, rng: frame.NewRand(seed)}
	c.left = c.interval(0)
	return c
}

// Configure changes the parameters.
func (c *Point) Configure(p *Params) { c.p = *p }

// Params returns the parameters.
func (c *Point) Params() *Params { return &c.p }

// Sample is what a sampled frame found.
type Sample struct {
	Feedback uint8 // quantized -Fb; 0: no congestion
	Offset   int64 // Q_SP - Q, bytes
	Delta    int64 // growth since the sample before, bytes
}

// Arrive counts a frame of size bytes, and reports whether it is the one to
// judge the queue by.
func (c *Point) Arrive(size uint32) bool {
	c.left -= int64(size)
	return c.left <= 0
}

// Judge takes the length of the queue in bytes, the sampled frame included:
//
//	Fb = Q_SP - Q - w (Q - Q_old)
//
// of which -Fb is sent, if positive, as a share of its largest value
// Q_SP (2w + 1) in 63 steps.
func (c *Point) Judge(queue uint64) Sample {
	q := int64(min(queue, 1<<40))
	s := Sample{Offset: int64(c.p.SetPoint) - q, Delta: q - c.old}
	c.old = q
	if fb := s.Offset - int64(c.p.Weight)*s.Delta; fb < 0 {
		most := int64(c.p.SetPoint) * int64(2*c.p.Weight+1)
		s.Feedback = uint8(min(-fb, most) * MaxFeedback / most)
	}
	c.left = c.interval(s.Feedback)
	return s
}

// spans are the bytes between samples by the upper three bits of the feedback,
// in 300ths of those without (IEEE 802.1Qau, table 32-1: 150, 75, 50,
// 37.5, 30, 25, 21.5 and 18.5 KB).
var spans = [8]int64{300, 150, 100, 75, 60, 50, 43, 37}

// interval returns the bytes until the next sample: up to 15 % more or less,
// so that no pattern of frames hides.
func (c *Point) interval(feedback uint8) int64 {
	base := int64(c.p.Sample) * spans[feedback>>3] / 300
	jitter := int64(c.rng.Uint64() >> 32 * 300 >> 32) // of a thousand
	return max(1, base*(850+jitter)/1000)
}
