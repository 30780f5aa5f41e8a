package policy

import (
	"fmt"
	"math/big"
	"slices"
)

// condition is a case of a boundary condition as it is carried out.
type condition struct {
	when   code
	full   bool // when is currSize > size of the queue, which most are
	drop   bool
	chance uint64 // of a drop, of 2^32
	mark   bool
	notify bool
	modify []modification
}

type modification struct {
	to uint8
	by code
}

// overfull is currSize > size of a queue.
var overfull = code{{do: opQueue, id: qSize}, {do: opQueue, id: qCurrSize}, {do: opLess}}

// reads reports whether one of the conditions, or what is done then, reads a field
// of a queue.
func reads(list []condition, id uint8) bool {
	for i := range list {
		c := slices.Clone(list[i].when)
		for _, m := range list[i].modify {
			c = append(c, m.by...)
		}
		if slices.ContainsFunc(c, func(o op) bool { return o.do == opQueue && o.id == id }) {
			return true
		}
	}
	return false
}

// congestion compiles what says that a queue or a buffer is congested.
func (c *compiler) congestion(o *object, s *scope, p *Program) []condition {
	a, d := c.attribute(o, "congestion")
	if a == nil && o.kind == "Buffer" {
		d = nil // one definition named congestion is of queues
	}
	if d == nil && a == nil {
		d = library["tailDrop"]
	}
	act := o.attrs["congAction"]
	if act != nil && act.name != "drop_tail" {
		c.fail(act.pos, "there is no congAction %q; there is drop_tail, or drop_tail(0.95)", act.name)
	}
	if d != nil && d.cond != nil {
		c.fail(d.pos, "congestion of %s wants a boundary condition, as in full(q) = q.currSize > q.size, drop(1); %s compares two", o.name, d.name)
	}
	if d == nil {
		d = &def{name: "inline", pos: a.pos, cases: []*acts{{cond: a.expr, list: []*action{{pos: a.pos, verb: "drop", prob: big.NewRat(1, 1)}}}}}
	}
	if act != nil && act.expr != nil {
		t := c.number(&scope{}, act.expr)
		if t.constant == nil || t.constant.Sign() < 0 || t.constant.Cmp(big.NewRat(1, 1)) > 0 {
			c.fail(act.pos, "drop_tail wants a probability from 0 to 1")
		}
		d = d.dropping(t.constant)
	}
	return c.cases(d, s, true, p)
}

// dropping is a boundary condition with another probability.
func (d *def) dropping(prob *big.Rat) *def {
	out := *d
	out.cases = nil
	for _, k := range d.cases {
		one := &acts{cond: k.cond}
		for _, a := range k.list {
			changed := *a
			changed.prob = prob
			one.list = append(one.list, &changed)
		}
		out.cases = append(out.cases, one)
	}
	return &out
}

// cases compiles a boundary condition. What drops is checked against a queue that
// is empty: such a case would drop everything that comes.
func (c *compiler) cases(d *def, s *scope, drops bool, p *Program) (out []condition) {
	if len(d.params) == 1 {
		s = s.with(d.params[0], *s.bare)
	}
	var before []*expr
	for _, k := range d.cases {
		t := c.condition(s, k.cond)
		one := condition{when: t.code, full: slices.Equal(t.code, overfull)}
		for _, a := range k.list {
			c.action(a, s, drops, &one)
		}
		if one.drop && one.chance > 0 {
			void := *s
			void.empty = true
			if c.condition(&void, k.cond).always() {
				c.fail(k.cond.pos, "this holds for an empty queue, too: every packet would be dropped as it comes; compare currSize with size")
			}
			if !t.never() {
				p.drops = true
			}
		}
		c.lint(d, k, before, s, p)
		before = append(before, k.cond)
		out = append(out, one)
	}
	return out
}

func (c *compiler) action(a *action, s *scope, drops bool, out *condition) {
	switch a.verb {
	case "drop":
		if !drops {
			c.fail(a.pos, "what is done after admission or service drops nothing: write the drop into congestion")
		}
		x, _ := new(big.Rat).Mul(a.prob, big.NewRat(1<<32, 1)).Float64()
		out.drop, out.chance = true, uint64(x)
	case "mark":
		out.mark = true
	case "notify":
		out.notify = true
	case "modify":
		id, ok := modifiable[a.to]
		if !ok {
			c.fail(a.pos, "%q cannot be modified%s", a.to, nearest(a.to, sortedKeys(modifiable)))
		}
		t := c.number(s, a.by)
		if t.den.Cmp(one) != 0 {
			t = c.wholly(t)
		}
		out.modify = append(out.modify, modification{id, t.code})
	}
}

// lint warns of cases that never come to their turn, and of tests that a burst jumps
// over.
func (c *compiler) lint(d *def, k *acts, before []*expr, s *scope, p *Program) {
	for _, e := range before {
		if c.implies(s, k.cond, e) {
			p.warn(c.f.text, k.cond.pos, "this case of %s is never reached: the one at line %d holds whenever it does; write the narrowest first", d.name, e.pos.Line)
			break
		}
	}
	if k.cond.op == "==" {
		l := c.number(s, k.cond.l)
		if len(l.code) == 1 && l.code[0].do == opQueue && (l.code[0].id == qCurrSize || l.code[0].id == qLength || l.code[0].id == bCurrSize) {
			p.warn(c.f.text, k.cond.pos, "a burst can jump over a test for ==: >= holds above it, too")
		}
	}
}

// implies reports whether x > m (or >=) follows from x > n.
func (c *compiler) implies(s *scope, e, from *expr) bool {
	lower := func(e *expr) (code, *big.Rat, bool) {
		if e.op != ">" && e.op != ">=" {
			return nil, nil, false
		}
		l, r := c.number(s, e.l), c.number(s, e.r)
		if r.constant == nil || l.constant != nil {
			return nil, nil, false
		}
		return l.code, r.constant, true
	}
	x, n, ok := lower(e)
	y, m, also := lower(from)
	if !ok || !also || len(x) != 1 || len(y) != 1 || x[0] != y[0] {
		return false
	}
	return n.Cmp(m) > 0 || n.Cmp(m) == 0 && (e.op == from.op || e.op == ">")
}

// warnAlso takes over what a part of the program warns of.
func (p *Program) warnAlso(part *Program) {
	for _, w := range part.Warnings {
		if p != part && !slices.ContainsFunc(p.Warnings, func(old *Error) bool { return *old == *w }) {
			p.Warnings = append(p.Warnings, w)
		}
	}
}

func (p *Program) warn(file string, pos Pos, format string, args ...any) {
	w := &Error{file, pos, fmt.Sprintf(format, args...)}
	for _, old := range p.Warnings { // of another queue with the same condition
		if *old == *w {
			return
		}
	}
	p.Warnings = append(p.Warnings, w)
}
