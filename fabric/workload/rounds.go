package workload

import (
	"fmt"

	"gswitch/frame"
)

// RoundsConfig describes rounds in which every host of From sends.
type RoundsConfig struct {
	From, To []int32
	AllToAll bool // to every host of To, the i-th host beginning with the one after it; else to one, drawn anew in each round
	Bytes    uint64
	Count    int        // rounds; 0: until Stop
	Every    frame.Time // between the beginnings of rounds; 0: the next begins when the last is over

	Start, Stop frame.Time
	Seed        uint64
}

// Rounds is a Source.
type Rounds struct {
	pending
	cfg  RoundsConfig
	r    frame.Rand
	next frame.Time
	n    int
	left int // flows that have not arrived
}

// NewRounds checks cfg.
func NewRounds(cfg RoundsConfig) (*Rounds, error) {
	if err := checkPair(cfg.From, cfg.To); err != nil {
		return nil, err
	}
	if cfg.Bytes == 0 {
		return nil, fmt.Errorf("the flows have no bytes")
	}
	p := &Rounds{cfg: cfg, r: frame.NewRand(cfg.Seed), next: cfg.Start}
	if _, err := derangement(&frame.Rand{}, cfg.From, cfg.To); err != nil && !cfg.AllToAll {
		return nil, err
	}
	p.fill()
	return p, nil
}

func (p *Rounds) fill() {
	if len(p.heap) > 0 || p.next >= p.cfg.Stop || p.cfg.Count > 0 && p.n >= p.cfg.Count {
		return
	}
	if p.cfg.AllToAll {
		p.allToAll()
	} else if dst, err := derangement(&p.r, p.cfg.From, p.cfg.To); err == nil {
		for i, src := range p.cfg.From {
			p.send(src, dst[i])
		}
	}
	p.n++
	if p.cfg.Every > 0 {
		p.next += p.cfg.Every
	} else {
		p.next = frame.Never
	}
}

// allToAll lets the i-th host begin with the receiver after its own place, so
// that no receiver is the first of all.
func (p *Rounds) allToAll() {
	for k := 1; k <= len(p.cfg.To); k++ {
		for i, src := range p.cfg.From {
			if dst := p.cfg.To[(i+k)%len(p.cfg.To)]; dst != src {
				p.send(src, dst)
			}
		}
	}
}

func (p *Rounds) send(src, dst int32) {
	p.push(Flow{At: p.next, Src: src, Dst: dst, Bytes: p.cfg.Bytes, Conn: -1, Event: uint32(p.n)})
	p.left++
}

// Pop implements Source.
func (p *Rounds) Pop() Flow {
	f := p.pending.Pop()
	p.fill()
	return f
}

// Done implements Source.
func (p *Rounds) Done(now frame.Time, _ *Flow) {
	p.left--
	if p.cfg.Every == 0 && p.left == 0 {
		p.next = now
		p.fill()
	}
}
