package workload

import "gswitch/frame"

// ring sends every part once around: each rank to the next one, first its own
// part and then what it received (Patarasuk and Yuan, Bandwidth optimal
// all-reduce algorithms for clusters of workstations, JPDC 2009). Parts are
// reduced on n-1 of their ways and gathered on n-1.
type ring struct {
	received []int // messages of the operation, by rank
}

// rounds is how many parts each rank sends.
func (r *ring) rounds(c *Collective) int {
	n := len(r.received) - 1
	if c.cfg.Op == AllReduce {
		n *= 2
	}
	return n
}

func (r *ring) begin(c *Collective, now frame.Time) int {
	clear(r.received)
	for k := range c.cfg.Pieces {
		for i := range r.received {
			r.send(c, now, i, k)
		}
	}
	return len(r.received) * r.rounds(c) * c.cfg.Pieces
}

// send lets rank i send its k-th message.
func (r *ring) send(c *Collective, now frame.Time, i, k int) {
	n := len(r.received)
	part := (i - k/c.cfg.Pieces%n + n) % n
	c.send(now, i, (i+1)%n, share(share(c.cfg.Bytes, part, n), k%c.cfg.Pieces, c.cfg.Pieces), 0)
}

func (r *ring) arrived(c *Collective, now frame.Time, _, dst int, _ int32) {
	k := r.received[dst] + c.cfg.Pieces // what is forwarded
	r.received[dst]++
	if k < r.rounds(c)*c.cfg.Pieces {
		r.send(c, now, dst, k)
	}
}

// exchange is all-to-all in steps: in the k-th one each rank sends to the one k
// places on and receives from the one k places back, and the next begins when
// both are done.
type exchange struct {
	n     int
	step  []int    // of each rank, from 1
	sent  []bool   // the message of its step has arrived
	came  []uint64 // bits of the steps whose message has come, words by rank
	words int      // of a rank
}

func newExchange(n int) *exchange {
	e := &exchange{n: n, step: make([]int, n), sent: make([]bool, n), words: (n + 63) / 64}
	e.came = make([]uint64, n*e.words)
	return e
}

func (e *exchange) begin(c *Collective, now frame.Time) int {
	clear(e.came)
	for i := range e.n {
		e.next(c, now, i, 1)
	}
	return e.n * (e.n - 1)
}

func (e *exchange) next(c *Collective, now frame.Time, i, step int) {
	e.step[i], e.sent[i] = step, false
	if step < e.n {
		c.send(now, i, (i+step)%e.n, share(c.cfg.Bytes, (i+step)%e.n, e.n), 0)
	}
}

func (e *exchange) arrived(c *Collective, now frame.Time, src, dst int, _ int32) {
	step := (dst - src + e.n) % e.n
	e.came[dst*e.words+step/64] |= 1 << (step % 64)
	e.sent[src] = true
	for _, i := range [2]int{src, dst} {
		if s := e.step[i]; s < e.n && e.sent[i] && e.came[i*e.words+s/64]>>(s%64)&1 != 0 {
			e.next(c, now, i, s+1)
		}
	}
}

// trees are two binary trees, each with half of the vector: it is added up on
// the way to the root and the sum goes back down. The second has the ranks in
// reverse, so that (nearly) who is a leaf of one is none of the other, and all
// links are used both ways (Sanders, Speck and Träff, Two-tree algorithms for
// full bandwidth broadcast, reduction and scan, Parallel Computing 2009).
type trees struct {
	n  int
	of [2]tree
}

// tree is one of them: the parent of place i is (i-1)/2.
type tree struct {
	up   [][2]int // messages that came from each child, by place
	down []int    // messages that came from the parent
	sent []int    // messages that went up
}

func newTrees(n int) *trees {
	t := &trees{n: n}
	for k := range t.of {
		t.of[k] = tree{up: make([][2]int, n), down: make([]int, n), sent: make([]int, n)}
	}
	return t
}

// place of a rank in a tree, and rank of a place.
func (t *trees) place(tree, rank int) int {
	if tree == 1 {
		return t.n - 1 - rank
	}
	return rank
}

func (t *trees) begin(c *Collective, now frame.Time) int {
	for k := range t.of {
		clear(t.of[k].up)
		clear(t.of[k].down)
		clear(t.of[k].sent)
		for place := range t.n {
			t.rise(c, now, k, place)
		}
	}
	return len(t.of) * 2 * (t.n - 1) * c.cfg.Pieces
}

// rise sends to the parent what all children have sent; at the root it goes down.
func (t *trees) rise(c *Collective, now frame.Time, k, place int) {
	v, ready := &t.of[k], c.cfg.Pieces
	for child := range 2 {
		if 2*place+1+child < t.n {
			ready = min(ready, v.up[place][child])
		}
	}
	for ; v.sent[place] < ready; v.sent[place]++ {
		if place == 0 {
			t.fall(c, now, k, place, v.sent[place])
		} else {
			t.send(c, now, k, place, (place-1)/2, v.sent[place])
		}
	}
}

// fall sends a message to the children.
func (t *trees) fall(c *Collective, now frame.Time, k, place, m int) {
	for child := 2*place + 1; child <= 2*place+2 && child < t.n; child++ {
		t.send(c, now, k, place, child, m)
	}
}

// send sends the m-th message of a tree's half on its connection.
func (t *trees) send(c *Collective, now frame.Time, k, from, to, m int) {
	c.send(now, t.place(k, from), t.place(k, to), share(share(c.cfg.Bytes, k, 2), m, c.cfg.Pieces), int32(k))
}

func (t *trees) arrived(c *Collective, now frame.Time, src, dst int, conn int32) {
	k := int(conn)
	from, to := t.place(k, src), t.place(k, dst)
	v := &t.of[k]
	if to < from { // to the parent
		v.up[to][from-(2*to+1)]++
		t.rise(c, now, k, to)
		return
	}
	t.fall(c, now, k, to, v.down[to])
	v.down[to]++
}
