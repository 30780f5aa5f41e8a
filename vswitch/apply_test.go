package vswitch

import (
	"net/netip"
	"slices"
	"testing"

	"gswitch/frame"
	"gswitch/pfc"
	"gswitch/pipeline"
	"gswitch/wire"
	wt "gswitch/wire/wiretest"
)

// What happens to frames, pauses and addresses when the configuration or a
// link changes under them. The rig counts chunks at the end of each test.

func (r *rig) apply(cfg *Config) {
	r.t.Helper()
	if err := r.sw.Apply(cfg); err != nil {
		r.t.Fatal(err)
	}
	r.runAll()
}

// asleep checks that nothing is due at once: an engine would spin.
func (r *rig) asleep() {
	r.t.Helper()
	for i, n := range r.sw.Nodes {
		if at := n.Wake(r.now); at <= r.now {
			r.t.Errorf("worker %d has something to do at %v, for ever", i, r.now.Duration())
		}
	}
}

func TestApplyRemovesPorts(t *testing.T) {
	cfg := losslessConfig(4)
	r := newRig(t, cfg)
	r.in(0, tagged(3, 0, 3, 100), tagged(3, 0, 1, 100))
	for range 30 {
		r.in(3, tagged(1, 3, 3, 1000)) // port 3 is in its pause when it goes
	}
	small := *losslessConfig(2)
	r.apply(&small)
	if d := r.counts(3).Drops[frame.QueueFlush] + r.counts(0).Drops[frame.QueueFlush]; d < 2 {
		t.Errorf("%d frames were flushed from the queues of the removed port: %v", d, r.drops())
	}
	n := r.sw.Nodes[0]
	n.Receive(r.now, 3, []frame.Ref{r.pools[0].New(l2(1, 0))})
	n.SetLink(r.now, 3, false)
	n.SetLink(r.now, 2, true)
	if n.Owns(3) {
		t.Error("the worker still owns the removed port")
	}
	for range 1000 {
		r.advance(frame.Microsecond)
		r.out(0)
		r.out(1)
	}
	r.asleep()
	r.in(0, l2(3, 0), l2(1, 0)) // behind the removed port; behind one that stays
	if len(r.out(1)) == 0 {
		t.Error("a port that stayed forwards no more")
	}
	r.out(0)
	r.apply(losslessConfig(4)) // and back
	r.setLink(2, true)
	r.setLink(3, true)
	r.out(1)
	r.in(0, l2(3, 0))
	r.one(3)
}

// A port may change its worker; its frames and pauses do not stay behind.
func TestApplyChangesWorkers(t *testing.T) {
	cfg := losslessConfig(2)
	r := newRigOf(t, cfg, 2, 4096)
	r.in(0, tagged(1, 0, 3, 100))
	next := *losslessConfig(2)
	next.Ports[1].Worker = 1
	if err := r.sw.Apply(&next); err != nil {
		t.Fatal(err)
	}
	// Worker 0 goes by the new program and hands frames to worker 1, which
	// goes by the old one; and the other way round.
	r.sw.Nodes[0].Advance(r.now)
	r.sw.Nodes[0].Receive(r.now, 0, []frame.Ref{r.pools[0].New(tagged(1, 0, 3, 100)), r.pools[0].New(l2(7, 1))})
	r.sw.Nodes[0].Receive(r.now, 1, []frame.Ref{r.pools[0].New(pfcFrame(8, 0xffff))})
	for range 3 {
		n := r.sw.Nodes[1]
		n.takeOver()
		n.freeDropped()
	}
	r.runAll()
	if r.sw.Nodes[0].Owns(1) || !r.sw.Nodes[1].Owns(1) {
		t.Error("the port has not changed its owner")
	}
	r.advance(frame.Second)
	r.out(1)
	r.in(0, tagged(1, 0, 3, 100))
	r.one(1)
	r.out(0)
	r.advance(frame.Second)
	r.asleep()
}

// An engine reports a link only those workers that serve the port.
func TestLinkIsKnownToAllWorkers(t *testing.T) {
	cfg := twoWorkers(baseConfig(2))
	r := &rig{t: t, arena: frame.MustArena(4096, 2048, frame.DefaultHeadroom), now: frame.Second}
	depot := frame.NewDepot(r.arena)
	r.pools = []*frame.Pool{depot.NewPool(r.arena), depot.NewPool(r.arena)}
	sw, err := New(cfg, r.pools)
	if err != nil {
		t.Fatal(err)
	}
	r.sw = sw
	sw.Nodes[0].SetLink(r.now, 0, true)
	sw.Nodes[1].SetLink(r.now, 1, true)
	if sw.Nodes[1].Handoff()&1 == 0 {
		t.Error("worker 0 is left asleep")
	}
	if sw.Nodes[0].Wake(r.now) > r.now {
		t.Error("worker 0 does not want to know")
	}
	r.runAll()
	r.in(0, l2(9, 1))
	r.one(1)
	sw.Nodes[1].SetLink(r.now, 1, false)
	r.runAll()
	r.in(0, l2(9, 1))
	r.wantDrop(0, frame.NoVLANMember)
	r.close(depot, 4096)
}

// A neighbour that lost its link has forgotten what it was asked: it is asked
// again, and while the link is down no worker is kept awake.
func TestPauseIsRequestedAnewAfterAFlap(t *testing.T) {
	r := newRig(t, losslessConfig(2))
	for range 30 {
		r.in(0, tagged(1, 0, 3, 1000))
	}
	if b := r.out(0); len(b) == 0 || wire.MACControl(b[0]).Quanta(3) == 0 {
		t.Fatal("no pause")
	}
	r.setLink(0, false)
	n := r.sw.Nodes[0]
	n.Advance(r.now)
	r.sw.Nodes[0].busy.remove(1) // leave the rate clock out of it
	r.asleep()
	n.busy.add(1)
	r.setLink(0, true)
	if b := r.out(0); len(b) == 0 || wire.MACControl(b[0]).Opcode() != wire.OpPFC || wire.MACControl(b[0]).Quanta(3) == 0 {
		t.Error("the neighbour is not asked again to pause")
	}
}

// A pause for which there is no memory is counted, tried again a little later, and sent as
// soon as there is some.
func TestPauseWithoutMemory(t *testing.T) {
	r := newRig(t, losslessConfig(2))
	for range 30 {
		r.in(0, tagged(1, 0, 3, 1000))
	}
	r.out(0)
	n := r.sw.Nodes[0]
	r.setLink(0, false)
	n.Advance(r.now)
	before, missed := n.Counts().Made, func() uint64 { return r.counts(0).Drops[frame.ArenaExhausted] }
	pool := r.pools[0]
	pool.FailAt([]frame.Misses{{First: pool.Asked() + 1, N: 1 << 40}})
	r.setLink(0, true)
	n.Advance(r.now)
	n.Advance(r.now)
	if at := n.TimerWake(r.now); missed() != 1 || n.Counts().Made != before+1 || at <= r.now || at > r.now+flowControlRetry {
		t.Errorf("%d are counted, %d were to be made, and the next attempt is in %v", missed(), n.Counts().Made-before, (at - r.now).Duration())
	}
	n.Advance(r.now + flowControlRetry - 1)
	if missed() != 1 {
		t.Errorf("%d attempts before their time", missed())
	}
	r.advance(flowControlRetry)
	if b := r.out(0); len(b) != 0 || missed() != 2 {
		t.Errorf("%d frames, %d attempts", len(b), missed())
	}
	pool.FailAt(nil)
	r.advance(flowControlRetry)
	if b := r.out(0); len(b) == 0 || wire.MACControl(b[0]).Opcode() != wire.OpPFC || wire.MACControl(b[0]).Quanta(3) == 0 || missed() != 2 {
		t.Errorf("no pause, of %d frames, %d attempts", len(b), missed())
	}
	// With nothing to send nothing is missing, though a pause of the neighbour ends now.
	r.in(0, wt.PFC(hostMAC(1), 1<<3, 100))
	pool.FailAt([]frame.Misses{{First: pool.Asked() + 1, N: 1 << 40}})
	end := r.now
	for end < r.now+frame.Second && n.ports[0].pfc.Wake(end) > end {
		end++
	}
	if n.Request(end, 0); missed() != 2 || n.flow.due > end {
		t.Errorf("%d attempts, without need; the next timer is due at %d, the pause ends at %d", missed(), n.flow.due, end)
	}
	pool.FailAt(nil)
}

// A pause follows its class to another queue.
func TestPauseFollowsItsClass(t *testing.T) {
	r := newRig(t, losslessConfig(2))
	r.in(1, pfcFrame(1<<3, 0xffff))
	next := *losslessConfig(2)
	next.Class.Queue[3], next.Class.Queue[2] = 2, 3
	r.apply(&next)
	r.in(0, tagged(1, 0, 3, 100))
	r.none(1)
	r.in(0, tagged(1, 0, 2, 100))
	if b := r.one(1); wire.VLAN(b[14:]).TCI()>>13 != 2 {
		t.Error("the wrong class stopped")
	}
}

// Interfaces keep their neighbours over a reload, whichever others come or go.
func TestNeighborsSurviveOtherInterfaces(t *testing.T) {
	cfg := routerConfig()
	r := newRig(t, cfg)
	r.in(1, arp(wire.ARPRequest, wire.BroadcastMAC, hostMAC(2), "10.0.1.2", "10.0.1.1"))
	r.in(0, arp(wire.ARPRequest, wire.BroadcastMAC, hostMAC(1), "10.0.0.9", "10.0.0.1"))
	r.one(1)
	r.one(0)
	next := *routerConfig()
	next.Ports = slices.Clone(next.Ports)
	next.Ports[0].Addresses = nil
	next.VLANs = []VLANConfig{{ID: 30, Name: "new", Addresses: prefixes("10.0.2.1/24")}}
	r.apply(&next)
	nb := r.sw.Nodes[0].Neighbors()
	if len(nb) != 1 || nb[0].Interface != "b" || nb[0].MAC != hostMAC(2) {
		t.Errorf("neighbours after the change: %+v", nb)
	}
	next2 := *routerConfig()
	next2.Ports = append(ports(1), next2.Ports...) // all port numbers shift
	next2.Ports[0].Name = "x"
	next2.NoRedirects = true
	r.apply(&next2)
	r.setLink(2, true)
	r.in(2, udp(selfMAC, hostMAC(2), "10.0.1.2", "10.0.1.9"))
	if b := r.one(2); wire.Ethernet(b).Dst() != hostMAC(2) {
		t.Errorf("sent %x", b)
	}
}

// An IPv6 link-local neighbour belongs to one link.
func TestLinkLocalNeighborsStayOnTheirLink(t *testing.T) {
	r := newRig(t, routerConfig())
	n := r.sw.Nodes[0]
	k := keyOf(netip.MustParseAddr("fe80::5"))
	n.local.learn(r.now, nextHop{n.prog.ports[0].iface, k}, hostMAC(5).Uint64(), true, 0)
	next := *routerConfig()
	next.Ports = slices.Clone(next.Ports)
	next.Ports[0].Addresses = nil
	r.apply(&next)
	if nb := n.Neighbors(); len(nb) != 0 {
		t.Errorf("neighbours of an interface that is gone: %+v", nb)
	}
}

// What was learned on a port that is in another VLAN now, or disabled, must
// not keep frames from where the station is.
func TestLearnedAddressesFollowChanges(t *testing.T) {
	vlans := func(pvid uint16) *Config {
		cfg := baseConfig(3)
		cfg.VLANs = []VLANConfig{{ID: 10}, {ID: 20}}
		for i := range cfg.Ports {
			cfg.Ports[i].VLANMode, cfg.Ports[i].PVID = VLANAccess, 10
		}
		cfg.Ports[1].PVID = pvid
		return cfg
	}
	r := newRig(t, vlans(10))
	r.in(1, l2(9, 1))
	r.out(0)
	r.out(2)
	r.apply(vlans(20)) // host 1 is elsewhere in VLAN 10 now, if anywhere
	r.in(0, l2(1, 5))
	r.one(2)
	r.none(1)

	r.apply(vlans(10))
	r.in(1, l2(9, 1))
	r.out(0)
	r.out(2)
	off := vlans(10)
	off.Ports[1].Enabled = false
	r.apply(off)
	r.in(0, l2(1, 5))
	r.one(2)
}

// The router goes by the members of a VLAN, not by what was once learned.
func TestRouterKeepsToTheVLAN(t *testing.T) {
	cfg := baseConfig(3)
	cfg.VLANs = []VLANConfig{{ID: 10, Name: "red", Addresses: prefixes("10.0.10.1/24")}, {ID: 20}}
	for i := range cfg.Ports {
		cfg.Ports[i].VLANMode, cfg.Ports[i].PVID = VLANAccess, 10
	}
	cfg.Ports[2].PVID = 20
	cfg.Neighbors = []StaticNeighbor{{netip.MustParseAddr("10.0.10.2"), hostMAC(2)}}
	r := newRig(t, cfg)
	r.sw.fdb.Learn(r.now, pipeline.MACKey(10, hostMAC(2).Uint64()), 2)
	r.in(0, udp(selfMAC, hostMAC(1), "10.0.10.2", "10.0.10.9"))
	r.none(2)
	r.one(1)
	r.out(0)
}

func TestConfigThatCannotWork(t *testing.T) {
	for name, spoil := range map[string]func(*Config){
		"static address on no port":     func(c *Config) { c.FDB.Static = []StaticMAC{{VLAN: 1, MAC: hostMAC(1), Port: 300}} },
		"access VLAN out of range":      func(c *Config) { c.Ports[0] = PortConfig{Name: "a", VLANMode: VLANAccess, PVID: 5000} },
		"default mirrors to no session": func(c *Config) { c.ACLs = []ACL{{Name: "a", Default: pipeline.Action{Ops: pipeline.OpMirror}}} },
		"default redirects to no port": func(c *Config) {
			c.ACLs = []ACL{{Name: "a", Default: pipeline.Action{Ops: pipeline.OpRedirect, Port: 99}}}
		},
		"default polices": func(c *Config) { c.ACLs = []ACL{{Name: "a", Default: pipeline.Action{Ops: pipeline.OpPolice}}} },
		"polices without a bucket": func(c *Config) {
			c.ACLs = []ACL{{Name: "a", Rules: []ACLRule{{Action: pipeline.Action{Ops: pipeline.OpPolice}}}}}
		},
		"route to a connected network":  func(c *Config) { c.Routes = []Route{{Prefix: netip.MustParsePrefix("10.0.0.0/24"), Refuse: Blackhole}} },
		"route to the switch's address": func(c *Config) { c.Routes = []Route{{Prefix: netip.MustParsePrefix("10.0.0.1/32"), Refuse: Blackhole}} },
		"route to the broadcast address": func(c *Config) {
			c.Routes = []Route{{Prefix: netip.MustParsePrefix("10.0.0.255/32"), Refuse: Blackhole}}
		},
	} {
		cfg := routerConfig()
		spoil(cfg)
		pool := frame.NewPool(frame.MustArena(256, 2048, 256))
		if _, err := New(cfg, []*frame.Pool{pool}); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	// A routed port is in no VLAN, whatever else it says.
	cfg := routerConfig()
	cfg.Ports[0].VLANMode = VLANTrunk
	r := newRig(t, cfg)
	r.in(0, wt.Frame(wt.Eth(selfMAC, hostMAC(1)), wt.VLAN(7, 0), wt.IPv4("10.0.0.9", "10.0.0.1"), wt.ICMP(wire.ICMPEcho, 0, 1)))
	r.one(0)
}

// Configurations, links, workers' clocks and damaged frames in any order: no
// panic, every chunk comes back, and no worker stays awake for nothing.
func TestChangesInAnyOrder(t *testing.T) {
	for seed := range uint64(10) {
		rnd := frame.NewRand(seed)
		r := newRigOf(t, randomConfig(&rnd), 2, 2048)
		all := seeds()
		var v [vector]frame.Ref
		for range 400 {
			switch k := rnd.Uint32n(20); {
			case k == 0:
				if err := r.sw.Apply(randomConfig(&rnd)); err != nil {
					t.Fatal(err)
				}
			case k == 1:
				r.sw.Nodes[rnd.Uint32n(2)].SetLink(r.now, uint16(rnd.Uint32n(8)), rnd.Uint32n(3) > 0)
			case k < 6:
				r.now += frame.Time(rnd.Uint32n(uint32(2 * frame.Second)))
				r.sw.Nodes[rnd.Uint32n(2)].Advance(r.now)
			case k < 12:
				w := rnd.Uint32n(2)
				p := uint16(rnd.Uint32n(7))
				r.pools[w].Drain()
				n := r.sw.Nodes[w]
				if !n.Owns(p) {
					continue
				}
				for _, ref := range v[:n.Transmit(r.now, p, v[:])] {
					r.pools[w].Free(ref)
				}
			default:
				w, got := rnd.Uint32n(2), 0
				for range 1 + rnd.Uint32n(vector) {
					b := all[rnd.Uint32n(uint32(len(all)))]
					if rnd.Uint32n(4) == 0 {
						b = mutate(&rnd, b, all)
					}
					if v[got] = r.pools[w].New(b); v[got] != frame.Nil {
						got++
					}
				}
				r.sw.Nodes[w].Receive(r.now, uint16(rnd.Uint32n(7)), v[:got])
			}
		}
		// Then nothing more happens: all is sent or forgotten.
		for p := range uint16(8) {
			r.setLink(p, false)
		}
		for range 40 {
			r.advance(10 * frame.Second)
		}
		r.now++
		r.asleep()
	}
}

// randomConfig is everything with some ports gone, moved or of another kind.
func randomConfig(rnd *frame.Rand) *Config {
	cfg := everything()
	cfg.Ports = append(cfg.Ports, PortConfig{Name: "g", Enabled: true})
	for i := range cfg.Ports {
		p := &cfg.Ports[i]
		p.Worker = int(rnd.Uint32n(2))
		p.Enabled = rnd.Uint32n(5) > 0
		if i == 0 || i == 1 || i == 5 {
			continue // routes and the mirror need them
		}
		switch rnd.Uint32n(5) {
		case 0:
			*p = PortConfig{}
		case 1:
			p.Name = "renamed"
		case 2:
			p.VLANMode, p.PVID = VLANMode(rnd.Uint32n(3)), 20
		case 3:
			p.Addresses = []netip.Prefix{netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 9, byte(i), 1}), 24)}
		}
	}
	if rnd.Uint32n(2) == 0 {
		cfg.Ports = cfg.Ports[:6]
	}
	cfg.PFC.Mode = []pfc.Mode{pfc.Off, pfc.PFC, pfc.Pause}[rnd.Uint32n(3)]
	cfg.PFC.Watchdog.Action = []pfc.Action{pfc.Drop, pfc.Alert}[rnd.Uint32n(2)]
	for i := range cfg.Class.Queue {
		cfg.Class.Queue[i] = uint8(rnd.Uint32n(8))
	}
	return cfg
}
