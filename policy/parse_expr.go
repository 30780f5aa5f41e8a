package policy

import (
	"maps"
	"math/big"
	"slices"
)

// levels are the binary operators, those that bind least first.
var levels = [][]string{{"or", "||"}, {"and", "&&"}, {"<", "<=", ">", ">=", "==", "!="}, {"+", "-"}, {"*", "/", "%"}}

// spelled are the operators that have two spellings.
var spelled = map[string]string{"||": "or", "&&": "and"}

func (p *parser) expr() *expr { return p.binary(0) }

func (p *parser) binary(level int) *expr {
	p.deeper()
	defer p.shallower()
	if level == 2 && (p.word("not") || p.is("!")) {
		t := p.next()
		return &expr{op: "not", pos: t.pos, l: p.binary(2)}
	}
	if level == len(levels) {
		return p.unary()
	}
	e := p.binary(level + 1)
	for n := 0; ; n++ {
		t := p.peek()
		if !(t.kind == tokSign || t.kind == tokIdent) || !slices.Contains(levels[level], t.text) || level == 2 && n > 0 {
			return e
		}
		if n > 256 {
			p.fail(t.pos, "more than 256 operators in one expression")
		}
		p.next()
		op := t.text
		if s := spelled[op]; s != "" {
			op = s
		}
		e = &expr{op: op, pos: t.pos, l: e, r: p.binary(level + 1)}
	}
}

func (p *parser) deeper() {
	if p.depth++; p.depth > maxDepth*len(levels) {
		p.fail(p.peek().pos, "parentheses deeper than %d", maxDepth)
	}
}

func (p *parser) shallower() { p.depth-- }

func (p *parser) unary() *expr {
	t := p.peek()
	switch {
	case p.take("-"):
		p.deeper()
		defer p.shallower()
		return &expr{op: "neg", pos: t.pos, l: p.unary()}
	case p.take("("):
		e := p.expr()
		p.want(")", "behind an expression")
		return e
	case t.kind == tokNumber:
		return p.number()
	case t.kind == tokIdent:
		return p.pathExpr()
	}
	p.fail(t.pos, "here must stand a number, a field or a parenthesis, not %s", t)
	return nil
}

// number reads a number and its unit.
func (p *parser) number() *expr {
	t := p.next()
	e := &expr{op: "num", pos: t.pos, num: t.num}
	u := p.peek()
	switch {
	case u.kind == tokIdent && suffixes[u.text] != 0:
		p.next()
		e.unit, e.num = u.text, new(big.Rat).Mul(t.num, big.NewRat(suffixes[u.text], 1))
	case u.kind == tokIdent && (u.text == "pkts" || u.text == "pkt"):
		p.next()
		e.unit = "pkts"
	case p.is("%") && p.endsAt(p.i+1):
		p.next()
		e.unit, e.num = "%", new(big.Rat).Quo(t.num, big.NewRat(100, 1))
	}
	return e
}

// endsAt reports whether no operand can begin at a word: a percent sign before it is
// no remainder.
func (p *parser) endsAt(i int) bool {
	t := p.v[i]
	return t.kind == tokEnd || t.kind == tokSign && t.text != "(" && t.text != "-"
}

// pathExpr reads a.f, a.hol.f, a.getHOL().f, a.buffer.f, or f alone.
func (p *parser) pathExpr() *expr {
	t := p.next()
	if slices.Contains([]string{"and", "or", "not"}, t.text) {
		p.fail(t.pos, "%q stands where a field must", t.text)
	}
	e := &expr{op: "path", pos: t.pos, path: []string{t.text}}
	for {
		if p.is("(") {
			last := e.path[len(e.path)-1]
			if last != "getHOL" || len(e.path) < 2 {
				p.fail(p.peek().pos, "%s is called, and expressions call nothing: they read fields, so that a packet costs a bounded time", last)
			}
			p.next()
			p.want(")", "behind getHOL(")
			e.path[len(e.path)-1] = "hol"
		}
		if !(p.is(".") && p.v[p.i+1].kind == tokIdent) {
			return e
		}
		if len(e.path) == 4 {
			p.fail(p.peek().pos, "a path of more than four words")
		}
		p.next()
		e.path = append(e.path, p.next().text)
	}
}

// names returns what objects there are, for errors.
func (f *file) names() []string { return slices.Sorted(maps.Keys(f.byName)) }
