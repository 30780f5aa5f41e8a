package policy

import "fmt"

// Chooser is a policy where nothing is buffered: at a host, whose messages lie in
// memory until their queue pair may send. Of the next packets of all that may it
// says which leaves first. Any number of goroutines may use one.
type Chooser struct {
	e     *Engine
	order *order
}

// CompileChooser reads and verifies a text with one queue. Its procPrio counts, and
// what it classifies value, processing and slack as; nothing is admitted or dropped
// here. processing is what is left of a message, if the text does not say otherwise.
func CompileChooser(name, text string) (*Chooser, error) {
	f, err := parse(name, text)
	if err != nil {
		return nil, err
	}
	p, err := (&compiler{f: f, verify: true, host: true, constants: map[string]*typed{}, orders: map[string]bool{}}).compile()
	if err != nil {
		return nil, err
	}
	switch {
	case p.parts != nil:
		return nil, fmt.Errorf("has %s: a host sends by one; leave the others out", count(len(p.parts), "port"))
	case len(p.queues) != 1 || len(p.buffers) > 0:
		return nil, fmt.Errorf("has %s and %s: at a host what waits is in one queue, of packets that are the next of their queue pairs; leave the others out", count(len(p.queues), "queue"), count(len(p.buffers), "shared buffer"))
	case p.rate != 0 || p.share < 1:
		return nil, fmt.Errorf("slows the port %s down: give the host a rate in place of it", p.port)
	case p.random || p.bytes:
		return nil, fmt.Errorf("reads random, or what stands in frames that a host has not made yet; size, arrival, processing, value, dscp, class and flow are known")
	}
	e := p.NewEngine(0, 0)
	return &Chooser{e: e, order: &e.queues[0].prog.proc}, nil
}

// Before reports whether a leaves before b. Of both Arrival, Processing and what the
// classifier reads are filled in, and Value, Processing and Slack are made of it.
func (c *Chooser) Before(a, b *Packet) bool {
	c.classify(a)
	c.classify(b)
	o, q := c.order, &c.e.queues[0]
	x := env{e: c.e, p: [2]*Packet{a, b}, q: [2]*queue{q, nil}}
	switch o.kind {
	case byFirst:
		return a.Arrival < b.Arrival
	case byLast:
		return a.Arrival > b.Arrival
	case byLevels, byKey:
		y := env{e: c.e, p: [2]*Packet{b, nil}, q: x.q}
		return o.key.eval(&x) < o.key.eval(&y)
	}
	return o.cmp.eval(&x) != 0
}

func (c *Chooser) classify(p *Packet) {
	e, x := c.e, env{e: c.e, p: [2]*Packet{p, nil}, q: [2]*queue{&c.e.queues[0], nil}}
	p.Value, p.Slack = int64(p.DSCP), most
	if e.value != nil {
		p.Value = e.value.eval(&x)
	}
	if e.processing != nil {
		p.Processing = e.processing.eval(&x)
	}
	if e.slack != nil {
		p.Slack = e.slack.eval(&x)
	}
}
