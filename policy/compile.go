package policy

import (
	"fmt"
	"math/big"
	"slices"
)

// entity is what a root of a path stands for.
type entity uint8

const (
	aPacket entity = iota
	aQueue
	aBuffer
	aPort
)

// scope says what the names of an expression are.
type scope struct {
	roots   map[string]root
	bare    *root // of a field without a path; nil: there is none
	queue   *object
	buffer  *object
	empty   bool // the queue and the buffer hold nothing
	classes map[string]*typed
}

type root struct {
	kind  entity
	which uint8
}

// typed is a compiled expression with what is known of it: code gives den times
// its value, which lies within lo and hi.
type typed struct {
	code     code
	den      *big.Int
	lo, hi   *big.Rat
	constant *big.Rat
	boolean  bool // lo and hi are 0 or 1
}

func (t *typed) never() bool  { return t.boolean && t.hi.Sign() == 0 }
func (t *typed) always() bool { return t.boolean && t.lo.Sign() > 0 }

// compiler turns expressions into code. Like the parser it unwinds at an error.
type compiler struct {
	f         *file
	verify    bool              // look for counterexamples, too
	host      bool              // it is for packets of a host, of which is known how much is left of their message
	constants map[string]*typed // by name; nil while one is worked out
	orders    map[string]bool   // comparators that were found to be orders: ports have few different ones
}

func (c *compiler) fail(pos Pos, format string, args ...any) {
	panic(failure{&Error{c.f.text, pos, fmt.Sprintf(format, args...)}})
}

func (c *compiler) number(s *scope, e *expr) *typed {
	t := c.expr(s, e)
	if t.boolean {
		c.fail(e.pos, "here must stand a number, and this is a condition")
	}
	return t
}

func (c *compiler) condition(s *scope, e *expr) *typed {
	t := c.expr(s, e)
	if !t.boolean {
		c.fail(e.pos, "here must stand a condition such as a.value > b.value, and this is a number")
	}
	return t
}

// maxDenominator has room for the longest number that the scanner reads.
const maxDenominator = 96

var limit = new(big.Int).Lsh(big.NewInt(1), 63)

// bounded checks that nothing overflows, and how much the machine keeps.
func (c *compiler) bounded(e *expr, t *typed) *typed {
	for _, v := range []*big.Rat{t.lo, t.hi} {
		n := new(big.Rat).Mul(v, new(big.Rat).SetInt(t.den))
		n.Abs(n)
		if new(big.Int).Quo(n.Num(), n.Denom()).Cmp(limit) >= 0 {
			c.fail(e.pos, "%q can overflow 64 bits: its value can be %s; divide before you multiply, or take fewer factors", e.op, n.FloatString(0))
		}
	}
	if t.den.BitLen() > maxDenominator {
		c.fail(e.pos, "%q makes a fraction with a denominator of more than %d bits; round the numbers that it is made of", e.op, maxDenominator)
	}
	if t.code.depth() > maxStack {
		c.fail(e.pos, "an expression that keeps more than %d numbers at once; split it", maxStack)
	}
	if len(t.code) > 512 {
		c.fail(e.pos, "an expression of more than 512 steps")
	}
	return t
}

func constant(r *big.Rat) *typed {
	return &typed{code: code{{do: opNum, n: clamp(r.Num())}}, den: new(big.Int).Set(r.Denom()), lo: r, hi: r, constant: r}
}

func clamp(n *big.Int) int64 {
	if n.IsInt64() {
		return n.Int64()
	}
	return most
}

func (c *compiler) expr(s *scope, e *expr) *typed {
	switch e.op {
	case "num":
		return c.bounded(e, constant(e.num))
	case "path":
		return c.path(s, e)
	case "neg":
		t := c.number(s, e.l)
		if t.constant != nil {
			return constant(new(big.Rat).Neg(t.constant))
		}
		return c.bounded(e, &typed{code: append(slices.Clone(t.code), op{do: opNeg}), den: t.den, lo: new(big.Rat).Neg(t.hi), hi: new(big.Rat).Neg(t.lo)})
	case "not":
		t := c.condition(s, e.l)
		one := big.NewRat(1, 1)
		return &typed{code: append(slices.Clone(t.code), op{do: opNot}), den: t.den, lo: new(big.Rat).Sub(one, t.hi), hi: new(big.Rat).Sub(one, t.lo), boolean: true}
	case "and", "or":
		l, r := c.condition(s, e.l), c.condition(s, e.r)
		out := &typed{code: joined(l.code, r.code, opAnd), den: l.den, boolean: true, lo: lesser(l.lo, r.lo), hi: lesser(l.hi, r.hi)}
		if e.op == "or" {
			out.code[len(out.code)-1].do = opOr
			out.lo, out.hi = greater(l.lo, r.lo), greater(l.hi, r.hi)
		}
		return c.bounded(e, out)
	case "+", "-", "*", "/", "%":
		return c.bounded(e, c.arithmetic(s, e))
	}
	return c.bounded(e, c.relation(s, e))
}

func joined(l, r code, do opcode) code {
	return append(append(slices.Clone(l), r...), op{do: do})
}

func lesser(a, b *big.Rat) *big.Rat {
	if a.Cmp(b) < 0 {
		return a
	}
	return b
}

func greater(a, b *big.Rat) *big.Rat {
	if a.Cmp(b) > 0 {
		return a
	}
	return b
}

// aligned brings two numbers to one denominator.
func (c *compiler) aligned(e *expr, l, r *typed) (code, code, *big.Int) {
	g := new(big.Int).GCD(nil, nil, l.den, r.den)
	den := new(big.Int).Mul(new(big.Int).Quo(l.den, g), r.den)
	return c.scaled(e, l, den), c.scaled(e, r, den), den
}

func (c *compiler) scaled(e *expr, t *typed, den *big.Int) code {
	by := new(big.Int).Quo(den, t.den)
	if by.Cmp(big.NewInt(1)) == 0 {
		return t.code
	}
	c.bounded(e, &typed{code: t.code, den: den, lo: t.lo, hi: t.hi})
	if t.constant != nil {
		return code{{do: opNum, n: clamp(new(big.Int).Mul(t.constant.Num(), new(big.Int).Quo(den, t.constant.Denom())))}}
	}
	return append(slices.Clone(t.code), op{do: opNum, n: clamp(by)}, op{do: opMul})
}

func (c *compiler) arithmetic(s *scope, e *expr) *typed {
	l, r := c.number(s, e.l), c.number(s, e.r)
	if l.constant != nil && r.constant != nil {
		return constant(c.folded(e, l.constant, r.constant))
	}
	switch e.op {
	case "+", "-":
		lc, rc, den := c.aligned(e, l, r)
		if e.op == "+" {
			return &typed{code: joined(lc, rc, opAdd), den: den, lo: new(big.Rat).Add(l.lo, r.lo), hi: new(big.Rat).Add(l.hi, r.hi)}
		}
		return &typed{code: joined(lc, rc, opSub), den: den, lo: new(big.Rat).Sub(l.lo, r.hi), hi: new(big.Rat).Sub(l.hi, r.lo)}
	case "/":
		if r.constant != nil {
			if r.constant.Sign() == 0 {
				c.fail(e.pos, "a division by 0")
			}
			return product(l, constant(new(big.Rat).Inv(r.constant)))
		}
		lc, rc, _ := c.aligned(e, l, r)
		big := greater(new(big.Rat).Abs(l.lo), new(big.Rat).Abs(l.hi))
		big = greater(big, product(constant(big), constant(ratOf(r.den))).hi) // the divisor may be below 1
		return &typed{code: joined(lc, rc, opDiv), den: one, lo: signed(l.lo, big), hi: big}
	case "%":
		if l.den.Cmp(one) != 0 || r.den.Cmp(one) != 0 {
			c.fail(e.pos, "a remainder is of whole numbers")
		}
		most := greater(new(big.Rat).Abs(r.lo), new(big.Rat).Abs(r.hi))
		most = greater(new(big.Rat).Sub(most, big.NewRat(1, 1)), new(big.Rat))
		return &typed{code: joined(l.code, r.code, opMod), den: one, lo: signed(l.lo, most), hi: most}
	}
	return product(l, r)
}

var one = big.NewInt(1)

func ratOf(n *big.Int) *big.Rat { return new(big.Rat).SetInt(n) }

// signed is -most where the left side can be negative, else 0.
func signed(lo, most *big.Rat) *big.Rat {
	if lo.Sign() < 0 {
		return new(big.Rat).Neg(most)
	}
	return new(big.Rat)
}

func product(l, r *typed) *typed {
	var lo, hi *big.Rat
	for _, a := range []*big.Rat{l.lo, l.hi} {
		for _, b := range []*big.Rat{r.lo, r.hi} {
			x := new(big.Rat).Mul(a, b)
			if lo == nil {
				lo, hi = x, x
			}
			lo, hi = lesser(lo, x), greater(hi, x)
		}
	}
	return &typed{code: joined(l.code, r.code, opMul), den: new(big.Int).Mul(l.den, r.den), lo: lo, hi: hi}
}

func (c *compiler) folded(e *expr, l, r *big.Rat) *big.Rat {
	switch e.op {
	case "+":
		return new(big.Rat).Add(l, r)
	case "-":
		return new(big.Rat).Sub(l, r)
	case "*":
		return new(big.Rat).Mul(l, r)
	case "/":
		if r.Sign() == 0 {
			c.fail(e.pos, "a division by 0")
		}
		return new(big.Rat).Quo(l, r)
	}
	if !l.IsInt() || !r.IsInt() || r.Sign() == 0 {
		c.fail(e.pos, "a remainder is of whole numbers, by one that is not 0")
	}
	return ratOf(new(big.Int).Rem(l.Num(), r.Num()))
}

// relation compares exactly: both sides are brought to one denominator.
func (c *compiler) relation(s *scope, e *expr) *typed {
	l, r := c.number(s, e.l), c.number(s, e.r)
	lc, rc, _ := c.aligned(e, l, r)
	below, above := l.hi.Cmp(r.lo), l.lo.Cmp(r.hi) // of the largest with the least, of the least with the largest
	out := &typed{den: one, boolean: true, lo: new(big.Rat), hi: big.NewRat(1, 1)}
	set := func(always, never bool) {
		if always {
			out.lo = big.NewRat(1, 1)
		} else if never {
			out.hi = new(big.Rat)
		}
	}
	switch e.op {
	case "<":
		out.code = joined(lc, rc, opLess)
		set(below < 0, above >= 0)
	case ">":
		out.code = joined(rc, lc, opLess)
		set(above > 0, below <= 0)
	case "<=":
		out.code = joined(lc, rc, opAtMost)
		set(below <= 0, above > 0)
	case ">=":
		out.code = joined(rc, lc, opAtMost)
		set(above >= 0, below < 0)
	default:
		out.code = joined(lc, rc, opEqual)
		same, apart := l.constant != nil && r.constant != nil && below == 0, below < 0 || above > 0
		if e.op == "!=" {
			out.code = append(out.code, op{do: opNot})
			same, apart = apart, same
		}
		set(same, apart)
	}
	return out
}
