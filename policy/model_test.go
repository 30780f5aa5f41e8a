package policy

import (
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"

	"gswitch/frame"
)

// model is a policy in the plainest words: slices that are searched, and the
// expressions of the text itself, in fractions. It has no keys, structures
// or code.
type model struct {
	f      *file
	queues []*modelQueue
	port   *object
	buffer *object
	seq    int
}

type modelQueue struct {
	o      *object
	v      []Packet
	state  map[string]int64
	buffer bool
}

func newModel(t *testing.T, text string) *model {
	f, err := parse("", text)
	if err != nil {
		t.Fatal(err)
	}
	m := &model{f: f}
	for _, o := range f.objects {
		switch o.kind {
		case "Port":
			m.port = o
		case "Buffer":
			m.buffer = o
		}
	}
	for _, q := range m.port.queues {
		mq := &modelQueue{o: q, state: map[string]int64{"weightSched": 1, "weightAdm": 1}}
		for attr, a := range q.attrs {
			if a.expr != nil && strings.HasSuffix(attr, "Sched") || strings.HasSuffix(attr, "State") {
				mq.state[attr] = a.expr.num.Num().Int64()
			}
		}
		mq.buffer = m.buffer != nil && slices.Contains(m.buffer.queues, q)
		m.queues = append(m.queues, mq)
	}
	return m
}

func (m *model) def(o *object, attr, usual string) *def {
	name := usual
	if a := o.attrs[attr]; a != nil {
		name = a.name
	}
	if d := m.f.defs[name]; d != nil {
		return d
	}
	return library[name]
}

// value is the value of an expression, where roots says what names are: packets,
// queues, or the buffer.
func (m *model) value(e *expr, roots map[string]any, bare any) *big.Rat {
	is := func(b bool) *big.Rat { return big.NewRat(truth(b), 1) }
	switch e.op {
	case "num":
		return e.num
	case "path":
		if len(e.path) == 1 {
			if k := m.f.consts[e.path[0]]; k != nil {
				return m.value(k, nil, nil)
			}
			if e.path[0] == "false" {
				return is(false)
			}
			if e.path[0] == "true" {
				return is(true)
			}
			return big.NewRat(m.read(bare, e.path[0]), 1)
		}
		at := roots[e.path[0]]
		for _, w := range e.path[1 : len(e.path)-1] {
			if w == "hol" {
				q := at.(*modelQueue)
				at = &q.v[m.pick(q, "procPrio", false)]
			} else {
				at = m.buffer
			}
		}
		return big.NewRat(m.read(at, e.path[len(e.path)-1]), 1)
	case "not":
		return is(m.value(e.l, roots, bare).Sign() == 0)
	case "neg":
		return new(big.Rat).Neg(m.value(e.l, roots, bare))
	}
	l, r := m.value(e.l, roots, bare), m.value(e.r, roots, bare)
	c := l.Cmp(r)
	switch e.op {
	case "and":
		return is(l.Sign() != 0 && r.Sign() != 0)
	case "or":
		return is(l.Sign() != 0 || r.Sign() != 0)
	case "<":
		return is(c < 0)
	case "<=":
		return is(c <= 0)
	case ">":
		return is(c > 0)
	case ">=":
		return is(c >= 0)
	case "==":
		return is(c == 0)
	case "!=":
		return is(c != 0)
	case "+":
		return new(big.Rat).Add(l, r)
	case "-":
		return new(big.Rat).Sub(l, r)
	case "*":
		return new(big.Rat).Mul(l, r)
	case "%":
		return ratOf(new(big.Int).Rem(l.Num(), r.Num()))
	}
	if e.r.op == "num" {
		return new(big.Rat).Quo(l, r)
	}
	return ratOf(new(big.Int).Quo(l.Num(), r.Num()))
}

func (m *model) read(at any, name string) int64 {
	switch x := at.(type) {
	case *Packet:
		f, _ := lookup(packetFields, name)
		return x.field(f.id)
	case *modelQueue:
		switch name {
		case "size":
			return m.value(x.o.size, nil, nil).Num().Int64()
		case "currSize":
			return x.size(m.packets(x.o))
		case "length":
			return int64(len(x.v))
		case "id":
			return int64(slices.Index(m.queues, x))
		}
		return x.state[name]
	case *object:
		if name == "size" {
			return m.value(x.size, nil, nil).Num().Int64()
		}
		n := int64(0)
		for _, q := range m.queues {
			if q.buffer {
				n += q.size(m.packets(x))
			}
		}
		return n
	}
	panic(name)
}

func (m *model) packets(o *object) bool {
	return (&compiler{f: m.f}).inPackets(o.size, map[string]bool{})
}

func (q *modelQueue) size(packets bool) (n int64) {
	for _, p := range q.v {
		n += int64(p.Size)
	}
	if packets {
		return int64(len(q.v))
	}
	return n
}

func (m *model) before(d *def, x, y any) bool {
	return m.value(d.cond, map[string]any{d.params[0]: x, d.params[1]: y}, nil).Sign() != 0
}

// pick returns the first in an order, or the last.
func (m *model) pick(q *modelQueue, attr string, last bool) int {
	d := m.def(q.o, attr, "fifo")
	best := 0
	for i := range q.v {
		x, y := &q.v[i], &q.v[best]
		if last {
			x, y = y, x
		}
		if m.before(d, x, y) || last && !m.before(d, y, x) {
			best = i
		}
	}
	return best
}

func (m *model) first(d *def, q *modelQueue, bare any, p *Packet) *acts {
	roots := map[string]any{"p": p}
	if len(d.params) == 1 {
		roots[d.params[0]] = bare
	}
	for _, k := range d.cases {
		if m.value(k.cond, roots, bare).Sign() != 0 {
			for _, a := range k.list {
				if a.verb == "modify" {
					q.state[a.to] = m.value(a.by, roots, bare).Num().Int64()
				}
			}
			return k
		}
	}
	return nil
}

func (m *model) offer(p Packet, queue int) (dropped []uint32) {
	q := m.queues[queue]
	p.seq = uint32(m.seq)
	m.seq++
	sched := m.def(m.port, "schedPrio", "rr").name
	if _, counts := library[sched+"_served"]; counts && len(q.v) == 0 {
		least := int64(-1)
		for _, o := range m.queues {
			if len(o.v) > 0 && (least < 0 || o.state["schedState"] < least) {
				least = o.state["schedState"]
			}
		}
		q.state["schedState"] = max(q.state["schedState"], least)
	}
	p.Arrival = frame.Time(m.seq)
	q.v = append(q.v, p)
	drop := func(of *modelQueue) {
		i := m.pick(of, "admPrio", true)
		dropped = append(dropped, of.v[i].seq)
		of.v = slices.Delete(of.v, i, i+1)
	}
	for len(q.v) > 0 && m.first(m.def(q.o, "congestion", "tailDrop"), q, q, &p) != nil {
		drop(q)
	}
	if q.buffer {
		for m.read(m.buffer, "currSize") > 0 && m.first(m.def(m.buffer, "congestion", "tailDrop"), q, m.buffer, &p) != nil {
			d := m.def(m.buffer, "queuePrio", "lqd")
			var worst *modelQueue
			for _, o := range m.queues {
				if !o.buffer || len(o.v) == 0 {
					continue
				}
				if worst == nil || m.before(d, worst, o) || o == q && !m.before(d, o, worst) {
					worst = o
				}
			}
			drop(worst)
		}
	}
	return dropped
}

func (m *model) take() uint32 {
	d := m.def(m.port, "schedPrio", "rr")
	var best *modelQueue
	for _, q := range m.queues {
		if len(q.v) > 0 && (best == nil || m.before(d, q, best)) {
			best = q
		}
	}
	i := m.pick(best, "procPrio", false)
	p := best.v[i]
	best.v = slices.Delete(best.v, i, i+1)
	if served := library[d.name+"_served"]; served != nil {
		m.first(served, best, best, &p)
	}
	return p.seq
}

// What orders, congestions and schedulers are tried in all their pairs.
var (
	tryOrders = []string{"fifo", "rfifo", "value", "srpt", "shortest", "edf",
		"two(a, b) = a.value > b.value or a.value == b.value and a.size < b.size;", "sum(a, b) = 2.5 * a.value - a.size / 3 < 2.5 * b.value - b.size / 3;",
		"per(a, b) = a.value * b.size > b.value * a.size;", "back(a, b) = b.size < a.size;", "low(a, b) = a.dscp % 8 < b.dscp % 8;",
		"tie(a, b) = a.class > b.class or a.class == b.class and a.arrival < b.arrival;"}
	tryCongestions = []string{"tailDrop", "half(x) = x.currSize > 0.5 * x.size, drop(1);", "both(x) = (x.length > 9, drop(1)).(x.currSize >= x.size - 3, drop);",
		"none", "shared(x) = x.currSize > 0.75 * (x.buffer.size - x.buffer.currSize) or x.currSize > x.size, drop(1);"}
	trySchedulers = []string{"rr", "drr", "wrr", "crr", "lqf", "sqf", "strict", "hol", "maxqf", "own(q, r) = q.currSize * r.weightSched > r.currSize * q.weightSched;"}
)

// Every form of comparator, condition and scheduler does what the model does: the
// same packets are dropped, by the same arrivals, and served in the same order.
func TestEngineAgainstModel(t *testing.T) {
	pick := func(rng *frame.Rand, v []string) (name, decl string) {
		s := v[rng.Uint32n(uint32(len(v)))]
		if k := strings.Index(s, "("); k >= 0 {
			return s[:k], s
		}
		return s, ""
	}
	kinds := map[orderKind]int{}
	for seed := range uint64(100) {
		rng := frame.NewRand(seed)
		proc, d1 := pick(&rng, tryOrders)
		adm, d2 := pick(&rng, tryOrders)
		cong, d3 := pick(&rng, tryCongestions)
		sched, d4 := pick(&rng, trySchedulers)
		prio, _ := pick(&rng, []string{"lqd", "sqd", "lqf"})
		if d2 == d1 {
			d2 = ""
		}
		unit := []string{"", " pkts"}[rng.Uint32n(2)]
		size := 5 + int(rng.Uint32n(40))
		if unit == "" {
			size *= 100
		}
		text := fmt.Sprintf("classify value = p.dscp; classify processing = p.class + 1; classify slack = 1000000 - p.dscp;\n%s\n%s\n%s\n%s\nq[1..4] = Queue(%d%s);\nb = Buffer(%d%s, q[1..3]);\n"+
			"out = Port(100%%, q[1..3], q[4]);\nq.procPrio = %s; q.admPrio = %s; q[1..3].congestion = %s;\nb.queuePrio = %s; out.schedPrio = %s; out.queueSelect = class;\nq[2].weightSched = 3; q[3].schedState = 2;\n",
			d1, d2, d3, d4, size, unit, size*2, unit, proc, adm, cong, prio, sched)
		p, err := Compile("", text)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		kinds[p.queues[0].proc.kind]++
		e, m := p.NewEngine(seed, 0), newModel(t, text)
		for step := range 400 {
			if rng.Uint32n(10) < 6 && step < 330 || e.Len() == 0 {
				x := Packet{Size: 60 + rng.Uint32n(400), DSCP: uint8(rng.Uint32n(5) * 7), Class: uint8(rng.Uint32n(8)), Arrival: frame.Time(m.seq + 1)}
				shown := x
				shown.Value, shown.Processing, shown.Slack, shown.Queue = int64(x.DSCP), int64(x.Class)+1, 1e6-int64(x.DSCP), x.Class%4
				want := m.offer(shown, int(shown.Queue))
				e.Offer(&x)
				var got []uint32
				for v := e.Victim(); v != nil; v = e.Victim() {
					got = append(got, v.seq)
				}
				if !slices.Equal(got, want) {
					t.Fatalf("seed %d, step %d: %d drops %v, want %v\n%s", seed, step, m.seq-1, got, want, text)
				}
			} else if got, want := e.Take().seq, m.take(); got != want {
				t.Fatalf("seed %d, step %d: %d is served, want %d\n%s", seed, step, got, want, text)
			}
			n := 0
			for i, q := range m.queues {
				n += len(q.v)
				if s := e.Stats()[i]; s.Packets != int64(len(q.v)) || s.Bytes != q.size(false) {
					t.Fatalf("seed %d, step %d: queue %d holds %d packets, %d bytes; want %d, %d", seed, step, i, s.Packets, s.Bytes, len(q.v), q.size(false))
				}
			}
			if e.Len() != n {
				t.Fatalf("seed %d: %d wait, want %d", seed, e.Len(), n)
			}
		}
		var in, out uint64
		for _, s := range e.Stats() {
			in += s.Admitted + s.Refused
			out += s.Sent + s.PushedOut + s.Refused + uint64(s.Packets)
		}
		if in != uint64(m.seq) || out != in {
			t.Fatalf("seed %d: %d came, %d are accounted for coming and %d going", seed, m.seq, in, out)
		}
	}
	for k := byFirst; k <= byCompare; k++ {
		if kinds[k] == 0 {
			t.Errorf("no policy was served by a %s", k)
		}
	}
}
