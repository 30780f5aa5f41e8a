package workload

import (
	"fmt"

	"gswitch/frame"
)

// RetrievalsConfig describes clients that retrieve data from servers: a small
// request, and an answer. They do so in workflows of one or more retrievals,
// which begin as a Poisson process (DeTail, section 6.1; the arrivals and
// sizes of Benson et al., IMC 2010, and of Alizadeh et al., SIGCOMM 2010).
type RetrievalsConfig struct {
	From, To []int32 // clients, servers
	// One of the two: workflows per second of each client, or rates that
	// follow each other, again and again.
	Rate   float64
	Phases []Phase

	Request   uint64   // bytes
	Responses []uint64 // bytes of an answer, each as likely
	Handshake bool     // a message of a byte each way goes before the request
	Steps     int      // retrievals of a workflow that follow each other
	Fanouts   []int    // servers that each step asks at once, drawn for each workflow; nil: one
	Count     int      // workflows at most, of all clients; 0: until Stop

	Start, Stop frame.Time
	Seed        uint64
}

// Phase is a span of time with a rate of its own.
type Phase struct {
	Rate float64 // per second
	For  frame.Time
}

// Retrievals is a Source. Flow.Event is the number of the workflow.
type Retrievals struct {
	pending
	cfg  RetrievalsConfig
	r    frame.Rand
	pool []int32

	next  frame.Time // of the next workflow
	phase int        // in which it is
	until frame.Time // end of that phase
	n     int        // workflows so far
	asked uint32     // retrievals so far
	open  map[uint32]*workflow
}

// workflow is one that is under way.
type workflow struct {
	client int32
	fanout int
	steps  int // that are to come
	left   int // answers of this step that are missing
}

// Messages of a retrieval, with a handshake.
const (
	opening = iota
	accepting
	requesting
	answering
)

// NewRetrievals checks cfg and starts the process.
func NewRetrievals(cfg RetrievalsConfig) (*Retrievals, error) {
	if err := checkPair(cfg.From, cfg.To); err != nil {
		return nil, err
	}
	if cfg.Fanouts == nil {
		cfg.Fanouts = []int{1}
	}
	if cfg.Phases == nil {
		cfg.Phases = []Phase{{cfg.Rate, frame.Never / 2}}
	}
	if err := cfg.check(); err != nil {
		return nil, err
	}
	p := &Retrievals{cfg: cfg, r: frame.NewRand(cfg.Seed), pool: append([]int32(nil), cfg.To...), open: map[uint32]*workflow{},
		next: cfg.Start, until: cfg.Start + cfg.Phases[0].For}
	p.advance()
	p.fill()
	return p, nil
}

func (c *RetrievalsConfig) check() error {
	if c.Request == 0 || len(c.Responses) == 0 || c.Steps < 1 {
		return fmt.Errorf("a workflow needs at least one retrieval with a request and an answer of at least one byte")
	}
	for _, r := range c.Responses {
		if r == 0 {
			return fmt.Errorf("an answer needs at least one byte")
		}
	}
	most := 0.0
	for _, p := range c.Phases {
		if p.For <= 0 || p.Rate < 0 {
			return fmt.Errorf("a phase needs a length above zero and a rate that is not below")
		}
		most = max(most, p.Rate)
	}
	if most == 0 {
		return fmt.Errorf("a rate of 0 makes no traffic")
	}
	if err := checkRate(most*float64(len(c.From)), "workflows"); err != nil {
		return err
	}
	for _, client := range c.From {
		able := 0
		for _, s := range c.To {
			if s != client {
				able++
			}
		}
		for _, f := range c.Fanouts {
			if f < 1 || f > able {
				return fmt.Errorf("the fan-out is %d; host %d has %d servers to ask", f, client, able)
			}
		}
	}
	return nil
}

// advance moves to the next workflow: it uses up an exponential amount of
// the integral of the rate, which has steps only between phases.
func (p *Retrievals) advance() {
	need := -ln(1 - p.r.Float64()) // workflows
	for p.next < p.cfg.Stop {
		perNs := p.cfg.Phases[p.phase].Rate * float64(len(p.cfg.From)) / 1e9
		if has := float64(float64(p.until-p.next) * perNs); need > has {
			need -= has
			p.next = p.until
			p.phase = (p.phase + 1) % len(p.cfg.Phases)
			p.until += p.cfg.Phases[p.phase].For
			continue
		}
		p.next += frame.Time(float64(need/perNs) + 0.5)
		return
	}
}

// fill makes workflows known until one starts later than what is known.
func (p *Retrievals) fill() {
	for p.next < p.cfg.Stop && p.next <= p.Peek() && (p.cfg.Count == 0 || p.n < p.cfg.Count) {
		w := &workflow{client: p.cfg.From[p.r.Uint32n(uint32(len(p.cfg.From)))], steps: p.cfg.Steps}
		w.fanout = p.cfg.Fanouts[p.r.Uint32n(uint32(len(p.cfg.Fanouts)))]
		p.open[uint32(p.n)] = w
		p.step(p.next, uint32(p.n), w)
		p.n++
		p.advance()
	}
}

// step asks the servers of the next step of a workflow.
func (p *Retrievals) step(at frame.Time, event uint32, w *workflow) {
	w.steps--
	w.left = w.fanout
	for k, i := 0, 0; k < w.fanout; i++ {
		// The first places of a permutation that is drawn as far as needed.
		j := i + int(p.r.Uint32n(uint32(len(p.pool)-i)))
		p.pool[i], p.pool[j] = p.pool[j], p.pool[i]
		if p.pool[i] == w.client {
			continue
		}
		k++
		p.asked++
		f := Flow{At: at, Src: w.client, Dst: p.pool[i], Bytes: p.cfg.Request, Conn: -1, Event: event, Step: requesting,
			Retrieval: p.asked, Answer: p.cfg.Responses[p.r.Uint32n(uint32(len(p.cfg.Responses)))]}
		if p.cfg.Handshake {
			f.Step, f.Bytes = opening, 1
		}
		p.push(f)
	}
}

// Pop implements Source.
func (p *Retrievals) Pop() Flow {
	f := p.pending.Pop()
	p.fill()
	return f
}

// Done implements Source.
func (p *Retrievals) Done(now frame.Time, f *Flow) {
	g := *f
	g.At, g.Src, g.Dst, g.Step = now, f.Dst, f.Src, f.Step+1
	switch f.Step {
	case opening:
	case accepting:
		g.Bytes = p.cfg.Request
	case requesting:
		g.Bytes, g.Final = f.Answer, true
	case answering:
		w := p.open[f.Event]
		if w.left--; w.left > 0 {
			return
		}
		if w.steps > 0 {
			p.step(now, f.Event, w)
			return
		}
		delete(p.open, f.Event)
		return
	}
	p.push(g)
}

// MeanRate returns the workflows per second of all clients, over whole periods.
func (c *RetrievalsConfig) MeanRate() float64 {
	if c.Phases == nil {
		return c.Rate * float64(len(c.From))
	}
	n, span := 0.0, frame.Time(0)
	for _, p := range c.Phases {
		n += float64(p.Rate * p.For.Seconds())
		span += p.For
	}
	return n / span.Seconds() * float64(len(c.From))
}
