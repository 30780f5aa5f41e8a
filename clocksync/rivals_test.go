package clocksync

import (
	"testing"

	"gswitch/clocksync/plan"
	"gswitch/frame"
)

// Another root than the one that is followed is counted, by whatever port it is named: at
// once by the same plan, and by another plan once that should have come to all. It moves no
// clock.
func TestSecondRoot(t *testing.T) {
	const late = planIntervals * DefaultInterval
	for _, c := range []struct {
		name  string
		epoch uint32 // of the other root
		root  uint64
		port  int
		apart frame.Time // between its two messages
		count uint64
	}{
		{"the same root by the second parent", 5, 1, 1, 90 * us, 0},
		{"another by the accepted port", 5, 2, 0, 90 * us, 2},
		{"another by the second parent", 5, 2, 1, 90 * us, 2},
		{"a host behind any port", 5, 2, 77, 90 * us, 2},
		{"a plan that is on its way", 6, 2, 77, late, 0},
		{"one that never comes here", 6, 2, 77, late + 1, 1},
		{"one that is left somewhere for a while", 4, 2, 77, late, 0},
		{"one that somebody goes on to follow", 4, 2, 77, late + 1, 1},
	} {
		d := device(t, 15, 30, 0)
		d.epoch = 5
		before := d.Clock
		for _, at := range []frame.Time{10 * us, 10*us + c.apart} {
			if d.Sync(at, at, c.port, Message{Time: at, Epoch: c.epoch, Root: c.root}) {
				t.Errorf("%s: the message is passed on", c.name)
			}
		}
		if d.Counts.SecondRoot != c.count || d.Clock != before || c.count > 0 && d.Rival() != c.root {
			t.Errorf("%s: %+v, the last is %d", c.name, d.Counts, d.Rival())
		}
	}
	// A device that does not follow another one yet has no first root.
	d := NewDevice(7)
	d.Sync(0, 0, 3, Message{Root: 2})
	if d.Counts.SecondRoot != 0 {
		t.Errorf("%+v", d.Counts)
	}
}

// Two nodes of a fabric are made the root by the same plan, and both get to know, as do nodes
// between those that follow the one and the other. Where a single root fails, and another
// one takes over, no device sees two.
func TestTwoRoots(t *testing.T) {
	g, p := fabric(t)
	for seed := range uint64(10) {
		w := newNetwork(t, seed, g, p)
		w.run(2*frame.Millisecond, 10*us)
		second := p.BackupRoot
		n := w.nodes[second]
		if seed%2 == 0 {
			w.fail(plan.Failure{Nodes: []int{p.Root}})
		} else if err := n.Configure(n.local(w.now), Config{Epoch: 1, Root: true, Accept: NoPort, Backup: NoPort, Transmit: *n.Transmit(), Interval: DefaultInterval}); err != nil {
			t.Fatal(err)
		} else {
			w.arm(second)
		}
		w.run(w.now+3*frame.Millisecond, 10*us)
		seen := 0
		for i, x := range w.nodes {
			if x.Counts.SecondRoot > 0 {
				seen++
			}
			if other := x.Rival(); x.Counts.SecondRoot > 0 && other != firstID+uint64(p.Root) && other != firstID+uint64(second) {
				t.Errorf("seed %d: node %d reports %d", seed, i, other)
			}
		}
		if two := seed%2 == 1; two != (seen > 0) {
			t.Errorf("seed %d: two roots: %t, and %d nodes have seen two", seed, two, seen)
		}
		if w.broken != 0 {
			t.Errorf("seed %d: %d of %d samples are beyond the bound", seed, w.broken, w.samples)
		}
	}
}
