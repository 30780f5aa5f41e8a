package policy

import (
	"fmt"
	"slices"
	"strconv"
)

// maxQueues is how many queues a policy has at most: bits of a word.
const maxQueues = 64

// index reads [1..4] or [2], and returns first and last.
func (p *parser) index() (lo, hi int, array bool) {
	if !p.take("[") {
		return 0, 0, false
	}
	number := func() int {
		t := p.next()
		n, err := strconv.Atoi(t.text)
		if t.kind != tokNumber || err != nil || n > 1000 {
			p.fail(t.pos, "an index is a whole number up to 1000, not %s", t)
		}
		return n
	}
	lo = number()
	hi = lo
	if p.take("..") {
		hi = number()
	}
	if hi < lo || hi-lo >= maxQueues {
		p.fail(p.peek().pos, "the range %d..%d has no element, or more than %d", lo, hi, maxQueues)
	}
	p.want("]", "behind an index")
	return lo, hi, true
}

// spread returns the names of name[1..3][1..3].
func (p *parser) spread(name string) []string {
	out := []string{name}
	for {
		lo, hi, array := p.index()
		if !array {
			return out
		}
		var next []string
		for _, n := range out {
			for i := lo; i <= hi; i++ {
				next = append(next, fmt.Sprintf("%s[%d]", n, i))
			}
		}
		if out = next; len(out) > maxQueues {
			p.fail(p.peek().pos, "more than %d objects of one name", maxQueues)
		}
	}
}

// objectOrAttribute reads what begins with the name of an object.
func (p *parser) objectOrAttribute(t *token) {
	names := p.spread(t.text)
	switch {
	case p.is("="):
		p.next()
		kind := p.ident("Queue, Buffer or Port")
		if !slices.Contains(kinds, kind.text) {
			p.fail(kind.pos, "%q makes nothing%s", kind.text, nearest(kind.text, kinds))
		}
		p.construct(kind.text, t, names)
	case p.take("."):
		p.attribute(t, names)
	case p.is("->"):
		p.fail(p.peek().pos, "levels of queues behind one another need a switch with internal links; an egress queue has one level. Take the line out")
	default:
		p.fail(p.peek().pos, "behind %q must stand = and an object, or . and an attribute, not %s", t.text, p.peek())
	}
}

// object reads Queue q1 = Queue(128).
func (p *parser) object(kind string, t *token) {
	names := p.spread(t.text)
	p.want("=", "behind the name of an object")
	made := p.ident(kind)
	if made.text != kind {
		p.fail(made.pos, "a %s is made by %s(...), not %s", kind, kind, made)
	}
	p.construct(kind, t, names)
}

func (p *parser) construct(kind string, t *token, names []string) {
	p.want("(", "behind "+kind)
	o := object{kind: kind, pos: t.pos}
	first := p.i
	for !p.take(")") {
		if p.i > first {
			p.want(",", "between arguments")
		}
		if at := p.peek(); at.kind == tokIdent && p.file.consts[at.text] == nil {
			o.queues = append(o.queues, p.objects("Queue")...)
			continue
		}
		e := p.expr()
		switch {
		case kind == "Port" && o.rate == nil && o.queues == nil:
			o.rate = e
		case kind != "Port" && o.size == nil && o.queues == nil:
			o.size = e
		default:
			p.fail(e.pos, "one number too many for a %s", kind)
		}
	}
	p.want(";", "")
	switch {
	case kind == "Queue" && o.queues != nil:
		p.fail(t.pos, "a queue holds packets; queues are given to a Buffer or a Port")
	case kind != "Port" && o.size == nil:
		p.fail(t.pos, "a %s needs a size, as in %s(64KB) or %s(128 pkts)", kind, kind, kind)
	case kind != "Queue" && o.queues == nil:
		p.fail(t.pos, "a %s needs queues, as in %s(..., q1, q2)", kind, kind)
	}
	for _, name := range names {
		p.fresh(&token{text: name, pos: t.pos})
		one := o
		one.name, one.attrs = name, map[string]*assign{}
		p.file.byName[name] = &one
		p.file.objects = append(p.file.objects, &one)
	}
	if len(names) > 1 {
		p.fresh(t)
	}
	if len(p.file.objects) > 4*maxQueues {
		p.fail(t.pos, "more than %d objects", 4*maxQueues)
	}
}

// objects reads the name of one object or of several.
func (p *parser) objects(kind string) []*object {
	t := p.ident("a " + kind)
	out := p.find(t, p.spread(t.text))
	for _, o := range out {
		if o.kind != kind {
			p.fail(t.pos, "%s is a %s, and here must stand a %s", o.name, o.kind, kind)
		}
	}
	return out
}

// find returns the objects of names; an array's own name is for all of it.
func (p *parser) find(t *token, names []string) (out []*object) {
	for _, name := range names {
		if o := p.file.byName[name]; o != nil {
			out = append(out, o)
			continue
		}
		n := len(out)
		for _, o := range p.file.objects {
			if len(o.name) > len(name) && o.name[:len(name)] == name && o.name[len(name)] == '[' {
				out = append(out, o)
			}
		}
		if len(out) == n {
			p.fail(t.pos, "there is no object %q%s", name, nearest(name, p.file.names()))
		}
	}
	return out
}

// attributes are those of each kind of object.
var attributes = map[string][]string{
	"Queue":  {"admPrio", "procPrio", "congestion", "congAction", "postAdmAct", "weightAdm", "weightSched", "admState", "schedState"},
	"Buffer": {"queuePrio", "congestion", "postAdmAct"},
	"Port":   {"schedPrio", "queueSelect", "postSchedAct"},
}

// misprints are attributes as the dissertation prints them in places.
var misprints = map[string]string{"proPrio": "procPrio"}

func (p *parser) attribute(t *token, names []string) {
	list := p.find(t, names)
	at := p.ident("an attribute")
	attr := at.text
	if m := misprints[attr]; m != "" {
		attr = m
	}
	if attr == "admPrio" && list[0].kind == "Buffer" {
		attr = "queuePrio"
	}
	if known := attributes[list[0].kind]; !slices.Contains(known, attr) {
		p.fail(at.pos, "a %s has no attribute %q%s", list[0].kind, at.text, nearest(at.text, known))
	}
	p.want("=", "behind an attribute")
	a := assign{attr: attr, pos: p.peek().pos}
	switch {
	case p.word("inline"):
		p.next()
		p.want("{", "behind inline")
		a.expr = p.expr()
		p.want("}", "behind an inline expression")
	case p.peek().kind == tokIdent && p.v[p.i+1].kind == tokSign && slices.Contains([]string{";", "("}, p.v[p.i+1].text):
		a.name = p.next().text
		if p.take("(") { // fifo(), or drop_tail(0.95)
			if p.peek().kind == tokNumber || p.peek().kind == tokIdent {
				a.expr = p.expr()
			}
			p.want(")", "behind an argument")
		}
	default:
		a.expr = p.expr()
	}
	p.want(";", "")
	for _, o := range list {
		if o.attrs[attr] != nil {
			p.fail(at.pos, "%s.%s is there already; leave one of the two lines", o.name, attr)
		}
		one := a
		one.object = o
		o.attrs[attr] = &one
	}
}
