package query

import (
	"testing"

	"gswitch/control/api"
	"gswitch/fabric"
	"gswitch/fabric/pauses"
	"gswitch/frame"
)

func topology(t *testing.T, generator string) network {
	t.Helper()
	top, err := fabric.Load(generator, fabric.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	return network{top}
}

// port is the number of the port of a node towards another.
func (t network) port(node, to string) uint32 {
	i, _ := t.Lookup(node)
	for p := range t.Nodes[i].Links {
		if t.Nodes[t.Peer(i, p).Node].Name == to {
			return uint32(p)
		}
	}
	panic(node + " has no port to " + to)
}

// Two daemons whose clocks read the machine's make one tree; what a switch
// reports its own requests is not reported again by the one that was asked, and a
// host that asks is known from the switch alone.
func TestJoin(t *testing.T) {
	n := topology(t, "dumbbell:2,2")
	const s = 1_000_000_000
	answers := []*api.Pauses{
		{Now: 20 * s, Forgotten: 3, Pauses: []*api.Pause{
			{Switch: "s1", Number: n.port("s1", "h1"), Class: 3, Asked: true, From: 12 * s, Held: 5000, Causes: []*api.PauseCause{{Number: n.port("s1", "s2"), Bytes: 5000}}},
			{Switch: "s1", Number: n.port("s1", "s2"), Class: 3, From: 11 * s, To: 19 * s}, // s2 says that itself
			{Switch: "elsewhere", Number: 1, Class: 3, Asked: true, From: 1 * s},
		}},
		{Now: 20*s + 1000, Pauses: []*api.Pause{
			{Switch: "s2", Number: n.port("s2", "s1"), Class: 3, Asked: true, From: 11 * s, To: 19 * s, Held: 7000, Causes: []*api.PauseCause{{Number: n.port("s2", "h3"), Bytes: 7000}}},
			{Switch: "s2", Number: n.port("s2", "h3"), Class: 3, From: 10 * s, To: 19 * s},
		}},
	}
	tr := join(n, answers, clocks)
	if len(tr.Pauses) != 3 || tr.Forgotten != 3 || tr.To != 0 || tr.From > -10 || tr.From < -10.001 {
		t.Fatalf("%+v", tr)
	}
	if len(tr.Roots) != 1 || tr.Roots[0].Why != pauses.Asked || tr.Roots[0].At.Node != "h3" {
		t.Fatalf("it began at %+v", tr.Roots[0])
	}
	names := ""
	for b := tr.Roots[0]; len(b.Branches) == 1; b = b.Branches[0] {
		names += " " + b.Branches[0].By
	}
	if names != " h3>s2 s2>s1 s1>h1" {
		t.Error(names)
	}
	last := &tr.Pauses[2]
	if !last.Lasts || last.To > 0 || last.To < -0.001 || last.Held != 5000 {
		t.Errorf("%+v", last)
	}
}

func TestJoinWaits(t *testing.T) {
	n := topology(t, "ring:3,1")
	const s = 1_000_000_000
	wait := func(at, to, from string, since uint64) *api.Wait {
		return &api.Wait{Switch: at, Number: n.port(at, to), Class: 3, Since: since, Bytes: 10, FromNumbers: []uint32{n.port(at, from)}, Overdue: true}
	}
	answers := []*api.Waits{
		{Now: 10 * s, Waits: []*api.Wait{wait("s1", "s2", "s3", 4*s), wait("s2", "s3", "s1", 6*s)}},
		{Now: 10 * s, Waits: []*api.Wait{wait("s3", "s1", "s2", 5*s)}},
	}
	w := joinWaits(n, answers)
	if len(w.Waits) != 3 || !w.Waits[0].Overdue || w.Waits[0].For != frame.Time(6*s) || len(w.Circles) != 1 {
		t.Fatalf("%+v", w)
	}
	if c := &w.Circles[0]; c.For != frame.Time(4*s) || len(c.Ports) != 3 || c.Class != 3 {
		t.Errorf("%+v", c)
	}
	answers[1].Waits[0].FromNumbers = []uint32{n.port("s3", "h3")}
	if w := joinWaits(n, answers); len(w.Circles) != 0 || w.Circles == nil {
		t.Errorf("%+v", w)
	}
}
