package vswitch

import (
	"net/netip"
	"testing"

	"gswitch/frame"
	"gswitch/wire"
	wt "gswitch/wire/wiretest"
)

// floodAddresses sends frames of n stations from a port.
func (r *rig) floodAddresses(port uint16, first, n int) {
	for i := range n {
		r.in(port, l2(9, first+i))
		for p := range r.sw.Program().ports {
			r.out(uint16(p))
		}
	}
}

// A host with more addresses than the forwarding database has room for leaves
// the half of it to others.
func TestAddressesOfOnePortLeaveRoom(t *testing.T) {
	cfg := baseConfig(4)
	cfg.FDB.Size = 200
	r := newRig(t, cfg)
	r.floodAddresses(0, 1000, 600)
	fdb, count := r.sw.FDB(), func() uint64 { return r.sw.Nodes[0].Counts().LearnFull }
	if fdb.Learned(0) != 100 || fdb.RejectedAt(0) != 500 || count() != 500 {
		t.Errorf("%d addresses learned, %d and %d refused", fdb.Learned(0), fdb.RejectedAt(0), count())
	}
	r.floodAddresses(1, 100, 40)
	r.floodAddresses(2, 200, 40)
	for i := range 40 {
		r.in(3, l2(100+i, 3))
		r.one(1)
		r.none(2)
		r.in(3, l2(200+i, 3))
		r.one(2)
		r.none(1)
	}
	if fdb.RejectedAt(1)+fdb.RejectedAt(2)+fdb.RejectedAt(3) != 0 {
		t.Error("others were refused")
	}
	// A station that goes where there is no more room is reached by flooding.
	r.in(0, l2(9, 100))
	for p := range uint16(4) {
		r.out(p)
	}
	r.in(3, l2(100, 3))
	r.one(0)
	r.one(1)
	r.one(2)

	// What the port had is free when its link goes; another share holds at once.
	r.setLink(0, false)
	if fdb.Learned(0) != 0 || fdb.Learned(1) != 39 {
		t.Errorf("without a link %d addresses are learned, and %d at another port", fdb.Learned(0), fdb.Learned(1))
	}
	r.setLink(0, true)
	few := *cfg
	few.FDB.PerPort = 30
	r.apply(&few)
	r.floodAddresses(0, 1000, 60)
	all := *cfg
	all.FDB.PerPort = 200
	if fdb.Learned(0) != 30 || fdb.Learned(1) != 39 {
		t.Errorf("%d addresses learned of a share of 30, %d kept of before", fdb.Learned(0), fdb.Learned(1))
	}
	r.apply(&all)
	r.floodAddresses(0, 1000, 300)
	if fdb.Len() != 200 || fdb.Learned(0) != 120 {
		t.Errorf("without a limit %d addresses are learned of %d", fdb.Learned(0), fdb.Len())
	}
}

// accounts compares what ports have of the neighbour table with the table.
func (r *rig) accounts() {
	r.t.Helper()
	l := r.sw.Nodes[0].local
	var want [MaxPorts + 1]neighborShare
	for nb := l.first; nb != nil; nb = nb.after {
		s := &want[min(nb.port, MaxPorts)]
		s.entries++
		if !nb.state.resolved() {
			s.unresolved++
		}
		if nb.state == neighborStatic && nb.port != frame.NoPort {
			r.t.Fatalf("a static neighbour is on account of port %d", nb.port)
		}
	}
	if want != l.shares {
		r.t.Fatalf("accounts %v, want %v", l.shares[:4], want[:4])
	}
}

// Hosts behind one port claim more addresses than the neighbour table holds.
func TestNeighborsOfOnePortLeaveRoom(t *testing.T) {
	cfg := baseConfig(3)
	cfg.VLANs = []VLANConfig{{ID: 1, Name: "one", Addresses: prefixes("10.0.0.1/16")}}
	r := newRig(t, cfg)
	claim := func(port uint16, mac int, address string) {
		r.in(port, arp(wire.ARPRequest, wire.BroadcastMAC, hostMAC(mac), address, "10.0.0.1"))
		for p := range uint16(3) {
			r.out(p)
		}
	}
	known := func(address string, mac int) bool {
		k := keyOf(netip.MustParseAddr(address))
		return r.sw.Nodes[0].neighbors.lookup(r.sw.Program().vlans[1].iface, k) == hostMAC(mac).Uint64()
	}
	const n = MaxNeighbors + 100
	for i := range n {
		claim(0, 1, netip.AddrFrom4([4]byte{10, 0, byte(i>>8 + 1), byte(i)}).String())
	}
	l := r.sw.Nodes[0].local
	if got, full := l.shares[0].entries, r.sw.Nodes[0].Counts().NeighborFull; got != NeighborsPerPort || full != n-NeighborsPerPort {
		t.Errorf("%d neighbours, %d refused", got, full)
	}
	claim(1, 2, "10.0.200.2")
	if !known("10.0.200.2", 2) {
		t.Error("a neighbour at another port is not learned")
	}
	// What others have is not for a port that has its share.
	claim(0, 1, "10.0.200.2")
	if !known("10.0.200.2", 2) {
		t.Error("a neighbour at another port is taken over")
	}
	r.accounts()
}

// A host that sends to ever new addresses leaves room to resolve those of others.
func TestScanOfOnePortLeavesRoom(t *testing.T) {
	cfg := baseConfig(3)
	cfg.Ports[0].Addresses, cfg.Ports[1].Addresses, cfg.Ports[2].Addresses = prefixes("10.0.0.1/24"), prefixes("10.1.0.1/16"), prefixes("10.2.0.1/24")
	r := newRig(t, cfg)
	for i := range MaxUnresolved + 100 {
		r.in(0, udp(selfMAC, hostMAC(1), netip.AddrFrom4([4]byte{10, 1, byte(i>>8 + 1), byte(i)}).String(), "10.0.0.9"))
		r.out(1)
	}
	if l := r.sw.Nodes[0].local; l.shares[0] != (neighborShare{UnresolvedPerPort, UnresolvedPerPort}) {
		t.Errorf("%+v", l.shares[0])
	}
	r.in(2, udp(selfMAC, hostMAC(3), "10.1.200.2", "10.2.0.9"))
	if b := r.one(1); wire.Ethernet(b).EtherType() != wire.EtherTypeARP {
		t.Errorf("%x instead of a request", b)
	}
	r.accounts()
	// One that answers is on account of the port where it is.
	r.in(1, arp(wire.ARPReply, selfMAC, hostMAC(5), "10.1.200.2", "10.1.0.1"))
	r.out(1)
	if l := r.sw.Nodes[0].local; l.shares[1] != (neighborShare{1, 0}) || l.shares[2] != (neighborShare{}) {
		t.Errorf("accounts %v after an answer", l.shares[:3])
	}
	r.accounts()
}

// Whatever becomes of neighbours, the accounts of ports are those of the table.
func TestAccountsOfNeighbors(t *testing.T) {
	cfg := baseConfig(4)
	cfg.VLANs = []VLANConfig{{ID: 1, Name: "one", Addresses: prefixes("10.0.0.1/24")}}
	cfg.Ports[3].Addresses = prefixes("10.3.0.1/24")
	fixed := *cfg
	fixed.Neighbors = []StaticNeighbor{{netip.MustParseAddr("10.0.0.7"), hostMAC(7)}, {netip.MustParseAddr("10.3.0.7"), hostMAC(8)}}
	for seed := range uint64(5) {
		r, rng := newRig(t, cfg), frame.NewRand(seed)
		for range 1000 {
			port := uint16(rng.Uint32n(4))
			net, mac := byte(0), int(2+rng.Uint32n(20))
			if port == 3 {
				net = 3
			}
			self := netip.AddrFrom4([4]byte{10, net, 0, 1}).String()
			peer := netip.AddrFrom4([4]byte{10, net, 0, byte(2 + rng.Uint32n(30))}).String()
			switch op := rng.Uint32n(100); {
			case op < 40:
				r.in(port, arp(wire.ARPRequest, wire.BroadcastMAC, hostMAC(mac), peer, self))
			case op < 60:
				r.in(port, arp(wire.ARPReply, selfMAC, hostMAC(mac), peer, self))
			case op < 90:
				r.in(port, udp(selfMAC, hostMAC(mac), netip.AddrFrom4([4]byte{10, byte(rng.Uint32n(2) * 3), 0, byte(2 + rng.Uint32n(30))}).String(), peer))
			case op < 95:
				r.advance(frame.Time(rng.Uint32n(20)) * frame.Second)
			case op < 98:
				r.setLink(port, false)
				r.accounts()
				r.setLink(port, true)
			case op < 99:
				r.apply(&fixed)
			default:
				r.apply(cfg)
			}
			for p := range uint16(4) {
				r.out(p)
			}
			r.accounts()
		}
	}
}

// A host that sends to every address behind another, slow port does not fill its link
// with the switch's questions who has them.
func TestQuestionsShareTheLink(t *testing.T) {
	for _, share := range []bool{false, true} {
		cfg := routerConfig()
		cfg.ShareOwn = share
		cfg.Ports[1].Addresses = prefixes("10.1.0.1/16", "fd00:0:0:b::1/64")
		const rate = 1e6
		cfg.Ports[1].Scheduler.Rate, cfg.Ports[1].Scheduler.Burst = rate, frame.Millisecond
		r := newRigOf(t, cfg, 1, 1<<14)
		bytes := 0
		for i := range 1000 { // a second
			for k := range 4 {
				to := 4*i + k
				r.in(0, wt.Frame(wt.Eth(selfMAC, hostMAC(1)), wt.IPv4("10.0.0.9", netip.AddrFrom4([4]byte{10, 1, 1 + byte(to>>8), byte(to)}).String()), wt.UDP(1, 2), wt.Zeros(10)))
			}
			for _, b := range r.out(1) {
				bytes += len(b)
			}
			r.out(0)
			r.advance(frame.Millisecond)
		}
		// An eighth, and what may be sent at once: sixteen large frames.
		if got := float64(bytes) * 8; share && got > rate/8+16*1518*8 || !share && got < rate*0.5 {
			t.Errorf("share %v: questions take %.3g of %.3g bit/s", share, got, float64(rate))
		}
	}
}
