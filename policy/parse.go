package policy

import (
	"fmt"
	"math/big"
	"slices"
)

// parser goes through the words of a text. An error ends it: what follows a
// wrong statement would be guesses.
type parser struct {
	file  *file
	v     []token
	i     int
	depth int
}

type failure struct{ err *Error }

func (p *parser) fail(pos Pos, format string, args ...any) {
	panic(failure{&Error{p.file.text, pos, fmt.Sprintf(format, args...)}})
}

// parse reads a text. Names of objects and attributes are resolved; what they mean
// together the checker knows.
func parse(name, text string) (f *file, err error) {
	v, err := scan(name, text)
	if err != nil {
		return nil, err
	}
	f = &file{text: name, consts: map[string]*expr{}, classify: map[string]*expr{}, defs: map[string]*def{}, byName: map[string]*object{}}
	p := &parser{file: f, v: v}
	defer func() {
		if r := recover(); r != nil {
			fail, ok := r.(failure)
			if !ok {
				panic(r)
			}
			f, err = nil, Errors{fail.err}
		}
	}()
	for p.peek().kind != tokEnd {
		p.statement()
	}
	return f, nil
}

func (p *parser) peek() *token { return &p.v[p.i] }

func (p *parser) next() *token {
	t := &p.v[p.i]
	if t.kind != tokEnd {
		p.i++
	}
	return t
}

func (p *parser) is(sign string) bool {
	t := p.peek()
	return t.kind == tokSign && t.text == sign
}

func (p *parser) word(words ...string) bool {
	t := p.peek()
	return t.kind == tokIdent && slices.Contains(words, t.text)
}

func (p *parser) take(sign string) bool {
	if p.is(sign) {
		p.i++
		return true
	}
	return false
}

// want takes a sign that must follow, and says what it ends if it does not.
func (p *parser) want(sign, behind string) {
	if p.take(sign) {
		return
	}
	t := p.peek()
	switch {
	case sign == ";":
		at := p.v[max(p.i-1, 0)]
		p.fail(at.pos, "a semicolon is missing behind %s, before %s", at.String(), t)
	case t.kind == tokSign && t.text == "...":
		p.fail(t.pos, "\"...\" stands for what a reader can guess; write the range out, as in q[1..4] = Queue(64KB, ...) for four queues")
	}
	p.fail(t.pos, "%q is missing %s, before %s", sign, behind, t)
}

func (p *parser) ident(what string) *token {
	t := p.next()
	if t.kind == tokSign && t.text == "..." {
		p.fail(t.pos, "\"...\" stands for what a reader can guess; write an array, as in q[1..4] = Queue(64KB); q.admPrio = fifo;")
	}
	if t.kind != tokIdent {
		p.fail(t.pos, "here must stand %s, not %s", what, t)
	}
	return t
}

var kinds = []string{"Queue", "Buffer", "Port"}

func (p *parser) statement() {
	t := p.ident("a statement: const, classify, a comparator, an object or an attribute")
	behind := p.peek()
	switch {
	case t.text == "policy" && behind.kind == tokIdent:
		p.file.name = p.next().text
		p.want(";", "")
	case t.text == "import" && behind.kind == tokString:
		p.next()
		p.file.dialect = true
		p.take(";")
	case t.text == "const" && behind.kind == tokIdent:
		name := p.next()
		p.fresh(name)
		p.want("=", "behind the name of a constant")
		p.file.consts[name.text] = p.expr()
		p.want(";", "")
	case t.text == "classify" && behind.kind == tokIdent:
		p.classify()
	case slices.Contains(kinds, t.text) && behind.kind == tokIdent:
		p.object(t.text, p.next())
	case behind.kind == tokSign && behind.text == "(":
		p.def(t)
	default:
		p.objectOrAttribute(t)
	}
}

// fresh refuses a name that is taken.
func (p *parser) fresh(t *token) {
	f := p.file
	if f.consts[t.text] != nil || f.defs[t.text] != nil || f.byName[t.text] != nil {
		p.fail(t.pos, "%q is there already; give one of the two another name", t.text)
	}
}

var classified = []string{"value", "processing", "slack", "flow"}

func (p *parser) classify() {
	t := p.next()
	if !slices.Contains(classified, t.text) {
		p.fail(t.pos, "a packet's %q cannot be classified%s", t.text, nearest(t.text, classified))
	}
	if p.file.classify[t.text] != nil {
		p.fail(t.pos, "%q is classified already", t.text)
	}
	p.want("=", "behind the name of what is classified")
	p.file.classify[t.text] = p.expr()
	p.want(";", "")
}

func (p *parser) def(name *token) {
	p.fresh(name)
	d := &def{name: name.text, pos: name.pos}
	p.want("(", "")
	for !p.take(")") {
		if len(d.params) > 0 {
			p.want(",", "between parameters")
		}
		x := p.ident("a parameter")
		if slices.Contains(d.params, x.text) {
			p.fail(x.pos, "both parameters are named %q", x.text)
		}
		if d.params = append(d.params, x.text); len(d.params) > 2 {
			p.fail(x.pos, "a comparator has two parameters, a boundary condition one")
		}
	}
	p.want("=", "behind the parameters")
	if len(d.params) == 2 {
		d.cond = p.expr()
	} else {
		d.cases = p.cases()
	}
	p.take(";")
	p.file.defs[d.name] = d
}

// cases reads (b, ac).(b, ac) or b, ac.
func (p *parser) cases() (out []*acts) {
	for {
		out = append(out, p.oneCase())
		if len(out) > 16 {
			p.fail(p.peek().pos, "more than 16 cases")
		}
		if !(p.is(".") && p.v[p.i+1].kind == tokSign && p.v[p.i+1].text == "(") {
			return out
		}
		p.next()
	}
}

func (p *parser) oneCase() *acts {
	begin := p.i
	if p.take("(") {
		c := &acts{cond: p.expr()}
		if p.take(",") {
			c.list = p.actions()
			p.want(")", "behind the actions of a case")
			return c
		}
		p.i = begin // it was a condition that begins with a parenthesis
	}
	c := &acts{cond: p.expr()}
	p.want(",", "between a condition and what is done")
	c.list = p.actions()
	return c
}

var verbs = []string{"drop", "mark", "notify", "modify"}

func (p *parser) actions() (out []*action) {
	for {
		t := p.ident("an action: drop(1), mark, notify or modify(weightAdm := ...)")
		a := &action{pos: t.pos, verb: t.text, prob: big.NewRat(1, 1)}
		switch t.text {
		case "drop":
			if p.take("(") {
				n := p.next()
				if n.kind != tokNumber || n.num.Cmp(big.NewRat(1, 1)) > 0 {
					p.fail(n.pos, "drop wants a probability from 0 to 1, not %s", n)
				}
				a.prob = n.num
				p.want(")", "behind the probability")
			}
		case "modify":
			p.want("(", "behind modify")
			a.to = p.ident("the field that is modified").text
			if p.take(".") { // with the parameter before it
				a.to = p.ident("a field").text
			}
			p.want(":=", "behind the field that is modified")
			a.by = p.expr()
			p.want(")", "behind modify")
		case "mark", "notify":
		default:
			p.fail(t.pos, "there is no action %q%s", t.text, nearest(t.text, verbs))
		}
		out = append(out, a)
		if !(p.is(".") && p.v[p.i+1].kind == tokIdent) {
			return out
		}
		p.next()
	}
}
