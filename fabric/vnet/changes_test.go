package vnet

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"gswitch/frame"
	"gswitch/vswitch"
)

// What changes the routes of a switch while a network runs is a command of that switch, which
// another one like it carries out by its encoding.
func TestChangesOfSwitches(t *testing.T) {
	made := func() *Network {
		return build(t, &Config{Topology: topology(t, "leaf-spine(2,2,1)", gig, gig, time.Microsecond),
			Detours: []Detour{{At: "leaf1", To: "leaf2", Via: "spine1"}, {At: "leaf1", To: "leaf2", Via: "spine2", From: 50 * us}}})
	}
	n := made()
	type change struct {
		at   frame.Time
		sw   int
		code []byte
	}
	var seen []change
	n.OnCommand(func(now frame.Time, node int, c frame.Command) {
		if sw := n.SwitchAt(node); sw >= 0 {
			seen = append(seen, change{now, sw, c.Encode(nil)})
		}
		c.Do(now)
	})
	if err := n.StartFlow(0, &Flow{Src: 0, Dst: 1, Bytes: 20_000}); err != nil {
		t.Fatal(err)
	}
	run(t, n, frame.Millisecond)
	leaf, _ := n.SwitchByName("leaf1")
	if len(seen) == 0 || slices.ContainsFunc(seen, func(c change) bool { return c.at != 50*us || c.sw != leaf }) {
		t.Fatalf("%v, not the routes of switch %d", seen, leaf)
	}
	way := func(n *Network) []Port {
		ports, err := n.Route(0, 1, 1000, false)
		if err != nil {
			t.Fatal(err)
		}
		return ports
	}
	other := made()
	before := way(other)
	for _, s := range seen {
		c, err := vswitch.DecodeChange(s.code)
		if err == nil {
			err = other.Change(s.at, s.sw, c)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if is, was := way(other), way(n); !slices.Equal(is, was) || slices.Equal(is, before) {
		t.Errorf("packets go by %v, they went by %v, and before by %v", is, was, before)
	}
	// One that cannot be is neither noted nor made.
	is := len(seen)
	bad := vswitch.SetRoute{Route: vswitch.Route{Prefix: netip.MustParsePrefix("10.9.0.0/16"), NextHops: []vswitch.NextHop{{Via: netip.MustParseAddr("192.0.2.1"), Weight: 1}}}}
	if err := n.Change(frame.Millisecond, leaf, bad); err == nil || len(seen) != is {
		t.Errorf("%v, %v", err, seen[is:])
	}
}
