package flowradar

import (
	"math"
	"math/bits"
)

// Solution says how the counters of a table came out.
type Solution struct {
	Exact      int // flows with an exact counter
	Iterations int
	// Unsolved counts flows whose counter has no single value: more flows than
	// cells can distinguish, or a flow that the filter hid.
	Unsolved int
}

// Counters finds the packet counts of the flows of a table from the original
// cells (algorithm 9): each cell is an equation, its packets the sum over the
// flows in it. What peels is peeled: such a flow leaves the system with an exact
// count. The rest is solved by conjugate gradients on the normal equations from
// the neighbours' counts, which differ by the few packets that were lost or under
// way, until the rounded counts fulfil every equation as whole numbers.
//
// That alone does not make a count right: with more flows than independent
// equations the nearest of many solutions fulfils them just as well. So flows
// get exact counters only if the equations that are left determine them.
func Counters(t *Table) Solution {
	if !t.FlowsDone() {
		return Solution{Unsolved: len(t.Records)}
	}
	s := newSystem(t)
	s.peel()
	out := Solution{}
	if len(s.open()) > 0 {
		out.Iterations = s.descend()
	}
	if !s.holds() {
		// A flow that is not in the table counted here, too.
		out.Unsolved = len(t.Records)
		for i := range t.Records {
			t.Records[i].Exact = false
		}
		return out
	}
	determined := s.determined()
	for i := range t.Records {
		t.Records[i].Packets = uint32(s.x[i])
		t.Records[i].Exact = s.known[i] || determined
		if t.Records[i].Exact {
			out.Exact++
		} else {
			out.Unsolved++
		}
	}
	return out
}

// system is the linear system of one table.
type system struct {
	k     int
	cells []int32 // k for each flow
	b     []int64 // packets left in each cell, of flows that are not known
	left  []int32 // flows left in each cell
	x     []int64
	known []bool
}

func newSystem(t *Table) *system {
	f := t.original
	// Cells are numbered as those that decoding worked on: it may have more than came.
	n, k, equations := len(t.Records), int(f.CellHashes), len(t.work.v)
	s := &system{k: k, cells: make([]int32, n*k), b: make([]int64, equations), left: make([]int32, equations), x: make([]int64, n), known: make([]bool, n)}
	for i := range f.cells.v {
		s.b[i] = int64(f.cells.v[i].packets)
	}
	for i, r := range t.Records {
		_, h := hash(&f.keys, r.Key)
		for j := range k {
			c := t.work.entry(f.place(h, uint32(j)))
			s.cells[i*k+j] = int32(c)
			s.left[c]++
		}
		s.x[i] = int64(r.Packets)
	}
	return s
}

// peel fixes flows that are alone in a cell.
func (s *system) peel() {
	// The exclusive or of the flows left in a cell names the last one.
	name := make([]int32, len(s.b))
	for i := range s.x {
		for _, c := range s.cells[i*s.k : (i+1)*s.k] {
			name[c] ^= int32(i)
		}
	}
	var work []int32
	for c := range s.left {
		if s.left[c] == 1 {
			work = append(work, int32(c))
		}
	}
	for len(work) > 0 {
		c := work[len(work)-1]
		work = work[:len(work)-1]
		if s.left[c] != 1 {
			continue
		}
		i := name[c]
		s.x[i], s.known[i] = s.b[c], true
		for _, o := range s.cells[int(i)*s.k : (int(i)+1)*s.k] {
			s.b[o] -= s.x[i]
			s.left[o]--
			name[o] ^= i
			if s.left[o] == 1 {
				work = append(work, o)
			}
		}
	}
}

func (s *system) open() (v []int32) {
	for i := range s.x {
		if !s.known[i] {
			v = append(v, int32(i))
		}
	}
	return v
}

// holds reports whether whole, non-negative counts fulfil every equation.
func (s *system) holds() bool {
	rest := append([]int64(nil), s.b...)
	for i := range s.x {
		if s.x[i] < 0 {
			return false
		}
		if s.known[i] {
			continue
		}
		for _, c := range s.cells[i*s.k : (i+1)*s.k] {
			rest[c] -= s.x[i]
		}
	}
	for _, r := range rest {
		if r != 0 {
			return false
		}
	}
	return true
}

// descend solves for the open flows by conjugate gradients on the normal
// equations (CGLS, Hestenes and Stiefel 1952), and returns the iterations.
func (s *system) descend() int {
	open := s.open()
	x := make([]float64, len(open))
	for o, i := range open {
		x[o] = float64(s.x[i])
	}
	each := func(o int32) []int32 { return s.cells[int(open[o])*s.k : (int(open[o])+1)*s.k] }
	r := make([]float64, len(s.b)) // b - Mx
	for c, v := range s.b {
		r[c] = float64(v)
	}
	for o := range open {
		for _, c := range each(int32(o)) {
			r[c] -= x[o]
		}
	}
	g := make([]float64, len(open)) // M^T r
	gradient := func() (norm float64) {
		for o := range open {
			sum := 0.0
			for _, c := range each(int32(o)) {
				sum += r[c]
			}
			g[o] = sum
			norm += sum * sum
		}
		return norm
	}
	gamma := gradient()
	p := append([]float64(nil), g...)
	q := make([]float64, len(s.b))
	most := s.patience()
	for n := 1; n <= most; n++ {
		if gamma == 0 {
			s.round(open, x)
			return n
		}
		clear(q)
		for o := range open {
			for _, c := range each(int32(o)) {
				q[c] += p[o]
			}
		}
		norm := 0.0
		for _, v := range q {
			norm += v * v
		}
		if norm == 0 {
			s.round(open, x)
			return n
		}
		alpha := gamma / norm
		for o := range x {
			x[o] += alpha * p[o]
		}
		for c := range r {
			r[c] -= alpha * q[c]
		}
		next := gradient()
		beta := next / gamma
		gamma = next
		for o := range p {
			p[o] = g[o] + beta*p[o]
		}
		if n%5 == 0 || gamma < 1e-6 {
			s.round(open, x)
			if s.holds() {
				return n
			}
			if gamma < 1e-12 {
				return n
			}
		}
	}
	return most
}

// patience is after how many iterations descend stops. It bounds the work, too: each
// iteration goes over all flows, and cells of anything need not converge.
func (s *system) patience() int {
	const (
		most  = 20_000
		least = 300 // tables of a million flows need a hundred
		work  = 1 << 28
	)
	return min(most, max(least, work/max(1, len(s.cells))))
}

func (s *system) round(open []int32, x []float64) {
	for o, i := range open {
		s.x[i] = int64(math.Round(x[o]))
	}
}

// determined reports whether the open flows' equations have one solution, that
// is, rank equal to the number of unknowns. Up to denseLimit unknowns this is
// found by elimination over the field of two elements: full rank there is full
// rank over the rationals, since a determinant that is odd is not zero. Beyond,
// the number of equations decides: of a random system in which every equation has
// two unknowns or more, a few equations more than unknowns are enough with high
// probability (Pittel, Sorkin: "The Satisfiability Threshold for k-XORSAT", 2016).
func (s *system) determined() bool {
	open := s.open()
	equations := 0
	for _, n := range s.left {
		if n > 0 {
			equations++
		}
	}
	switch {
	case equations < len(open):
		return false
	case len(open) > denseLimit:
		return float64(equations) > 1.0005*float64(len(open))
	}
	return s.fullRank(open)
}

const denseLimit = 4000

// fullRank eliminates over the field of two elements. Each flow is a row of bits,
// one for each equation; the flows are independent if every row keeps a bit.
func (s *system) fullRank(open []int32) bool {
	number := make([]int32, len(s.left)) // of the equations that are left
	equations := int32(0)
	for c, n := range s.left {
		if n > 0 {
			number[c] = equations
			equations++
		}
	}
	words := int(equations+63) / 64
	pivots := make([][]uint64, equations)
	for _, i := range open {
		row := make([]uint64, words)
		for _, c := range s.cells[int(i)*s.k : (int(i)+1)*s.k] {
			row[number[c]/64] ^= 1 << (number[c] % 64)
		}
		for w := 0; ; {
			for w < words && row[w] == 0 {
				w++
			}
			if w == words {
				return false
			}
			at := w*64 + bits.TrailingZeros64(row[w])
			if pivots[at] == nil {
				pivots[at] = row
				break
			}
			for k := w; k < words; k++ {
				row[k] ^= pivots[at][k]
			}
		}
	}
	return true
}
