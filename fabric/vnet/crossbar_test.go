package vnet

import (
	"fmt"
	"testing"
	"time"

	"gswitch/config"
	"gswitch/crossbar"
	"gswitch/crossbar/point"
	"gswitch/fabric"
	"gswitch/frame"
	"gswitch/hostnic"
	"gswitch/sim"
	"gswitch/units"
	"gswitch/vswitch"
)

// Gigabit Ethernet as in DeTail (UCB/EECS-2012-33): a link of 0.476 us with
// transceivers of 5 us, full frames that take 1530 bytes of it, a forwarding
// engine of 4.224 us, two quanta to respond to a pause.
const (
	gigE     = 1_000_000_000
	cable    = 5476 * time.Nanosecond
	fullSize = 1530 - 24 - dataHeader // payload
	slot     = 12_240                 // ns of a full frame
)

// chain is k switches in a row. The first hosts are at the first switch, the
// last one is at the last.
func chain(t testing.TB, k, hosts int) *fabric.Topology {
	t.Helper()
	class := fabric.Class{Rate: gigE, Delay: units.Duration(cable)}
	s := fabric.Spec{Name: "chain", Mode: "l3", Classes: map[string]fabric.Class{fabric.ClassHost: class, fabric.ClassFabric: class}}
	for i := range k {
		s.Switches = append(s.Switches, fmt.Sprint("s", i+1))
		if i > 0 {
			s.Links = append(s.Links, fabric.LinkSpec{A: fmt.Sprint("s", i), B: fmt.Sprint("s", i+1)})
		}
	}
	for i := range hosts {
		at := "s1"
		if i == hosts-1 {
			at = fmt.Sprint("s", k)
		}
		s.Hosts = append(s.Hosts, fmt.Sprint("h", i+1))
		s.Links = append(s.Links, fabric.LinkSpec{A: fmt.Sprint("h", i+1), B: at})
	}
	topo, err := s.Build()
	if err != nil {
		t.Fatal(err)
	}
	return topo
}

// detailConfig is DeTail's switches.
func detailConfig(topo *fabric.Topology) *Config {
	c := &Config{Topology: topo, Overhead: 24, Payload: fullSize, PFC: PFC{On: true, Classes: 0xff, Pausing: config.Pausing{Response: 1024}}, BaseRTT: frame.Millisecond,
		Wholes: crossed(point.Config{})}
	c.Host.AckClass = InClass(6)
	return c
}

// crossed gives all switches crossbars with the thresholds and the delay of the report.
func crossed(o point.Config) []Whole {
	o.SkipBlocked, o.Pause, o.Unpause, o.Latency = true, 8192, 4557, 4224
	return []Whole{{Name: point.Name, Options: func(*vswitch.Config) (any, error) { return o, nil }}}
}

// portOf is the port of a switch towards a node.
func (n *Network) portOf(t testing.TB, sw, node string) Port {
	t.Helper()
	s, _ := n.SwitchByName(sw)
	p, ok := n.PortOf(s, node)
	if !ok {
		t.Fatalf("%s is not beside %s", node, sw)
	}
	return Port{s, p}
}

func (n *Network) crossbarAt(p Port) crossbar.View {
	return point.At(n.Switches[p.Switch].Nodes[0]).Port(uint16(p.Port))
}

// TestIdleLatency: a frame alone takes what the report's table of delays says,
// to the nanosecond.
func TestIdleLatency(t *testing.T) {
	for _, c := range []struct {
		switches int
		bytes    uint64
		header   int
		want     frame.Time
	}{
		{1, fullSize, 0, 42_716}, {3, fullSize, 0, 92_716}, {5, fullSize, 0, 142_716},
		{5, 4, 84 - 24 - 4, 58_848}, // RoCE pads to four bytes, so the header is shorter by two
	} {
		cfg := detailConfig(chain(t, c.switches, 2))
		cfg.Sizes.Data = c.header
		n := build(t, cfg)
		start(t, n, Flow{Src: 0, Dst: 1, Bytes: c.bytes})
		done := run(t, n, frame.Millisecond)
		if got := done[0].FCT(); got != c.want {
			t.Errorf("%d bytes over %d switches take %d ns, want %d", c.bytes, c.switches, got, c.want)
		}
	}
}

// What a message takes alone, and T, are computed with the crossbars on its way:
// a message is done when Ideal says, and acknowledged when IdealAcked does.
func TestIdealWithCrossbars(t *testing.T) {
	for _, c := range []struct{ switches, speedup int }{{1, 0}, {3, 0}, {5, 1}, {2, 7}} {
		for _, bytes := range []uint64{4, 2 * fullSize, 40*fullSize + 100} {
			cfg := detailConfig(chain(t, c.switches, 2))
			cfg.Wholes = crossed(point.Config{Speedup: c.speedup})
			n := build(t, cfg)
			start(t, n, Flow{Src: 0, Dst: 1, Bytes: bytes})
			done := run(t, n, 10*frame.Millisecond)
			if len(done) != 1 {
				t.Fatalf("%d flows are done", len(done))
			}
			// Nodes round each time down to whole nanoseconds.
			least := frame.Time(3 * (c.switches + 1))
			if got, want := done[0].FCT(), n.Ideal(0, 1, bytes); got > want || got < want-least {
				t.Errorf("%d bytes over %d switches take %d ns, want %d", bytes, c.switches, got, want)
			}
			if got, want := done[0].SenderEnd-done[0].Start, n.IdealAcked(0, 1, bytes); got > want || got < want-2*least {
				t.Errorf("%d bytes over %d switches are acknowledged after %d ns, want %d", bytes, c.switches, got, want)
			}
		}
	}
	cfg := detailConfig(chain(t, 3, 2))
	cfg.BaseRTT = 0
	n := build(t, cfg)
	want := n.IdealAcked(0, 1, fullSize)
	if n.Derived.BaseRTT != want {
		t.Errorf("T is %d ns, a full frame and its acknowledgement take %d", n.Derived.BaseRTT, want)
	}
	cfg.Wholes = nil
	cfg.PFC.On = false
	if without := build(t, cfg).Derived.BaseRTT; want-without < 6*(4224+60) {
		t.Errorf("T is %d ns without crossbars and %d with six to cross", without, want)
	}
}

// TestPauseReaction watches an ingress port from the moment that it crosses its
// XOFF threshold until the last frame before the pause comes. With full frames both
// ways that takes at most what the threshold was computed with: 36.456 us and
// 4557 bytes, besides the 0.672 us and 84 bytes of the pause frame itself.
func TestPauseReaction(t *testing.T) {
	type reaction struct {
		longest, shortest frame.Time
		bytes, pauses     uint64
	}
	const step = 200
	watch := func(least, most uint32, back bool) (r reaction) {
		c := detailConfig(chain(t, 1, 2))
		c.AdjustSwitch = func(_ string, c *vswitch.Config) { c.Ports[1].Scheduler.Rate = gigE * 4 / 10 }
		n := build(t, c)
		at := n.portOf(t, "s1", "h1")
		if slow := n.portOf(t, "s1", "h2"); slow.Port != 1 {
			t.Fatal("another port is slow")
		}
		// Many messages of a frame each, so that pauses meet frames at any point.
		rng := frame.NewRand(1)
		send := func(src int, class uint8, messages int) {
			conn, err := n.Dial(0, &Flow{Src: src, Dst: 1 - src, Class: InClass(class)})
			for range messages {
				if err == nil {
					err = n.Send(0, conn, uint64(least+rng.Uint32n(most-least+1)), 0)
				}
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		send(0, 3, int(4<<20/(most+fullSize/10)))
		if back {
			send(1, 5, 6000)
		}
		node := n.Switches[0].Nodes[0]
		var since, last frame.Time
		var then, before vswitch.Traffic
		paused := false
		r.shortest = frame.Never
		n.Engine.Every(0, step, func(now frame.Time) {
			var p vswitch.PortCounts
			node.ReadPort(uint16(at.Port), &p)
			rx := p.RxClass[3]
			wants := n.crossbarAt(at).Wants>>3&1 != 0
			switch {
			case wants && !paused:
				since, last, then = now, now, rx
			case wants && rx != before:
				last = now
			case !wants && paused:
				r.pauses++
				r.longest, r.shortest = max(r.longest, last-since), min(r.shortest, last-since)
				r.bytes = max(r.bytes, rx.Bytes-then.Bytes+24*(rx.Frames-then.Frames))
			}
			paused, before = wants, rx
		})
		n.advance(t, 50*frame.Millisecond)
		if lost := n.Lost(); lost != 0 {
			t.Errorf("lost %v", n.Drops())
		}
		if v := n.crossbarAt(at); v.IngressPeak > 8192+1530+4557 {
			t.Errorf("the port held %d bytes", v.IngressPeak)
		}
		return r
	}
	r := watch(fullSize-400, fullSize, true)
	t.Logf("full frames both ways: %+v", r)
	if r.pauses < 50 || r.longest > 36_456+672+step || r.bytes > 4557+84 {
		t.Errorf("%+v", r)
	}
	if r.longest < 30_000 || r.bytes < 2*1530 {
		t.Errorf("%+v: the worst case did not occur", r)
	}
	r = watch(1, 4, false)
	t.Logf("short frames: %+v", r)
	if r.pauses < 50 || r.shortest < 11_976-step {
		t.Errorf("%+v: a pause cannot act as fast as that", r)
	}
}

// TestClassesAreIsolated: class 0 is for one egress port, whose neighbour pauses
// it for 10 ms, and fills all queues on the way. Probes of class 7 wait for a
// frame that is being sent at each hop, no more, unless all bytes of the egress
// queue count alike.
func TestClassesAreIsolated(t *testing.T) {
	delays := func(total bool) (paused, most frame.Time) {
		c := detailConfig(chain(t, 2, 3))
		c.Wholes = crossed(point.Config{TotalCap: total})
		n := build(t, c)
		start(t, n, Flow{Src: 0, Dst: 2, Bytes: 1 << 30})
		var idle frame.Time
		conn, err := n.Dial(0, &Flow{Src: 1, Dst: 2, Class: InClass(7)})
		if err != nil {
			t.Fatal(err)
		}
		var sent []frame.Time
		n.OnArrival(func(now frame.Time, c Conn) {
			if c == conn {
				most = max(most, now-sent[0]-idle)
				if sent[0] > 5*frame.Millisecond && sent[0] < 15*frame.Millisecond {
					paused = max(paused, now-sent[0]-idle)
				}
				sent = sent[1:]
			}
		})
		// What the shortest data frame, of 86 bytes on the link, takes alone.
		idle = 688 + cableNs + 2*(4224+172+688+cableNs)
		n.Engine.Every(frame.Millisecond, 97*us, func(now frame.Time) {
			sent = append(sent, now)
			if err := n.Send(now, conn, 4, 0); err != nil {
				t.Error(err)
			}
		})
		n.Engine.At(5*frame.Millisecond, func(now frame.Time) {
			if err := n.storm("s2", "h3", sim.Storm{Classes: 1, Quanta: 1000, Interval: 100 * us, Until: now + 10*frame.Millisecond}); err != nil {
				t.Error(err)
			}
		})
		n.advance(t, 14*frame.Millisecond)
		far := n.portOf(t, "s2", "h3")
		if v := n.crossbarAt(far); v.Egress[0] < 120_000 {
			t.Errorf("total cap %t: the egress queue holds %d bytes: nothing is tried", total, v.Egress[0])
		}
		if v := n.crossbarAt(n.portOf(t, "s1", "h1")); v.Wants&1 == 0 {
			t.Errorf("total cap %t: congestion has not come back to the host", total)
		}
		n.advance(t, 6*frame.Millisecond)
		if n.Lost() != 0 {
			t.Errorf("lost %v", n.Drops())
		}
		if len(sent) > 1 {
			most = max(most, n.Engine.Now()-sent[0])
		}
		return paused, most
	}
	// Neither a link nor the crossbar gives up a frame that it has begun.
	const crossing = slot / 4
	paused, most := delays(false)
	t.Logf("probes are up to %d ns late, %d during the pause", most, paused)
	if paused > 2*slot || most > 2*(slot+crossing) {
		t.Errorf("want %d at most, %d during the pause", 2*(slot+crossing), 2*slot)
	}
	paused, _ = delays(true)
	t.Logf("with one cap for all classes: %d ns", paused)
	if paused < frame.Millisecond {
		t.Error("the test tests nothing")
	}
}

const cableNs = frame.Time(cable)

// storm has a node send pauses to a switch.
func (n *Network) storm(sw, node string, s sim.Storm) error {
	for i := range n.Topology.Links {
		l := &n.Topology.Links[i]
		a, b := n.Topology.Nodes[l.A.Node].Name, n.Topology.Nodes[l.B.Node].Name
		switch {
		case a == node && b == sw:
			return n.Engine.Storm(n.Link(i), sim.Forth, s)
		case b == node && a == sw:
			return n.Engine.Storm(n.Link(i), sim.Back, s)
		}
	}
	return fmt.Errorf("no link %s - %s", sw, node)
}

// TestLostUnpause: one pause frame, and nothing that ends it. It ends by itself
// when its quanta are over.
func TestLostUnpause(t *testing.T) {
	n := build(t, detailConfig(chain(t, 1, 2)))
	start(t, n, Flow{Src: 0, Dst: 1, Bytes: 1 << 30})
	n.advance(t, frame.Millisecond)
	if err := n.storm("s1", "h2", sim.Storm{Classes: 0xff, Quanta: 0xffff, Interval: 1, Until: n.Engine.Now() + 1}); err != nil {
		t.Fatal(err)
	}
	sched := n.Switches[0].Nodes[0].Scheduler(uint16(n.portOf(t, "s1", "h2").Port))
	const span = 33_553_920
	n.advance(t, 100*us)
	before := sched.Sent()
	n.advance(t, span-100*us)
	if sched.Sent() != before {
		t.Fatal("the pause was not honoured")
	}
	n.advance(t, cableNs+1024+10*slot)
	if sent := sched.Sent() - before; sent < 9*1530 {
		t.Errorf("%d bytes after the pause was over", sent)
	}
	if n.Lost() != 0 {
		t.Errorf("lost %v", n.Drops())
	}
}

// TestUnresponsiveHostIsDisabled: a host that does not pause is asked four times, then
// its port is down for a while; the others lose nothing.
func TestUnresponsiveHostIsDisabled(t *testing.T) {
	c := detailConfig(chain(t, 1, 3))
	c.PFC.ErrDisable = 2 * units.Millisecond
	c.AdjustHost = func(name string, c *hostnic.Config) {
		if name == "h1" {
			c.PFC = false
		}
	}
	n := build(t, c)
	start(t, n, Flow{Src: 0, Dst: 2, Bytes: 1 << 30})
	start(t, n, Flow{Src: 1, Dst: 2, Bytes: 1 << 30})
	bad, good := n.portOf(t, "s1", "h1"), n.portOf(t, "s1", "h2")
	node := n.Switches[0].Nodes[0]
	down, downs := frame.Time(0), 0
	was := false
	n.Engine.Every(0, us, func(frame.Time) {
		is := node.Disabled(uint16(bad.Port))
		if is && !was {
			downs++
		}
		if is {
			down += us
		}
		if is == node.LinkUp(uint16(bad.Port)) {
			t.Errorf("disabled %t, link up %t", is, !is)
			n.Engine.Stop(fmt.Errorf("stop"))
		}
		was = is
	})
	n.advance(t, 20*frame.Millisecond)
	s := node.PFC(uint16(bad.Port)).Stats(n.Engine.Now())
	if downs < 2 || uint64(downs) != s.Disables || s.Violations[0] < 4*s.Disables || down < frame.Time(downs-1)*2*frame.Millisecond {
		t.Errorf("down %d times, %v in all; %+v", downs, down.Duration(), s)
	}
	if node.Disabled(uint16(good.Port)) || node.PFC(uint16(good.Port)).Stats(n.Engine.Now()).Disables != 0 {
		t.Error("the port of a host that pauses is disabled")
	}
	var p vswitch.PortCounts
	node.ReadPort(uint16(good.Port), &p)
	if p.Dropped() != 0 {
		t.Errorf("%d frames of the host that pauses were lost", p.Dropped())
	}
	p = vswitch.PortCounts{}
	node.ReadPort(uint16(bad.Port), &p)
	if p.Drops[frame.PortDown] == 0 || p.Dropped() != p.Drops[frame.PortDown] {
		t.Errorf("of the host that ignores pauses %d frames were dropped, %d of them since its port was down", p.Dropped(), p.Drops[frame.PortDown])
	}
}
