package scenario

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"gswitch/units"
)

// node is a part of an expression.
type node struct {
	op   string // number, value, call, or an operator
	x    float64
	ref  ref
	args []*node
}

// ref refers to a value of a run.
type ref struct {
	text    string
	variant string            // "": that of the context
	pinned  map[string]string // values of swept keys; keys that are not here are those of the context
	key     string
}

// functions maps names to numbers of arguments; -1 is two or more.
var functions = map[string]int{"min": -1, "max": -1, "abs": 1, "ratio": 2, "between": 3}

// unitOf returns the factor of a unit: values are in bytes, seconds and bit/s.
func unitOf(word string) (float64, bool) {
	if word == "%" {
		return 0.01, true
	}
	if f, ok := units.Time.Factor(word); ok {
		return f / 1e9, true
	}
	if f, ok := units.Bytes.Factor(word); ok {
		return f, true
	}
	return units.Bits.Factor(word)
}

// parser reads an expression by recursive descent:
//
//	or      = and { "or" and }
//	and     = compare { "and" compare }
//	compare = sum { ("<" | "<=" | ">" | ">=" | "==" | "!=") sum }
//	sum     = product { ("+" | "-") product }
//	product = unary { ("*" | "/") unary }
//	unary   = [ "-" ] ( number [ unit ] | call | value | "(" or ")" )
type parser struct {
	text  string
	pos   int
	depth int
}

// Reading and evaluation are recursive, so nesting is bounded, and so is length, since a
// chain of operators nests to the left.
const (
	maxDepth = 50
	maxExpr  = 4 << 10 // characters
)

func parseExpr(text string) (n *node, err error) {
	if len(text) > maxExpr {
		return nil, fmt.Errorf("has %d letters, %d are possible; write several expectations", len(text), maxExpr)
	}
	p := &parser{text: text}
	if n, err = p.or(); err != nil {
		return nil, err
	}
	if p.space(); p.pos < len(text) {
		return nil, p.bad("%q is not expected here", text[p.pos:])
	}
	if !n.truth() {
		return nil, fmt.Errorf("compares nothing; write what must hold, such as slowdown_p99 < 3")
	}
	return n, nil
}

func (p *parser) bad(format string, args ...any) error {
	return fmt.Errorf("column %d: %s", p.pos+1, fmt.Sprintf(format, args...))
}

func (p *parser) space() {
	for p.pos < len(p.text) && (p.text[p.pos] == ' ' || p.text[p.pos] == '\t' || p.text[p.pos] == '\n') {
		p.pos++
	}
}

// take reads one of the words, the longest first, if the text continues with it.
func (p *parser) take(words ...string) string {
	p.space()
	for _, w := range words {
		rest, ok := strings.CutPrefix(p.text[p.pos:], w)
		if ok && (!isLetter(w[0]) || rest == "" || !isLetter(rest[0]) && !isDigit(rest[0])) {
			p.pos += len(w)
			return w
		}
	}
	return ""
}

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' }
func isDigit(c byte) bool  { return c >= '0' && c <= '9' }

// chain reads operands joined by operators of equal precedence.
func (p *parser) chain(operand func() (*node, error), ops ...string) (*node, error) {
	left, err := operand()
	for err == nil {
		op := p.take(ops...)
		if op == "" {
			return left, nil
		}
		var right *node
		if right, err = operand(); err == nil {
			left = &node{op: op, args: []*node{left, right}}
		}
	}
	return nil, err
}

func (p *parser) or() (*node, error)  { return p.chain(p.and, "or") }
func (p *parser) and() (*node, error) { return p.chain(p.compare, "and") }

// compare turns a < b < c into the conjunction of its comparisons.
func (p *parser) compare() (*node, error) {
	left, err := p.sum()
	if err != nil {
		return nil, err
	}
	var all *node
	for {
		op := p.take("<=", ">=", "==", "!=", "<", ">")
		if op == "" {
			break
		}
		right, err := p.sum()
		if err != nil {
			return nil, err
		}
		link := &node{op: op, args: []*node{left, right}}
		if all == nil {
			all = link
		} else {
			all = &node{op: "and", args: []*node{all, link}}
		}
		left = right
	}
	if all == nil {
		return left, nil
	}
	return all, nil
}

func (p *parser) sum() (*node, error)     { return p.chain(p.product, "+", "-") }
func (p *parser) product() (*node, error) { return p.chain(p.unary, "*", "/") }

func (p *parser) unary() (*node, error) {
	if p.depth++; p.depth > maxDepth {
		return nil, p.bad("the expression is nested too deeply")
	}
	defer func() { p.depth-- }()
	if p.take("-") != "" {
		x, err := p.unary()
		if err != nil {
			return nil, err
		}
		return &node{op: "negate", args: []*node{x}}, nil
	}
	if p.take("(") != "" {
		x, err := p.or()
		if err == nil && p.take(")") == "" {
			err = p.bad("a closing parenthesis is missing")
		}
		return x, err
	}
	p.space()
	switch {
	case p.pos == len(p.text):
		return nil, p.bad("something is missing at the end")
	case isDigit(p.text[p.pos]):
		return p.number()
	case isLetter(p.text[p.pos]) || p.text[p.pos] == '{':
		return p.name()
	}
	return nil, p.bad("%q is not expected here", p.text[p.pos:])
}

func (p *parser) number() (*node, error) {
	start := p.pos
	for p.pos < len(p.text) && (isDigit(p.text[p.pos]) || p.text[p.pos] == '.') {
		p.pos++
	}
	x, err := strconv.ParseFloat(p.text[start:p.pos], 64)
	if err != nil {
		return nil, p.bad("%q is not a number", p.text[start:p.pos])
	}
	unit := p.pos
	for p.pos < len(p.text) && (isLetter(p.text[p.pos]) || p.text[p.pos] == '%' || p.text[p.pos] >= utf8.RuneSelf) {
		p.pos++
	}
	// A rate may be written Gb/s; any other slash is a division.
	if rest := p.text[p.pos:]; strings.HasPrefix(rest, "/s") && (len(rest) == 2 || !isLetter(rest[2]) && !isDigit(rest[2])) {
		if _, ok := units.Bits.Factor(p.text[unit:p.pos] + "/s"); ok {
			p.pos += 2
		}
	}
	if word := p.text[unit:p.pos]; word != "" {
		f, ok := unitOf(word)
		if !ok {
			return nil, p.bad("unknown unit %q; known are %%, ns, us, ms, s, B, kB, MB, GB, KiB, MiB, GiB, bps, kbps, Mbps, Gbps", word)
		}
		x *= f
	}
	return &node{op: "number", x: x}, nil
}

// name reads a call or the name of a value.
func (p *parser) name() (*node, error) {
	start := p.pos
	first := p.word()
	if first != "" && p.pos < len(p.text) && p.text[p.pos] == '(' {
		return p.call(first)
	}
	r := ref{}
	var parts []string
	if first != "" {
		parts = append(parts, first)
	}
	if p.pos < len(p.text) && p.text[p.pos] == '{' {
		end := strings.IndexByte(p.text[p.pos:], '}')
		if end < 0 {
			return nil, p.bad("a closing brace is missing")
		}
		r.variant, parts, r.pinned = first, nil, map[string]string{}
		for pair := range strings.SplitSeq(p.text[p.pos+1:p.pos+end], ",") {
			k, v, ok := strings.Cut(pair, "=")
			if !ok {
				return nil, p.bad("%q does not pin a key of the sweep; write it like {load=0.5}", pair)
			}
			r.pinned[strings.TrimSpace(k)] = strings.TrimSpace(v)
		}
		if p.pos += end + 1; p.pos == len(p.text) || p.text[p.pos] != '.' {
			return nil, p.bad("a dot and the name of a value are missing")
		}
	}
	for p.pos < len(p.text) && p.text[p.pos] == '.' {
		p.pos++
		w := p.word()
		if w == "" {
			return nil, p.bad("a name is missing behind the dot")
		}
		parts = append(parts, w)
	}
	r.key, r.text = strings.Join(parts, "."), p.text[start:p.pos]
	return &node{op: "value", ref: r}, nil
}

func (p *parser) word() string {
	start := p.pos
	for p.pos < len(p.text) && (isLetter(p.text[p.pos]) || isDigit(p.text[p.pos])) {
		p.pos++
	}
	return p.text[start:p.pos]
}

func (p *parser) call(name string) (*node, error) {
	want, ok := functions[name]
	if !ok {
		return nil, p.bad("there is no function %q; there are min, max, abs, ratio and between", name)
	}
	p.pos++
	n := &node{op: name}
	for {
		a, err := p.or()
		if err != nil {
			return nil, err
		}
		n.args = append(n.args, a)
		if p.take(",") != "" {
			continue
		}
		if p.take(")") == "" {
			return nil, p.bad("a closing parenthesis or a comma is missing")
		}
		break
	}
	if want >= 0 && len(n.args) != want || want < 0 && len(n.args) < 2 {
		return nil, p.bad("%s takes %s, not %d", name, map[int]string{-1: "two or more values", 1: "one value", 2: "two values", 3: "a value and its bounds"}[want], len(n.args))
	}
	return n, nil
}

// truth reports whether n is true or false rather than a number.
func (n *node) truth() bool {
	switch n.op {
	case "and", "or", "<", "<=", ">", ">=", "==", "!=", "between":
		return true
	}
	return false
}

// refs calls visit with every value that n refers to.
func (n *node) refs(visit func(*ref)) {
	if n.op == "value" {
		visit(&n.ref)
	}
	for _, a := range n.args {
		a.refs(visit)
	}
}

// eval computes n; true is 1. look returns the value of a ref.
func (n *node) eval(look func(*ref) (float64, error)) (float64, error) {
	switch n.op {
	case "number":
		return n.x, nil
	case "value":
		return look(&n.ref)
	}
	v := make([]float64, len(n.args))
	for i, a := range n.args {
		x, err := a.eval(look)
		if err != nil {
			return 0, err
		}
		v[i] = x
	}
	is := func(b bool) (float64, error) {
		if b {
			return 1, nil
		}
		return 0, nil
	}
	switch n.op {
	case "negate":
		return -v[0], nil
	case "+":
		return v[0] + v[1], nil
	case "-":
		return v[0] - v[1], nil
	case "*":
		return v[0] * v[1], nil
	case "/", "ratio":
		return v[0] / v[1], nil
	case "abs":
		return math.Abs(v[0]), nil
	case "min", "max":
		x := v[0]
		for _, y := range v[1:] {
			if n.op == "min" {
				x = min(x, y)
			} else {
				x = max(x, y)
			}
		}
		return x, nil
	case "<":
		return is(v[0] < v[1])
	case "<=":
		return is(v[0] <= v[1])
	case ">":
		return is(v[0] > v[1])
	case ">=":
		return is(v[0] >= v[1])
	case "==":
		return is(v[0] == v[1])
	case "!=":
		return is(v[0] != v[1])
	case "between":
		return is(v[1] <= v[0] && v[0] <= v[2])
	case "and":
		return is(v[0] != 0 && v[1] != 0)
	}
	return is(v[0] != 0 || v[1] != 0)
}

// subject returns the value that an expectation is about: the left operand of its first
// comparison.
func (n *node) subject() *node {
	switch {
	case n.op == "and" || n.op == "or":
		return n.args[0].subject()
	case n.truth():
		return n.args[0]
	}
	return n
}
