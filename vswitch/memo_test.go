package vswitch

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"gswitch/frame"
	"gswitch/wire"
	wt "gswitch/wire/wiretest"
)

// A switch that gets each frame alone, and remembers flows, sends the same
// frames by the same ports as one that gets them in pairs, and does not: while
// routes, neighbours, links, sizes and times to live change. Its interfaces are
// ports, or VLANs of a port each, where stations are learned.
func TestLoneFramesGoLikeOthers(t *testing.T) {
	t.Run("ports", func(t *testing.T) { compareLone(t, false) })
	t.Run("VLANs", func(t *testing.T) { compareLone(t, true) })
}

func compareLone(t *testing.T, vlans bool) {
	build := func() *rig {
		cfg := baseConfig(4)
		for i := range cfg.Ports {
			cfg.Ports[i].MTU = 1500 - 200*i
			if a := prefixes(fmt.Sprintf("10.0.%d.1/24", i)); vlans {
				cfg.Ports[i].VLANMode, cfg.Ports[i].PVID = VLANAccess, uint16(10+i)
				cfg.VLANs = append(cfg.VLANs, VLANConfig{ID: uint16(10 + i), Name: fmt.Sprintf("v%d", i), Addresses: a})
			} else {
				cfg.Ports[i].Addresses = a
			}
			for h := 2; h < 4; h++ { // the fourth is found by ARP
				cfg.Neighbors = append(cfg.Neighbors, StaticNeighbor{Addr: netip.MustParseAddr(fmt.Sprintf("10.0.%d.%d", i, h)), MAC: hostMAC(10*i + h)})
			}
		}
		cfg.ICMPRate = 1 // the two would send errors at different places among the frames
		return newRig(t, cfg)
	}
	lone, pairs := build(), build()
	both := func(f func(r *rig)) { f(lone); f(pairs) }
	rnd := frame.NewRand(3)
	sent := map[int]int{}
	for step := range 12000 {
		via := netip.MustParseAddr(fmt.Sprintf("10.0.%d.%d", rnd.Uint32n(4), 2+rnd.Uint32n(3)))
		port, up := uint16(rnd.Uint32n(4)), rnd.Uint32n(4) > 0
		prefix := netip.MustParsePrefix(fmt.Sprintf("20.%d.0.0/16", rnd.Uint32n(3)))
		switch rnd.Uint32n(200) {
		case 0:
			both(func(r *rig) {
				if err := r.sw.SetRoute(Route{Prefix: prefix, NextHops: []NextHop{{Via: via}, {Via: netip.MustParseAddr("10.0.2.2")}}}); err != nil {
					t.Fatal(err)
				}
				r.runAll()
			})
		case 1:
			both(func(r *rig) { _ = r.sw.DeleteRoute(prefix); r.runAll() }) // it may not be there
		case 2:
			both(func(r *rig) { r.setLink(port, up); r.runAll() })
		case 3:
			both(func(r *rig) {
				cfg := *r.sw.Program().Config
				cfg.Neighbors = slices.Clone(cfg.Neighbors)
				cfg.Neighbors[int(port)].MAC = hostMAC(100 + step%50)
				if err := r.sw.Apply(&cfg); err != nil {
					t.Fatal(err)
				}
				r.runAll()
			})
		}
		if rnd.Uint32n(10) == 0 { // a neighbour has another MAC now
			a := arp(wire.ARPReply, selfMAC, hostMAC(200+step%50), fmt.Sprintf("10.0.%d.4", port), fmt.Sprintf("10.0.%d.1", port))
			both(func(r *rig) { r.in(port, a) })
		}
		if vlans && rnd.Uint32n(3) == 0 { // a station is learned
			b := wt.Frame(wt.Eth(hostMAC(99), hostMAC(10*int(port)+2+int(rnd.Uint32n(2)))), wt.IPv4("10.0.9.1", "10.0.9.2"), wt.UDP(1, 2), wt.Zeros(20))
			both(func(r *rig) { r.in(port, b) })
		}
		in := uint16(rnd.Uint32n(2))
		src := fmt.Sprintf("10.0.%d.2", in)
		if rnd.Uint32n(20) == 0 {
			src = "127.0.0.1"
		}
		dst, ttl := fmt.Sprintf("20.%d.0.1", rnd.Uint32n(3)), uint8(64)
		if rnd.Uint32n(10) == 0 {
			dst, ttl = fmt.Sprintf("10.0.%d.%d", rnd.Uint32n(4), 2+rnd.Uint32n(3)), uint8(1+rnd.Uint32n(3))
		}
		f := wt.Frame(wt.Eth(selfMAC, hostMAC(1)), wt.IPv4(src, dst, wt.TTL(ttl)), wt.UDP(uint16(1000+rnd.Uint32n(2)), 2000), wt.Zeros(int(rnd.Uint32n(1400))))
		lone.in(in, f)
		lone.in(in, f)
		pairs.in(in, f, f)
		for p := range uint16(4) {
			a, b := lone.out(p), pairs.out(p)
			if !slices.EqualFunc(a, b, slices.Equal) {
				t.Fatalf("step %d, %s to %s: port %d sends %d frames of lone ones, %d of pairs: %x %x", step, src, dst, p, len(a), len(b), a, b)
			}
			sent[int(p)] += len(a)
		}
	}
	if a, b := fmt.Sprint(lone.drops()), fmt.Sprint(pairs.drops()); a != b {
		t.Errorf("drops of lone frames %s, of pairs %s", a, b)
	}
	if a, b := lone.sw.Nodes[0].RouteCounts(nil), pairs.sw.Nodes[0].RouteCounts(nil); !slices.Equal(a, b) {
		t.Errorf("routes counted %v for lone frames, %v for pairs", a, b)
	}
	for p, k := range sent {
		if k < 100 {
			t.Errorf("only %d frames left by port %d", k, p)
		}
	}
}
