package scheduler

import (
	"fmt"
	"slices"
	"testing"

	"gswitch/frame"
)

// leastRank is an Order of the ranked queue of these tests.
type leastRank struct{}

func (leastRank) New(Env) Discipline { return &ranked{} }
func (leastRank) String() string     { return "ranked" }

// mostRank is leastRank the other way round.
type mostRank struct{}

type reversed struct{ ranked }

func (q *reversed) Enqueue(a *frame.Arena, now frame.Time, r frame.Ref) {
	m := a.Meta(r)
	m.Rank = -m.Rank
	q.ranked.Enqueue(a, now, r)
}

func (mostRank) New(Env) Discipline { return &reversed{} }
func (mostRank) String() string     { return "reversed" }

func ranks(v []frame.Meta) (s []int64) {
	for i := range v {
		s = append(s, max(v[i].Rank, -v[i].Rank))
	}
	return s
}

// A queue whose order changes while frames wait sends those first, in the order
// that they were queued under, and one that gets an equal order changes nothing.
func TestOrderChangesUnderLoad(t *testing.T) {
	for _, late := range []frame.Time{0, frame.Millisecond} {
		g := newRig(t, PortConfig{Rate: 1e9, Burst: late})
		put := func(now frame.Time, ranks ...int64) {
			for _, rank := range ranks {
				r := g.frame(2, 1000)
				g.pool.Meta(r).Rank = rank
				g.p.Enqueue(now, r)
			}
		}
		set := func(now frame.Time, o Order) {
			c := g.p.Config()
			c.Queues[2].Order = o
			g.p.Configure(now, c)
		}
		put(0, 5, 3)
		set(0, leastRank{})
		put(0, 9, 1, 7)
		d := g.p.q[2].disc
		if set(0, leastRank{}); g.p.q[2].disc != d {
			t.Fatal("an equal order is another one")
		}
		set(0, mostRank{})
		put(0, 2, 8)
		set(0, nil)
		put(0, 4, 6)
		if n, _ := g.p.QueueLen(2); n != 9 {
			t.Fatalf("%d frames wait, want 9", n)
		}
		seen := 0
		if g.p.Each(2, func(frame.Ref) bool { seen++; return true }); seen != 9 {
			t.Fatalf("Each shows %d frames, want 9", seen)
		}
		if got, want := ranks(g.run(0, frame.Second)), []int64{5, 3, 1, 7, 9, 8, 2, 4, 6}; !slices.Equal(got, want) {
			t.Errorf("lateness %v: served %v, want %v", late.Duration(), got, want)
		}
		if !g.p.InOrder(2) {
			t.Error("what is first-in first-out again does not say so")
		}
	}
}

// However often the order changes while frames wait, a queue has four at most, and
// its frames leave in the orders that they were queued under.
func TestOrdersAreBounded(t *testing.T) {
	g := newRig(t, PortConfig{Rate: 1e9})
	var want []int64
	for i := range int64(10) {
		c := g.p.Config()
		c.Queues[2].Order = [...]Order{leastRank{}, nil, mostRank{}}[i%3]
		g.p.Configure(0, c)
		first, second := 10*i+2, 10*i+1 // in which they are queued
		for _, rank := range []int64{first, second} {
			r := g.frame(2, 1000)
			g.pool.Meta(r).Rank = rank
			g.p.Enqueue(0, r)
		}
		if i%3 == 0 {
			first, second = second, first
		}
		want = append(want, first, second)
		if v, ok := g.p.q[2].disc.(*versions); ok && len(v.drain)+1 > 4 {
			t.Fatalf("after %d changes there are %d versions", i, len(v.drain)+1)
		}
	}
	if n, _ := g.p.QueueLen(2); n != 20 {
		t.Errorf("%d frames wait, of 20", n)
	}
	if got := ranks(g.run(0, frame.Second)); !slices.Equal(got, want) {
		t.Errorf("served %v, want %v", got, want)
	}
}

// A late caller sees the order that the link would have had: what came after an
// instant of the link does not compete for it.
func TestOrderAtTheLinksInstants(t *testing.T) {
	cfg := PortConfig{Rate: 8e9, Burst: frame.Millisecond} // a byte each nanosecond
	cfg.Queues[0].Order = leastRank{}
	g := newRig(t, cfg)
	for _, f := range []struct {
		at   frame.Time
		rank int64
	}{{0, 50}, {0, 40}, {1500, 10}, {1500, 20}, {2500, 1}} {
		r := g.frame(0, 1000)
		g.pool.Meta(r).Rank = f.rank
		g.p.Enqueue(f.at, r)
	}
	v := g.step(10_000) // departures at 0, 1000, 2000, 3000, 4000
	if got, want := ranks(v), []int64{40, 50, 10, 1, 20}; !slices.Equal(got, want) {
		t.Errorf("served %v, want %v", got, want)
	}
	for i := range v {
		if v[i].Depart != frame.Time(i)*1000 {
			t.Errorf("frame %d departs at %d", i, v[i].Depart)
		}
	}
}

// pushed queues frames and drops what has to go, and returns the ranks of those.
func (g *rig) pushed(now frame.Time, queue int, bytes uint32, rank int64) (gone []int64) {
	r := g.frame(queue, bytes)
	g.pool.Meta(r).Rank = rank
	g.p.Enqueue(now, r)
	for r := g.p.PushOut(now, uint8(queue)); r != frame.Nil; r = g.p.PushOut(now, uint8(queue)) {
		gone = append(gone, g.pool.Meta(r).Rank)
		g.pool.Free(r)
	}
	return gone
}

// The least valuable frame goes, the one that came included; of equals the
// newest.
func TestPushOutOfAQueue(t *testing.T) {
	cfg := PortConfig{Rate: 1e9, PushOut: PushOut{Queue: 3000}}
	cfg.Queues[4].Order = leastRank{}
	g := newRig(t, cfg)
	for _, c := range []struct {
		rank int64
		gone string
	}{{5, "[]"}, {1, "[]"}, {9, "[]"}, {7, "[9]"}, {12, "[12]"}, {7, "[7]"}} {
		if got := fmt.Sprint(g.pushed(0, 4, 1000, c.rank)); got != c.gone {
			t.Errorf("for %d goes %s, want %s", c.rank, got, c.gone)
		}
	}
	for i := range int64(5) { // first-in first-out: the last one goes
		want := "[]"
		if i >= 3 {
			want = fmt.Sprintf("[%d]", i)
		}
		if got := fmt.Sprint(g.pushed(0, 0, 1000, i)); got != want {
			t.Errorf("for frame %d goes %s, want %s", i, got, want)
		}
	}
	if s := g.p.Stats(0, 4, false); s.Evicted != 3 || s.RemovedFrames != 3 {
		t.Errorf("%+v", s)
	}
}

// A port that is full gives up frames of its lowest level, never those of a
// higher one for one of a lower; lossless queues neither count nor lose.
func TestPushOutOfAPort(t *testing.T) {
	g := newRig(t, PortConfig{Rate: 1e9, PushOut: PushOut{Port: 4000, Exempt: 1 << 5}})
	for i := range int64(10) {
		if got := g.pushed(0, 5, 1000, i); got != nil {
			t.Fatalf("a lossless frame made %v go", got)
		}
	}
	for _, c := range []struct {
		queue int
		rank  int64
		gone  string
	}{
		{1, 10, "[]"}, {2, 20, "[]"}, {1, 11, "[]"}, {2, 21, "[]"},
		{3, 30, "[11]"},                  // the highest pushes out the last of the lowest
		{1, 12, "[12]"},                  // the lowest, itself
		{2, 22, "[10]"}, {2, 23, "[23]"}, // now the middle one is the lowest
		{3, 31, "[22]"}, {3, 32, "[21]"}, {3, 33, "[20]"}, {3, 34, "[34]"},
		{1, 13, "[13]"}, {5, 50, "[]"},
	} {
		if got := fmt.Sprint(g.pushed(0, c.queue, 1000, c.rank)); got != c.gone {
			t.Errorf("for %d in queue %d goes %s, want %s", c.rank, c.queue, got, c.gone)
		}
	}
}

// Room in a memory that is full is made below the level of the frame that needs
// it, and nowhere else.
func TestMakeRoom(t *testing.T) {
	cfg := PortConfig{Rate: 1e9, PushOut: PushOut{Port: 1e6, Exempt: 1}}
	cfg.Queues[3].Weight, cfg.Queues[4].Weight = 1, 1
	g := newRig(t, cfg)
	for i, q := range []int{0, 1, 1, 3, 4, 4, 6} {
		g.pushed(0, q, 1000, int64(i))
	}
	for _, c := range []struct {
		queue uint8
		rank  int64 // -1: none
	}{{1, -1}, {0, -1}, {4, 2}, {3, 1}, {3, -1}, {4, -1}, {5, 5}, {6, 3}, {7, 4}, {7, 6}, {7, -1}} {
		got := int64(-1)
		if r := g.p.MakeRoom(0, c.queue); r != frame.Nil {
			got = g.pool.Meta(r).Rank
			g.pool.Free(r)
		}
		if got != c.rank {
			t.Errorf("for queue %d goes %d, want %d", c.queue, got, c.rank)
		}
	}
}

// Within a level of weights the longest queue gives a frame up.
func TestPushOutOfALevel(t *testing.T) {
	cfg := PortConfig{Rate: 1e9, PushOut: PushOut{Port: 5000}}
	cfg.Queues[1].Weight, cfg.Queues[2].Weight = 3, 1
	g := newRig(t, cfg)
	for _, c := range []struct {
		queue int
		rank  int64
		gone  string
	}{{1, 10, "[]"}, {2, 20, "[]"}, {2, 21, "[]"}, {2, 22, "[]"}, {1, 11, "[]"}, {1, 12, "[12]"}, {1, 13, "[13]"}, {2, 23, "[23]"}, {7, 70, "[22]"}, {7, 71, "[11]"}, {2, 24, "[24]"}} {
		if got := fmt.Sprint(g.pushed(0, c.queue, 1000, c.rank)); got != c.gone {
			t.Errorf("for %d in queue %d goes %s, want %s", c.rank, c.queue, got, c.gone)
		}
	}
}

// What the link would have sent by now, had the caller not been late, does not
// count: frames that an ideal link has sent are not missed.
func TestPushOutOfALateCaller(t *testing.T) {
	g := newRig(t, PortConfig{Rate: 8e9, Burst: 5000, PushOut: PushOut{Queue: 3000}})
	g.pushed(0, 0, 1000, 0)
	g.step(0)
	for i := range int64(12) { // at 6000 the link is 5000 ns, as many bytes, behind
		want := "[]"
		if i >= 8 {
			want = fmt.Sprintf("[%d]", i)
		}
		if got := fmt.Sprint(g.pushed(6000, 0, 1000, i)); got != want {
			t.Errorf("for frame %d goes %s, want %s", i, got, want)
		}
	}
}

// Frames that wait in a first-in first-out queue when push-out begins leave in
// their order, and stay.
func TestPushOutBegins(t *testing.T) {
	g := newRig(t, PortConfig{Rate: 1e9})
	for range 4 {
		g.put(0, 0, 1000)
	}
	g.p.Configure(0, PortConfig{Rate: 1e9, PushOut: PushOut{Queue: 3000}})
	if got := g.pushed(0, 0, 1000, 7); !slices.Equal(got, []int64{7}) {
		t.Errorf("%v goes, want the frame that came", got)
	}
	if n, _ := g.p.QueueLen(0); n != 4 {
		t.Errorf("%d frames wait, want 4", n)
	}
	if n := len(g.run(0, frame.Second)); n != 4 {
		t.Errorf("%d frames left, want 4", n)
	}
}

// everySecond refuses, marks and sheds by turns, as an admission of these tests.
type everySecond struct{ shed bool }

func (everySecond) String() string { return "every second" }
func (o everySecond) New(Env) Gate { return &second{shed: o.shed} }

type second struct {
	shed     bool
	in, outN int
}

func (s *second) Admits(_ frame.Time, m *frame.Meta, _ int, _ uint64) Verdict {
	if s.in++; s.in%2 == 0 && !s.shed {
		return Drop
	}
	if m.Rank == 1 {
		return Mark
	}
	return Pass
}

func (s *second) Sheds(frame.Time, *frame.Meta, uint64) Verdict {
	if s.outN++; s.outN%2 == 0 && s.shed {
		return Drop
	}
	return Pass
}

// An admission refuses frames as they come, marks those that can be marked, and
// drops others when they would leave; lossless ones never there.
func TestAdmission(t *testing.T) {
	cfg := PortConfig{Rate: 8e9}
	cfg.Queues[0].Admission, cfg.Queues[1].Admission = everySecond{}, everySecond{shed: true}
	g := newRig(t, cfg)
	if g.p.Regulated() != 3 {
		t.Fatalf("queues %b are regulated, want 11", g.p.Regulated())
	}
	in := 0
	for i := range 12 {
		r := g.frame(i/6, 1000)
		m := g.pool.Meta(r)
		m.Flags = frame.IsECT
		if i == 0 {
			m.Rank = 1
		}
		if i >= 9 {
			m.Flags |= frame.Lossless
		}
		if !g.p.Admits(0, m) {
			g.pool.Free(r)
			continue
		}
		in++
		g.p.Enqueue(0, r)
	}
	if in != 9 {
		t.Errorf("%d frames came in, want 9", in)
	}
	v := g.run(0, frame.Second)
	shed := g.p.TakeShed(g.out[:])
	if len(v)+shed != 9 || shed != 1 { // the second of the three that are not lossless
		t.Errorf("%d left and %d were shed, want 8 and 1", len(v), shed)
	}
	marked := 0
	for i := range v {
		if v[i].Flags&frame.MarkCE != 0 {
			marked++
		}
	}
	if a, b := g.p.Stats(0, 0, false), g.p.Stats(0, 1, false); marked != 1 || a.Marked != 1 || a.Refused != 3 || b.Shed != 1 || b.RemovedFrames != 1 {
		t.Errorf("%d marked; %+v %+v", marked, a, b)
	}
}

// An order that cannot be compared is refused before it is used.
func TestOrderMustBeComparable(t *testing.T) {
	c := PortConfig{}
	c.Queues[3].Order = sliceOrder{}
	if c.Validate() == nil {
		t.Error("an order that holds a slice passes")
	}
	c.Queues[3].Order, c.Queues[3].Discipline = leastRank{}, &ranked{}
	if c.Validate() == nil {
		t.Error("an order beside a discipline passes")
	}
}

type sliceOrder [0][]int // values of it cannot be compared

func (sliceOrder) New(Env) Discipline { return nil }
func (sliceOrder) String() string     { return "" }
