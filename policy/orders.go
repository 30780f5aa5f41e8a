package policy

import (
	"math/big"
	"slices"
)

// orderKind is the structure that keeps an order.
type orderKind uint8

const (
	byFirst   orderKind = iota // the oldest first: a list
	byLast                     // the newest first: a list
	byLevels                   // a key of few values: a list for each
	byKey                      // a key: a heap of numbers
	byCompare                  // anything else: a heap that evaluates the comparator
)

// maxLevels is how many values a key may have to be kept in lists.
const maxLevels = 64

// order is a comparator as it is carried out: true for (a, b) puts a first.
type order struct {
	kind orderKind
	key  code  // of byLevels and byKey, the least first
	lo   int64 // least key of byLevels
	n    int   // how many levels
	cmp  code  // the comparator itself
	name string
}

// heap reports whether the order is kept in a heap.
func (o *order) heap() bool { return o.kind == byKey || o.kind == byCompare }

func (c *compiler) packetOrder(o *object, attr string, classes map[string]*typed) order {
	a, d := c.attribute(o, attr)
	two := func(x, y string) *scope {
		return &scope{roots: map[string]root{x: {aPacket, 0}, y: {aPacket, 1}}, classes: classes}
	}
	switch {
	case d != nil && d.cond == nil:
		c.fail(d.pos, "%s of %s wants a comparator with two parameters, and %s has %d", attr, o.name, d.name, len(d.params))
	case d != nil:
		out := c.order(two(d.params[0], d.params[1]), d.cond)
		out.name = d.name
		return out
	case a != nil: // inline: the largest leaves first, the largest goes first
		l, r := a.expr.inside("a"), a.expr.inside("b")
		rel := ">"
		if attr == "admPrio" {
			rel = "<"
		}
		out := c.order(two("a", "b"), &expr{op: rel, pos: a.pos, l: l, r: r})
		out.name = "inline"
		return out
	}
	return order{kind: byFirst, name: "fifo", cmp: code{{do: opPacket, which: 0, id: pArrival}, {do: opPacket, which: 1, id: pArrival}, {do: opLess}}}
}

// inside gives the fields of an inline expression a root.
func (e *expr) inside(root string) *expr {
	if e == nil {
		return nil
	}
	out := *e
	out.l, out.r = e.l.inside(root), e.r.inside(root)
	if e.op == "path" {
		out.path = []string{root, e.path[len(e.path)-1]}
	}
	return &out
}

// order finds the structure for a comparator of packets.
func (c *compiler) order(s *scope, e *expr) order {
	t := c.condition(s, e)
	out := order{kind: byCompare, cmp: t.code}
	key := c.key(s, e)
	switch {
	case t.never():
		out.kind = byFirst
	case key == nil:
		c.lawful(e, t.code, "packet")
		return out
	case len(key.code) == 1 && key.code[0].do == opPacket && key.code[0].id == pArrival:
		out.kind = byFirst
	case len(key.code) == 2 && key.code[0].do == opPacket && key.code[0].id == pArrival && key.code[1].do == opNeg:
		out.kind = byLast
	default:
		out.kind, out.key = byKey, key.code
		lo, hi := scaledInt(key.lo, key.den), scaledInt(key.hi, key.den)
		if span := new(big.Int).Sub(hi, lo); span.Cmp(big.NewInt(maxLevels)) < 0 {
			out.kind, out.lo, out.n = byLevels, lo.Int64(), int(span.Int64())+1
		}
	}
	return out
}

func scaledInt(r *big.Rat, den *big.Int) *big.Int {
	n := new(big.Int).Mul(r.Num(), den)
	return n.Quo(n, r.Denom())
}

// key returns what is smaller for whom a comparator puts first, if it is of the form
// e(a) < e(b), or e(a) < e(b) or e(a) == e(b) and so on; else nil.
func (c *compiler) key(s *scope, e *expr) *typed {
	switch e.op {
	case "<", ">":
		return c.sides(s, e)
	case "or":
		first := c.key(s, e.l)
		if first == nil || e.r.op != "and" || e.r.l.op != "==" {
			return nil
		}
		same := c.sides(s, e.r.l)
		if same == nil || !slices.Equal(bare(same.code), bare(first.code)) {
			return nil
		}
		return c.packed(first, c.key(s, e.r.r))
	}
	return nil
}

// bare is a key without its sign.
func bare(k code) code {
	if n := len(k); n > 1 && k[n-1].do == opNeg {
		return k[:n-1]
	}
	return k
}

// sides returns e of e(a) rel e(b), so that the least is first.
func (c *compiler) sides(s *scope, e *expr) *typed {
	l, r := c.number(s, e.l), c.number(s, e.r)
	if l.code.reads(1) && !l.code.reads(0) { // b on the left: turn it round
		l, r = r, l
	} else if e.op == "<" || e.op == "==" {
		if l.code.reads(1) || !slices.Equal(l.code, r.code.swapped()) || !l.code.reads(0) {
			return nil
		}
		return l
	} else {
		if l.code.reads(1) || !slices.Equal(l.code, r.code.swapped()) || !l.code.reads(0) {
			return nil
		}
		return negated(l)
	}
	if l.code.reads(1) || !slices.Equal(l.code, r.code.swapped()) || !l.code.reads(0) {
		return nil
	}
	if e.op == "<" { // e(b) < e(a)
		return negated(l)
	}
	return l
}

func negated(t *typed) *typed {
	return &typed{code: append(slices.Clone(t.code), op{do: opNeg}), den: t.den, lo: new(big.Rat).Neg(t.hi), hi: new(big.Rat).Neg(t.lo)}
}

// packed makes one number of two keys, the first of which decides; nil if they do
// not fit.
func (c *compiler) packed(first, second *typed) *typed {
	if second == nil {
		return nil
	}
	if len(second.code) == 1 && second.code[0].do == opPacket && second.code[0].id == pArrival {
		return first // the older of equals is first anyway
	}
	lo, hi := scaledInt(second.lo, second.den), scaledInt(second.hi, second.den)
	span := new(big.Int).Sub(hi, lo)
	span.Add(span, one)
	top := new(big.Int).Abs(scaledInt(greater(new(big.Rat).Abs(first.lo), new(big.Rat).Abs(first.hi)), first.den))
	if top.Mul(top, span).Add(top, span).Cmp(new(big.Int).Lsh(one, 62)) >= 0 {
		return nil
	}
	// first * span + second - lo
	out := append(slices.Clone(first.code), op{do: opNum, n: span.Int64()}, op{do: opMul})
	out = append(append(out, second.code...), op{do: opAdd})
	out = append(out, op{do: opNum, n: lo.Int64()}, op{do: opSub})
	spanned := func(r *big.Rat, more *big.Int) *big.Rat {
		n := new(big.Int).Mul(scaledInt(r, first.den), span)
		return ratOf(n.Add(n, more))
	}
	return &typed{code: out, den: one, lo: spanned(first.lo, new(big.Int)), hi: spanned(first.hi, new(big.Int).Sub(span, one))}
}

// queueOrder compiles a comparator of queues.
func (c *compiler) queueOrder(o *object, attr, usual string, classes map[string]*typed, p *Program) order {
	a, d := c.attribute(o, attr)
	if d == nil && a == nil {
		d = library[usual]
	}
	if d == nil || d.cond == nil {
		c.fail(o.pos, "%s of %s wants a comparator of two queues, as in lqf(q, r) = q.currSize > r.currSize", attr, o.name)
	}
	s := &scope{roots: map[string]root{d.params[0]: {aQueue, 0}, d.params[1]: {aQueue, 1}}, classes: classes}
	t := c.condition(s, d.cond)
	c.lawful(d.cond, t.code, "queue")
	return order{kind: byCompare, cmp: t.code, name: d.name}
}
