package rocc

import "math"

// Branch says what an update did.
type Branch uint8

const (
	Tuned  Branch = iota // proportional-integral step
	Halved               // the queue grew by QMid within a period
	Cut                  // the queue is longer than QMax
)

// fraction is how many bits of the fair rate stand behind the point. With
// less than eight the integrator stalls: at the smallest gains a deviation of
// 64 KB moves the rate by less than one unit.
const fraction = 16

// Controller holds the length of one queue at its reference by the rate that
// it allows each flow. It needs no rate of the link and no number of flows:
// where queue and reference agree the rate stays, whatever it is.
type Controller struct {
	p                Params
	f                int64 // F << fraction
	old              int64 // queue at the update before, in QueueUnit << fraction
	a, b             int64 // gains << fraction
	min, max         int64 // of f
	ref, mid, maxLen int64 // in QueueUnit << fraction
	regions          uint
}

// NewController returns a controller at its largest rate, for an empty queue.
func NewController(p *Params) *Controller {
	c := new(Controller)
	c.init(p)
	return c
}

func (c *Controller) init(p *Params) {
	*c = Controller{p: *p, f: int64(p.FMax) << fraction,
		a: int64(math.Round(p.Alpha * (1 << fraction))), b: int64(math.Round(p.Beta * (1 << fraction))),
		min: int64(p.FMin) << fraction, max: int64(p.FMax) << fraction,
		ref: units(p.QRef, p.QueueUnit), mid: units(p.QMid, p.QueueUnit), maxLen: units(p.QMax, p.QueueUnit), regions: uint(p.Regions)}
	if p.Regions == 0 {
		c.regions = DefaultRegions
	}
}

func units(bytes, unit uint32) int64 { return int64(bytes) << fraction / int64(unit) }

// Update takes the length of the queue in bytes, once in a period.
func (c *Controller) Update(bytes uint64) Branch {
	// Of the length whole units count, as a switch reads it.
	q := int64(min(bytes/uint64(c.p.QueueUnit), math.MaxUint32)) << fraction
	big := 8*c.f > c.max
	branch := Tuned
	switch {
	case big && q >= c.maxLen:
		branch = Cut
		switch c.p.First {
		case CutToMin:
			c.f = c.min
		case CutToHalf:
			c.f /= 2
		case CutToEighth:
			c.f = c.max / 8
		}
	case big && q-c.old >= c.mid:
		branch = Halved
		c.f >>= 1
	default:
		c.f -= (c.gain(c.a, q-c.ref) + c.gain(c.b, q-c.old)) >> c.region()
	}
	c.f = min(max(c.f, c.min), c.max)
	c.old = q
	return branch
}

// gain multiplies two numbers with fractions. Lengths are whole units but for
// the reference, so that nothing is lost where that is whole, too.
func (c *Controller) gain(g, q int64) int64 { return (g * (q >> (fraction / 2))) >> (fraction / 2) }

// region is by how many halvings the gains are reduced: auto-tuning keeps the
// loop's gain, which grows with the number of flows, in a range of two. Rates
// at a boundary belong to the larger gain.
func (c *Controller) region() uint {
	r := uint(0)
	for r+1 < c.regions && c.f<<(r+1) < c.max {
		r++
	}
	return r
}

// Raw returns the fair rate in RateUnit with 16 bits behind the point.
func (c *Controller) Raw() int64 { return c.f }

// Units returns the fair rate in RateUnit, rounded to the nearest: what is
// asked to senders.
func (c *Controller) Units() uint32 { return uint32((c.f + 1<<(fraction-1)) >> fraction) }

// Rate returns the fair rate in bit/s, as it is asked to senders.
func (c *Controller) Rate() uint64 { return uint64(c.Units()) * c.p.RateUnit }

// AtMax reports whether the rate is the largest there is.
func (c *Controller) AtMax() bool { return c.f == c.max }

// Steady returns the longest queue in bytes with which the rate, where it is the
// largest, stays so whatever the queue was before: a q <= a qref - b q.
func (c *Controller) Steady() uint64 {
	return uint64(c.a*(c.ref>>fraction)/(c.a+c.b)+1)*uint64(c.p.QueueUnit) - 1
}

// Params returns the parameters.
func (c *Controller) Params() *Params { return &c.p }
