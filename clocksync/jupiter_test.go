package clocksync

import (
	"testing"

	"gswitch/clocksync/plan"
)

// The clocks of the paper's simulation (section 3.6.2) in virtual time: the 2048 switches of
// the fabric of 88,064 nodes that package plan plans, and of the 84 hosts of each rack, which
// have one link and are all alike, one for each block. While nothing fails no clock is
// uncertain by 100 ns; when the root fails none is by more than the paper's 178 ns; and none is
// ever further from the root's than it says.
func TestClocksOfJupiter(t *testing.T) {
	const blocks, middles, racks, spines = 64, 8, 16, 512
	g := &plan.Graph{Nodes: spines}
	for range blocks {
		middle, rack := g.Nodes, g.Nodes+middles
		g.Nodes += middles + racks + 1
		for m := range middles {
			for s := range spines / middles {
				g.Links = append(g.Links, [2]int{m*(spines/middles) + s, middle + m})
			}
			for k := range racks {
				g.Links = append(g.Links, [2]int{middle + m, rack + k})
			}
		}
		g.Links = append(g.Links, [2]int{rack, g.Nodes - 1})
	}
	p, err := plan.Find(g, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []plan.Failure{
		{What: "a link of the root", Links: [][2]int{{p.Root, p.BackupRoot}}},
		{What: "the root", Nodes: []int{p.Root}},
	} {
		w := newNetwork(t, 1, g, p)
		w.run(500*us, 10*us)
		normal := w.most
		w.fail(f)
		w.run(w.now+700*us, 10*us)
		if normal >= 100 || w.most <= normal || w.most > 178 {
			t.Errorf("%s: uncertain by %d ns, and by %d ns when it fails", f.What, normal, w.most)
		}
		if w.broken != 0 || w.worst == 0 || w.unsynced() != 0 || w.root() < 0 {
			t.Errorf("%s: %d of %d samples beyond the bound, %d nodes follow nobody", f.What, w.broken, w.samples, w.unsynced())
		}
		if elected := w.root() != p.Root; elected != (len(f.Nodes) > 0) {
			t.Errorf("%s: another root: %t", f.What, elected)
		}
		t.Logf("%d nodes, %s: uncertain by %d ns, and by %d ns when it fails; the largest error is %d ns", g.Nodes, f.What, normal, w.most, w.worst)
	}
}
