package policy

import "slices"

// op is a step of a compiled expression: a machine with a stack and no jumps, so
// that what an expression costs is its length. Conditions are 0 and 1.
type op struct {
	do    opcode
	which uint8 // of two entities
	id    uint8 // field
	n     int64
}

type opcode uint8

const (
	opNum opcode = iota
	opPacket
	opQueue
	opHOL
	opAdd
	opSub
	opMul
	opDiv
	opMod
	opNeg
	opLess
	opAtMost
	opEqual
	opNot
	opAnd
	opOr
)

// code is a compiled expression.
type code []op

// maxStack bounds what an expression keeps: the checker counts.
const maxStack = 16

// env is what a compiled expression reads: two packets or two queues, or a queue
// and the packet that came or left.
type env struct {
	e *Engine
	p [2]*Packet
	q [2]*queue
}

// eval runs an expression. An op that reads the front packet of a queue is asked
// only where queues hold one.
func (c code) eval(x *env) int64 {
	switch {
	case len(c) == 1 && c[0].do == opPacket:
		return x.p[c[0].which&1].field(c[0].id)
	case len(c) == 2 && c[0].do == opPacket && c[1].do == opNeg:
		return -x.p[c[0].which&1].field(c[0].id)
	case len(c) == 3 && c[2].do == opLess: // of two fields, or of a field and a number: most conditions
		return truth(c[0].load(x) < c[1].load(x))
	}
	return c.run(x)
}

// load is what an op puts on the stack.
func (o *op) load(x *env) int64 {
	switch o.do {
	case opPacket:
		return x.p[o.which&1].field(o.id)
	case opQueue:
		return x.q[o.which&1].field(o.id)
	case opHOL:
		return x.q[o.which&1].front().field(o.id)
	}
	return o.n
}

// run is eval for any expression.
func (c code) run(x *env) int64 {
	var s [maxStack]int64
	n := 0
	for i := range c {
		o := &c[i]
		switch o.do {
		case opNum, opPacket, opQueue, opHOL:
			s[n&(maxStack-1)] = o.load(x)
			n++
			continue
		case opNeg:
			s[(n-1)&(maxStack-1)] = -s[(n-1)&(maxStack-1)]
			continue
		case opNot:
			s[(n-1)&(maxStack-1)] ^= 1
			continue
		}
		n--
		l := &s[(n-1)&(maxStack-1)]
		*l = apply(o.do, *l, s[n&(maxStack-1)])
	}
	return s[0]
}

func apply(do opcode, l, r int64) int64 {
	switch do {
	case opAdd:
		return l + r
	case opSub:
		return l - r
	case opMul:
		return l * r
	case opDiv:
		if r == 0 {
			return 0
		}
		return l / r
	case opMod:
		if r == 0 {
			return 0
		}
		return l % r
	case opLess:
		return truth(l < r)
	case opAtMost:
		return truth(l <= r)
	case opEqual:
		return truth(l == r)
	case opAnd:
		return l & r
	case opOr:
		return l | r
	}
	return 0
}

func truth(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// with runs an expression on what load says fields have.
func (c code) with(load func(o op) int64) int64 {
	s := make([]int64, 0, maxStack)
	for _, o := range c {
		switch o.do {
		case opNum:
			s = append(s, o.n)
		case opPacket, opQueue, opHOL:
			s = append(s, load(o))
		case opNeg:
			s[len(s)-1] = -s[len(s)-1]
		case opNot:
			s[len(s)-1] ^= 1
		default:
			r := s[len(s)-1]
			s = s[:len(s)-1]
			s[len(s)-1] = apply(o.do, s[len(s)-1], r)
		}
	}
	return s[0]
}

// depth is how much an expression keeps at most.
func (c code) depth() int {
	n, most := 0, 0
	for _, o := range c {
		switch o.do {
		case opNum, opPacket, opQueue, opHOL:
			n++
			most = max(most, n)
		case opNeg, opNot:
		default:
			n--
		}
	}
	return most
}

// swapped is an expression of (b, a).
func (c code) swapped() code {
	out := slices.Clone(c)
	for i := range out {
		switch out[i].do {
		case opPacket, opQueue, opHOL:
			out[i].which ^= 1
		}
	}
	return out
}

// reads reports whether an expression reads one of two entities.
func (c code) reads(which uint8) bool {
	return slices.ContainsFunc(c, func(o op) bool {
		return (o.do == opPacket || o.do == opQueue || o.do == opHOL) && o.which == which
	})
}
