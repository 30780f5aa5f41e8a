package vnet

import (
	"slices"
	"testing"

	"gswitch/config"
	"gswitch/fault"
	"gswitch/frame"
	"gswitch/hostnic"
	"gswitch/sim"
	"gswitch/transport"
	"gswitch/units"
	"gswitch/vswitch"
	wirefmt "gswitch/wire"
)

const ms = frame.Millisecond

// talking is for how long messages begin; a run lasts until one that waits for
// a timeout has ended, too.
const talking, whole = 100 * ms, 350 * ms

// errDisableRig is two leaves with three hosts each and three ways between them, all
// of DeTail. Hosts send 8 kB to each other all the time, and it notes how long
// that takes.
type errDisableRig struct {
	*Network
	t     testing.TB
	short []Done
}

func newErrDisableRig(t testing.TB, unresponsive string, senders []int) *errDisableRig {
	c := detailConfig(topology(t, "leaf-spine(3, 2, 3)", gigE, gigE, cable))
	c.Paths = config.Paths{Choose: "adaptive"}
	c.PFC.ErrDisable = 2 * units.Millisecond
	c.Host.Transport = transport.Config{Recovery: transport.NewReno, NoFastRetransmit: true, RTOLow: 200 * ms, RTOHigh: 200 * ms}
	c.AdjustHost = func(name string, h *hostnic.Config) {
		if name == unresponsive {
			h.PFC = false
		}
	}
	r := &errDisableRig{build(t, c), t, nil}
	r.OnDone(func(_ frame.Time, d *Done) { r.short = append(r.short, *d) })
	turn := 0
	r.Engine.Every(0, 100*us, func(now frame.Time) {
		if now > talking {
			return
		}
		a := senders[turn%len(senders)]
		b := senders[(turn+1+turn/len(senders)%(len(senders)-1))%len(senders)]
		turn++
		if err := r.StartFlow(now, &Flow{Src: a, Dst: b, Bytes: 8000}); err != nil {
			t.Error(err)
		}
	})
	return r
}

// slow are the messages that began from then on and took more than 50 ms. All
// must have ended but two, which never do.
func (r *errDisableRig) slow(from frame.Time) (slow []Done, of int) {
	r.t.Helper()
	if c := r.Counts(); c.Started != c.Finished+2 {
		r.t.Errorf("%d messages of %d have not ended", c.Started-c.Finished-2, c.Started)
	}
	for _, d := range r.short {
		if d.Start < from {
			continue
		}
		if of++; d.FCT() > 50*ms {
			slow = append(slow, d)
		}
	}
	return slow, of
}

func (r *errDisableRig) node(name string) *vswitch.Node {
	s, _ := r.SwitchByName(name)
	return r.Switches[s].Nodes[0]
}

// TestUnresponsiveHost: the port of a host that does not pause is err-disabled, and of what
// the others send each other nothing is lost and nothing takes long.
func TestUnresponsiveHost(t *testing.T) {
	r := newErrDisableRig(t, "h1", []int{1, 2, 4, 5})
	start(t, r.Network, Flow{Src: 0, Dst: 3, Bytes: 1 << 30})
	start(t, r.Network, Flow{Src: 1, Dst: 3, Bytes: 1 << 30})
	r.advance(t, whole)
	at := r.portOf(t, "leaf1", "h1")
	if s := r.node("leaf1").PFC(uint16(at.Port)).Stats(r.Engine.Now()); s.Disables == 0 {
		t.Fatalf("the host was not found to ignore pauses: %+v", s)
	}
	slow, of := r.slow(0)
	if len(slow) != 0 || of < 990 {
		t.Errorf("%d of %d messages took more than 50 ms", len(slow), of)
	}
	var lost uint64
	for s := range r.Switches {
		for port := range r.Ports(s) {
			var p vswitch.PortCounts
			r.Switches[s].Nodes[0].ReadPort(uint16(port), &p)
			if (Port{s, port}) != at {
				lost += p.Dropped() - p.Drops[frame.EgressPortDown] // acknowledgements of what it sent
			}
		}
	}
	if lost != 0 {
		t.Errorf("%d frames of others were lost: %v", lost, r.Drops())
	}
}

// TestUnresponsiveUplinkIsAvoided: one of three spines ignores a leaf's pauses.
// The leaf gives the port up, the link is taken down for that, as in DeTail
// (Zats et al., UCB/EECS-2012-33, section 4.2.2), and routing finds out after a
// millisecond. From then on what is sent goes by the other two, and none of it
// is lost or takes long.
func TestUnresponsiveUplinkIsAvoided(t *testing.T) {
	r := newErrDisableRig(t, "", []int{1, 2, 4, 5})
	at := r.portOf(t, "leaf1", "spine2")
	link := sim.LinkID(0)
	isPFC := func(b []byte, _ *frame.Meta) bool {
		return wirefmt.Ethernet(b).EtherType() == wirefmt.EtherTypeMACControl
	}
	for i, l := range r.Topology.Links {
		a, b := r.Topology.Nodes[l.A.Node].Name, r.Topology.Nodes[l.B.Node].Name
		if a != "leaf1" && b != "leaf1" || a != "spine2" && b != "spine2" {
			continue
		}
		way := sim.Forth
		if b == "leaf1" {
			way = sim.Back
		}
		link = r.Link(i)
		if err := r.Engine.Fault(link, way, fault.Config{Drop: []fault.Drop{{Match: isPFC, First: 1, Every: 1}}}); err != nil {
			t.Fatal(err)
		}
	}
	start(t, r.Network, Flow{Src: 3, Dst: 0, Bytes: 1 << 30})
	start(t, r.Network, Flow{Src: 4, Dst: 0, Bytes: 1 << 30})
	leaf := r.node("leaf1")
	var down frame.Time
	r.Engine.Every(0, 10*us, func(now frame.Time) {
		if down == 0 && leaf.Disabled(uint16(at.Port)) {
			down = now
			if err := r.Engine.SetLink(link, false); err != nil {
				t.Error(err)
			}
			r.Engine.At(now+ms, func(frame.Time) { r.withdraw("leaf2", "spine2") })
		}
	})
	r.advance(t, 5*ms)
	s := leaf.PFC(uint16(at.Port)).Stats(r.Engine.Now())
	if down == 0 || s.Disables != 1 || s.Violations[0] != 4 {
		t.Fatalf("down at %v, %+v", down.Duration(), s)
	}
	before := r.Drops()
	r.advance(t, whole-5*ms)
	if now := r.Drops(); now != before {
		t.Errorf("drops %v, after routes had changed %v", before, now)
	}
	early, all := r.slow(0)
	slow, of := r.slow(down + ms)
	if len(slow) != 0 || of < 960 {
		t.Errorf("%d of %d messages took more than 50 ms", len(slow), of)
	}
	for _, d := range early {
		if d.Retransmits == 0 {
			t.Errorf("a message that began at %v took %v, and nothing of it was lost", d.Start.Duration(), d.FCT().Duration())
		}
	}
	t.Logf("given up after %v; of %d messages %d that were on the way took more than 50 ms", down.Duration(), all, len(early))
	if got := leaf.PathCounts(); got.Tier[0][0] == 0 {
		t.Error("the leaf chose nothing by what waits")
	}
}

// withdraw takes a neighbour out of a switch's routes.
func (r *errDisableRig) withdraw(at, via string) {
	sw, _ := r.SwitchByName(at)
	port := r.portOf(r.t, at, via)
	peer := r.Topology.Peer(r.swNode[sw], port.Port)
	gone := r.Plan.Nodes[peer.Node].Ports[peer.Port][0].Addr()
	for _, route := range r.Switches[sw].Program().Config.Routes {
		if len(route.NextHops) < 2 {
			continue
		}
		route.NextHops = slices.DeleteFunc(slices.Clone(route.NextHops), func(h vswitch.NextHop) bool { return h.Via == gone })
		if err := r.Switches[sw].SetRoute(route); err != nil {
			r.t.Error(err)
		}
	}
	r.Engine.Poke(r.engine[r.swNode[sw]])
}
