package clocksync

import (
	"math/rand/v2"
	"testing"

	"gswitch/frame"
)

// ringSeeds is how many rings are tried: of each size some, and each link that fails.
const ringSeeds = uint64(6)

// newRing has a root, node 0, with measured bounds, on machines that are late. One of its two
// neighbours is the backup root. All others have the root by the other neighbour, and turn
// towards the backup root: when the root fails, devices with a second parent follow that one.
func newRing(t *testing.T, seed uint64) *line {
	l := &line{r: rand.New(rand.NewPCG(seed, 19)), busy: true, ring: true, cut: map[int]bool{}, dead: map[int]bool{}}
	n := 4 + int(seed%3)
	l.add(t, n, 0, func(i int, o *Options) { ringPlace(i, n, 1, 1, o) })
	return l
}

// ringPlace is the place of a node in a ring of n where a neighbour of the root, 1 or n-1, is
// the backup root.
func ringPlace(i, n, deputy int, epoch uint32, o *Options) {
	toDeputy, away := 0, 1 // ports of those between
	if deputy != 1 {
		toDeputy, away = 1, 0
	}
	o.Timeout1 = 3 * o.Interval // these machines are late by more than half of one in sum
	o.Epoch, o.Accept, o.Backup, o.Timeout2, o.Root = epoch, away, toDeputy, 0, false
	switch i {
	case 0:
		o.Root, o.Accept, o.Backup = true, NoPort, NoPort
	case deputy:
		o.Accept, o.Backup, o.Timeout2 = toDeputy, away, 2*o.Interval
	}
	o.Transmit = Ports{}
	o.Transmit.Add(0)
	o.Transmit.Add(1)
}

// all fails where a node that works is none of some states, or follows another root.
func (l *line) all(t *testing.T, seed uint64, root int, states ...State) {
	t.Helper()
	for i, n := range l.nodes {
		_, id, _ := n.Place()
		known := false
		for _, s := range states {
			known = known || n.State() == s
		}
		if !l.dead[i] && (!known && i != root || id != l.nodes[root].Identity()) {
			t.Errorf("seed %d, %v: node %d is %v, %+v", seed, l.now.Duration(), i, n.State(), n.Counts)
		}
	}
}

// held fails where a clock was beyond its bound, or where nothing was tried.
func (l *line) held(t *testing.T, seed uint64) {
	t.Helper()
	t.Logf("seed %d: %d nodes, %d samples, errors of %d ns and bounds of %d ns at most", seed, len(l.nodes), l.samples, l.worst, l.most)
	if l.broken != 0 || l.samples < 1000*len(l.nodes) || l.worst < frame.Microsecond {
		t.Errorf("seed %d: %d of %d samples are beyond the bound, the largest error is %d ns", seed, l.broken, l.samples, l.worst)
	}
}

// Where bounds are measured they hold through a turn and through the election of a root, in
// either order of the two links of the root that fail first: those below turn, or the backup
// root does. Machines are late by milliseconds all the while.
func TestMeasuredBoundHoldsThroughFailures(t *testing.T) {
	for seed := range ringSeeds {
		l := newRing(t, seed)
		l.run(150 * frame.Millisecond)
		l.all(t, seed, 0, Primary)
		fails := 0 // between the root and whom all but the backup root follow it by
		if seed%2 == 1 {
			fails = 1 // between the root and the backup root
		}
		l.cut[fails] = true
		l.run(l.now + 100*frame.Millisecond + frame.Time(l.r.Int64N(int64(lineInterval))))
		l.all(t, seed, 0, Primary, Backup)
		if n := l.nodes[1]; n.Turned() != (fails == 1) || l.nodes[2].Turned() != (fails == 0) {
			t.Errorf("seed %d: link %d fails, and the backup root is %v, the next one %v", seed, fails, n.State(), l.nodes[2].State())
		}
		l.dead[0] = true
		l.run(l.now + 150*frame.Millisecond)
		l.all(t, seed, 1, Backup)
		if n := l.nodes[1]; n.State() != Root || n.Counts.Elected != 1 {
			t.Errorf("seed %d: the backup root is %v, %+v", seed, n.State(), n.Counts)
		}
		l.held(t, seed)
	}
}

// Where bounds are measured they hold, and no device is without one, while another plan comes to
// one node after the other, of which some follow the old one for a while: the other
// neighbour of the root becomes the backup root, and every node changes its parent.
func TestMeasuredBoundHoldsThroughAPlan(t *testing.T) {
	for seed := range ringSeeds {
		l := newRing(t, seed)
		l.run(150 * frame.Millisecond)
		n := len(l.nodes)
		for _, i := range l.r.Perm(n) {
			o := l.nodes[i].Options()
			ringPlace(i, n, n-1, 2, &o)
			if err := l.nodes[i].Configure(l.local(i), o); err != nil {
				t.Fatal(err)
			}
			for until := l.now + frame.Time(l.r.Int64N(int64(lineInterval/2))); l.now < until; {
				l.run(l.now + 100*frame.Microsecond)
				for k, x := range l.nodes {
					if x.Uncertainty(l.local(k)) == Forever {
						t.Fatalf("seed %d: node %d knows no bound, %v", seed, k, x.State())
					}
				}
			}
		}
		l.run(l.now + 100*frame.Millisecond)
		l.all(t, seed, 0, Primary, Backup)
		for i, x := range l.nodes {
			if epoch, _, _ := x.Place(); epoch != 2 || x.Counts.FlipInvalid+x.Counts.Elected+x.Counts.Evicted != 0 {
				t.Errorf("seed %d: node %d belongs to plan %d, %+v", seed, i, epoch, x.Counts)
			}
		}
		l.held(t, seed)
	}
}
