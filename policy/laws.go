package policy

import (
	"fmt"
	"slices"
	"strings"

	"gswitch/frame"
)

// trials is how many triples a comparator is tried on that is no comparison of keys.
const trials = 5000

// lawful refuses a comparator that is no strict weak order: a structure that is
// ordered by one would lose its order. Comparisons of keys are lawful by their form;
// of others a counterexample is looked for among values at the edges.
func (c *compiler) lawful(e *expr, cmp code, what string) {
	key := fmt.Sprint(cmp)
	if !c.verify || c.orders[key] {
		return
	}
	type cell struct {
		do opcode
		id uint8
	}
	var cells []cell
	for _, o := range cmp {
		k := cell{o.do, o.id}
		if (o.do == opPacket || o.do == opQueue || o.do == opHOL) && !slices.Contains(cells, k) {
			cells = append(cells, k)
		}
	}
	edges := []int64{1, 2, 3, 63, 64, 1500}
	for _, o := range cmp {
		if o.do == opNum && o.n < 1<<20 && o.n > -1<<20 {
			edges = append(edges, max(o.n-1, 1), max(o.n, 1), max(o.n+1, 1))
		}
	}
	rng := frame.NewRand(1)
	draw := func() []int64 {
		v := make([]int64, len(cells))
		for i := range v {
			v[i] = edges[rng.Uint32n(uint32(len(edges)))]
		}
		return v
	}
	before := func(a, b []int64) bool {
		return cmp.with(func(o op) int64 {
			v := a
			if o.which == 1 {
				v = b
			}
			return v[slices.Index(cells, cell{o.do, o.id})]
		}) != 0
	}
	show := func(vs ...[]int64) string {
		var out []string
		for i, v := range vs {
			var words []string
			for k, x := range v {
				words = append(words, fmt.Sprintf("%s %d", cellName(cells[k].do, cells[k].id), x))
			}
			out = append(out, string(rune('a'+i))+" with "+strings.Join(words, ", "))
		}
		return strings.Join(out, "; ")
	}
	for range trials {
		a, b, d := draw(), draw(), draw()
		switch ab, bd := before(a, b), before(b, d); {
		case before(a, a):
			c.fail(e.pos, "this puts a %s before itself (%s), so it orders nothing; write < or > in place of <= or >=", what, show(a))
		case ab && before(b, a):
			c.fail(e.pos, "this puts each of two %ss before the other (%s); compare the same field of both", what, show(a, b))
		case ab && bd && !before(a, d):
			c.fail(e.pos, "this is no order: a goes before b and b before c, but a not before c (%s)", show(a, b, d))
		case !ab && !before(b, a) && !bd && !before(d, b) && (before(a, d) || before(d, a)):
			c.fail(e.pos, "this is no order: a equals b and b equals c, but a does not equal c (%s); compare one number of each", show(a, b, d))
		}
	}
	c.orders[key] = true
}

func cellName(do opcode, id uint8) string {
	fields := packetFields
	if do == opQueue {
		fields = queueFields
		if id >= bSize {
			fields = bufferFields
		}
	}
	for _, name := range fieldNames(fields) {
		if fields[name].id == id {
			if do == opHOL {
				return "hol." + name
			}
			return name
		}
	}
	return "rate"
}
