package clocksync

import (
	"math/rand/v2"
	"testing"

	"gswitch/clocksync/plan"
	"gswitch/frame"
	"gswitch/sim"
)

// network is a fabric of devices in virtual time: oscillators that drift, stamps
// with noise, links with delays, failures. It has the true time.
type network struct {
	t      *testing.T
	r      *rand.Rand
	now    frame.Time
	nodes  []*node
	events sim.Agenda
	mutant mutant

	skew  frame.Time // by which each hop's stamps are wrong, all the same way
	loses *node      // one message to this node is lost once it has turned
	lost  bool       // it was
	apart *node      // whose error does not count
	// reference is whose clock all others are held against, whomever they follow. Nil: that
	// of the root that each follows.
	reference *node

	worst    frame.Time // largest error of a clock that is bounded
	most     frame.Time // largest bound
	broken   int        // times that an error exceeded its bound
	messages int
	samples  int
}

type node struct {
	*Device
	ppb      int64
	phase    frame.Time
	peers    []int // by port
	delay    []frame.Time
	down     []bool // by port
	dead     bool
	lastSent frame.Time
	sentAt   [][]frame.Time // by port
}

// local is a node's own time at a true instant.
func (n *node) local(t frame.Time) frame.Time {
	return t + n.phase + frame.Time(int64(t)/1000*n.ppb/1_000_000)
}

// truth inverts local, to a few nanoseconds, later rather than earlier.
func (n *node) truth(l frame.Time) frame.Time {
	if l == frame.Never {
		return l
	}
	t := l - n.phase
	t -= frame.Time(int64(t) / 1000 * n.ppb / 1_000_000)
	for n.local(t) < l {
		t++
	}
	return t
}

func (w *network) at(t frame.Time, do func()) {
	w.events.Put(sim.Entry{At: t, Do: func(frame.Time) { do() }})
}

// firstID is the identity of node 0; the others follow.
const firstID = 100

// newNetwork makes the devices of a planned graph. Oscillators are within 100 ppm.
func newNetwork(t *testing.T, seed uint64, g *plan.Graph, p *plan.Plan) *network {
	w := &network{t: t, r: rand.New(rand.NewPCG(seed, 6))}
	for i := range g.Nodes {
		w.nodes = append(w.nodes, &node{Device: NewDevice(uint64(i) + firstID), ppb: w.r.Int64N(200_001) - 100_000, phase: frame.Time(w.r.Int64N(1e9))})
	}
	for _, l := range g.Links {
		a, b := w.nodes[l[0]], w.nodes[l[1]]
		d := 50 + frame.Time(w.r.Int64N(450))
		for _, e := range []struct {
			n    *node
			peer int
		}{{a, l[1]}, {b, l[0]}} {
			e.n.Delay(len(e.n.peers)).Fix(d)
			e.n.peers, e.n.delay, e.n.down = append(e.n.peers, e.peer), append(e.n.delay, d), append(e.n.down, false)
			e.n.sentAt = append(e.n.sentAt, nil)
		}
	}
	w.configure(p, 1)
	for i := range w.nodes {
		w.arm(i)
	}
	return w
}

func (w *network) port(i, peer int) int {
	for p, x := range w.nodes[i].peers {
		if x == peer && !w.nodes[i].down[p] {
			return p
		}
	}
	return NoPort
}

func (w *network) configure(p *plan.Plan, epoch uint32) {
	children := p.Children()
	for i, n := range w.nodes {
		c := Config{Epoch: epoch, Root: i == p.Root, Accept: NoPort, Backup: NoPort, Interval: DefaultInterval, Timeout1: DefaultTimeout1,
			EpsBase: frame.Time(p.Depth[i]) * EpsHop, EpsBackup: frame.Time(p.BackupDepth[i]) * EpsHop}
		if i == p.BackupRoot {
			c.Timeout2 = DefaultTimeout2
		}
		if i != p.Root {
			c.Accept = w.port(i, p.Primary[i])
			if !p.Leaf[i] {
				c.Backup = w.port(i, p.Backup[i])
			}
		}
		for _, y := range children[i] {
			c.Transmit.Add(w.port(i, y))
		}
		if err := n.Configure(n.local(w.now), c); err != nil {
			w.t.Fatal(err)
		}
	}
}

// arm lets a node's timers run.
func (w *network) arm(i int) {
	n := w.nodes[i]
	due := n.truth(n.Due())
	if w.mutant.byTimer && due == frame.Never {
		due = w.now + 90*us
	}
	if due == frame.Never {
		return
	}
	w.at(max(due, w.now), func() {
		if n.dead {
			return
		}
		local := n.local(w.now)
		base, turned := n.base, n.flipped
		if n.Advance(local) {
			w.send(i)
		}
		if w.mutant.lateBase > 0 && n.flipped && !turned {
			w.raiseLate(n, base)
		}
		if w.mutant.byTimer && n.State() != Root && n.synced && w.now-n.lastSent >= 90*us {
			n.came = local // as if there were reason
			w.send(i)
		}
		if n.truth(n.Due()) > w.now {
			w.arm(i)
		} else {
			w.at(w.now+1, func() { w.arm(i) })
		}
	})
}

// send sends to all ports of Transmit. Both stamps of a message have noise of up
// to 2 ns, so that a hop stays below 5 with what is rounded.
func (w *network) send(i int) {
	n := w.nodes[i]
	n.lastSent = w.now
	n.Transmit().Each(func(p int) {
		out := n.Out(n.local(w.now) + frame.Time(w.r.IntN(3)-1))
		peer := n.peers[p]
		n.sentAt[p] = append(n.sentAt[p], w.now)
		w.messages++
		w.at(w.now+n.delay[p], func() {
			to := w.nodes[peer]
			q := -1
			for k, x := range to.peers {
				if x == i && to.delay[k] == n.delay[p] {
					q = k
				}
			}
			if n.down[p] || to.down[q] || to.dead {
				return
			}
			if to == w.loses && to.flipped && q == to.accept && !w.lost {
				w.lost = true
				return
			}
			local := to.local(w.now)
			before := to.Due()
			forward := to.Sync(local, local+w.skew+frame.Time(w.r.IntN(3)-1), q, out)
			if w.mutant.anyMessage && to.timeoutAt != frame.Never {
				to.timeoutAt = local + DefaultTimeout1
			}
			if forward && !w.mutant.byTimer {
				w.send(peer)
			}
			if to.Due() != before {
				w.arm(peer)
			}
		})
	})
}

// run goes on until `end`, looking at every clock each `step`.
func (w *network) run(end, step frame.Time) {
	for t := w.now + step; t <= end; t += step {
		w.at(t, w.sample)
	}
	for w.events.Next() <= end {
		e := w.events.Take()
		w.now = e.At
		e.Do(w.now)
	}
	w.now = end
}

// sample holds every clock's error against its bound: its difference to the root that it
// follows, though that may have failed since, is at most what Uncertainty says.
func (w *network) sample() {
	for _, n := range w.nodes {
		_, of, _ := n.Place()
		l := n.local(w.now)
		eps := n.Uncertainty(l)
		if n.dead || n == w.apart || eps == Forever {
			continue
		}
		r := w.reference
		if r == nil {
			r = w.nodes[of-firstID]
		}
		err := n.At(l) - r.At(r.local(w.now))
		if err < 0 {
			err = -err
		}
		w.samples++
		w.worst, w.most = max(w.worst, err), max(w.most, eps)
		if err > eps {
			w.broken++
		}
	}
}

// root is the only root, -1 if there is none or two.
func (w *network) root() int {
	found := -1
	for i, n := range w.nodes {
		if !n.dead && n.State() == Root {
			if found >= 0 {
				return -1
			}
			found = i
		}
	}
	return found
}

func (w *network) fail(f plan.Failure) {
	for _, n := range f.Nodes {
		w.nodes[n].dead = true
	}
	for _, l := range f.Links {
		w.nodes[l[0]].down[w.port(l[0], l[1])] = true
		w.nodes[l[1]].down[w.port(l[1], l[0])] = true
	}
}

// unsynced counts nodes that are left and receive no sync messages.
func (w *network) unsynced() (n int) {
	for _, x := range w.nodes {
		if s := x.State(); !x.dead && (s == Unsynced || s == Holdover || s == Evicted) {
			n++
		}
	}
	return n
}

func fabric(t *testing.T) (*plan.Graph, *plan.Plan) {
	t.Helper()
	// A fat tree of four pods, with two hosts below each edge switch.
	g := &plan.Graph{Nodes: 20}
	for p := range 4 {
		for i := range 2 {
			for j := range 2 {
				g.Links = append(g.Links, [2]int{4 + 4*p + i, 4 + 4*p + 2 + j}, [2]int{2*i + j, 4 + 4*p + i})
			}
		}
	}
	for p := range 4 {
		for j := range 4 {
			g.Links = append(g.Links, [2]int{4 + 4*p + 2 + j/2, g.Nodes})
			g.Nodes++
		}
	}
	pl, err := plan.Find(g, 0)
	if err != nil {
		t.Fatal(err)
	}
	return g, pl
}

// The invariant: whatever single thing fails, no clock is ever further from the
// root's than it says, and every device receives a root again within 365 us and the way.
func TestBoundHolds(t *testing.T) {
	g, p := fabric(t)
	failures := plan.Failures(g)
	for seed := range uint64(20) {
		w := newNetwork(t, seed, g, p)
		w.skew = frame.Time(seed%3) - 1 // with the noise of both stamps and what is rounded less than EpsHop
		w.skew *= 2
		w.run(2*frame.Millisecond, 50*us)
		if w.unsynced() != 0 || w.root() != p.Root {
			t.Fatalf("seed %d: %d nodes follow nobody before anything failed", seed, w.unsynced())
		}
		f := failures[w.r.IntN(len(failures))]
		if seed < 4 {
			f = plan.Failure{What: "the root", Nodes: []int{p.Root}}
		}
		leaf := false
		for _, l := range f.Links {
			leaf = leaf || p.Leaf[l[1]]
		}
		for _, n := range f.Nodes {
			leaf = leaf || n >= 4 && !p.Leaf[n] && (n-4)%4 >= 2 // its hosts have no other way
		}
		w.fail(f)
		w.run(w.now+600*us, 3*us)
		if w.root() < 0 {
			t.Errorf("seed %d, %s: no root, or two", seed, f.What)
		}
		if n := w.unsynced(); n != 0 && !leaf {
			t.Errorf("seed %d, %s: %d nodes follow nobody", seed, f.What, n)
		}
		w.run(w.now+5*frame.Millisecond, 20*us)
		if w.broken != 0 {
			t.Fatalf("seed %d, %s: %d of %d samples beyond the bound, %v at worst", seed, f.What, w.broken, w.samples, w.worst)
		}
		if w.samples < 3000 || w.worst == 0 {
			t.Fatalf("seed %d: %d samples, an error of %d at worst: nothing was measured", seed, w.samples, w.worst)
		}
	}
}

// At most one message for each port and interval of the root, in any state, and
// none in the loop while there is no root.
func TestMessagesDoNotMultiply(t *testing.T) {
	g, p := fabric(t)
	w := newNetwork(t, 1, g, p)
	w.run(5*frame.Millisecond, frame.Millisecond)
	w.fail(plan.Failure{Nodes: []int{p.Root}})
	w.run(w.now+10*us, frame.Millisecond)
	before := w.messages
	w.run(w.now+250*us, frame.Millisecond)
	if w.messages != before {
		t.Errorf("%d messages without a root", w.messages-before)
	}
	w.run(w.now+5*frame.Millisecond, frame.Millisecond)
	for i, n := range w.nodes {
		for port, v := range n.sentAt {
			for k := 1; k < len(v); k++ {
				if v[k]-v[k-1] < 80*us {
					t.Fatalf("node %d port %d: messages %v apart", i, port, (v[k] - v[k-1]).Duration())
				}
			}
		}
	}
}

// The link between root and backup root fails, in any phase, with a lost message
// as well: it receives the root by its second parent and never takes over.
func TestBackupRootIsNotFooled(t *testing.T) {
	g, p := fabric(t)
	for seed := range uint64(1000) {
		w := newNetwork(t, seed, g, p)
		w.loses = w.nodes[p.BackupRoot]
		w.run(300*us+frame.Time(w.r.IntN(90_000)), frame.Millisecond)
		w.fail(plan.Failure{Links: [][2]int{{p.Root, p.BackupRoot}}})
		w.run(w.now+frame.Millisecond, frame.Millisecond)
		if n := w.nodes[p.BackupRoot]; !w.lost || n.Counts.Elected != 0 || n.State() != Backup || w.root() != p.Root {
			t.Fatalf("seed %d: %v, elected %d times, a message lost: %t", seed, n.State(), n.Counts.Elected, w.lost)
		}
	}
}

// An inner node's oscillator breaks: it evicts itself, its children turn, and no
// other clock is beyond its bound.
func TestBrokenOscillator(t *testing.T) {
	g, p := fabric(t)
	for seed := range uint64(10) {
		w := newNetwork(t, seed, g, p)
		w.run(2*frame.Millisecond, frame.Millisecond)
		broken := p.Primary[p.Primary[g.Nodes-1]] // above an edge switch
		n := w.nodes[broken]
		if broken == p.Root || broken == p.BackupRoot {
			broken = p.Primary[g.Nodes-1]
			n = w.nodes[broken]
		}
		w.apart = n
		before := n.local(w.now)
		n.ppb = 5_000_000
		n.phase += before - n.local(w.now)
		w.run(w.now+3*frame.Millisecond, 10*us)
		if n.State() != Evicted {
			t.Errorf("seed %d: the broken node is %v", seed, n.State())
		}
		for i, x := range w.nodes {
			if i != broken && x.State() == Evicted {
				t.Errorf("seed %d: node %d evicted itself", seed, i)
			}
		}
		w.run(w.now+2*frame.Millisecond, 10*us)
		if w.broken != 0 {
			t.Errorf("seed %d: %d of %d samples of the others beyond the bound", seed, w.broken, w.samples)
		}
	}
}

// The link between root and backup root fails, and later the root: the backup root has turned
// before, and takes over nevertheless. No clock is beyond its bound.
func TestRootFailsBehindATurn(t *testing.T) {
	g, p := fabric(t)
	for seed := range uint64(20) {
		w := newNetwork(t, seed, g, p)
		w.run(2*frame.Millisecond+frame.Time(w.r.IntN(90_000)), 10*us)
		w.fail(plan.Failure{Links: [][2]int{{p.Root, p.BackupRoot}}})
		w.run(w.now+2*frame.Millisecond+frame.Time(w.r.IntN(90_000)), 10*us)
		if n := w.nodes[p.BackupRoot]; n.State() != Backup {
			t.Fatalf("seed %d: the backup root is %v", seed, n.State())
		}
		w.fail(plan.Failure{Nodes: []int{p.Root}})
		w.run(w.now+5*frame.Millisecond, 10*us)
		if w.root() != p.BackupRoot || w.broken != 0 {
			t.Errorf("seed %d: the root is %d, and %d of %d samples are beyond the bound", seed, w.root(), w.broken, w.samples)
		}
	}
}
