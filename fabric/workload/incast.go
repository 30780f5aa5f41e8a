package workload

import (
	"fmt"

	"gswitch/frame"
)

// IncastConfig describes events in which many hosts send to one at once.
type IncastConfig struct {
	From, To []int32
	Fanin    int
	Bytes    uint64 // of each sender
	Total    uint64 // of all senders together, striped over them, in place of Bytes
	Random   bool   // senders and receiver are drawn for each event; else the first Fanin of From, and To in turn

	// One of the two: a Poisson process of events, or one every so often.
	Rate  float64    // events per second
	Every frame.Time // first at Start; 0 with Count > 1: the next when the last is over

	Count       int        // events at most; 0: until Stop
	Jitter      frame.Time // each flow starts up to so much later
	Start, Stop frame.Time
	Seed        uint64
}

// Incast is a Source.
type Incast struct {
	pending
	cfg  IncastConfig
	r    frame.Rand
	next frame.Time // of the next event
	n    int        // events so far
	left int        // flows of the present event that have not arrived, where the next waits for them
	pool []int32
}

// NewIncast checks cfg.
func NewIncast(cfg IncastConfig) (*Incast, error) {
	if err := checkPair(cfg.From, cfg.To); err != nil {
		return nil, err
	}
	able := len(cfg.From)
	for _, s := range cfg.From {
		for _, d := range cfg.To {
			if s == d {
				able = len(cfg.From) - 1
			}
		}
	}
	switch {
	case cfg.Fanin < 1:
		return nil, fmt.Errorf("the fan-in is %d; at least one host must send", cfg.Fanin)
	case cfg.Fanin > able:
		return nil, fmt.Errorf("the fan-in is %d, but only %d hosts can send to one of the receivers", cfg.Fanin, able)
	case cfg.Bytes == 0 && cfg.Total < uint64(cfg.Fanin):
		return nil, fmt.Errorf("the flows have no bytes")
	}
	if err := checkRate(cfg.Rate, "events"); err != nil {
		return nil, err
	}
	c := &Incast{cfg: cfg, r: frame.NewRand(cfg.Seed), next: cfg.Start, pool: append([]int32(nil), cfg.From...)}
	if cfg.Rate > 0 {
		c.next += gap(&c.r, cfg.Rate)
	}
	c.fill()
	return c, nil
}

// fill makes events known until one begins later than what is known already.
func (c *Incast) fill() {
	for c.next < c.cfg.Stop && c.next <= c.Peek() && (c.cfg.Count == 0 || c.n < c.cfg.Count) {
		c.event()
		switch {
		case c.cfg.Rate > 0:
			c.next += gap(&c.r, c.cfg.Rate)
		case c.cfg.Every > 0:
			c.next += c.cfg.Every
		default:
			c.next = frame.Never // Done says when
		}
	}
}

// event makes the flows of the next event known.
func (c *Incast) event() {
	dst := c.cfg.To[c.n%len(c.cfg.To)]
	if c.cfg.Random {
		dst = c.cfg.To[c.r.Uint32n(uint32(len(c.cfg.To)))]
		shuffle(&c.r, c.pool)
	}
	k := 0
	for _, src := range c.pool {
		if src == dst || k == c.cfg.Fanin {
			continue
		}
		f := Flow{At: c.next, Src: src, Dst: dst, Conn: -1, Event: uint32(c.n), Bytes: c.cfg.Bytes}
		if c.cfg.Bytes == 0 {
			f.Bytes = c.cfg.Total / uint64(c.cfg.Fanin)
			if uint64(k) < c.cfg.Total%uint64(c.cfg.Fanin) {
				f.Bytes++
			}
		}
		if c.cfg.Jitter > 0 {
			f.At += frame.Time(c.r.Float64() * float64(c.cfg.Jitter))
		}
		c.push(f)
		k++
	}
	c.n++
	c.left = c.cfg.Fanin
}

// Pop implements Source.
func (c *Incast) Pop() Flow {
	f := c.pending.Pop()
	c.fill()
	return f
}

// Done implements Source.
func (c *Incast) Done(now frame.Time, _ *Flow) {
	c.left--
	if c.cfg.Rate == 0 && c.cfg.Every == 0 && c.left == 0 {
		c.next = now
		c.fill()
	}
}
