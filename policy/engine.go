package policy

import (
	"math/bits"
	"slices"

	"gswitch/frame"
	"gswitch/scheduler"
)

// Engine runs a program: it holds packets by records, and says which leaves and
// which are dropped. It is the same for the frames of a switch and for a shadow.
type Engine struct {
	*Program
	rng     frame.Rand
	bits    uint64 // bit/s at which its port sends, 0 = unknown
	slots   []slot
	free    []uint32
	procPos []uint32
	admPos  []uint32
	queues  []queue
	buffers []buffer
	some    uint64 // queues that hold a packet
	n       int
	seq     uint32
	best    int      // queue that is served next, -1: to be found
	victims []Packet // dropped, and not yet taken
	given   int      // victims that were taken
	group   *group   // of ports that share buffers, or nil
	port    int      // number in it
}

type slot struct {
	Packet
	link  [3]link
	level [2]uint8
}

type queue struct {
	prog      *queueProgram
	e         *Engine // that it is of
	id        uint8
	proc, adm *side
	all       list // as they came; not kept where both orders are heaps
	listed    bool
	bytes     int64
	n         int64
	weightAdm int64
	weight    int64
	admState  int64
	state     int64
	noticed   bool // the condition of the last notice still held
	buffer    *buffer
	stats     QueueStats
}

type buffer struct {
	prog     *bufferProgram
	bytes, n int64
	admState int64
	spans    bool     // of several ports; else prog says which queues of the port
	full     []*queue // of those: the ones that hold a packet
}

// QueueStats is what a queue of a policy counted.
type QueueStats struct {
	Name       string
	Size       int64 // as it was declared
	InPackets  bool  // the unit of Size
	Packets    int64 // waiting
	Bytes      int64
	MaxPackets int64
	Admitted   uint64 // that came and stayed at first
	Refused    uint64 // dropped as they came
	PushedOut  uint64 // dropped later, for another
	Sent       uint64
	SentBytes  uint64
	Value      int64  // sum of the values sent
	Marked     uint64 // chosen for a congestion mark
	Notices    uint64
	Late       uint64 // of those refused: their slack was below their wait
	LostValue  int64  // sum of the values of all that were dropped
}

// NewEngine returns an engine without packets. rate is that of the link in bit/s, 0
// if it is unknown: then waits are unknown, and no slack is used up.
//
// It is that of one port: of a program of several it is taken from Parts, and keeps
// what the port would share to itself.
func (p *Program) NewEngine(seed, rate uint64) *Engine {
	e := &Engine{Program: p, rng: frame.NewRand(seed), bits: uint64(float64(rate) * p.share), best: -1}
	if p.rate != 0 {
		e.bits = p.rate
	}
	e.queues = make([]queue, len(p.queues))
	e.buffers = make([]buffer, len(p.buffers))
	for i := range e.buffers {
		e.buffers[i].prog = &p.buffers[i]
	}
	for i := range e.queues {
		q, g := &e.queues[i], &p.queues[i]
		*q = queue{prog: g, e: e, id: uint8(i), all: list{none, none}, weightAdm: g.weightAdm, weight: g.weightSched, admState: g.admState, state: g.schedState}
		q.proc, q.adm = newSide(e, q, &g.proc, false), newSide(e, q, &g.adm, true)
		q.listed = !g.proc.heap() || !g.adm.heap()
		q.adm.shared = g.proc.kind == byLevels && g.adm.kind == byLevels && g.proc.lo == g.adm.lo && slices.Equal(g.proc.key, g.adm.key)
		if g.buffer >= 0 {
			q.buffer = &e.buffers[g.buffer]
		}
		q.stats = QueueStats{Name: g.name, Size: g.size, InPackets: g.packets}
	}
	return e
}

// Len returns how many packets wait.
func (e *Engine) Len() int { return e.n }

// Stats returns what the queues counted, in their order.
func (e *Engine) Stats() []QueueStats {
	out := make([]QueueStats, len(e.queues))
	for i := range e.queues {
		q := &e.queues[i]
		out[i] = q.stats
		out[i].Packets, out[i].Bytes = q.n, q.bytes
	}
	return out
}

func (q *queue) size() int64 {
	if q.prog.packets {
		return q.n
	}
	return q.bytes
}

func (b *buffer) size() int64 {
	if b.prog.packets {
		return b.n
	}
	return b.bytes
}

func (q *queue) field(id uint8) int64 {
	switch id {
	case qSize:
		return q.prog.size
	case qCurrSize:
		return q.size()
	case qLength:
		return q.n
	case qID:
		return int64(q.id)
	case qWeightAdm:
		return q.weightAdm
	case qWeightSched:
		return q.weight
	case qAdmState:
		return q.admState
	case qSchedState:
		return q.state
	case qDropped:
		return int64(q.stats.Refused + q.stats.PushedOut)
	case qTotal:
		return int64(q.stats.Admitted + q.stats.Refused)
	case qWait:
		return q.e.wait(q.bytes)
	case bSize, bCurrSize, bAdmState:
		if q.buffer == nil {
			return 0
		}
		return [...]int64{q.buffer.prog.size, q.buffer.size(), q.buffer.admState}[id-bSize]
	}
	return int64(q.e.bits)
}

// wait returns how long so many bytes take to leave, in ns.
func (e *Engine) wait(bytes int64) int64 {
	if e.bits == 0 {
		return 0
	}
	hi, lo := bits.Mul64(uint64(bytes), 8e9)
	if hi >= e.bits {
		return most
	}
	n, _ := bits.Div64(hi, lo, e.bits)
	return int64(min(n, uint64(most)))
}

// front returns the packet that a queue serves next; there must be one.
func (q *queue) front() *Packet {
	return &q.e.slots[q.proc.pick(&q.all, q.adm)].Packet
}

// Offer queues a packet, of which Arrival and what the classifier reads are filled
// in, and drops what must make room for it: see Victim. It reports whether the packet is
// to be marked.
func (e *Engine) Offer(p *Packet) (mark bool) {
	i := e.slot()
	e.slots[i].Packet = *p
	return e.offer(i)
}

// offer is Offer for a packet whose record is filled in already.
func (e *Engine) offer(i uint32) (mark bool) {
	p := &e.slots[i].Packet
	seq := e.seq
	e.seq++
	p.seq = seq
	x := env{e: e, p: [2]*Packet{p, nil}}
	e.classify(p, &x)
	q := &e.queues[p.Queue]
	x.q[0] = q
	before := q.bytes
	e.enter(q, i, &x)
	if e.slack != nil && e.wait(before) > p.Slack {
		q.stats.Late++
		e.drop(q, i, true)
		return false
	}
	stays := e.resolve(q, nil, &x, i, seq)
	if q.buffer != nil {
		stays = e.resolve(q, q.buffer, &x, i, seq) && stays
	}
	if !stays {
		return false
	}
	q.stats.Admitted++
	q.stats.MaxPackets = max(q.stats.MaxPackets, q.n)
	e.after(q, q.prog.post, &x)
	if q.buffer != nil {
		e.after(q, q.buffer.prog.post, &x)
	}
	return p.Marked
}

// classify fills in what a policy makes of a packet.
func (e *Engine) classify(p *Packet, x *env) {
	if e.random {
		p.Random = uint32(e.rng.Uint64() >> 32)
	}
	p.Value, p.Processing, p.Slack = int64(p.DSCP), 1, most
	if e.flow != nil {
		p.Flow = uint32(e.flow.eval(x))
	}
	if e.value != nil {
		p.Value = e.value.eval(x)
	}
	if e.processing != nil {
		p.Processing = e.processing.eval(x)
	}
	if e.slack != nil {
		p.Slack = e.slack.eval(x)
	}
	p.Queue = 0
	if e.selects != nil {
		p.Queue = uint8(uint64(e.selects.eval(x)) % uint64(len(e.queues)))
	}
}

func (e *Engine) slot() uint32 {
	if n := len(e.free); n > 0 {
		i := e.free[n-1]
		e.free = e.free[:n-1]
		return i
	}
	e.slots = append(e.slots, slot{})
	e.procPos, e.admPos = append(e.procPos, 0), append(e.admPos, 0)
	return uint32(len(e.slots) - 1)
}

// enter puts a packet into both orders of its queue.
func (e *Engine) enter(q *queue, i uint32, x *env) {
	s := &e.slots[i]
	if q.n == 0 {
		e.awake(q)
	}
	if q.listed {
		q.all.append(e.slots, 0, i)
	}
	q.proc.put(e, i, x)
	q.adm.put(e, i, x)
	q.n++
	q.bytes += int64(s.Size)
	if b := q.buffer; b != nil {
		if b.spans && q.n == 1 {
			b.come(q)
		}
		b.n++
		b.bytes += int64(s.Size)
	}
	e.n++
	e.best = -1
}

// awake lets a queue that was empty compete: where service is counted it has no
// arrears from the time when it had nothing to send.
func (e *Engine) awake(q *queue) {
	if e.turns && e.some != 0 {
		least := int64(state)
		for b := e.some; b != 0; b &= b - 1 {
			least = min(least, e.queues[bits.TrailingZeros64(b)].state)
		}
		q.state = max(q.state, least)
	}
	e.some |= 1 << q.id
}

// leave takes a packet out of its queue.
func (e *Engine) leave(q *queue, i uint32) *Packet {
	s := &e.slots[i]
	if q.listed {
		q.all.remove(e.slots, 0, i)
	}
	q.proc.take(e, i)
	q.adm.take(e, i)
	q.n--
	q.bytes -= int64(s.Size)
	if b := q.buffer; b != nil {
		if b.spans && q.n == 0 {
			b.part(q)
		}
		b.n--
		b.bytes -= int64(s.Size)
	}
	if q.n == 0 {
		e.some &^= 1 << q.id
	}
	e.n--
	e.best = -1
	e.free = append(e.free, i)
	return &s.Packet
}

// drop drops a packet of a queue: the one that came, or another.
func (e *Engine) drop(q *queue, i uint32, came bool) {
	p := e.leave(q, i)
	if came {
		q.stats.Refused++
	} else {
		q.stats.PushedOut++
	}
	q.stats.LostValue += p.Value
	if e.given > 0 && e.given == len(e.victims) {
		e.victims, e.given = e.victims[:0], 0
	}
	e.victims = append(e.victims, *p)
}

// Victim returns a packet that was dropped and not yet taken, or nil. It is good
// until the next Offer.
func (e *Engine) Victim() *Packet {
	if e.given == len(e.victims) {
		return nil
	}
	e.given++
	return &e.victims[e.given-1]
}

// next returns the queue that is served next, the first of equals. There must be
// one that holds a packet.
func (e *Engine) next() *queue {
	if len(e.queues) == 1 {
		return &e.queues[0]
	}
	if e.best >= 0 {
		return &e.queues[e.best]
	}
	b := e.some
	best := bits.TrailingZeros64(b)
	x := env{e: e}
	for b &= b - 1; b != 0; b &= b - 1 {
		i := bits.TrailingZeros64(b)
		x.q = [2]*queue{&e.queues[i], &e.queues[best]}
		if e.sched.cmp.eval(&x) != 0 {
			best = i
		}
	}
	e.best = best
	return &e.queues[best]
}

// First returns the packet that Take would.
func (e *Engine) First() *Packet {
	if e.n == 0 {
		return nil
	}
	return e.next().front()
}

// Take removes the packet that is served. There must be one. The result is good
// until the next Offer.
func (e *Engine) Take() *Packet {
	q := e.next()
	p := e.leave(q, q.proc.pick(&q.all, q.adm))
	q.stats.Sent++
	q.stats.SentBytes += uint64(p.Size)
	q.stats.Value += p.Value
	x := env{e: e, p: [2]*Packet{p, nil}, q: [2]*queue{q, nil}}
	e.after(q, e.served, &x)
	return p
}

// TakeWorst removes the packet that would be dropped first: of the longest queue,
// the one of least worth.
func (e *Engine) TakeWorst() *Packet {
	var q *queue
	for i := range e.queues {
		if e.queues[i].n > 0 && (q == nil || e.queues[i].bytes > q.bytes) {
			q = &e.queues[i]
		}
	}
	if q == nil {
		return nil
	}
	p := e.leave(q, q.adm.pick(&q.all, q.proc))
	q.stats.PushedOut++
	q.stats.LostValue += p.Value
	return p
}

// each calls visit with the packets that wait until it returns false.
func (e *Engine) each(visit func(*Packet) bool) {
	for k := range e.queues {
		if !e.queues[k].each(e, func(i uint32) bool { return visit(&e.slots[i].Packet) }) {
			return
		}
	}
}

// each is that of one queue, and returns whether visit returned true for all.
func (q *queue) each(e *Engine, visit func(slot uint32) bool) bool {
	if !q.listed {
		for i := range q.proc.heap.v {
			if !visit(q.proc.heap.v[i].slot) {
				return false
			}
		}
		return true
	}
	for i := q.all.head; i != none; i = e.slots[i].link[0].next {
		if !visit(i) {
			return false
		}
	}
	return true
}

var _ scheduler.Order = Order{}
