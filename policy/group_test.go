package policy

import (
	"maps"
	"slices"
	"testing"

	"gswitch/frame"
	"gswitch/scheduler"
)

// ports are several of one worker.
type ports struct {
	a      *frame.Arena
	pool   *frame.Pool
	p      []*scheduler.Port
	shared scheduler.Shared
	names  map[frame.Ref]string // of those that wait
	late   frame.Time

	dropped int
}

func newPorts(texts ...string) *ports {
	a := frame.MustArena(8192, 256, 32)
	g := &ports{a: a, pool: frame.NewPool(a), names: map[frame.Ref]string{}}
	count := map[string]int{}
	for _, text := range texts {
		g.p = append(g.p, scheduler.NewPort(a, g.config(text, count[text]), 1))
		count[text]++
	}
	return g
}

func (g *ports) config(text string, port int) (c scheduler.PortConfig) {
	c.Rate, c.Overhead, c.Shared, c.Burst = 10e9, 24, &g.shared, g.late
	c.Queues[0].Order = Order{Text: text, Port: port}
	return c
}

// put queues a frame at a port, and returns who goes for it.
func (g *ports) put(now frame.Time, port int, name string, value uint8) (gone string) {
	r := g.pool.Alloc()
	m := g.a.Reset(r)
	m.Wire, m.DSCP, m.OutPort = 1000, value, uint16(port)
	g.names[r] = name
	g.p[port].Enqueue(now, r)
	return g.settle(now, port)
}

// settle drops the frames that a port pushes out, there and elsewhere, as a switch does.
func (g *ports) settle(now frame.Time, port int) (gone string) {
	take := func(at int) {
		for r := g.p[at].PushOut(now, 0); r != frame.Nil; r = g.p[at].PushOut(now, 0) {
			gone += g.names[r]
			g.drop([]frame.Ref{r})
		}
	}
	take(port)
	for r := g.p[port].PushedElsewhere(0); r != frame.Nil; r = g.p[port].PushedElsewhere(0) {
		take(int(g.a.Meta(r).OutPort))
	}
	return gone
}

func (g *ports) drop(v []frame.Ref) {
	g.dropped += len(v)
	for _, r := range v {
		g.free(r)
	}
}

func (g *ports) free(r frame.Ref) {
	delete(g.names, r)
	g.pool.Free(r)
}

// rest lets all leave, and returns who did, by port.
func (g *ports) rest() (left []string) {
	var out [64]frame.Ref
	for _, p := range g.p {
		who := ""
		for at := p.Wake(0); at != frame.Never; at = p.Wake(at) {
			for _, r := range out[:p.Dequeue(at, out[:])] {
				who += g.names[r]
				g.free(r)
			}
		}
		left = append(left, who)
	}
	return left
}

// figure211 is the shared buffer of figure 2.11: a port for each queue.
const figure211 = `const B = 4 pkts; q1 = Queue(B); q2 = Queue(B); q3 = Queue(B); b = Buffer(B, q1, q2, q3);
out1 = Port(q1); out2 = Port(q2); out3 = Port(q3);`

// Where the buffer of several ports is full, the longest queue of them all gives up a
// packet, the one that the packet came to among equals.
func TestBufferOverPorts(t *testing.T) {
	g := newPorts(figure211, figure211, figure211)
	for i, step := range []struct {
		port int
		gone string
	}{{0, ""}, {0, ""}, {0, ""}, {0, ""}, {1, "d"}, {2, "c"}, {0, "g"}, {1, "h"}, {2, "i"}} {
		if gone := g.put(0, step.port, string(rune('a'+i)), 0); gone != step.gone {
			t.Errorf("packet %c at port %d drops %q, want %q", 'a'+i, step.port, gone, step.gone)
		}
	}
	if left := g.rest(); left[0] != "ab" || left[1] != "e" || left[2] != "f" {
		t.Errorf("what leaves by port: %q", left)
	}
	if free := g.pool.Available(); free != 8192 {
		t.Errorf("%d frames are lost", 8192-free)
	}
	// Of others that are as long the first port drops a packet, whichever came first.
	for i, port := range []int{1, 0, 1, 0} {
		g.put(0, port, string(rune('a'+i)), 0)
	}
	if gone := g.put(0, 2, "e", 0); gone != "d" {
		t.Errorf("%q goes from two queues of two", gone)
	}
}

// A packet that comes first, though others wait, does not cost a worker that is late what the
// link owes it.
func TestLateLinkOfASharedBuffer(t *testing.T) {
	const text = `q[1..2] = Queue(900 pkts); b = Buffer(900 pkts, q[1..2]); p1 = Port(100%, q[1]); p2 = Port(100%, q[2]); q.procPrio = value;`
	g := newPorts(text, text)
	g.late = 50 * frame.Microsecond
	g.p[0].Configure(0, g.config(text, 0))
	for range 100 {
		g.put(0, 0, "low", 1)
	}
	var out [64]frame.Ref
	if n := g.p[0].Dequeue(0, out[:]); n != 1 {
		t.Fatalf("%d packets leave at once", n)
	}
	g.put(50*frame.Microsecond, 0, "high", 9)
	if n := g.p[0].Dequeue(50*frame.Microsecond, out[:]); n < 60 || g.names[out[0]] != "high" {
		t.Errorf("%d packets leave, the first is %q: a link of 10 Gb/s owes 60 of 1024 bytes", n, g.names[out[0]])
	}
}

// Which queue drops a packet is the buffer's order, and which packet the queue's: the
// buffer reads what fronts of queues of other ports are worth.
func TestBufferOverPortsByValue(t *testing.T) {
	const text = `q[1..2] = Queue(9 pkts); b = Buffer(3 pkts, q[1..2]); p1 = Port(100%, q[1]); p2 = Port(100%, q[2]);
q.procPrio = value; q.admPrio = value; b.queuePrio = worth; worth(x, y) = x.hol.value > y.hol.value;`
	g := newPorts(text, text)
	gone := ""
	for i, step := range []struct {
		port  int
		value uint8
	}{{0, 9}, {0, 1}, {1, 5}, {1, 2}, {1, 20}, {0, 30}} {
		gone += g.put(0, step.port, string(rune('a'+i)), step.value)
	}
	// d: its queue's front is worth 5 and the other's 9. b: 9 against 20. c: 20 against 30.
	if left := g.rest(); gone != "dbc" || left[0] != "fa" || left[1] != "e" {
		t.Errorf("%q go, %q leave", gone, left)
	}
}

// A port changes its policy while frames wait: those still share the buffer, and one of
// them goes for a frame that comes to another port, or to this one when it has the
// policy again.
func TestBufferOverPortsSwapped(t *testing.T) {
	const other = `q = Queue(100 pkts);`
	g := newPorts(figure211, figure211, figure211)
	for _, name := range []string{"a", "b", "c", "d"} {
		g.put(0, 0, name, 0)
	}
	g.p[0].Configure(0, g.config(other, 0))
	g.put(0, 0, "e", 0)
	if gone := g.put(0, 1, "f", 0) + g.put(0, 2, "g", 0); gone != "dc" {
		t.Errorf("%q go", gone)
	}
	g.p[0].Configure(0, g.config(figure211, 0))
	if gone := g.put(0, 0, "h", 0); gone != "b" {
		t.Errorf("%q goes where the port has the policy again", gone)
	}
	// All have another one, and then this one: what waited keeps to its own buffer.
	for i := range g.p {
		g.p[i].Configure(0, g.config(other, 0))
	}
	g.keep(other)
	for i := range g.p {
		g.p[i].Configure(0, g.config(figure211, i))
	}
	gone := ""
	for _, name := range []string{"k", "l", "m", "n"} {
		gone += g.put(0, 0, name, 0)
	}
	if gone += g.put(0, 2, "o", 0); gone != "n" {
		t.Errorf("%q go where all have it anew", gone)
	}
	if left := g.rest(); left[0] != "aehklm" || left[1] != "f" || left[2] != "go" {
		t.Errorf("what leaves by port: %q", left)
	}
}

// keep is what a switch does when it has taken over a configuration.
func (g *ports) keep(texts ...string) {
	g.shared.Keep(func(yield func(*scheduler.PortConfig) bool) {
		for _, text := range texts {
			if c := g.config(text, 0); !yield(&c) {
				return
			}
		}
	})
}

// Ports change policies, are emptied, go and come back at random, with links that are
// late and such that are not. No frame is lost or sent twice, none leaves behind a
// younger one of its port, and the buffer accounts for what waits under the policy,
// whichever version it came under.
func TestBufferOverPortsKeepsAccount(t *testing.T) {
	texts := []string{
		`q1 = Queue(6KB); q2 = Queue(6KB); q3 = Queue(6KB); b = Buffer(6KB, q1, q2, q3); o1 = Port(q1); o2 = Port(q2); o3 = Port(q3);`,
		figure211,
		`q = Queue(3 pkts);`,
	}
	for _, late := range []frame.Time{0, 2000} {
		for seed := range uint64(4) {
			g := newPorts(texts[0], texts[0], texts[0])
			g.late = late
			text, swaps := make([]int, 3), make([]int, 3)
			configure := func(now frame.Time, i int) {
				if g.p[i] == nil {
					g.p[i] = scheduler.NewPort(g.a, g.config(texts[text[i]], i), 1)
				}
				g.p[i].Configure(now, g.config(texts[text[i]], i))
				g.settle(now, i)
				g.keep(texts[text[0]], texts[text[1]], texts[text[2]])
			}
			for i := range 3 {
				configure(0, i)
			}
			rng := frame.NewRand(seed)
			now, came, left, most := frame.Time(0), 0, 0, 0
			last := make([]int, 3)
			under := map[frame.Ref]*group{}
			var out [4]frame.Ref
			for step := range 20000 {
				now += frame.Time(rng.Uint32n(400))
				i := int(rng.Uint32n(3))
				frames, _ := g.p[i].QueueLen(0)
				if frames == 0 {
					swaps[i] = 0
				}
				switch what := rng.Uint32n(100); {
				case what < 4 && swaps[i] < 3: // a fourth version would make one of two
					text[i] = int(rng.Uint32n(3))
					swaps[i]++
					configure(now, i)
				case what == 4:
					for n := g.p[i].Flush(now, out[:]); n > 0; n = g.p[i].Flush(now, out[:]) {
						g.drop(out[:n])
					}
					g.settle(now, i)
				case what == 5:
					for n := g.p[i].Flush(now, out[:]); n > 0; n = g.p[i].Flush(now, out[:]) {
						g.drop(out[:n])
					}
					g.settle(now, i)
					g.p[i] = nil
					configure(now, i)
				default:
					came++
					r := g.pool.Alloc()
					m := g.a.Reset(r)
					m.Wire, m.OutPort, m.Rank = 100+rng.Uint32n(1400), uint16(i), int64(step)
					g.names[r] = "x"
					if text[i] < 2 {
						under[r] = g.shared.Get(0, texts[text[i]], nil).(*group)
					}
					g.p[i].Enqueue(now, r)
					g.settle(now, i)
				}
				for k, p := range g.p {
					n := p.Dequeue(now, out[:])
					for p.HasShed() {
						var shed [4]frame.Ref
						g.drop(shed[:p.TakeShed(shed[:])])
					}
					g.settle(now, k)
					left += n
					for _, r := range out[:n] {
						if at := int(g.a.Meta(r).Rank); at < last[k] {
							t.Fatalf("frame %d leaves behind %d", at, last[k])
						} else {
							last[k] = at
						}
						g.free(r)
					}
				}
				waits, bytes := map[*group]int64{}, map[*group]int64{}
				for r := range g.names {
					if at := under[r]; at != nil {
						waits[at]++
						bytes[at] += int64(g.a.Meta(r).Wire)
					}
				}
				for at, n := range waits {
					b := at.buffers[0]
					if late == 0 && (b.n != n || b.bytes != bytes[at] || b.size() > b.prog.size) {
						t.Fatalf("seed %d, step %d: %d frames of %d bytes wait, and the buffer has %d of %d", seed, step, n, bytes[at], b.n, b.bytes)
					}
					most = max(most, len(b.full))
					for _, q := range b.full {
						if n -= q.n; q.n == 0 {
							t.Fatalf("seed %d, step %d: a queue without packets is listed", seed, step)
						}
					}
					if late == 0 && n != 0 {
						t.Fatalf("seed %d, step %d: %d packets wait in queues that are not listed", seed, step, n)
					}
				}
				if held := 8192 - g.pool.Available(); came != left+g.dropped+len(g.names) || held != len(g.names) {
					t.Fatalf("seed %d, step %d: %d came, %d left, %d were dropped, %d wait, %d are held", seed, step, came, left, g.dropped, len(g.names), held)
				}
				for r := range under {
					if _, ok := g.names[r]; !ok {
						delete(under, r)
					}
				}
			}
			if left < 5000 || g.dropped < 500 || most < 3 {
				t.Errorf("%d left, %d were dropped, at most %d queues shared", left, g.dropped, most)
			}
		}
	}
}

// A worker compiles a text once, however many of its ports have it.
func TestPortsOfATextShareItsProgram(t *testing.T) {
	var shared scheduler.Shared
	programs := map[*Program]int{}
	for port := range 32 {
		o := Order{Text: twoKeys}
		if port >= 30 {
			o.Text = "q = Queue(20 pkts);"
		}
		programs[Held(o.New(scheduler.Env{Shared: &shared})).Program]++
	}
	if got := slices.Sorted(maps.Values(programs)); !slices.Equal(got, []int{2, 30}) {
		t.Errorf("32 ports of two texts have programs for %v of them, want 2 and 30", got)
	}
}
