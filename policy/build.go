package policy

import (
	"maps"
	"math/big"
	"math/bits"
	"slices"
)

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// load reads a text and compiles it. To verify it takes some milliseconds more.
func load(name, text string, verify bool) (p *Program, err error) {
	f, err := parse(name, text)
	if err != nil {
		return nil, err
	}
	return (&compiler{f: f, verify: verify, constants: map[string]*typed{}, orders: map[string]bool{}}).compile()
}

func (c *compiler) compile() (p *Program, err error) {
	defer func() {
		if r := recover(); r != nil {
			fail, ok := r.(failure)
			if !ok {
				panic(r)
			}
			p, err = nil, Errors{fail.err}
		}
	}()
	return c.program(), nil
}

func (c *compiler) program() *Program {
	p := &Program{Name: c.f.name, text: c.f.text}
	classes := map[string]*typed{}
	known := map[string]*typed{} // before the text says otherwise
	if c.host {
		t := &typed{code: code{{do: opPacket, id: pProcessing}}, den: one, lo: ratOf(one), hi: ratOf(big.NewInt(1<<32 - 1))}
		known["processing"], classes["processing"] = t, t
	}
	for _, name := range classified {
		e := c.f.classify[name]
		if e == nil {
			continue
		}
		t := c.number(packetScope(known), e)
		if t.den.Cmp(one) != 0 {
			t = c.wholly(t)
		}
		classes[name] = t
		switch name {
		case "value":
			p.value = t.code
		case "processing":
			p.processing = t.code
		case "slack":
			p.slack = t.code
		case "flow":
			p.flow = t.code
		}
	}
	in, ports := c.structure()
	for _, o := range ports {
		part := p
		if len(ports) > 1 {
			one := *p
			part = &one
		}
		queues := o.queues
		for i, q := range queues {
			part.queues = append(part.queues, c.queue(q, in[q], uint8(i), classes, part))
		}
		c.buffers(part, queues, in, classes)
		c.port(part, o, len(queues), classes)
		if part != p {
			p.parts = append(p.parts, part)
		}
	}
	for _, part := range p.Parts() {
		part.bytes, part.random = c.f.bytes, c.f.random
		p.bytes, p.random, p.drops = c.f.bytes, c.f.random, p.drops || part.drops
		p.warnAlso(part)
	}
	return p
}

// wholly makes a number of a fraction, rounded towards 0.
func (c *compiler) wholly(t *typed) *typed {
	return &typed{code: append(slices.Clone(t.code), op{do: opNum, n: clamp(t.den)}, op{do: opDiv}), den: one, lo: floor(t.lo), hi: t.hi}
}

func floor(r *big.Rat) *big.Rat {
	n := new(big.Int).Quo(r.Num(), r.Denom())
	if r.Sign() < 0 {
		n.Sub(n, one)
	}
	return ratOf(n)
}

func packetScope(classes map[string]*typed) *scope {
	r := root{aPacket, 0}
	return &scope{roots: map[string]root{"p": r, "packet": r, "Packet": r}, bare: &r, classes: classes}
}

// maxPorts is how many ports a policy has at most.
const maxPorts = 64

// structure checks who is in what, and returns the buffer of each queue and the
// ports: one that the text does not name has all queues.
func (c *compiler) structure() (in map[*object]*object, ports []*object) {
	in = map[*object]*object{}
	c.f.sizes = map[*object]int64{}
	var queues []*object
	of := map[*object]*object{} // the port of a queue
	for _, o := range c.f.objects {
		if o.size != nil {
			c.size(o)
		}
		switch o.kind {
		case "Queue":
			queues = append(queues, o)
		case "Buffer":
			for _, q := range o.queues {
				if in[q] != nil {
					c.fail(o.pos, "%s is in %s and in %s; a queue is in one buffer at most", q.name, in[q].name, o.name)
				}
				if in[q] = o; q.packets != o.packets {
					c.fail(o.pos, "%s counts %s and %s counts %s; give both the same unit", o.name, unitOf(o), q.name, unitOf(q))
				}
			}
		case "Port":
			for _, q := range o.queues {
				switch {
				case of[q] == o:
					c.fail(o.pos, "%s is given to %s twice", q.name, o.name)
				case of[q] != nil:
					c.fail(o.pos, "%s is given to %s and to %s; a queue belongs to one port", q.name, of[q].name, o.name)
				}
				of[q] = o
			}
			ports = append(ports, o)
		}
	}
	if len(queues) == 0 {
		c.fail(Pos{1, 1}, "there is no queue; declare one, as in q = Queue(64KB);")
	}
	if len(ports) > maxPorts {
		c.fail(ports[maxPorts].pos, "more than %d ports", maxPorts)
	}
	for _, q := range queues {
		if len(ports) > 0 && of[q] == nil {
			c.fail(q.pos, "%s belongs to no port: nothing would leave it; give it to %s", q.name, ports[0].name)
		}
	}
	if len(ports) == 0 {
		ports = []*object{{kind: "Port", name: "port", attrs: map[string]*assign{}, queues: queues}}
	}
	for _, o := range ports {
		if len(o.queues) > maxQueues {
			c.fail(o.queues[maxQueues].pos, "more than %d queues of a port", maxQueues)
		}
	}
	return in, ports
}

func unitOf(o *object) string {
	if o.packets {
		return "packets"
	}
	return "bytes"
}

func (c *compiler) size(o *object) {
	t := c.number(&scope{}, o.size)
	if t.constant == nil || !t.constant.IsInt() || t.constant.Sign() <= 0 || t.constant.Cmp(big.NewRat(1<<40, 1)) > 0 {
		c.fail(o.size.pos, "the size of %s is a whole number of bytes or pkts, from 1", o.name)
	}
	c.f.sizes[o] = t.constant.Num().Int64()
	o.packets = c.f.dialect || c.inPackets(o.size, map[string]bool{})
}

// inPackets reports whether a size is written in packets, itself or by a constant
// that was not seen before.
func (c *compiler) inPackets(e *expr, seen map[string]bool) bool {
	switch {
	case e == nil:
		return false
	case e.op == "path" && c.f.consts[e.path[0]] != nil && !seen[e.path[0]]:
		seen[e.path[0]] = true
		return c.inPackets(c.f.consts[e.path[0]], seen)
	}
	return e.unit == "pkts" || c.inPackets(e.l, seen) || c.inPackets(e.r, seen)
}

// attribute returns the definition of an attribute of an object, nil if the text
// says nothing.
func (c *compiler) attribute(o *object, attr string) (*assign, *def) {
	a := o.attrs[attr]
	if a == nil {
		return nil, c.f.defs[attr] // one with the name of the attribute is for all
	}
	if a.name == "" {
		return a, nil
	}
	return a, c.found(a)
}

func (c *compiler) queue(o, buffer *object, id uint8, classes map[string]*typed, p *Program) queueProgram {
	q := queueProgram{name: o.name, size: c.f.sizes[o], packets: o.packets, buffer: -1, weightAdm: 1, weightSched: 1}
	q.proc = c.packetOrder(o, "procPrio", classes)
	q.adm = c.packetOrder(o, "admPrio", classes)
	s := queueScope(o, buffer, classes)
	q.congestion = c.congestion(o, s, p)
	if a, d := c.attribute(o, "postAdmAct"); d != nil {
		q.post = c.cases(d, s, false, p)
	} else if a != nil {
		c.fail(a.pos, "postAdmAct is a boundary condition: name one, as in x(q) = q.currSize > 10KB, mark")
	}
	for attr, to := range map[string]*int64{"weightAdm": &q.weightAdm, "weightSched": &q.weightSched, "admState": &q.admState, "schedState": &q.schedState} {
		if a := o.attrs[attr]; a != nil {
			*to = c.initial(a)
		}
	}
	return q
}

// initial is a number that an attribute begins with.
func (c *compiler) initial(a *assign) int64 {
	e := a.expr
	if a.name != "" {
		e = &expr{op: "path", pos: a.pos, path: []string{a.name}}
	}
	t := c.number(&scope{}, e)
	least := int64(0)
	if a.attr == "weightSched" || a.attr == "weightAdm" {
		least = 1
	}
	if t.constant == nil || !t.constant.IsInt() || t.constant.Cmp(big.NewRat(least, 1)) < 0 || t.constant.Cmp(big.NewRat(1<<20, 1)) > 0 {
		c.fail(a.pos, "%s begins with a whole number from %d to 1048576", a.attr, least)
	}
	return t.constant.Num().Int64()
}

func queueScope(o, buffer *object, classes map[string]*typed) *scope {
	r, p := root{aQueue, 0}, root{aPacket, 0}
	return &scope{roots: map[string]root{"Queue": r, "queue": r, "p": p, "packet": p, "Packet": p, "port": {aPort, 0}}, bare: &r, queue: o, buffer: buffer, classes: classes}
}

// with returns a scope with one more root.
func (s *scope) with(name string, r root) *scope {
	out := *s
	out.roots = maps.Clone(s.roots)
	out.roots[name] = r
	return &out
}

func (c *compiler) buffers(p *Program, queues []*object, in map[*object]*object, classes map[string]*typed) {
	number := 0
	for _, o := range c.f.objects {
		if o.kind != "Buffer" {
			continue
		}
		number++
		b := bufferProgram{name: o.name, size: c.f.sizes[o], packets: o.packets, members: len(o.queues)}
		for i, q := range queues {
			if in[q] == o {
				p.queues[i].buffer = len(p.buffers)
				b.queues |= 1 << i
			}
		}
		switch n := bits.OnesCount64(b.queues); {
		case n == 0:
			continue
		case n < len(o.queues):
			b.span = number
		}
		b.prio = c.queueOrder(o, "queuePrio", "lqd", classes, p)
		r, pk := root{aBuffer, 0}, root{aPacket, 0}
		s := &scope{roots: map[string]root{"Buffer": r, "buffer": r, "p": pk, "packet": pk, "Packet": pk}, bare: &r, buffer: o, classes: classes}
		b.congestion = c.congestion(o, s, p)
		if _, d := c.attribute(o, "postAdmAct"); d != nil && o.attrs["postAdmAct"] != nil {
			b.post = c.cases(d, s, false, p)
		}
		p.buffers = append(p.buffers, b)
	}
	if len(p.buffers) > maxQueues {
		c.fail(c.f.objects[0].pos, "more than %d buffers", maxQueues)
	}
}

// readsTurns reports whether anything but the port reads what the library counts
// of service: of one queue nothing need be.
func (p *Program) readsTurns() bool {
	for i := range p.queues {
		if q := &p.queues[i]; reads(q.congestion, qSchedState) || reads(q.post, qSchedState) {
			return true
		}
	}
	for i := range p.buffers {
		if b := &p.buffers[i]; reads(b.congestion, qSchedState) || reads(b.post, qSchedState) {
			return true
		}
	}
	return false
}

func (c *compiler) port(p *Program, o *object, n int, classes map[string]*typed) {
	p.share = 1
	p.port = o.name
	if o.rate != nil {
		c.rate(p, o)
	}
	p.sched = c.queueOrder(o, "schedPrio", "rr", classes, p)
	name := "rr"
	if a := o.attrs["schedPrio"]; a != nil {
		name = a.name
		if r := routines[name]; r != "" && c.f.dialect {
			name = r
		}
	} else if c.f.defs["schedPrio"] != nil {
		name = ""
	}
	s := queueScope(nil, nil, classes)
	if _, d := c.attribute(o, "postSchedAct"); d != nil {
		p.served = c.cases(d, s, false, p)
	} else if d := library[name+"_served"]; d != nil && c.f.defs[name] == nil && (n > 1 || p.readsTurns()) {
		p.served = c.cases(d, s, false, p)
	}
	for _, k := range p.served {
		for _, m := range k.modify {
			p.turns = p.turns || m.to == qSchedState
		}
	}
	p.selects = c.selection(o, n, classes)
}

func (c *compiler) rate(p *Program, o *object) {
	t := c.number(&scope{}, o.rate)
	switch {
	case t.constant == nil || t.constant.Sign() <= 0:
		c.fail(o.rate.pos, "the rate of a port is above 0, as 100%%, 50%% or 10Mbps")
	case o.rate.unit == "%":
		if p.share, _ = t.constant.Float64(); p.share > 1 {
			c.fail(o.rate.pos, "a port has at most 100%% of its link")
		}
	default:
		bits := t.constant
		if o.rate.unit == "" { // kbps, as the dissertation has it
			bits = new(big.Rat).Mul(bits, big.NewRat(1000, 1))
		}
		n := new(big.Int).Quo(bits.Num(), bits.Denom())
		if n.Sign() == 0 || n.Cmp(big.NewInt(1e13)) > 0 {
			c.fail(o.rate.pos, "a rate is from 1 bit/s to 10 Tbit/s")
		}
		p.rate = n.Uint64()
	}
}

// selection says which queue a packet goes to: the number modulo the queues.
func (c *compiler) selection(o *object, n int, classes map[string]*typed) code {
	a := o.attrs["queueSelect"]
	e := &expr{op: "path", pos: o.pos, path: []string{"flow"}}
	switch {
	case n == 1:
		return nil
	case a == nil:
	case a.name != "":
		e = &expr{op: "path", pos: a.pos, path: []string{a.name}}
		if r := routines[a.name]; r != "" && c.f.dialect {
			e.path[0] = r
		}
	default:
		e = a.expr
	}
	t := c.expr(packetScope(classes), e)
	if t.den.Cmp(one) != 0 {
		t = c.wholly(t)
	}
	return t.code
}
