package live_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"gswitch/dataplane"
	"gswitch/fabric"
	"gswitch/fabric/lab"
	"gswitch/fabric/live"
	"gswitch/fabric/vnet"
	"gswitch/fault"
	"gswitch/frame"
	"gswitch/hostnic"
	"gswitch/sim"
	"gswitch/units"
)

const us = frame.Microsecond

func topology(t testing.TB, name, expr string) *fabric.Topology {
	t.Helper()
	s := fabric.Spec{Name: name, Generate: expr, Classes: map[string]fabric.Class{
		fabric.ClassHost:   {Rate: units.Rate(100e9), Delay: units.Duration(time.Microsecond)},
		fabric.ClassFabric: {Rate: units.Rate(100e9), Delay: units.Duration(time.Microsecond)},
	}}
	topo, err := s.Build()
	if err != nil {
		t.Fatal(err)
	}
	return topo
}

// wires raises the veth pairs of a topology, or skips the test.
func wires(t *testing.T, topo *fabric.Topology) live.Wires {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root for network namespaces and AF_XDP")
	}
	plan, err := fabric.NewPlan(topo)
	if err != nil {
		t.Fatal(err)
	}
	w, err := lab.RaiseWires(context.Background(), plan, func(string, ...any) {})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

func build(t testing.TB, c vnet.Config, l live.Config) *vnet.Network {
	t.Helper()
	c.Engine = live.Maker(l)
	n, err := vnet.Build(&c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Engine.Close(); err != nil {
			t.Error(err)
		}
	})
	return n
}

// on runs a test over both kinds of wires.
func on(t *testing.T, name, expr string, f func(t *testing.T, topo *fabric.Topology, l live.Config)) {
	t.Run("wire", func(t *testing.T) { f(t, topology(t, "a-"+name, expr), live.Config{}) })
	t.Run("netns", func(t *testing.T) {
		topo := topology(t, "a-"+name, expr)
		f(t, topo, live.Config{Wires: wires(t, topo)})
	})
}

// A message between two hosts takes the time that it takes in virtual time,
// in as many frames, none of which is lost, sent twice or unaccounted for.
func TestOneMessage(t *testing.T) {
	// A frame of 968 bytes of payload takes 84 ns at 100 Gb/s: with a fraction of a
	// nanosecond, the instants that nodes count could end before what is ideal.
	const payload, frames = 968, 100
	const bytes = frames * payload
	on(t, "one", "star(2)", func(t *testing.T, topo *fabric.Topology, l live.Config) {
		// On a machine that has something else to do the same run goes slower.
		for l.Dilation = 1000; ; l.Dilation *= 4 {
			n := build(t, vnet.Config{Topology: topo, Overhead: 24, Payload: payload}, l)
			if bits := 8 * (n.Derived.Header + payload + 24); bits%100 != 0 {
				t.Fatalf("a frame of %d bits takes no whole nanoseconds", bits)
			}
			var done *vnet.Done
			n.OnDone(func(now frame.Time, d *vnet.Done) {
				v := *d
				done = &v
				n.Engine.At(now+20*us, func(frame.Time) { n.Engine.Stop(errEnough) })
			})
			n.Engine.At(10*us, func(now frame.Time) {
				if err := n.StartFlow(now, &vnet.Flow{Src: 0, Dst: 1, Bytes: bytes}); err != nil {
					n.Engine.Stop(err)
				}
			})
			if err := n.Engine.Run(frame.Second); err != errEnough {
				t.Fatal(err)
			}
			if err := n.Halt(); err != nil {
				t.Fatal(err)
			}
			if done == nil || done.Retransmits != 0 || done.Flow.Bytes != bytes {
				t.Fatalf("the message ended as %+v", done)
			}
			if c := n.Hosts[0].Counts(); c.DataFrames != frames {
				t.Errorf("%d data frames, want %d", c.DataFrames, frames)
			}
			s := n.Engine.Stats()
			if s.Handed == 0 || s.Handed != s.FrameHops || s.InFlight != 0 || n.Lost() != 0 {
				t.Errorf("of %d frames handed to links %d arrived, %d are on the way, %d were lost in nodes", s.Handed, s.FrameHops, s.InFlight, n.Lost())
			}
			tm := n.Engine.(live.Timed).Timing()
			// A wire in memory may be looked at in the same nanosecond of the nodes.
			if l.Wires != nil && tm.TransitMax == 0 || tm.TransitP50 > tm.TransitP99 || tm.TransitP99 > tm.TransitMax {
				t.Errorf("frames took %v, %v, %v from node to node", tm.TransitP50, tm.TransitP99, tm.TransitMax)
			}
			if tm.RingDrops != 0 {
				t.Errorf("%d frames lost in rings", tm.RingDrops)
			}
			if n.Engine.Digest() != "" || n.Engine.Virtual() {
				t.Error("a run on real frames has no digest")
			}
			ideal := n.Ideal(0, 1, bytes)
			if done.FCT() < ideal {
				t.Errorf("it took %v, which is less than the links allow: %v", done.FCT().Duration(), ideal.Duration())
			}
			t.Logf("frames took %.3g us, %.3g us, %.3g us of the nodes from node to node; lateness %.3g us, %.3g us; stood %.2g", 1e6*tm.TransitP50, 1e6*tm.TransitP99, 1e6*tm.TransitMax, 1e6*tm.LateP50, 1e6*tm.LateP99, tm.StoppedShare)
			if tm.Valid && done.FCT() <= ideal+ideal/20 {
				return
			}
			t.Logf("dilation %d: took %v, alone %v, lateness %v", l.Dilation, done.FCT().Duration(), ideal.Duration(), tm.LateMax)
			if l.Dilation >= 64_000 {
				t.Fatalf("it takes too long however slow the clock is: timing %+v", tm)
			}
			if err := n.Engine.Close(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// A host whose clock is ahead begins to send when it is asked to by that clock: what it
// sends is not there before, so that a message takes what the links allow at least.
func TestMessageOfHostThatIsAhead(t *testing.T) {
	const bytes = 100 * 968
	n := build(t, vnet.Config{Topology: topology(t, "a-head", "star(2)"), Overhead: 24, Payload: 968}, live.Config{Dilation: 1000})
	for i := range n.Topology.Nodes {
		if err := n.Engine.SetClock(n.EngineNode(i), 0, frame.Time(i+1)*frame.Millisecond); err != nil {
			t.Fatal(err)
		}
	}
	var took frame.Time
	n.OnDone(func(_ frame.Time, d *vnet.Done) {
		took = d.FCT()
		n.Engine.Stop(errEnough)
	})
	n.Engine.At(10*us, func(now frame.Time) {
		if err := n.StartFlow(now, &vnet.Flow{Src: 0, Dst: 1, Bytes: bytes}); err != nil {
			n.Engine.Stop(err)
		}
	})
	if err := n.Engine.Run(frame.Second); err != errEnough {
		t.Fatal(err)
	}
	if ideal := n.Ideal(0, 1, bytes); took < ideal {
		t.Errorf("it took %v, which is less than the links allow: %v", took.Duration(), ideal.Duration())
	}
}

type enough struct{}

func (enough) Error() string { return "enough" }

var errEnough error = enough{}

// Each worker steps its own nodes, whose queues and counters callbacks may
// look at.
func TestSeveralWorkers(t *testing.T) {
	on(t, "several", "leaf-spine(2,2,2)", func(t *testing.T, topo *fabric.Topology, l live.Config) {
		l.Dilation, l.Workers, l.Poll = 5000, 3, dataplane.Sleep
		n := build(t, vnet.Config{Topology: topo}, l)
		n.Publish(us)
		sent, ended := uint64(0), 0
		leaf, _ := n.SwitchByName("leaf1")
		up, ok := n.PortOf(leaf, "h1")
		if !ok {
			t.Fatal("no port")
		}
		n.Engine.Every(us, us, func(frame.Time) { sent = max(sent, n.Sent(vnet.Port{Switch: leaf, Port: up})) })
		n.OnDone(func(now frame.Time, d *vnet.Done) {
			if ended++; ended == 4 {
				n.Engine.At(now+10*us, func(frame.Time) { n.Engine.Stop(errEnough) })
			}
		})
		n.Engine.At(0, func(now frame.Time) {
			for h := range 4 {
				if err := n.StartFlow(now, &vnet.Flow{ID: uint64(h), Src: h, Dst: (h + 2) % 4, Bytes: 50_000}); err != nil {
					n.Engine.Stop(err)
				}
			}
		})
		if err := n.Engine.Run(frame.Second); err != errEnough {
			t.Fatal(err)
		}
		if err := n.Halt(); err != nil {
			t.Fatal(err)
		}
		if sent < 50_000 {
			t.Errorf("callbacks saw %d bytes of a flow of 50000", sent)
		}
		tm := n.Engine.(live.Timed).Timing()
		if len(tm.Workers) != 3 || tm.Workers[0].Name != "hosts" || tm.Workers[0].Nodes != 4 || tm.Workers[1].Nodes+tm.Workers[2].Nodes != 4 {
			t.Errorf("workers: %+v", tm.Workers)
		}
		if s := n.Engine.Stats(); s.Handed != s.FrameHops || n.Lost() != 0 {
			t.Errorf("of %d frames %d arrived, %d were lost in nodes", s.Handed, s.FrameHops, n.Lost())
		}
	})
}

// Faults of links and nodes do in real time what they do in virtual time.
func TestFaults(t *testing.T) {
	on(t, "faults", "star(3)", func(t *testing.T, topo *fabric.Topology, l live.Config) {
		l.Dilation = 1000
		n := build(t, vnet.Config{Topology: topo}, l)
		must := func(err error) {
			if err != nil {
				n.Engine.Stop(err)
			}
		}
		lossy, other := n.Link(0), n.Link(1)
		n.Engine.At(0, func(now frame.Time) {
			must(n.Engine.Fault(lossy, sim.Forth, fault.Config{Drop: []fault.Drop{{First: 5}}}))
			must(n.Engine.Slow(n.EngineNode(mustLookup(t, topo, "h3")), 2*us))
			must(n.Engine.Pause(n.EngineNode(mustLookup(t, topo, "h2")), 300*us))
		})
		ends := map[uint64]frame.Time{}
		n.OnDone(func(now frame.Time, d *vnet.Done) {
			if ends[d.Flow.ID] = now; len(ends) == 2 {
				must(n.Engine.Reboot(n.EngineNode(mustLookup(t, topo, "h1")), 20*us))
				must(n.Engine.SetLink(other, false))
				n.Engine.At(now+100*us, func(frame.Time) { n.Engine.Stop(errEnough) })
			}
		})
		n.Engine.At(100*us, func(now frame.Time) {
			for src := range 2 {
				must(n.StartFlow(now, &vnet.Flow{ID: uint64(src), Src: src, Dst: 2, Bytes: 20_000}))
			}
		})
		if err := n.Engine.Run(10 * frame.Second); err != errEnough {
			t.Fatal(err)
		}
		if err := n.Halt(); err != nil {
			t.Fatal(err)
		}
		if s := n.Engine.Stats(); s.Lost[fault.LossChosen] != 1 {
			t.Errorf("lost: %v, want one chosen frame", s.Lost)
		}
		if c := n.Counts(); c.Retransmits == 0 {
			t.Error("a frame was lost and none was sent again")
		}
		if ends[1] < 300*us {
			t.Errorf("a host that stands still until 300 us finished at %v", ends[1].Duration())
		}
		// 40 data frames, one in 2 us.
		if last := max(ends[0], ends[1]); last < 140*us {
			t.Errorf("a slow host has taken 40 frames by %v", last.Duration())
		}
		if err := n.Engine.Storm(lossy, sim.Forth, sim.Storm{Interval: us}); err == nil || !strings.Contains(err.Error(), "virtual time") {
			t.Errorf("a storm: %v", err)
		}
		for _, err := range []error{n.Engine.Pause(99, 0), n.Engine.Slow(-1, 0), n.Engine.Reboot(99, 0), n.Engine.SetLink(99, false), n.Engine.Fault(99, 0, fault.Config{}),
			n.Engine.Fault(0, 0, fault.Config{Loss: 2}), n.Engine.SetClock(99, 0, 0), n.Engine.SetClock(0, sim.MaxDrift+1, 0), n.Engine.Storm(99, 0, sim.Storm{})} {
			if err == nil {
				t.Error("what does not exist is accepted")
			}
		}
	})
}

func mustLookup(t *testing.T, topo *fabric.Topology, name string) int {
	i, ok := topo.Lookup(name)
	if !ok {
		t.Fatalf("no node %s", name)
	}
	return i
}

// What cannot be is said before anything runs.
func TestRefused(t *testing.T) {
	for _, k := range []struct {
		l    live.Config
		c    vnet.Config
		want string
	}{
		{l: live.Config{Dilation: -1}, want: "dilation of -1"},
		{l: live.Config{Dilation: 1_000_001}, want: "dilation of 1000001"},
		{l: live.Config{Workers: 65}, want: "65 workers"},
		{l: live.Config{Bound: -1}, want: "negative"},
		{c: vnet.Config{Sizes: hostnic.Sizes{Data: 48}}, want: "hosts.sizes"},
		{l: live.Config{Wires: noWires{}}, c: vnet.Config{Payload: 8999}, want: "lower hosts.payload from 8999B to 3184B"},
		{l: live.Config{Wires: noWires{}}, c: vnet.Config{Payload: 8000}, want: "lower hosts.payload from 8000B to 3184B"},
		{l: live.Config{Wires: noWires{}}, want: "link h1 - s1"},
	} {
		k.c.Topology = topology(t, "a-refused", "star(2)")
		k.c.Engine = live.Maker(k.l)
		n, err := vnet.Build(&k.c)
		if err == nil {
			err = n.Engine.Run(1)
			if e := n.Engine.Close(); e != nil {
				t.Error(e)
			}
		}
		if err == nil || !strings.Contains(err.Error(), k.want) {
			t.Errorf("%+v: %v, want %q", k.l, err, k.want)
		}
	}
}

// noWires are nowhere.
type noWires struct{}

func (noWires) End(node, port int) (string, string) {
	return "", fmt.Sprintf("a-none%d-%d", node, port)
}
