package hostnic

import (
	"bytes"
	"net/netip"
	"strings"
	"testing"

	"gswitch/frame"
	"gswitch/wire"
	wt "gswitch/wire/wiretest"
)

// stackConfig is a NIC on real frames, host i of 10.0.0.0/24 or fd00::/64.
func stackConfig(i int, v6 bool) Config {
	c := testConfig(i)
	c.Virtual = false
	c.Stack = &StackConfig{Bits: 24, Port: 18515, Gateway: netip.MustParseAddr("10.0.0.254")}
	if v6 {
		c.Addr = netip.AddrFrom16([16]byte{0: 0xfd, 15: byte(i)})
		c.Stack = &StackConfig{Bits: 64, Port: 18515}
	}
	return c
}

// stackPair is two NICs with stacks on one link.
func stackPair(t testing.TB, v6 bool) (*rig, [2]*NIC) { return stackPairOf(t, v6, 24) }

// stackPairOf is one with a prefix of IPv4 of so many bits.
func stackPairOf(t testing.TB, v6 bool, bits int) (*rig, [2]*NIC) {
	g := newRig(t, 512, 2048)
	var n [2]*NIC
	for i := range n {
		cfg := stackConfig(i+1, v6)
		if !v6 {
			cfg.Stack.Bits = bits
		}
		var err error
		n[i], err = New(&cfg, g.pool)
		must(t, err)
		g.add(n[i], 1)
	}
	g.link(0, 0, 1, 0)
	return g, n
}

// A datagram finds its way once the neighbour has answered, and both ends then
// know each other.
func TestDatagrams(t *testing.T) {
	for _, v6 := range []bool{false, true} {
		g, n := stackPair(t, v6)
		to := n[1].cfg.Addr
		if err := n[0].SendDatagram(g.now, to, 18515, []byte("hello")); err != ErrUnresolved {
			t.Fatalf("first datagram to an unknown host: %v", err)
		}
		g.run(g.now + frame.Millisecond)
		must(t, n[0].SendDatagram(g.now, to, 18515, []byte("hello")))
		g.run(g.now + frame.Millisecond)
		var d Datagram
		if !n[1].TakeDatagram(&d) || string(d.Data[:d.Len]) != "hello" || d.From != n[0].cfg.Addr || d.Port != 18515 {
			t.Fatalf("v6 %v: received %+v", v6, d)
		}
		// The one who was asked need not ask.
		must(t, n[1].SendDatagram(g.now, n[0].cfg.Addr, 18515, []byte("back")))
		g.run(g.now + frame.Millisecond)
		if !n[0].TakeDatagram(&d) || string(d.Data[:d.Len]) != "back" || n[0].TakeDatagram(&d) {
			t.Fatalf("v6 %v: the answer is %+v", v6, d)
		}
		if s := n[0].Stack(); s.Asked != 1 || s.DatagramsSent != 1 {
			t.Errorf("v6 %v: %+v", v6, s)
		}
	}
}

// An address without an answer has failed after three requests, and is resolved
// again after half a minute. One that is off the link is resolved by the gateway.
func TestResolve(t *testing.T) {
	g, n := stackPair(t, false)
	ghost := netip.MustParseAddr("10.0.0.77")
	for range neighborTries {
		if _, ok, err := n[0].Resolve(g.now, ghost); ok || err != nil {
			t.Fatalf("at %v: %v, %v", g.now, ok, err)
		}
		g.run(g.now + neighborRetry)
	}
	if _, _, err := n[0].Resolve(g.now, ghost); err == nil || !strings.Contains(err.Error(), "10.0.0.77 does not answer ARP") {
		t.Fatalf("error is %v", err)
	}
	g.run(g.now + neighborConfirm)
	if _, ok, err := n[0].Resolve(g.now, ghost); ok || err != nil {
		t.Fatalf("after it was forgotten: %v, %v", ok, err)
	}
	for to, want := range map[string]string{"10.0.0.9": "10.0.0.9", "192.0.2.1": "10.0.0.254"} {
		if hop, err := n[0].NextHop(netip.MustParseAddr(to)); err != nil || hop.String() != want {
			t.Errorf("next hop to %s is %v, %v; want %s", to, hop, err, want)
		}
	}
	for _, to := range []string{"10.0.0.1", "fd00::1"} {
		if hop, err := n[0].NextHop(netip.MustParseAddr(to)); err == nil {
			t.Errorf("next hop to %s is %v", to, hop)
		}
	}
}

// What is known is confirmed by asking the neighbour itself, without a gap.
func TestConfirm(t *testing.T) {
	g, n := stackPair(t, false)
	unicast := 0
	g.seen = func(from int, m *frame.Meta, b []byte) {
		if from == 0 && b[12] == 8 && b[13] == 6 && b[0]&1 == 0 {
			unicast++
		}
	}
	to := n[1].cfg.Addr
	n[0].Resolve(g.now, to)
	g.run(g.now + frame.Millisecond)
	for range 100 {
		if _, ok, err := n[0].Resolve(g.now, to); !ok || err != nil {
			t.Fatalf("at %v: %v, %v", g.now, ok, err)
		}
		g.run(g.now + frame.Second)
	}
	if unicast != 3 {
		t.Errorf("asked %d times in 100 s, want 3", unicast)
	}
}

// exchange gives a frame to a NIC and returns what it sends at once.
func exchange(t testing.TB, n *NIC, b []byte) (out [][]byte) {
	r := n.pool.New(b)
	n.Receive(0, 0, []frame.Ref{r})
	var refs [8]frame.Ref
	for _, r := range refs[:n.Transmit(n.clock.Free()+frame.Second, 0, refs[:])] {
		out = append(out, bytes.Clone(n.arena.Bytes(r)))
		n.pool.Free(r)
	}
	return out
}

// The stack answers what is for it and nothing else.
func TestStackAnswers(t *testing.T) {
	peer, other := testMAC(9), testMAC(8)
	request := func(to wire.MAC, target string) []byte {
		return wt.Frame(wt.Eth(to, peer), wt.ARP(wire.ARPFields{Op: wire.ARPRequest, SenderMAC: peer, SenderIP: wt.Addr4("10.0.0.9"), TargetIP: wt.Addr4(target)}))
	}
	_, n := stackPair(t, false)
	nic := n[0]
	free := nic.pool.Available()
	for name, c := range map[string]struct {
		b       []byte
		answers int
	}{
		"ARP for us":         {request(wire.BroadcastMAC, "10.0.0.1"), 1},
		"ARP, unicast":       {request(nic.cfg.MAC, "10.0.0.1"), 1},
		"ARP for another":    {request(wire.BroadcastMAC, "10.0.0.2"), 0},
		"ARP, other station": {request(other, "10.0.0.1"), 0},
		"garbage":            {bytes.Repeat([]byte{0xaa}, 80), 0},
	} {
		got := exchange(t, nic, c.b)
		if len(got) != c.answers {
			t.Errorf("%s: %d answers, want %d", name, len(got), c.answers)
			continue
		}
		if c.answers == 1 {
			a := wire.ARP(got[0][wire.EthernetLen:])
			if a.Op() != wire.ARPReply || a.SenderMAC() != nic.cfg.MAC || a.SenderIP() != wt.Addr4("10.0.0.1") || a.TargetMAC() != peer || wire.Ethernet(got[0]).Dst() != peer {
				t.Errorf("%s: answered % x", name, got[0])
			}
		}
	}
	if nic.pool.Available() != free {
		t.Errorf("%d chunks are lost", free-nic.pool.Available())
	}
}

// Whatever arrives: no panic, no frame lost.
func FuzzStack(f *testing.F) {
	for _, v6 := range []bool{false, true} {
		g, n := stackPair(f, v6)
		g.seen = func(_ int, m *frame.Meta, b []byte) { f.Add(bytes.Clone(b), v6) }
		n[0].SendDatagram(g.now, n[1].cfg.Addr, 18515, []byte("x"))
		g.run(g.now + frame.Millisecond)
		n[0].SendDatagram(g.now, n[1].cfg.Addr, 18515, []byte("x"))
		g.run(g.now + frame.Millisecond)
	}
	_, four := stackPair(f, false)
	_, six := stackPair(f, true)
	f.Fuzz(func(t *testing.T, b []byte, v6 bool) {
		n := four[0]
		if v6 {
			n = six[0]
		}
		if len(b) > 1500 || len(b) == 0 {
			return
		}
		free := n.pool.Available()
		for _, a := range exchange(t, n, b) {
			if len(a) < wire.EthernetLen {
				t.Errorf("sent %d bytes", len(a))
			}
		}
		var d Datagram
		for n.TakeDatagram(&d) {
		}
		if n.pool.Available() != free {
			t.Errorf("%d chunks are lost", free-n.pool.Available())
		}
	})
}

// Stations without end that ask for the host's address, or one that takes their names,
// leave room for the neighbours that the host needs.
func TestUnsolicitedNeighboursLeaveRoom(t *testing.T) {
	for _, v6 := range []bool{false, true} {
		g, n := stackPairOf(t, v6, 16)
		for i := range 3 * maxNeighbors {
			mac, low := wire.MAC{2, 9, 0, 0, byte(i >> 8), byte(i)}, [2]byte{byte(i >> 8), byte(i)}
			b := wt.Frame(wt.Eth(wire.BroadcastMAC, mac), wt.ARP(wire.ARPFields{Op: wire.ARPRequest, SenderMAC: mac, SenderIP: [4]byte{10, 0, 16 + low[0], low[1]}, TargetIP: [4]byte{10, 0, 0, 1}}))
			if v6 {
				var opt [wire.NDLinkLayerLen]byte
				wire.PutNDLinkLayer(opt[:], wire.NDSourceLinkLayer, mac)
				from, to := netip.AddrFrom16([16]byte{0: 0xfd, 12: 7, 14: low[0], 15: low[1]}), n[0].cfg.Addr
				b = wt.Frame(wt.Eth(testMAC(1), mac), wt.IPv6(from.String(), to.String(), wt.TTL(255)), wt.ND(wire.NDFields{Type: wire.ICMPv6NeighborSolicitation, Target: to.As16(), Options: opt[:]}))
			}
			n[0].Receive(g.now, 0, []frame.Ref{g.pool.New(b)})
			if i%64 == 0 {
				g.run(g.now + frame.Millisecond)
			}
		}
		if known, _ := n[0].Neighbors(); known != maxUnsolicited || n[0].Stack().UnsolicitedRefused != 3*maxNeighbors-maxUnsolicited {
			t.Errorf("IPv6 %v: %d neighbours, %d refused", v6, known, n[0].Stack().UnsolicitedRefused)
		}
		found := func() bool {
			_, ok, err := n[0].Resolve(g.now, n[1].cfg.Addr)
			must(t, err)
			return ok
		}
		found()
		if g.run(g.now + frame.Millisecond); !found() {
			t.Errorf("IPv6 %v: a neighbour is not found", v6)
		}
		// They are asked whether they are there, and forgotten.
		g.run(g.now + 2*neighborConfirm + 5*neighborRetry)
		if known, _ := n[0].Neighbors(); known != 1 || n[0].stack.unsolicited != 0 {
			t.Errorf("IPv6 %v: %d neighbours are left, %d unsolicited", v6, known, n[0].stack.unsolicited)
		}
	}
}
