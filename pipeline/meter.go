package pipeline

import (
	"fmt"

	"gswitch/frame"
)

// Meter is a token bucket: the single-rate two-colour part of RFC 2697
// (excess burst zero, colour-blind). It belongs to one worker.
//
// The arithmetic is exact. Tokens are counted in 1e-9 bit, of which a rate of
// r bit/s earns r per nanosecond, so nothing is rounded and the long-run rate
// has no error.
type Meter struct {
	tokens int64 // 1e-9 bit
	last   frame.Time
	rate   int64 // bit/s = 1e-9 bit per ns
	burst  int64 // 1e-9 bit
	fill   int64 // ns in which an empty bucket is full again, rounded up
}

const (
	tokensPerByte = 8e9
	// MaxBurst is the deepest bucket in bytes: a full bucket and one more
	// nanosecond of the highest rate stay within 63 bits.
	MaxBurst = 1 << 29
	// MaxRate is the highest rate of a Meter in bit/s.
	MaxRate = 1e15
)

// NewMeter returns a full bucket of burst bytes that earns rate bit/s. The
// burst must hold the largest frame that is ever to pass.
func NewMeter(rate, burst int64) (Meter, error) {
	if rate <= 0 || rate > MaxRate {
		return Meter{}, fmt.Errorf("meter: rate %d bit/s is not from 1 to %d", rate, int64(MaxRate))
	}
	if burst <= 0 || burst > MaxBurst {
		return Meter{}, fmt.Errorf("meter: burst of %d bytes is not from 1 to %d", burst, MaxBurst)
	}
	m := Meter{rate: rate, burst: burst * tokensPerByte}
	m.tokens = m.burst
	m.fill = (m.burst + rate - 1) / rate
	return m, nil
}

// NewEventMeter returns a meter for events rather than bytes: rate events per
// second, burst events at once. Take is called with n = 1 for an event.
func NewEventMeter(rate, burst int64) (Meter, error) {
	if rate > MaxRate/8 {
		return Meter{}, fmt.Errorf("meter: rate of %d events/s is more than %d", rate, int64(MaxRate/8))
	}
	return NewMeter(8*rate, burst)
}

// Take reports whether n bytes conform at now, and if so takes their tokens.
// Time that runs backwards earns nothing.
func (m *Meter) Take(now frame.Time, n int) bool {
	m.earn(now)
	need := int64(n) * tokensPerByte
	if need > m.tokens {
		return false
	}
	m.tokens -= need
	return true
}

func (m *Meter) earn(now frame.Time) {
	dt := int64(now - m.last)
	if dt <= 0 {
		return
	}
	m.last = now
	if dt >= m.fill {
		m.tokens = m.burst
		return
	}
	m.tokens = min(m.tokens+dt*m.rate, m.burst)
}

// Tokens returns the bytes that would conform at now.
func (m *Meter) Tokens(now frame.Time) int64 {
	m.earn(now)
	return m.tokens / tokensPerByte
}

// Color is the verdict of a TwoRate meter.
type Color uint8

const (
	Green Color = iota
	Yellow
	Red
)

// TwoRate is the two-rate three-colour marker of RFC 2698, colour-blind:
// section 3 there. Peak holds PIR and PBS, Committed CIR and CBS.
type TwoRate struct{ Peak, Committed Meter }

// Mark returns the colour of n bytes at now and takes their tokens.
func (t *TwoRate) Mark(now frame.Time, n int) Color {
	if !t.Peak.Take(now, n) {
		return Red
	}
	if !t.Committed.Take(now, n) {
		return Yellow
	}
	return Green
}
