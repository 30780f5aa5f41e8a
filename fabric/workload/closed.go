package workload

import (
	"fmt"

	"gswitch/frame"
)

// RequestsConfig describes clients that ask servers and wait for the answer.
type RequestsConfig struct {
	From, To    []int32 // clients, servers
	Outstanding int     // requests that each client keeps open
	Request     Sizes   // bytes
	Response    uint64  // bytes; 0: the arrival of the request is the end
	Think       frame.Time
	Persistent  bool // one connection for each client, server and outstanding request; else one for each message
	Pairs       bool // each client has Outstanding requests open with every server, in place of one drawn for each
	Count       int  // requests of each client; 0: until Stop
	// Rate is how many requests a second of each client of From fall due, as a
	// Poisson process for each that it keeps open. A request waits for that and for
	// the answer to the one before; what is late is made up for. nil: the answer alone.
	Rate []float64

	Start, Stop frame.Time
	Seed        uint64
}

// Requests is closed-loop traffic: the next request of a client waits for an answer.
type Requests struct {
	pending
	cfg    RequestsConfig
	r      frame.Rand
	asked  []int           // requests so far, by place in From
	rate   []float64       // of each request that is kept open, by place in From; nil without Rate
	client map[uint32]slot // of open requests, by event
	event  uint32
}

// slot is one of the requests that a client keeps open.
type slot struct {
	place  int // in From
	number int32
	to     int32      // with Pairs the server, else -1
	due    frame.Time // of its last request, with Rate
}

// NewRequests checks cfg.
func NewRequests(cfg RequestsConfig) (*Requests, error) {
	if err := checkPair(cfg.From, cfg.To); err != nil {
		return nil, err
	}
	if cfg.Outstanding < 1 || cfg.Request == nil || cfg.Request.Mean() == 0 {
		return nil, fmt.Errorf("a client needs at least one outstanding request of at least one byte")
	}
	each := cfg.Outstanding
	if cfg.Pairs {
		if err := checkPosted(cfg.Outstanding, "requests", len(cfg.To), "servers"); err != nil {
			return nil, err
		}
		each *= len(cfg.To)
	}
	if err := checkPosted(len(cfg.From), "clients", each, "requests"); err != nil {
		return nil, err
	}
	q := &Requests{cfg: cfg, r: frame.NewRand(cfg.Seed), asked: make([]int, len(cfg.From)), client: map[uint32]slot{}}
	servers := []int32{-1}
	if cfg.Pairs {
		servers = cfg.To
	}
	if err := q.divide(servers); err != nil {
		return nil, err
	}
	for n := range cfg.Outstanding {
		for place, src := range cfg.From {
			for _, to := range servers {
				if to != src {
					q.ask(cfg.Start, slot{place: place, number: int32(n), to: to, due: cfg.Start})
				}
			}
		}
	}
	return q, nil
}

// divide gives each request that a client keeps open its part of the client's rate.
func (q *Requests) divide(servers []int32) error {
	if q.cfg.Rate == nil {
		return nil
	}
	sum := 0.0
	for place, src := range q.cfg.From {
		open := 0
		for _, to := range servers {
			if to != src {
				open += q.cfg.Outstanding
			}
		}
		r := q.cfg.Rate[place]
		if !(r > 0) && open > 0 {
			return fmt.Errorf("a rate of %v requests per second makes no traffic", r)
		}
		sum += r
		q.rate = append(q.rate, r/float64(max(open, 1)))
	}
	return checkRate(sum, "requests")
}

func (q *Requests) ask(at frame.Time, s slot) {
	if q.rate != nil {
		s.due += gap(&q.r, q.rate[s.place])
		at = max(at, s.due)
	}
	if at >= q.cfg.Stop || q.cfg.Count > 0 && q.asked[s.place] >= q.cfg.Count {
		return
	}
	q.asked[s.place]++
	src, dst := q.cfg.From[s.place], s.to
	if dst < 0 {
		dst = other(&q.r, q.cfg.To, src)
	}
	q.client[q.event] = s
	q.push(Flow{At: at, Src: src, Dst: dst, Bytes: q.cfg.Request.Draw(&q.r), Conn: q.conn(s), Event: q.event})
	q.event++
}

func (q *Requests) conn(s slot) int32 {
	if q.cfg.Persistent {
		return s.number
	}
	return -1
}

// Done implements Source.
func (q *Requests) Done(now frame.Time, f *Flow) {
	s := q.client[f.Event]
	if f.Step == 0 && q.cfg.Response > 0 {
		q.push(Flow{At: now, Src: f.Dst, Dst: f.Src, Bytes: q.cfg.Response, Conn: q.conn(s), Event: f.Event, Step: 1})
		return
	}
	delete(q.client, f.Event)
	q.ask(now+q.cfg.Think, s)
}

// PartitionAggregateConfig describes queries that an aggregator splits over
// workers, whose answers come back at the same time.
type PartitionAggregateConfig struct {
	From, To []int32 // aggregators, workers
	Fanin    int     // workers of each query, drawn anew
	Query    uint64  // bytes to each worker
	Response uint64  // bytes from each worker
	Rate     float64 // queries per second, of all aggregators together; 0: each aggregator asks again when it has all answers
	Count    int     // queries at most, of all; 0: until Stop

	Start, Stop frame.Time
	Seed        uint64
}

// PartitionAggregate is a Source.
type PartitionAggregate struct {
	pending
	cfg   PartitionAggregateConfig
	r     frame.Rand
	next  frame.Time // of the next query of the Poisson process
	n     int
	left  map[uint32]int // answers that are missing, by query
	asker map[uint32]int32
	pool  []int32
}

// NewPartitionAggregate checks cfg.
func NewPartitionAggregate(cfg PartitionAggregateConfig) (*PartitionAggregate, error) {
	if err := checkPair(cfg.From, cfg.To); err != nil {
		return nil, err
	}
	if cfg.Query == 0 || cfg.Response == 0 {
		return nil, fmt.Errorf("queries and answers need at least one byte")
	}
	for _, a := range cfg.From {
		able := 0
		for _, w := range cfg.To {
			if w != a {
				able++
			}
		}
		if cfg.Fanin < 1 || cfg.Fanin > able {
			return nil, fmt.Errorf("the fan-in is %d; host %d has %d workers to ask", cfg.Fanin, a, able)
		}
	}
	if err := checkRate(cfg.Rate, "queries"); err != nil {
		return nil, err
	}
	p := &PartitionAggregate{cfg: cfg, r: frame.NewRand(cfg.Seed), left: map[uint32]int{}, asker: map[uint32]int32{}, pool: append([]int32(nil), cfg.To...)}
	if cfg.Rate > 0 {
		p.next = cfg.Start + gap(&p.r, cfg.Rate)
		p.fill()
		return p, nil
	}
	p.next = frame.Never
	for _, a := range cfg.From {
		p.query(cfg.Start, a)
	}
	return p, nil
}

func (p *PartitionAggregate) query(at frame.Time, asker int32) {
	if at >= p.cfg.Stop || p.cfg.Count > 0 && p.n >= p.cfg.Count {
		return
	}
	shuffle(&p.r, p.pool)
	k := 0
	for _, w := range p.pool {
		if w == asker || k == p.cfg.Fanin {
			continue
		}
		p.push(Flow{At: at, Src: asker, Dst: w, Bytes: p.cfg.Query, Conn: -1, Event: uint32(p.n)})
		k++
	}
	p.left[uint32(p.n)], p.asker[uint32(p.n)] = p.cfg.Fanin, asker
	p.n++
}

// fill makes queries of the Poisson process known until one starts later than
// what is known already.
func (p *PartitionAggregate) fill() {
	for p.next < p.cfg.Stop && p.next <= p.Peek() {
		p.query(p.next, p.cfg.From[p.r.Uint32n(uint32(len(p.cfg.From)))])
		p.next += gap(&p.r, p.cfg.Rate)
		if p.cfg.Count > 0 && p.n >= p.cfg.Count {
			p.next = frame.Never
		}
	}
}

// Pop implements Source.
func (p *PartitionAggregate) Pop() Flow {
	f := p.pending.Pop()
	p.fill()
	return f
}

// Done implements Source.
func (p *PartitionAggregate) Done(now frame.Time, f *Flow) {
	if f.Step == 0 {
		p.push(Flow{At: now, Src: f.Dst, Dst: f.Src, Bytes: p.cfg.Response, Conn: -1, Event: f.Event, Step: 1})
		return
	}
	if p.left[f.Event]--; p.left[f.Event] > 0 {
		return
	}
	asker := p.asker[f.Event]
	delete(p.left, f.Event)
	delete(p.asker, f.Event)
	if p.cfg.Rate == 0 {
		p.query(now, asker)
	}
}
