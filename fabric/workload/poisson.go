package workload

import (
	"fmt"
	"sort"

	"gswitch/frame"
)

// Picking says who receives a flow.
type Picking uint8

const (
	Uniform   Picking = iota // any host of To but the sender, equally likely
	Paired                   // one and the same for each sender, drawn once
	OtherRack                // any host of To in another rack than the sender's
)

// PoissonConfig describes open-loop traffic.
type PoissonConfig struct {
	From, To []int32
	Weight   []float64 // of each host of From; nil: all send equally often
	Pick     Picking
	Rack     []int32 // of every host, for OtherRack
	Sizes    Sizes
	Rate     float64    // flows per second, of all senders together
	Start    frame.Time // no flow before
	Stop     frame.Time // none from here on
	Limit    int        // at most so many flows; 0: no limit
	Seed     uint64

	Response   uint64 // bytes that the receiver answers with; 0: no answer
	Persistent bool   // one connection for each pair of hosts; else one for each flow
}

// Poisson is open-loop traffic: flows start as a Poisson process, whatever
// became of earlier ones.
type Poisson struct {
	answers pending
	cfg     PoissonConfig
	r       frame.Rand
	sum     []float64 // running sums of the weights
	pair    []int32   // receivers of Paired
	next    frame.Time
	count   int
}

// NewPoisson checks cfg and starts the process.
func NewPoisson(cfg PoissonConfig) (*Poisson, error) {
	p := &Poisson{cfg: cfg, r: frame.NewRand(cfg.Seed)}
	if err := checkPair(cfg.From, cfg.To); err != nil {
		return nil, err
	}
	if !(cfg.Rate > 0) {
		return nil, fmt.Errorf("a rate of %v flows per second makes no traffic", cfg.Rate)
	}
	if err := checkRate(cfg.Rate, "flows"); err != nil {
		return nil, err
	}
	if cfg.Weight != nil {
		total := 0.0
		for _, w := range cfg.Weight {
			total += w
			p.sum = append(p.sum, total)
		}
	}
	switch cfg.Pick {
	case Paired:
		var err error
		if p.pair, err = derangement(&p.r, cfg.From, cfg.To); err != nil {
			return nil, err
		}
	case OtherRack:
		if err := p.checkRacks(); err != nil {
			return nil, err
		}
	}
	p.next = cfg.Start
	p.advance()
	return p, nil
}

func (p *Poisson) checkRacks() error {
	for _, s := range p.cfg.From {
		ok := false
		for _, d := range p.cfg.To {
			ok = ok || p.cfg.Rack[d] != p.cfg.Rack[s]
		}
		if !ok {
			return fmt.Errorf("every receiver is in the rack of host %d; there is no host in another one", s)
		}
	}
	return nil
}

func (p *Poisson) advance() {
	p.next += gap(&p.r, p.cfg.Rate)
	if p.next >= p.cfg.Stop || p.cfg.Limit > 0 && p.count >= p.cfg.Limit {
		p.next = frame.Never
	}
}

// Peek implements Source.
func (p *Poisson) Peek() frame.Time { return min(p.next, p.answers.Peek()) }

// Pop implements Source.
func (p *Poisson) Pop() Flow {
	if p.answers.Peek() <= p.next {
		return p.answers.Pop()
	}
	i := p.sender()
	f := Flow{At: p.next, Src: p.cfg.From[i], Conn: p.conn(), Event: uint32(p.count)}
	switch p.cfg.Pick {
	case Paired:
		f.Dst = p.pair[i]
	case OtherRack:
		for f.Dst = other(&p.r, p.cfg.To, f.Src); p.cfg.Rack[f.Dst] == p.cfg.Rack[f.Src]; {
			f.Dst = other(&p.r, p.cfg.To, f.Src)
		}
	default:
		f.Dst = other(&p.r, p.cfg.To, f.Src)
	}
	f.Bytes = p.cfg.Sizes.Draw(&p.r)
	p.count++
	p.advance()
	return f
}

func (p *Poisson) sender() int {
	if p.sum == nil {
		return int(p.r.Uint32n(uint32(len(p.cfg.From))))
	}
	u := p.r.Float64() * p.sum[len(p.sum)-1]
	return min(sort.Search(len(p.sum), func(i int) bool { return p.sum[i] > u }), len(p.sum)-1)
}

// conn is the number of a flow's connection.
func (p *Poisson) conn() int32 {
	if p.cfg.Persistent {
		return 0
	}
	return -1
}

// Done implements Source: open-loop traffic does not wait, but what has
// arrived may be answered.
func (p *Poisson) Done(now frame.Time, f *Flow) {
	if p.cfg.Response > 0 && f.Step == 0 {
		p.answers.push(Flow{At: now, Src: f.Dst, Dst: f.Src, Bytes: p.cfg.Response, Conn: p.conn(), Event: f.Event, Step: 1})
	}
}
