package orders

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"gswitch/frame"
	"gswitch/scheduler"
)

// item is a frame as the models know it.
type item struct {
	ref  frame.Ref
	rank int64
	hash uint32
	wire uint32
	key  int64 // what the model orders by
}

// model is an order in the plainest words: a slice of what waits, by arrival, of
// which it names the one that leaves and the one that is given up.
type model interface {
	put(now frame.Time, it item)
	serve() int // index into all
	victim() int
	take(i int, served bool) item
	all() []item
}

// slice is a model by a key: the least leaves and the greatest goes, the oldest
// and the newest of equals.
type slice struct {
	v   []item
	key func(now frame.Time, it *item) int64
}

func (m *slice) put(now frame.Time, it item) {
	if m.key != nil {
		it.key = m.key(now, &it)
	}
	m.v = append(m.v, it)
}

func (m *slice) serve() int {
	k := 0
	for i := range m.v {
		if m.v[i].key < m.v[k].key {
			k = i
		}
	}
	return k
}

func (m *slice) victim() int {
	k := 0
	for i := range m.v {
		if m.v[i].key >= m.v[k].key {
			k = i
		}
	}
	return k
}

func (m *slice) take(i int, _ bool) item {
	it := m.v[i]
	m.v = slices.Delete(m.v, i, i+1)
	return it
}

func (m *slice) all() []item { return m.v }

// byFlow is SRPT by the words of its comment.
type byFlow struct {
	slice
	since map[uint32]int // when a flow began to wait
	n     int
}

func (m *byFlow) put(now frame.Time, it item) {
	if !slices.ContainsFunc(m.v, func(o item) bool { return o.hash == it.hash }) {
		m.n++
		m.since[it.hash] = m.n
	}
	m.slice.put(now, it)
}

func (m *byFlow) serve() int {
	best := slices.MinFunc(m.v, func(a, b item) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(m.since[a.hash], m.since[b.hash]))
	})
	return slices.IndexFunc(m.v, func(o item) bool { return o.hash == best.hash })
}

func (m *byFlow) victim() int {
	k := 0
	for i, it := range m.v {
		o := m.v[k]
		if it.rank > o.rank || it.rank == o.rank && m.since[it.hash] >= m.since[o.hash] {
			k = i
		}
	}
	return k
}

// turns is FQ of RFC 8290 section 4.2 with maps and slices.
type turns struct {
	slice
	quantum, flows int
	fresh, old     []uint64
	deficit        map[uint64]int
}

func (m *turns) flow(it *item) uint64 {
	return uint64(it.hash*2654435769) * uint64(m.flows) >> 32
}

func (m *turns) put(now frame.Time, it item) {
	f := m.flow(&it)
	if !slices.Contains(m.fresh, f) && !slices.Contains(m.old, f) {
		m.fresh = append(m.fresh, f)
		m.deficit[f] = m.quantum
	}
	m.slice.put(now, it)
}

func (m *turns) serve() int {
	for {
		list := &m.old
		if len(m.fresh) > 0 {
			list = &m.fresh
		}
		f := (*list)[0]
		i := slices.IndexFunc(m.v, func(o item) bool { return m.flow(&o) == f })
		switch {
		case m.deficit[f] <= 0:
			m.deficit[f] += m.quantum
			*list = (*list)[1:]
			m.old = append(m.old, f)
		case i >= 0:
			return i
		case list == &m.fresh && len(m.old) > 0:
			m.fresh = m.fresh[1:]
			m.old = append(m.old, f)
		default:
			*list = (*list)[1:]
		}
	}
}

// idle is what a look for a turn leaves behind where no frame waits.
func (m *turns) idle() { m.fresh, m.old = nil, nil }

func (m *turns) take(i int, served bool) item {
	if served {
		m.deficit[m.flow(&m.v[i])] -= int(m.v[i].wire)
	}
	return m.slice.take(i, served)
}

func (m *turns) victim() int {
	bytes := map[uint64]uint32{}
	for i := range m.v {
		bytes[m.flow(&m.v[i])] += m.v[i].wire
	}
	best := uint64(0)
	for f := range uint64(m.flows) {
		if bytes[f] > bytes[best] {
			best = f
		}
	}
	for i := len(m.v) - 1; ; i-- {
		if m.flow(&m.v[i]) == best {
			return i
		}
	}
}

// models pairs each order with its model. rank draws ranks that the order is exact for.
var models = map[string]struct {
	order scheduler.Order
	model func() model
	rank  func(rng *frame.Rand, now frame.Time) int64
}{
	"fifo": {scheduler.FIFO{}, func() model { return &slice{} }, nil},
	"lifo": {LIFO{}, func() model {
		n := int64(0)
		return &slice{key: func(frame.Time, *item) int64 { n--; return n }}
	}, nil},
	"ranked": {Ranked{}, func() model { return byRank(1) }, nil},
	"levels": {Levels{5}, func() model {
		return &slice{key: func(_ frame.Time, it *item) int64 { return min(max(it.rank, 0), 4) }}
	}, nil},
	"64 levels": {Levels{64}, func() model {
		return &slice{key: func(_ frame.Time, it *item) int64 { return min(max(it.rank, 0), 63) }}
	}, nil},
	// Ranks that grow with time, more than the ring holds of those that wait, and
	// fall back by less than a quarter of it.
	"buckets": {Buckets{10}, func() model { return byRank(10) }, func(rng *frame.Rand, now frame.Time) int64 {
		return int64(now)*400 - 7_000 + int64(rng.Uint32n(10_000))
	}},
	"buckets of a power of two": {Buckets{64}, func() model { return byRank(64) }, func(rng *frame.Rand, now frame.Time) int64 {
		return int64(now)*6 - 40_000 + int64(rng.Uint32n(64_000))
	}},
	"srpt":              {SRPT{}, func() model { return &byFlow{since: map[uint32]int{}} }, nil},
	"srpt of few ranks": {SRPT{}, func() model { return &byFlow{since: map[uint32]int{}} }, func(rng *frame.Rand, _ frame.Time) int64 { return int64(rng.Uint32n(3)) }},
	"fq": {FQ{Quantum: 300, Flows: 16}, func() model {
		return &turns{quantum: 300, flows: 16, deficit: map[uint64]int{}}
	}, nil},
	"fq-codel": {FQ{Quantum: 300, Flows: 4, CoDel: shortCoDel}, func() model {
		return &codels{turns: turns{quantum: 300, flows: 4, deficit: map[uint64]int{}}, state: map[uint64]*rfc8289{}}
	}, nil},
	"random": {Random{}, func() model { return &lots{} }, nil},
	"calendar": {Calendar{Rate: 8e9, Flows: 4}, func() model {
		free := map[uint64]frame.Time{}
		return &slice{key: func(now frame.Time, it *item) int64 {
			f := uint64(it.hash*2654435769) * 4 >> 32
			at := max(now, free[f])
			free[f] = at + frame.Time(it.wire) // a byte each nanosecond
			return int64(at)
		}}
	}, nil},
	"voq":                  {VOQ{}, func() model { return &ports{} }, nil},
	"sp-pifo":              {SPPIFO{Queues: 8}, func() model { return spPIFO(8, 0) }, nil},
	"sp-pifo of some room": {SPPIFO{Queues: 4, Depth: 9}, func() model { return spPIFO(4, 9) }, nil},
	"packs":                {PACKS{Queues: 8, Depth: 10, Window: 20, Sample: 1}, func() model { return quantiles(8, 10, 20) }, nil},
}

func byRank(width int64) model {
	return &slice{key: func(_ frame.Time, it *item) int64 {
		k := it.rank / width
		if it.rank%width < 0 {
			k--
		}
		return k
	}}
}

// Every order serves and gives up exactly the frames that a plain list would,
// whatever comes, goes and is pushed out.
func TestOrdersAgainstLists(t *testing.T) {
	for name, c := range models {
		t.Run(name, func(t *testing.T) {
			a := frame.MustArena(2048, 256, 32)
			pool := frame.NewPool(a)
			dropped := 0
			for seed := range uint64(60) {
				rng := frame.NewRand(seed)
				d := c.order.New(scheduler.Env{Seed: seed})
				ev, evicts := d.(scheduler.Evictor)
				gate, _ := d.(scheduler.Gate)
				m := c.model()
				if l, ok := m.(*lots); ok {
					l.rng = frame.NewRand(seed)
				}
				most := 1 + int(rng.Uint32n(300))
				now := frame.Time(0)
				for step := range 1500 {
					now += frame.Time(rng.Uint32n(20))
					switch k := rng.Uint32n(10); {
					case k < 5 && len(m.all()) < most && step < 1200:
						r := pool.Alloc()
						f := a.Reset(r)
						f.Rank, f.Hash, f.Wire, f.Depart = int64(rng.Uint32n(100))-10, rng.Uint32n(40)*0x9e3779b1, 60+rng.Uint32n(400), now
						if c.rank != nil {
							f.Rank = c.rank(&rng, now)
						}
						f.InPort = uint16(f.Hash % inPorts)
						it := item{ref: r, rank: f.Rank, hash: f.Hash, wire: f.Wire}
						if g, ok := m.(gated); ok {
							want := g.admits(&it)
							if got := gate.Admits(now, f, len(m.all()), 0) == scheduler.Pass; got != want {
								t.Fatalf("seed %d, step %d: let in %v, want %v", seed, step, got, want)
							}
							if !want {
								pool.Free(r)
								break
							}
						}
						m.put(now, it)
						d.Enqueue(a, now, r)
					case len(m.all()) == 0:
						if turns, ok := m.(interface{ idle() }); ok {
							turns.idle()
						}
						if d.Len() != 0 || d.Head() != frame.Nil || d.Dequeue(a, now) != frame.Nil || evicts && ev.Evict(a) != frame.Nil {
							t.Fatalf("seed %d: an empty queue gives something", seed)
						}
					case k == 8 && step < 1200: // a look that takes nothing
						if head, want := d.Head(), m.all()[m.serve()].ref; head != want {
							t.Fatalf("seed %d, step %d: %d is the head, want %d", seed, step, head, want)
						}
					case k == 9 && step < 1200 && evicts:
						want := m.take(m.victim(), false).ref
						if got := ev.Evict(a); got != want {
							t.Fatalf("seed %d, step %d: %d is given up, want %d", seed, step, got, want)
						}
						pool.Free(want)
					default:
						if c, ok := m.(*codels); ok {
							dropped += c.check(t, a, d, now, pool.Free)
							break
						}
						i := m.serve()
						if t0, ok := d.(scheduler.Timed); ok && frame.Time(m.all()[i].key) != t0.HeadAt() {
							t.Fatalf("seed %d, step %d: the head is due at %d, want %d", seed, step, t0.HeadAt(), m.all()[i].key)
						}
						want := m.take(i, true).ref
						if head := d.Head(); head != want {
							t.Fatalf("seed %d, step %d: %d is the head, want %d", seed, step, head, want)
						}
						if got := d.Dequeue(a, now); got != want {
							t.Fatalf("seed %d, step %d: %d leaves, want %d", seed, step, got, want)
						}
						pool.Free(want)
					}
					if d.Len() != len(m.all()) {
						t.Fatalf("seed %d, step %d: %d wait, want %d", seed, step, d.Len(), len(m.all()))
					}
				}
				visited := 0
				d.Each(a, func(r frame.Ref) bool {
					visited++
					if !slices.ContainsFunc(m.all(), func(it item) bool { return it.ref == r }) {
						t.Fatalf("Each shows %d, which does not wait", r)
					}
					return true
				})
				if visited != len(m.all()) {
					t.Fatalf("Each shows %d of %d", visited, len(m.all()))
				}
				for len(m.all()) > 0 {
					pool.Free(m.take(m.serve(), true).ref)
				}
			}
			if pool.Available() != 2048 {
				t.Errorf("%d frames are lost", 2048-pool.Available())
			}
			if _, ok := c.model().(*codels); ok && dropped < 500 {
				t.Errorf("only %d frames are dropped for their wait", dropped)
			}
		})
	}
}

// all orders of this package, for what holds of each.
func everyOrder() map[string]scheduler.Order {
	return map[string]scheduler.Order{
		"fifo": scheduler.FIFO{}, "lifo": LIFO{}, "random": Random{}, "ranked": Ranked{}, "levels": Levels{8}, "buckets": Buckets{16}, "srpt": SRPT{},
		"fq": FQ{}, "fq-codel": FQ{CoDel: CoDel{Target: 50_000, Interval: 1_000_000}}, "calendar": Calendar{Rate: 500e6}, "voq": VOQ{},
		"sp-pifo": SPPIFO{Queues: 8, Depth: 30}, "packs": PACKS{Queues: 8, Depth: 30, Window: 20, Sample: 1, K: 100},
	}
}

// An order names itself, is comparable, and two of one value are equal.
func TestOrdersAreValues(t *testing.T) {
	seen := map[string]string{}
	for name, o := range everyOrder() {
		if o != everyOrder()[name] {
			t.Errorf("%s is not equal to itself", name)
		}
		s := o.String()
		if s == "" || seen[s] != "" {
			t.Errorf("%s and %s are both %q", name, seen[s], s)
		}
		seen[s] = name
	}
	if fmt.Sprint(Levels{3}) == fmt.Sprint(Levels{4}) {
		t.Error("levels are not distinguished")
	}
}

// An order that does not let every frame in says that it drops, so that lossless classes
// are not given it. What CoDel drops of fq as it leaves is none of theirs (Port.shed).
func TestOrdersThatDropSaySo(t *testing.T) {
	a := frame.MustArena(256, 256, 32)
	p := frame.NewPool(a)
	for name, o := range everyOrder() {
		d := o.New(scheduler.Env{Seed: 1, Rate: 1e9})
		gate, refused := d.(scheduler.Gate)
		if refused {
			refused = false
			for range 250 {
				r := p.New(make([]byte, 60))
				m := a.Meta(r)
				if gate.Admits(0, m, d.Len(), uint64(d.Len())*60) == scheduler.Drop {
					refused = true
					p.Free(r)
					break
				}
				d.Enqueue(a, 0, r)
			}
			for d.Len() > 0 {
				p.Free(d.Dequeue(a, 0))
			}
		}
		if drops := scheduler.Drops(o); drops != refused {
			t.Errorf("%s: it says %v of whether it drops; a frame was refused: %v", name, drops, refused)
		}
	}
}
