package vnet

import (
	"testing"
	"time"

	"gswitch/config"
	"gswitch/fabric/pauses"
	"gswitch/frame"
)

// Three hosts behind the left switch send to one behind the right: the port to
// that host is where it begins, the right switch pauses the left one for it, and
// the left one its hosts.
func TestPauseTraceFindsTheCulprit(t *testing.T) {
	topo := topology(t, "dumbbell(3, 1)", 40*gig, 40*gig, time.Microsecond)
	for l := range topo.Links {
		if k := &topo.Links[l]; topo.Nodes[k.A.Node].Name == "h4" || topo.Nodes[k.B.Node].Name == "h4" {
			k.Rate = 10 * gig
		}
	}
	c := &Config{Topology: topo, PFC: PFC{On: true}, Buffer: config.NetworkBuffer{Size: 4 << 20, LosslessRoom: config.LosslessRoom{XOFF: 40_000}, XONOffset: 4000}, PauseLog: 1000}
	c.Host.Class, c.Host.AckClass = 3, InClass(7)
	n := build(t, c)
	for i := range 3 {
		start(t, n, Flow{Src: i, Dst: 3, Bytes: 1_000_000})
	}
	n.advance(t, frame.Millisecond)
	tr := n.PauseTrace(n.Engine.Now())
	if len(tr.Roots) == 0 || tr.Forgotten != 0 {
		t.Fatalf("%+v", tr)
	}
	root := tr.Roots[0]
	if root.Why != pauses.Congestion || root.At.String() != "s2>h4" || root.Class != 3 {
		t.Fatalf("it began at %+v", root)
	}
	if len(root.Branches) != 1 || root.Branches[0].By != "s2>s1" || root.Branches[0].At.String() != "s1>s2" {
		t.Fatalf("first came %+v", root.Branches[0])
	}
	hosts := map[string]bool{}
	for _, b := range root.Branches[0].Branches {
		if b.By != "s1>"+b.At.Node || b.Seconds <= 0 || b.Held < 40_000 {
			t.Errorf("%+v", b)
		}
		hosts[b.At.Node] = true
	}
	if len(hosts) != 3 || !hosts["h1"] || !hosts["h2"] || !hosts["h3"] {
		t.Errorf("paused hosts: %v", hosts)
	}
	// What the edges say is what the switches counted.
	all := n.Pauses(n.Engine.Now())
	count, sum := 0, 0.0
	for _, e := range tr.Edges {
		count += e.Count
		sum += e.Seconds
	}
	if uint64(count) != all.Requests || sum < all.Time.Seconds()*0.99 || sum > all.Time.Seconds()*1.01 {
		t.Errorf("%d pauses of %v s, the switches counted %d of %v s", count, sum, all.Requests, all.Time.Seconds())
	}
	// Remembering changes nothing else.
	c.PauseLog = 0
	m := build(t, c)
	for i := range 3 {
		start(t, m, Flow{Src: i, Dst: 3, Bytes: 1_000_000})
	}
	m.advance(t, frame.Millisecond)
	if m.Engine.Digest() != n.Engine.Digest() {
		t.Error("another history with the log than without")
	}
}
