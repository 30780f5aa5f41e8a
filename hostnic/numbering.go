package hostnic

import "math/bits"

// numbering assigns the numbers of queue pairs: the low bits are the index, the high bits
// a generation, so that a late frame to a closed queue pair does not match its successor.
type numbering struct {
	bits   uint
	gens   []uint16 // by index, of the present or next use
	random bool
	secret Secret
	uses   []uint16 // by index, with random
}

func newNumbering(qps int) numbering {
	return numbering{bits: uint(max(8, bits.Len(uint(qps-1))))}
}

func (g *numbering) number(i uint32) uint32 { return uint32(g.gens[i])<<g.bits | i }

// parts returns the index and the generation of a number.
func (g *numbering) parts(qpn uint32) (i uint32, generation uint16) {
	return qpn & (1<<g.bits - 1), uint16(qpn >> g.bits)
}

// add makes room for one more index. The first generation is 1, so that the
// numbers 0 and 1 of the management queue pairs do not occur.
func (g *numbering) add() {
	i := uint32(len(g.gens))
	gen, uses := g.after(i)
	g.gens = append(g.gens, gen)
	if g.random {
		g.uses = append(g.uses, uses)
	}
}

// next returns the number that an index has at its next use: after add if it is a new one,
// else after renew.
func (g *numbering) next(i uint32) uint32 {
	gen, _ := g.after(i)
	return uint32(gen)<<g.bits | i
}

// renew moves to the next generation.
func (g *numbering) renew(i uint32) {
	gen, uses := g.after(i)
	if g.gens[i] = gen; g.random {
		g.uses[i] = uses
	}
}

// use moves to the generation of a number.
func (g *numbering) use(number uint32) {
	i, gen := g.parts(number)
	if g.next(i) == number {
		g.renew(i)
	}
	g.gens[i] = gen
}

// after returns the next generation of an index, and the uses up to then. The last
// generation is skipped, so that 0xffffff does not occur (IBTA 9.2.3). With random,
// generations come in an order that cannot be predicted without the secret, and each
// occurs once before any repeats.
func (g *numbering) after(i uint32) (gen, uses uint16) {
	last := uint32(1)<<(24-g.bits) - 1
	if !g.random {
		if int(i) >= len(g.gens) || uint32(g.gens[i])+1 >= last {
			return 1, 0
		}
		return g.gens[i] + 1, 0
	}
	if int(i) < len(g.uses) {
		uses = g.uses[i]
	}
	for {
		uses++
		if gen := g.shuffled(i, uint32(uses)&last); gen != 0 && gen != last {
			return uint16(gen), uses
		}
	}
}

// shuffled returns x as permuted by the secret among the generations of an index: four
// rounds of a Feistel network (Luby and Rackoff, SIAM Journal on Computing 1988).
func (g *numbering) shuffled(i, x uint32) uint32 {
	low := (24 - g.bits) / 2
	high := 24 - g.bits - low
	l, r := x>>low, x&(1<<low-1)
	for round := range uint64(4) {
		if round%2 == 0 {
			l ^= uint32(g.secret.Of(uint64(i), round, uint64(r))) & (1<<high - 1)
		} else {
			r ^= uint32(g.secret.Of(uint64(i), round, uint64(l))) & (1<<low - 1)
		}
	}
	return l<<low | r
}
