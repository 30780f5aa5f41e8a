package clocksync

import (
	"math/rand/v2"
	"strings"
	"testing"

	"gswitch/clocksync/plan"
	"gswitch/frame"
)

// mutant is what devices of a network do otherwise than Sundial's. Each of these breaks the
// invariant that TestBoundHolds asserts: that no clock is further from the root's than it says.
type mutant struct {
	byTimer    bool       // every device forwards by a timer of its own, and not in reaction
	anyMessage bool       // any message ends the timeout
	lateBase   frame.Time // how long behind a turn the bound of the second parent's way comes
}

// raiseLate is a turn where the port is changed first, and the bound w.mutant.lateBase later.
func (w *network) raiseLate(n *node, before frame.Time) {
	late := n.cfg.EpsBackup
	n.base, n.cfg.EpsBackup = before, n.cfg.EpsBase
	w.at(w.now+w.mutant.lateBase, func() { n.base, n.cfg.EpsBackup = max(n.base, late), late })
}

// ring is a ring of switches and its plan. The nodes of all but one link are below each
// other in one long way, and most second parents are below those that turn to them.
func ring(t *testing.T, n int) (*plan.Graph, *plan.Plan) {
	t.Helper()
	g := &plan.Graph{Nodes: n}
	for i := range n {
		g.Links = append(g.Links, [2]int{i, (i + 1) % n})
	}
	p, err := plan.Find(g, 0)
	if err != nil {
		t.Fatal(err)
	}
	return g, p
}

// Forwarding by a timer: a node that is cut off from its parent turns to one that is below it,
// which goes on to receive from it, and so each takes the time of the other for the root's.
// With messages in reaction that one has received nothing either, and turned.
func TestForwardingByTimerBreaksIt(t *testing.T) {
	g, p := ring(t, 8)
	cut := -1
	for y, x := range p.Backup {
		if y != p.Root && p.Primary[x] == y && p.Primary[y] != p.Root {
			cut = y
		}
	}
	if cut < 0 {
		t.Fatalf("nobody has a second parent below itself: %+v", p)
	}
	for _, mutated := range []bool{false, true} {
		broken := 0
		for seed := range uint64(3) {
			w := newNetwork(t, seed, g, p)
			w.mutant.byTimer = mutated
			w.run(2*frame.Millisecond, 50*us)
			if w.broken != 0 {
				t.Fatalf("mutated %t, seed %d: %d samples beyond the bound before anything fails", mutated, seed, w.broken)
			}
			w.fail(plan.Failure{Links: [][2]int{{p.Primary[cut], cut}}})
			w.run(w.now+10*frame.Millisecond, 50*us)
			if broken += w.broken; !mutated && w.unsynced() != 0 {
				t.Errorf("seed %d: %d nodes follow nobody", seed, w.unsynced())
			}
		}
		if (broken > 0) != mutated {
			t.Errorf("mutated %t: %d samples beyond the bound", mutated, broken)
		}
	}
}

// Any message ends the timeout: a node whose parent is gone does not turn as long as any neighbour
// sends to it. Its bound grows and is right, so this alone costs recovery, and not the bound. But
// nothing holds its clock against another any more: when its oscillator breaks as well, which
// any other node finds out by two messages of each parent, it is wrong without end.
func TestClearingTheTimeoutByAnyMessageBreaksIt(t *testing.T) {
	g, p := fabric(t)
	cut := 0
	for y, x := range p.Primary { // a device to which another neighbour sends as well
		if x >= 0 && !p.Leaf[y] && x != p.Root && p.Backup[y] != x {
			cut = y
		}
	}
	for _, mutated := range []bool{false, true} {
		for _, oscillator := range []bool{false, true} {
			w := newNetwork(t, 1, g, p)
			w.mutant.anyMessage = mutated
			w.run(2*frame.Millisecond, 50*us)
			w.fail(plan.Failure{Links: [][2]int{{p.Primary[cut], cut}}})
			n := w.nodes[cut]
			if oscillator {
				before := n.local(w.now)
				n.ppb = 5_000_000
				n.phase += before - n.local(w.now)
				// Until two messages have come by the second parent it cannot know (section 3.4.4).
				w.apart = n
			}
			w.run(w.now+5*DefaultInterval, 10*us)
			w.apart = nil
			w.run(w.now+5*frame.Millisecond, 10*us)
			if (w.broken > 0) != (mutated && oscillator) {
				t.Errorf("mutated %t, oscillator broken %t: %d samples beyond the bound", mutated, oscillator, w.broken)
			}
			if want := map[bool]State{false: Backup, true: Primary}[mutated]; !oscillator && (n.State() != want || mutated != (n.Uncertainty(n.local(w.now)) > us)) {
				t.Errorf("mutated %t: it is %v, and uncertain by %d ns", mutated, n.State(), n.Uncertainty(n.local(w.now)))
			}
			if oscillator && !mutated && n.State() != Evicted {
				t.Errorf("the node with the broken oscillator is %v", n.State())
			}
		}
	}
}

// The bound of the longer way comes behind the turn: as soon as a message has come by that
// way a clock says the bound of one hop, and has the error of eleven.
func TestRaisingTheBoundLateBreaksIt(t *testing.T) {
	g, p := ring(t, 12)
	cut := 0
	for y, x := range p.Primary { // the one next to the root of which most are below
		if x == p.Root && y != p.BackupRoot {
			cut = y
		}
	}
	for _, late := range []frame.Time{0, 200 * us} {
		broken := 0
		for seed := range uint64(3) {
			w := newNetwork(t, seed, g, p)
			w.mutant.lateBase = late
			w.skew = 2 // as in TestBoundHolds
			w.run(2*frame.Millisecond, 10*us)
			w.fail(plan.Failure{Links: [][2]int{{p.Root, cut}}})
			w.run(w.now+frame.Millisecond, 5*us)
			broken += w.broken
			if s := w.nodes[cut].State(); s != Backup {
				t.Errorf("late by %v, seed %d: the node is %v", late.Duration(), seed, s)
			}
		}
		if (broken > 0) != (late > 0) {
			t.Errorf("late by %v: %d samples beyond the bound", late.Duration(), broken)
		}
	}
}

// nearest is the plan of shortest ways, where any neighbour that is neither the parent nor the
// root is good enough for a second parent. Its bounds are no matter: those behind a failure
// are as large as ways can be.
func nearest(g *plan.Graph, good *plan.Plan, r *rand.Rand) *plan.Plan {
	near := make([][]int, g.Nodes)
	for _, l := range g.Links {
		near[l[0]], near[l[1]] = append(near[l[0]], l[1]), append(near[l[1]], l[0])
	}
	p := &plan.Plan{Root: good.Root, BackupRoot: good.BackupRoot, Leaf: good.Leaf, Primary: make([]int, g.Nodes), Backup: make([]int, g.Nodes), Depth: make([]int, g.Nodes), BackupDepth: make([]int, g.Nodes)}
	for i := range p.Primary {
		p.Primary[i], p.Backup[i], p.BackupDepth[i] = -1, -1, g.Nodes
	}
	queue := []int{p.Root}
	for k := 0; k < len(queue); k++ {
		x := queue[k]
		order := near[x]
		if x == p.Root { // the backup root first
			order = append([]int{p.BackupRoot}, order...)
		}
		for _, y := range order {
			if y != p.Root && p.Primary[y] < 0 {
				p.Primary[y], p.Depth[y] = x, p.Depth[x]+1
				queue = append(queue, y)
			}
		}
	}
	for y := range near {
		if p.Leaf[y] {
			p.Backup[y] = p.Primary[y]
		}
		for _, k := range r.Perm(len(near[y])) {
			if x := near[y][k]; y != p.Root && !p.Leaf[y] && !p.Leaf[x] && x != p.Root && x != p.Primary[y] {
				p.Backup[y] = x
			}
		}
	}
	return p
}

// Any neighbour as a second parent. Where those of a subtree lead round within it (against
// property 1, no-loop) it is left without a root, and its bounds grow and are right: since
// messages are sent in reaction only, none is sent in the loop. Where that subtree is the backup root's
// (property 5, root failure detection) a failed link makes it a second root beside the working
// one. It reports no error at all of its clock, as do those that follow it.
func TestAnyNeighbourAsBackupBreaksIt(t *testing.T) {
	g, good := fabric(t)
	if d := plan.Verify(g, good); len(d) != 0 {
		t.Fatal(d[0])
	}
	try := func(p *plan.Plan, f plan.Failure) (w *network) {
		w = newNetwork(t, 1, g, p)
		w.reference = w.nodes[p.Root]
		w.run(2*frame.Millisecond, 50*us)
		w.fail(f)
		w.run(w.now+10*frame.Millisecond, 50*us)
		return w
	}
	second, none := 0, 0
	for seed := uint64(0); seed < 200 && (second == 0 || none == 0); seed++ {
		p := nearest(g, good, rand.New(rand.NewPCG(seed, 8)))
		for _, d := range plan.Verify(g, p) {
			if len(d.Failure.Links) == 0 {
				continue
			}
			switch {
			case strings.Contains(d.Why, "second root") && second == 0:
				second++
				if w := try(p, d.Failure); w.broken == 0 || w.nodes[p.BackupRoot].State() != Root || w.nodes[p.Root].State() != Root {
					t.Errorf("%v: %d samples beyond the bound, the backup root is %v", d, w.broken, w.nodes[p.BackupRoot].State())
				}
			case strings.Contains(d.Why, "no root") && d.Failure.Links[0] != [2]int{p.Root, p.BackupRoot} && none == 0:
				none++
				if w := try(p, d.Failure); w.broken != 0 || w.nodes[d.Node].State() != Holdover {
					t.Errorf("%v: %d samples beyond the bound, it is %v", d, w.broken, w.nodes[d.Node].State())
				}
			default:
				continue
			}
			if w := try(good, d.Failure); w.broken != 0 || w.unsynced() != 0 || w.nodes[good.BackupRoot].State() == Root {
				t.Errorf("the right plan, %s: %d samples beyond the bound, %d nodes follow nobody", d.Failure.What, w.broken, w.unsynced())
			}
		}
	}
	if second == 0 || none == 0 {
		t.Errorf("%d plans with a second root, %d that leave somebody without one: the test sees nothing", second, none)
	}
}
