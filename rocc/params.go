package rocc

import (
	"fmt"
	"math"

	"gswitch/frame"
)

// FirstCut is what the first level of multiplicative decrease makes of the
// fair rate when the queue is longer than QMax.
type FirstCut uint8

const (
	CutToMin    FirstCut = iota // FMin, as printed
	CutToHalf                   // half
	CutToEighth                 // an eighth of FMax
)

// DefaultRegions is how many halvings of the gains auto-tuning knows: up to
// 32 in powers of two, as published.
const DefaultRegions = 6

// Params configure a congestion point. Lengths are bytes, the rates are in
// units of RateUnit.
type Params struct {
	QueueUnit uint32     // dQ: resolution of the queue length in bytes
	RateUnit  uint64     // dF: resolution of the rate in bit/s
	Period    frame.Time // T: between two updates
	FMin      uint32     // least fair rate, in RateUnit
	FMax      uint32     // largest, the rate of the link
	QRef      uint32     // the length that is held
	QMid      uint32     // growth within one period that halves the rate
	QMax      uint32     // length that cuts it
	Alpha     float64    // a~: RateUnit for each QueueUnit of deviation and period
	Beta      float64    // b~: RateUnit for each QueueUnit of growth
	First     FirstCut
	Regions   int // 0 = DefaultRegions; 1 = no auto-tuning
}

// For returns the parameters for a link of the given rate in bit/s: those of
// the publication's simulations at 40 and 100 Gb/s (section 3.5), and in between
// and beyond the ones that are similar to those of 40 Gb/s. For all other rates
// time is stretched so that bytes and gains stay (T*rate is constant), which
// keeps the dynamics.
func For(rate uint64) Params {
	p := Params{QueueUnit: 600, RateUnit: 10_000_000, Period: 40 * frame.Microsecond, FMin: 10, FMax: 4000,
		QRef: 150_000, QMid: 300_000, QMax: 360_000, Alpha: 0.3, Beta: 1.5}
	switch rate {
	case 40e9:
	case 100e9:
		p.FMax, p.QRef, p.QMid, p.QMax, p.Alpha, p.Beta = 10000, 300_000, 600_000, 660_000, 0.45, 2.25
	default:
		p.RateUnit = max(1, rate/4000)
		p.Period = frame.Time(math.Round(40e3 * 40e9 / float64(max(rate, 1))))
	}
	return p
}

// Validate reports the first setting that cannot be meant.
func (p *Params) Validate() error {
	switch {
	case p.QueueUnit == 0 || p.RateUnit == 0 || p.Period <= 0:
		return fmt.Errorf("rocc: the units of queue (%d bytes) and rate (%d bit/s) and the period (%v) must be positive", p.QueueUnit, p.RateUnit, p.Period.Duration())
	case p.FMin == 0 || p.FMin >= p.FMax:
		return fmt.Errorf("rocc: the fair rate from %d to %d: the least must be positive and below the largest", p.FMin, p.FMax)
	case p.FMax > 1<<30:
		return fmt.Errorf("rocc: a largest fair rate of %d units is more than %d: use a larger unit", p.FMax, 1<<30)
	case p.QRef < p.QueueUnit || p.QMid <= p.QRef || p.QMax <= p.QMid:
		return fmt.Errorf("rocc: queue lengths %d, %d, %d: the reference must be at least one unit of %d bytes, below that of growth, and that below the maximum, or the queue is not stable", p.QRef, p.QMid, p.QMax, p.QueueUnit)
	case !(p.Alpha > 0 && p.Alpha <= 1000) || !(p.Beta > 0 && p.Beta <= 1000):
		return fmt.Errorf("rocc: gains %g and %g are not between 0 and 1000", p.Alpha, p.Beta)
	case p.First > CutToEighth:
		return fmt.Errorf("rocc: unknown first cut %d", p.First)
	case p.Regions < 0 || p.Regions > 16:
		return fmt.Errorf("rocc: %d regions of auto-tuning are not between 1 and 16", p.Regions)
	}
	return nil
}
