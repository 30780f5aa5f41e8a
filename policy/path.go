package policy

import (
	"math/big"
	"slices"
	"strings"
)

// path compiles the reading of a field.
func (c *compiler) path(s *scope, e *expr) *typed {
	words := e.path
	if len(words) == 1 {
		if k := c.f.consts[words[0]]; k != nil {
			return c.constant(words[0], k)
		}
		switch {
		case words[0] == "true" || words[0] == "false":
			n := truth(words[0] == "true")
			return &typed{code: code{{do: opNum, n: n}}, den: one, lo: big.NewRat(n, 1), hi: big.NewRat(n, 1), boolean: true}
		case slices.Contains(rootNames(s), words[0]):
			c.fail(e.pos, "%q is no number; read a field of it, as in %s.size", words[0], words[0])
		case s.bare == nil:
			c.fail(e.pos, "%q is no constant; a field is read from a parameter, as in a.%s", words[0], words[0])
		}
		return c.field(s, e, *s.bare, words[0])
	}
	r, ok := s.roots[words[0]]
	if !ok {
		c.fail(e.pos, "there is no %q here%s", words[0], nearest(words[0], rootNames(s)))
	}
	for _, w := range words[1 : len(words)-1] {
		switch {
		case w == "hol" && r.kind == aQueue:
			r = root{aPacket, r.which | holBit}
		case w == "buffer" && r.kind == aQueue:
			if s.buffer == nil {
				c.fail(e.pos, "the queue is in no buffer; declare one, as in b = Buffer(64KB, q1, q2)")
			}
			r = root{aBuffer, r.which}
		default:
			c.fail(e.pos, "%q leads nowhere: a queue has hol and buffer, and only fields stand behind those", w)
		}
	}
	return c.field(s, e, r, words[len(words)-1])
}

// constant works out a constant, once: constants of constants would else cost twice
// as much with each.
func (c *compiler) constant(name string, e *expr) *typed {
	t, begun := c.constants[name]
	switch {
	case t != nil:
		return t
	case begun:
		c.fail(e.pos, "the constant %s is made of itself; give it a number", name)
	}
	c.constants[name] = nil
	if t = c.expr(&scope{}, e); t.constant == nil {
		c.fail(e.pos, "a constant is made of numbers and constants")
	}
	c.constants[name] = t
	return t
}

// holBit says that a packet is the front one of a queue.
const holBit = 2

func rootNames(s *scope) (names []string) {
	for name := range s.roots {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

var ofKind = map[entity]struct {
	name   string
	fields map[string]field
}{aPacket: {"packet", packetFields}, aQueue: {"queue", queueFields}, aBuffer: {"buffer", bufferFields}, aPort: {"port", portFields}}

func (c *compiler) field(s *scope, e *expr, r root, name string) *typed {
	k := ofKind[r.kind]
	f, ok := lookup(k.fields, name)
	if !ok {
		c.fail(e.pos, "a %s has no field %q%s", k.name, name, nearest(name, fieldNames(k.fields)))
	}
	c.f.bytes = c.f.bytes || f.bytes
	c.f.random = c.f.random || r.kind == aPacket && f.id == pRandom
	lo, hi := big.NewRat(f.lo, 1), big.NewRat(f.hi, 1)
	switch r.kind {
	case aPacket:
		if t := s.classes[strings.ToLower(name)]; t != nil {
			lo, hi = t.lo, t.hi
		}
		do := opPacket
		if r.which&holBit != 0 {
			do = opHOL
		}
		return &typed{code: code{{do: do, which: r.which & 1, id: f.id}}, den: one, lo: lo, hi: hi}
	case aBuffer, aQueue:
		size := c.f.sizes[s.queue]
		if r.kind == aBuffer {
			size = c.f.sizes[s.buffer]
		}
		switch {
		case (f.id == qSize || f.id == bSize) && size != 0:
			return constant(big.NewRat(size, 1))
		case s.empty && (f.id == qCurrSize || f.id == qLength || f.id == bCurrSize):
			hi = new(big.Rat)
		}
	}
	return &typed{code: code{{do: opQueue, which: r.which & 1, id: f.id}}, den: one, lo: lo, hi: hi}
}
