package policy

import (
	"strings"
	"testing"
)

func compile(t *testing.T, text string) *Program {
	t.Helper()
	p, err := Compile("x.oq", text)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return p
}

// vector runs one queue, or several, by hand: arrivals have letters.
type vector struct {
	*Engine
	names map[uint32]string
}

func newVector(t *testing.T, text string) *vector {
	return &vector{compile(t, text).NewEngine(1, 0), map[uint32]string{}}
}

// come offers a packet of the given value, and returns who is dropped.
func (v *vector) come(name string, p Packet) string {
	if p.Size == 0 {
		p.Size = 1
	}
	v.names[v.seq] = name
	v.Offer(&p)
	out := ""
	for {
		x := v.Victim()
		if x == nil {
			return out
		}
		out += v.names[x.seq]
	}
}

func (v *vector) take() string { return v.names[v.Take().seq] }

func (v *vector) rest() (out string) {
	for v.Len() > 0 {
		out += v.take()
	}
	return out
}

const (
	tailText  = `q = Queue(3 pkts);`
	pushText  = `q = Queue(3 pkts); q.admPrio = value;`
	orderText = `q = Queue(3 pkts); q.admPrio = value; q.procPrio = value;`
)

// Algorithms A and B of the dissertation on six arrivals.
func TestTailDropAndPushOut(t *testing.T) {
	for _, c := range []struct{ text, dropped, kept string }{{tailText, "def", "abc"}, {pushText, "bea", "cdf"}} {
		v := newVector(t, c.text)
		dropped := ""
		for i, value := range []uint8{1, 1, 63, 63, 1, 63} {
			dropped += v.come(string(rune('a'+i)), Packet{DSCP: value})
		}
		if kept := v.rest(); dropped != c.dropped || kept != c.kept {
			t.Errorf("%s: drops %s, serves %s; want %s, %s", c.text, dropped, kept, c.dropped, c.kept)
		}
	}
}

func TestProcessingOrder(t *testing.T) {
	for text, want := range map[string]string{tailText: "abc", pushText: "abc", orderText: "cab"} {
		v := newVector(t, text)
		for i, value := range []uint8{1, 1, 63} {
			v.come(string(rune('a'+i)), Packet{DSCP: value})
		}
		if got := v.rest(); got != want {
			t.Errorf("%s: serves %s, want %s", text, got, want)
		}
	}
}

// Shortest remaining processing with push-out of the longest.
func TestShortestProcessing(t *testing.T) {
	v := newVector(t, `classify processing = p.dscp; q = Queue(6 pkts); q.admPrio = srpt; q.procPrio = srpt;`)
	dropped := ""
	for i, work := range []uint8{3, 3, 3, 3, 3, 3, 1, 1} {
		dropped += v.come(string(rune('a'+i)), Packet{DSCP: work})
	}
	if got := v.rest(); dropped != "fe" || got != "ghabcd" {
		t.Errorf("drops %s, serves %s", dropped, got)
	}
}

// The longest queue gives up a packet; among equals the one that the packet came to.
func TestLongestQueueDrop(t *testing.T) {
	v := newVector(t, `q[1..3] = Queue(8 pkts); b = Buffer(8 pkts, q[1..3]); out = Port(100%, q[1..3]); out.queueSelect = p.class;`)
	come := func(class uint8) { v.come("x", Packet{Class: class}) }
	lengths := func() string {
		out := ""
		for _, s := range v.Stats() {
			out += string(rune('0' + s.Packets))
		}
		return out
	}
	for class, n := range []int{5, 2, 1} {
		for range n {
			come(uint8(class))
		}
	}
	for _, step := range []struct {
		class uint8
		want  string
	}{{2, "422"}, {1, "332"}, {0, "332"}, {2, "332"}} {
		if come(step.class); lengths() != step.want {
			t.Errorf("after an arrival at %d: %s, want %s", step.class, lengths(), step.want)
		}
	}
}

// Whom the schedulers of the library choose first, and the turns of crr.
func TestSchedulers(t *testing.T) {
	text := func(sched string) string {
		return `classify processing = p.dscp; q[1..3] = Queue(9 pkts);
q[1].schedState = 3; q[2].schedState = 1; q[3].schedState = 2;
out = Port(100%, q[1..3]); out.queueSelect = class; out.schedPrio = ` + sched + ";"
	}
	fill := func(text string) *vector {
		v := newVector(t, text)
		for i, n := range []int{3, 5, 1} {
			for range n {
				v.come(string(rune('1'+i)), Packet{Class: uint8(i), DSCP: []uint8{3, 1, 2}[i]})
			}
		}
		return v
	}
	for sched, want := range map[string]string{"lqf": "2", "sqf": "3", "minqf": "2", "maxqf": "1", "strict": "1"} {
		if got := fill(text(sched)).take(); got != want {
			t.Errorf("%s serves %s first, want %s", sched, got, want)
		}
	}
	crr := strings.NewReplacer("q[1].schedState = 3; q[2].schedState = 1; q[3].schedState = 2;", "").Replace(text("crr"))
	if got := fill(crr).rest()[:6]; got != "123221" {
		t.Errorf("crr serves %s, want 123221", got)
	}
	rr := strings.Replace(crr, "= crr", "= rr", 1)
	if got := fill(rr).rest(); got != "123121222" {
		t.Errorf("rr serves %s", got)
	}
}

// The steps of the dissertation, at 100 000 trials for each band.
func TestDropSteps(t *testing.T) {
	const steps = `(currSize >= 0.95 * size, drop(1)). (currSize >= 0.90 * size, drop(0.9)). (currSize >= 0.75 * size, drop(0.5))`
	reversed := `(currSize >= 0.75 * size, drop(0.5)). (currSize >= 0.90 * size, drop(0.9)). (currSize >= 0.95 * size, drop(1))`
	for _, c := range []struct {
		cases string
		size  uint32 // of the packet, the only one
		share float64
		warns int
	}{
		{steps, 74_999, 0, 0}, {steps, 75_000, .5, 0}, {steps, 89_999, .5, 0}, {steps, 90_000, .9, 0}, {steps, 94_999, .9, 0}, {steps, 95_000, 1, 0},
		{reversed, 95_000, .5, 2},
	} {
		p := compile(t, "congestion() =\n"+c.cases+"\nq = Queue(100000);")
		if len(p.Warnings) != c.warns {
			t.Errorf("%d warnings, want %d: %v", len(p.Warnings), c.warns, p.Warnings)
		}
		e := p.NewEngine(7, 0)
		dropped := 0
		const trials = 100_000
		for range trials {
			e.Offer(&Packet{Size: c.size})
			if e.Victim() != nil {
				dropped++
			} else {
				e.Take()
			}
		}
		if share := float64(dropped) / trials; share < c.share-.005 || share > c.share+.005 || c.share == 1 && dropped != trials || c.share == 0 && dropped != 0 {
			t.Errorf("of %d bytes %.4f are dropped, want %.1f", c.size, share, c.share)
		}
	}
}

// A packet whose wait is above its slack goes at once.
func TestSlack(t *testing.T) {
	for slack, dropped := range map[string]string{"10ms": "x", "15ms": ""} {
		v := &vector{compile(t, "classify slack = "+slack+"; q = Queue(1MB);").NewEngine(1, 10e6), map[uint32]string{}}
		for range 10 {
			v.come("a", Packet{Size: 1500})
		}
		if got := v.come("x", Packet{Size: 1500}); got != dropped {
			t.Errorf("with a slack of %s %q is dropped", slack, got)
		}
	}
}

// Marks and notices: exactly those admitted at the occupancy, once for each crossing.
func TestMarkAndNotify(t *testing.T) {
	e := compile(t, `q = Queue(100 pkts); q.postAdmAct = hot; hot(x) = (x.currSize >= 5, mark.notify);`).NewEngine(1, 0)
	marked := 0
	offer := func(n int) {
		for range n {
			if e.Offer(&Packet{Size: 100}) {
				marked++
			}
		}
	}
	offer(8)
	for range 8 {
		e.Take()
	}
	offer(6)
	if s := e.Stats()[0]; marked != 6 || s.Marked != 6 || s.Notices != 2 {
		t.Errorf("%d marked, %+v", marked, s)
	}
}
