package vnet

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"gswitch/cc"
	"gswitch/config"
	"gswitch/fabric"
	"gswitch/frame"
	"gswitch/hostnic"
	inband "gswitch/int"
	"gswitch/transport"
	"gswitch/units"
)

const (
	gig = 1_000_000_000
	us  = frame.Microsecond
)

// topology generates a network with one rate for host links and one for the
// others, all of the same delay.
func topology(t testing.TB, expr string, host, inner uint64, delay time.Duration) *fabric.Topology {
	t.Helper()
	s := fabric.Spec{Name: "test", Generate: expr, Classes: map[string]fabric.Class{
		fabric.ClassHost:   {Rate: units.Rate(host), Delay: units.Duration(delay)},
		fabric.ClassFabric: {Rate: units.Rate(inner), Delay: units.Duration(delay)},
	}}
	topo, err := s.Build()
	if err != nil {
		t.Fatal(err)
	}
	return topo
}

func build(t testing.TB, c *Config) *Network {
	t.Helper()
	n, err := Build(c)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// run runs until everything that was started has ended and returns how.
func run(t testing.TB, n *Network, limit frame.Time) []Done {
	t.Helper()
	var all []Done
	n.OnDone(func(_ frame.Time, d *Done) { all = append(all, *d) })
	for end := n.Engine.Now() + limit; n.Engine.Now() < end; {
		if err := n.Engine.Run(n.Engine.Now() + 50*us); err != nil {
			t.Fatal(err)
		}
		if c := n.Counts(); c.Started == c.Finished {
			break
		}
	}
	if err := n.Err(); err != nil {
		t.Fatal(err)
	}
	if c := n.Counts(); c.Started != c.Finished {
		t.Fatalf("%d of %d messages ended by %v", c.Finished, c.Started, n.Engine.Now().Duration())
	}
	return all
}

func start(t testing.TB, n *Network, f Flow) {
	t.Helper()
	if err := n.StartFlow(n.Engine.Now(), &f); err != nil {
		t.Fatal(err)
	}
}

// A flow alone in the network takes exactly as long as Ideal says: routed and
// bridged, with links of different speeds, from one byte to many frames.
func TestIdealIsWhatHappens(t *testing.T) {
	for _, c := range []struct {
		expr        string
		host, inner uint64
		overhead    uint32
		payload     int
		whole       bool
	}{
		{"star(4)", 100 * gig, 100 * gig, 0, 0, false},
		{"line(4, 1)", 25 * gig, 100 * gig, 24, 1024, false},
		{"leaf-spine(2, 2, 2)", 100 * gig, 40 * gig, 24, 0, false},
		{"leaf-spine(2, 2, 2)", 25 * gig, 100 * gig, 0, 0, true},
		{"fat-tree(4)", 40 * gig, 40 * gig, 24, 1024, false},
		{"star(2)", 1 * gig, 1 * gig, 24, 4096, false},
	} {
		topo := topology(t, c.expr, c.host, c.inner, time.Microsecond)
		for _, bytes := range []uint64{1, 4, 999, 1000, 1001, 1024, 5000, 100_003, 1_000_000} {
			n := build(t, &Config{Topology: topo, Overhead: c.overhead, Payload: c.payload, WholeNs: c.whole})
			last := len(n.Hosts) - 1
			start(t, n, Flow{Src: 0, Dst: last, Bytes: bytes})
			d := run(t, n, 20*frame.Millisecond)[0]
			// What the engine rounds down at each hop, Ideal rounds up at the end.
			if want := n.Ideal(0, last, bytes); d.FCT() > want || d.FCT() < want-8 {
				t.Errorf("%s, %d bytes: took %d ns, alone it should be %d", c.expr, bytes, d.FCT(), want)
			}
			// The last acknowledgement may wait for the one before it, where the
			// last frame is short.
			if got, want := d.SenderEnd-d.Start, n.IdealAcked(0, last, bytes); got > want+10 || got < want-16 {
				t.Errorf("%s, %d bytes: acknowledged after %d ns, alone it should be %d", c.expr, bytes, got, want)
			}
			if n.Lost() != 0 {
				t.Errorf("%s: %v lost", c.expr, n.Drops())
			}
		}
	}
}

// Hosts whose clocks are elsewhere, by more than any timeout, send as others do: flows
// begin at their own time, and no timer is due before it is.
func TestFlowsByHostsOwnTime(t *testing.T) {
	topo := topology(t, "star(2)", 10*gig, 10*gig, time.Microsecond)
	for _, ahead := range []frame.Time{0, frame.Millisecond, 10 * frame.Second} {
		n := build(t, &Config{Topology: topo})
		for i := range topo.Nodes {
			if err := n.Engine.SetClock(n.EngineNode(i), 0, ahead*frame.Time(i+1)); err != nil {
				t.Fatal(err)
			}
		}
		start(t, n, Flow{Src: 0, Dst: 1, Bytes: 100_003})
		d := run(t, n, 20*frame.Millisecond)[0]
		if want := n.Ideal(0, 1, 100_003); d.FCT() > want || d.FCT() < want-8 || d.Retransmits != 0 || d.Timeouts != 0 {
			t.Errorf("%v ahead: took %d ns, alone it should be %d; %d retransmissions, %d timeouts", ahead.Duration(), d.FCT(), want, d.Retransmits, d.Timeouts)
		}
	}
}

// The ports that Route names are those that the frames take, each way.
func TestRouteIsWhereFramesGo(t *testing.T) {
	topo := topology(t, "fat-tree(4)", 40*gig, 40*gig, time.Microsecond)
	for _, mode := range []inband.Mode{inband.None, inband.HPCC} {
		used := map[string]bool{}
		for i := range 40 {
			n := build(t, &Config{Topology: topo, Seed: 7, INT: INT{Mode: mode}})
			f := Flow{ID: uint64(i), Src: i % 4, Dst: 15 - i%5, Bytes: 10_000, SrcPort: uint16(50_000 + i), AckPort: uint16(60_000 - i)}
			there, err := n.Route(f.Src, f.Dst, f.SrcPort, false)
			if err != nil {
				t.Fatal(err)
			}
			back, err := n.Route(f.Dst, f.Src, f.AckPort, true)
			if err != nil {
				t.Fatal(err)
			}
			start(t, n, f)
			run(t, n, frame.Millisecond)
			want := map[Port]bool{}
			for _, p := range append(there, back...) {
				want[p] = true
			}
			for s := range n.Switches {
				for port := range n.Ports(s) {
					p := Port{s, port}
					if (n.Sent(p) > 0) != want[p] {
						t.Fatalf("%v, flow %d: port %d of %s sent %d bytes; the way is %v and %v", mode, i, port, n.SwitchName(s), n.Sent(p), there, back)
					}
				}
			}
			used[fmt.Sprint(there)] = true
		}
		if len(used) < 12 {
			t.Errorf("%v: 40 flows take only %d ways", mode, len(used))
		}
	}
}

// Many senders to one: with flow control nothing is lost, without it and with
// little buffer much is, and both ends recover.
func TestIncast(t *testing.T) {
	topo := topology(t, "star(9)", 40*gig, 40*gig, time.Microsecond)
	for name, c := range map[string]struct {
		cfg    Config
		lost   bool
		paused bool
	}{
		"pfc": {Config{PFC: PFC{On: true}, Buffer: config.NetworkBuffer{Size: 1 << 20, XONOffset: 3000}}, false, true},
		"irn": {Config{Buffer: config.NetworkBuffer{Size: 1 << 20, LossyRoom: config.LossyRoom{Ingress: 10_000}}, VOQ: true, Payload: 1024,
			Host: Host{Transport: transport.Config{Recovery: transport.IRN}, Recovery: Recovery{Cap: true, RTOs: true}}}, true, false},
		"go-back-n": {Config{Buffer: config.NetworkBuffer{Size: 200_000}, Host: Host{Transport: transport.Config{Recovery: transport.GoBackN, RTOHigh: 300 * us}}}, true, false},
	} {
		cfg := c.cfg
		cfg.Topology, cfg.Seed = topo, 1
		n := build(t, &cfg)
		for s := range 8 {
			start(t, n, Flow{ID: uint64(s), Src: s, Dst: 8, Bytes: 300_000})
		}
		done := run(t, n, frame.Second)
		retrans := uint64(0)
		for _, d := range done {
			retrans += uint64(d.Retransmits)
		}
		p := n.Pauses(n.Engine.Now())
		if lost := n.Lost() > 0; lost != c.lost || (retrans > 0) != c.lost || (p.Requests > 0) != c.paused {
			t.Errorf("%s: %d lost, %d sent again, %+v", name, n.Lost(), retrans, p)
		}
		if c.paused && (p.Time == 0 || p.XON != p.Requests) {
			t.Errorf("%s: %+v", name, p)
		}
		if n.Counts().Retransmits != retrans || n.Counts().Bytes != 8*300_000 || n.Counts().Open != 0 {
			t.Errorf("%s: %+v", name, n.Counts())
		}
	}
}

// IRN's parameters follow from its network as its authors give them: 54 hosts,
// 40 Gb/s, 2 us a link, 240 KB an ingress port (Mittal et al., section 4.1).
func TestDerivedForIRN(t *testing.T) {
	topo := topology(t, "fat-tree(6)", 40*gig, 40*gig, 2*time.Microsecond)
	n := build(t, &Config{Topology: topo, Payload: 1024, Buffer: config.NetworkBuffer{Size: 6 * 240_000, LossyRoom: config.LossyRoom{Ingress: 240_000}},
		Host: Host{Transport: transport.Config{Recovery: transport.IRN}, Recovery: Recovery{Cap: true, RTOs: true}}})
	d := n.Derived
	if len(n.Hosts) != 54 || len(n.Switches) != 45 || d.MaxBDP != 120_000 || d.Transport.Cap != 110 || d.Transport.N != 3 {
		t.Errorf("%+v", d)
	}
	if d.Transport.RTOHigh < 310*us || d.Transport.RTOHigh > 325*us || d.Transport.RTOLow != 100*us {
		t.Errorf("timeouts %v and %v", d.Transport.RTOLow.Duration(), d.Transport.RTOHigh.Duration())
	}
	// 24 us of propagation, a frame of 1082 bytes at 6 hops, its ACK of 62.
	if want := 24*us + 6*(1082+62)*8/40; d.MaxRTT < want || d.MaxRTT > want+6 {
		t.Errorf("round trip %d, want %d", d.MaxRTT, want)
	}
	n = build(t, &Config{Topology: topo, BaseRTT: 30 * us})
	if n.Derived.BaseRTT != 30*us || n.Derived.Transport.Cap != 0 || n.Hosts[0].Config().BaseRTT != 30*us {
		t.Errorf("%+v", n.Derived)
	}
}

// The numbers of HPCC's simulator for its star of 100 Gb/s: 4160 ns, and
// 16772160 ns for 200 MB.
func TestNS3Formula(t *testing.T) {
	topo := topology(t, "star(3)", 100*gig, 100*gig, time.Microsecond)
	n := build(t, &Config{Topology: topo})
	rtt, err := MaxRTTNS3(topo, 1000)
	if err != nil || rtt != 4160 {
		t.Errorf("round trip %d, %v", rtt, err)
	}
	if got := n.IdealNS3(0, 1, 200_000_000, 48); got != 16_772_160 {
		t.Errorf("alone %d", got)
	}
}

// With congestion control that reads marks, queues stay short; with telemetry
// they vanish.
func TestCongestionControl(t *testing.T) {
	topo := topology(t, "dumbbell(4, 4)", 25*gig, 25*gig, time.Microsecond)
	peak := map[string]uint64{}
	for _, name := range []string{"none", "dctcp", "hpcc"} {
		cfg := Config{Topology: topo, Seed: 3, ECN: ECN{On: true, ECN: config.ECN{KMin: 30_000, KMax: 30_000}, At: 25 * gig}}
		if name != "none" {
			build, err := cc.Factory(name, nil)
			if err != nil {
				t.Fatal(err)
			}
			cfg.Host.CC = Algorithm{Name: name, New: build}
		}
		if name == "hpcc" {
			cfg.INT.Mode = inband.HPCC
		}
		n := build(t, &cfg)
		left, _ := n.SwitchByName("s1")
		p, ok := n.PortOf(left, "s2")
		if !ok {
			t.Fatalf("%s is not a neighbour: %v", "s2", n.Topology.Nodes)
		}
		for i := range 4 {
			start(t, n, Flow{ID: uint64(i), Src: i, Dst: 4 + i, Bytes: 1_000_000})
		}
		from := n.Sent(Port{left, p})
		n.Engine.Every(us, us, func(frame.Time) {
			if n.Engine.Now() > 300*us { // after the start, which is at line rate
				peak[name] = max(peak[name], n.Queue(Port{left, p}))
			}
		})
		run(t, n, 10*frame.Millisecond)
		if u := float64(n.Sent(Port{left, p})-from) * 8 / (float64(n.Rate(Port{left, p})) * n.Engine.Now().Seconds()); u < 0.7 || u > 1 {
			t.Errorf("%s: the link between the switches was used by %.3f", name, u)
		}
	}
	if !(peak["hpcc"] < peak["dctcp"] && peak["dctcp"] < peak["none"]) || peak["hpcc"] > 20_000 {
		t.Errorf("longest queues %v", peak)
	}
}

// A connection carries messages in order, reports each, and can be closed.
func TestConnection(t *testing.T) {
	n := build(t, &Config{Topology: topology(t, "star(3)", 10*gig, 10*gig, time.Microsecond)})
	c, err := n.Dial(0, &Flow{ID: 99, Group: 5, Src: 1, Dst: 2})
	if err != nil {
		t.Fatal(err)
	}
	if nic, qpn, ok := n.Sender(c); !ok || nic != n.Hosts[1] || qpn == 0 {
		t.Error("the connection has no sender")
	}
	for i := range uint64(5) {
		if err := n.Send(0, c, 5000*i+1, 100+i); err != nil {
			t.Fatal(err)
		}
	}
	for i, d := range run(t, n, frame.Second) {
		if d.Conn != c || d.Flow.ID != 100+uint64(i) || d.Flow.Bytes != 5000*uint64(i)+1 || d.Flow.Group != 5 ||
			d.ReceiverEnd <= d.Start || d.SenderEnd <= d.ReceiverEnd {
			t.Errorf("message %d: %+v", i, d)
		}
	}
	if err := n.Close(n.Engine.Now(), c); err != nil {
		t.Fatal(err)
	}
	if n.Send(n.Engine.Now(), c, 1, 1) == nil || n.Close(n.Engine.Now(), c) == nil || n.Counts().Open != 0 {
		t.Error("a closed connection is open")
	}
}

func TestErrors(t *testing.T) {
	topo := topology(t, "star(2)", gig, gig, 0)
	slow := topology(t, "star(2)", 0, 0, 0)
	for want, c := range map[string]*Config{
		"no topology": {},
		"payload":     {Topology: topo, Payload: 9001},
		"overhead":    {Topology: topo, Overhead: 20},
		"kmin":        {Topology: topo, ECN: ECN{On: true, ECN: config.ECN{KMin: 2, KMax: 1}}},
		"negative":    {Topology: topo, BaseRTT: -1},
		"no rate":     {Topology: slow},
		"cap":         {Topology: topo, Host: Host{Transport: transport.Config{Cap: transport.MaxFlight + 1}}},
	} {
		if _, err := Build(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	n := build(t, &Config{Topology: topo})
	for _, f := range []Flow{{Src: 0, Dst: 0}, {Src: -1, Dst: 1}, {Src: 0, Dst: 2}} {
		if n.StartFlow(0, &f) == nil {
			t.Errorf("%+v was started", f)
		}
	}
	if n.Send(0, 0, 1, 1) == nil || n.Send(0, 7, 1, 1) == nil || n.Close(0, 0) == nil {
		t.Error("no connection is one")
	}
}

// Adjust hooks see every node, and what they change counts.
func TestAdjust(t *testing.T) {
	hosts := 0
	n := build(t, &Config{Topology: topology(t, "star(3)", gig, gig, 0), AdjustHost: func(name string, c *hostnic.Config) {
		hosts++
		if name == "h2" {
			c.Rate = gig / 2
		}
	}})
	if hosts != 3 || n.Hosts[1].Config().Rate != gig/2 || n.HostName(1) != "h2" {
		t.Error(hosts, n.Hosts[1].Config().Rate)
	}
}

// The same configuration gives the same history, another seed another one.
func TestDeterminism(t *testing.T) {
	digest := func(seed uint64) string {
		n := build(t, &Config{Topology: topology(t, "leaf-spine(2, 2, 4)", 25*gig, 25*gig, time.Microsecond), Seed: seed,
			PFC: PFC{On: true}, Buffer: config.NetworkBuffer{Size: 1 << 20}})
		for i := range 20 {
			start(t, n, Flow{ID: uint64(i), Src: i % 4, Dst: 4 + i*3%4, Bytes: 50_000})
		}
		run(t, n, frame.Second)
		return n.Engine.Digest()
	}
	if a, b := digest(1), digest(1); a != b {
		t.Errorf("%s and %s", a, b)
	}
	if a, b := digest(1), digest(2); a == b {
		t.Error("seeds do not matter")
	}
}

// Opening, running and closing a flow allocates next to nothing once there
// were as many.
func TestFlowsAllocateLittle(t *testing.T) {
	build1, err := cc.Factory("dctcp", nil)
	if err != nil {
		t.Fatal(err)
	}
	n := build(t, &Config{Topology: topology(t, "star(4)", 100*gig, 100*gig, time.Microsecond), Host: Host{CC: Algorithm{"dctcp", build1}}})
	i := uint64(0)
	one := func() {
		i++
		f := Flow{ID: i, Src: int(i % 3), Dst: 3, Bytes: 20_000}
		if err := n.StartFlow(n.Engine.Now(), &f); err != nil {
			t.Fatal(err)
		}
		if err := n.Engine.Run(n.Engine.Now() + 30*us); err != nil {
			t.Fatal(err)
		}
	}
	for range 50 {
		one()
	}
	if got := testing.AllocsPerRun(200, one); got > 4 {
		t.Errorf("%.1f allocations a flow", got)
	}
	if c := n.Counts(); c.Open != 0 || c.Finished != i {
		t.Errorf("%+v", c)
	}
}

// The network of HPCC's evaluation: 320 hosts, 56 switches.
func BenchmarkBuild(b *testing.B) {
	s := fabric.Spec{Name: "hpcc", Generate: "pods(5, 4, 4, 16, 16)", Classes: map[string]fabric.Class{
		fabric.ClassHost: {Rate: 100 * gig, Delay: 1000}, fabric.ClassFabric: {Rate: 400 * gig, Delay: 1000}}}
	topo, err := s.Build()
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Build(&Config{Topology: topo, Buffer: config.NetworkBuffer{Size: 32 << 20}}); err != nil {
			b.Fatal(err)
		}
	}
}

// What scales with a port's rate: marking in proportion, pause thresholds by
// doublings, up to all of the free bytes.
func TestScalesWithRate(t *testing.T) {
	e := ECN{On: true, At: 25 * gig, ECN: config.ECN{KMin: 100_000, KMax: 400_000, PMax: 0.2}, Classes: 0xfe}
	for rate, want := range map[uint64]float64{10: 0.125, 25: 0.125, 40: 0.25, 50: 0.25, 100: 0.5, 200: 1, 400: 1} {
		if got := scaled(1.0/8, rate*gig, 25*gig); got != want {
			t.Errorf("alpha %v at %d Gb/s, want %v", got, rate, want)
		}
		if got, pi := e.at(rate*gig, 3); pi != nil || got.KMin != units.Size(4000*rate) || got.KMax != 4*got.KMin || got.PMax != 0.2 {
			t.Errorf("%+v at %d Gb/s", got, rate)
		}
	}
	if ecn, pi := e.at(25*gig, 0); ecn != nil || pi != nil {
		t.Error("class 0 is marked")
	}
	n := build(t, &Config{Topology: topology(t, "leaf-spine(2, 2, 2)", 25*gig, 100*gig, time.Microsecond), PFC: PFC{On: true},
		Buffer: config.NetworkBuffer{Size: 8 << 20, ScaleAlpha: true, HeadroomDelays: 3, LosslessRoom: config.LosslessRoom{AllowLoss: true}}})
	leaf, _ := n.SwitchByName("leaf1")
	for p, c := range n.Switches[leaf].Program().Config.Ports {
		room, alpha := uint32(3*3125), 0.125
		if n.Rate(Port{leaf, p}) == 100*gig {
			room, alpha = 3*12500, 0.5
		}
		if c.Headroom != room || c.LosslessAlpha != alpha {
			t.Errorf("port %d: headroom %d, alpha %v", p, c.Headroom, c.LosslessAlpha)
		}
	}
}
