package vswitch

import (
	"bytes"
	"math/rand/v2"
	"net/netip"
	"testing"

	"gswitch/frame"
	"gswitch/wire"
	wt "gswitch/wire/wiretest"
)

// ping4 returns an echo request to the switch, without fragments as one IP
// packet of any size.
func ping4(size int) (msg []byte) {
	msg = make([]byte, wire.ICMPLen+size)
	h := wire.ICMPFields{Type: wire.ICMPEcho, Rest: 7<<16 | 1}
	h.Encode(msg)
	for i := range size {
		msg[wire.ICMPLen+i] = byte(i * 7)
	}
	wire.UpdateICMPChecksum(0, msg)
	return msg
}

func fragment4(msg []byte, at, end int, id uint16) []byte {
	word := uint16(at / 8)
	if end < len(msg) {
		word |= wire.IPv4MoreFragments
	}
	ip := wire.IPv4Fields{TotalLen: uint16(wire.IPv4Len + end - at), ID: id, FlagsOffset: word, TTL: 9, Proto: wire.ProtoICMP, Src: wt.Addr4("10.0.0.9"), Dst: wt.Addr4("10.0.0.1")}
	b := make([]byte, wire.EthernetLen+wire.IPv4Len)
	eth := wire.EthernetFields{Dst: selfMAC, Src: hostMAC(1), EtherType: wire.EtherTypeIPv4}
	eth.Encode(b)
	ip.Encode(b[wire.EthernetLen:])
	wire.IPv4(b[wire.EthernetLen:]).UpdateChecksum()
	return append(b, msg[at:end]...)
}

func fragment6(msg []byte, at, end int, id uint32) []byte {
	word := uint16(at)
	if end < len(msg) {
		word |= 1
	}
	ip := wire.IPv6Fields{PayloadLen: uint16(8 + end - at), NextHeader: wire.ProtoFragment, HopLimit: 9, Src: wt.Addr6("fd00:0:0:a::9"), Dst: wt.Addr6("fd00:0:0:a::1")}
	b := make([]byte, wire.EthernetLen+wire.IPv6Len+8)
	eth := wire.EthernetFields{Dst: selfMAC, Src: hostMAC(1), EtherType: wire.EtherTypeIPv6}
	eth.Encode(b)
	ip.Encode(b[wire.EthernetLen:])
	h := wire.IPv6FragmentFields{NextHeader: wire.ProtoICMPv6, OffsetMore: word, ID: id}
	h.Encode(b[wire.EthernetLen+wire.IPv6Len:])
	return append(b, msg[at:end]...)
}

// A fragmented ping is answered whole, whatever the order of its fragments; the
// answer comes in fragments that the port takes.
func TestPingInFragments(t *testing.T) {
	for _, v6 := range []bool{false, true} {
		r := newRig(t, routerConfig())
		msg, cut := ping4(5000), fragment4
		want := wire.ICMPEchoReply
		if v6 {
			want = wire.ICMPv6EchoReply
			msg[0] = wire.ICMPv6Echo
			wire.UpdateICMPChecksum(wire.PseudoSum6(wt.Addr6("fd00:0:0:a::9"), wt.Addr6("fd00:0:0:a::1"), wire.ProtoICMPv6, len(msg)), msg)
		}
		for try := range 20 {
			for _, i := range rand.New(rand.NewPCG(1, uint64(try))).Perm(4) {
				at, end := i*1440, min((i+1)*1440, len(msg))
				f := cut(msg, at, end, uint16(try))
				if v6 {
					f = fragment6(msg, at, end, uint32(try))
				}
				r.in(0, f)
			}
			back := make([]byte, 0, len(msg))
			for _, b := range r.out(0) {
				if len(b) > 14+1500 {
					t.Fatalf("a fragment of %d bytes", len(b))
				}
				head, at := 34, int(wire.IPv4(b[14:]).FlagsOffset()&wire.IPv4OffsetMask)*8
				if v6 {
					head, at = 62, wire.IPv6Fragment(b[54:]).Offset()
				} else if !wire.IPv4(b[14:]).ChecksumOK() {
					t.Errorf("wrong checksum of %x", b[14:34])
				}
				if at != len(back) {
					t.Fatalf("a fragment from %d after %d bytes", at, len(back))
				}
				back = append(back, b[head:]...)
			}
			sum := uint64(0)
			if v6 {
				sum = wire.PseudoSum6(wt.Addr6("fd00:0:0:a::1"), wt.Addr6("fd00:0:0:a::9"), wire.ProtoICMPv6, len(msg))
			}
			if len(back) != len(msg) || back[0] != want || !bytes.Equal(back[4:], msg[4:]) || wire.SegmentChecksum(sum, back) != 0 {
				t.Fatalf("v6 %v: %d bytes answered of %d, type %d", v6, len(back), len(msg), back[:min(1, len(back))])
			}
		}
		if n := len(r.sw.Nodes[0].local.datagrams); n != 0 {
			t.Errorf("%d datagrams are kept", n)
		}
	}
}

// What contradicts itself is not answered, and what never ends is bounded.
func TestFragmentsThatAreNoPing(t *testing.T) {
	msg := ping4(3000)
	part := func(at, end int) func(*rig) {
		return func(r *rig) { r.in(0, fragment4(msg, at, min(end, len(msg)), 5)) }
	}
	for name, steps := range map[string][]func(*rig){
		"overlap":              {part(0, 1440), part(1432, 2880), part(2880, 4000)},
		"twice":                {part(0, 1440), part(0, 1440), part(1440, 2880), part(2880, 4000)},
		"beyond the end":       {part(2880, 4000), func(r *rig) { r.in(0, fragment4(append(msg, make([]byte, 900)...), 3008, 3400, 5)) }, part(0, 1440), part(1440, 2880)},
		"one missing":          {part(0, 1440), part(2880, 4000)},
		"not in units":         {part(0, 1441), part(1440, 2880), part(2880, 4000)},
		"after its time":       {part(0, 1440), func(r *rig) { r.advance(reassemblyTime + 1) }, part(1440, 2880), part(2880, 4000)},
		"damaged":              {part(0, 1440), func(r *rig) { b := fragment4(msg, 1440, 2880, 5); b[100] ^= 1; r.in(0, b) }, part(2880, 4000)},
		"of another datagram":  {part(0, 1440), func(r *rig) { r.in(0, fragment4(msg, 1440, 2880, 6)) }, part(2880, 4000)},
		"pushed out by others": {part(0, 1440), func(r *rig) { others(r, msg) }, part(1440, 2880), part(2880, 4000)},
	} {
		r := newRig(t, routerConfig())
		for _, step := range steps {
			step(r)
		}
		if out := r.out(0); len(out) != 0 {
			t.Errorf("%s: %d frames answer", name, len(out))
		}
		if n := len(r.sw.Nodes[0].local.datagrams); n > MaxReassemblies {
			t.Errorf("%s: %d datagrams are kept", name, n)
		}
	}
}

func others(r *rig, msg []byte) {
	for id := range uint16(1000) {
		r.in(0, fragment4(msg, 0, 1440, 1000+id))
	}
}

// A ping in a frame of several chunks is answered.
func TestPingLongerThanAChunk(t *testing.T) {
	cfg := routerConfig()
	cfg.Ports[0].MTU = 9000
	r := newRig(t, cfg)
	msg := ping4(8000)
	r.inChained(0, fragment4(msg, 0, len(msg), 9))
	got := 0
	for _, b := range r.out(0) {
		got += len(b) - 34
	}
	if got != len(msg) {
		t.Errorf("%d bytes answered of %d", got, len(msg))
	}
}

// inChained lets a frame arrive that lies in several chunks.
func (r *rig) inChained(port uint16, b []byte) {
	n := r.sw.Nodes[0]
	first, last := frame.Nil, frame.Nil
	for at := 0; at < len(b); at += n.arena.Room() {
		c := n.pool.New(b[at:min(at+n.arena.Room(), len(b))])
		if last == frame.Nil {
			first = c
		} else {
			n.arena.Meta(last).Next = c
		}
		last = c
	}
	n.arena.Meta(first).Wire = uint32(len(b))
	n.Receive(r.now, port, []frame.Ref{first})
}

// No fragments, in whatever order and however cut, make a datagram whole that
// has a hole or is of two minds.
func FuzzFragments(f *testing.F) {
	f.Add([]byte{0, 8, 1, 8, 8, 0})
	f.Add([]byte{0, 16, 1, 8, 8, 1, 16, 8, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		d := datagram{total: -1}
		var seen [4096]bool
		for ; len(b) >= 3; b = b[3:] {
			at, n := int(b[0])*8, int(b[1])
			whole := d.add(at, make([]byte, n), b[2]&1 != 0)
			for i := at; i < at+n; i++ {
				seen[i] = true
			}
			if whole {
				for i := range d.total {
					if !seen[i] {
						t.Fatalf("byte %d of %d never came", i, d.total)
					}
				}
				return
			}
		}
	})
}

// A host that sends by the switch what it could send to the next hop itself is
// redirected, once a second; the packet goes on.
func TestRedirects(t *testing.T) {
	cfg := baseConfig(2)
	cfg.VLANs = []VLANConfig{{ID: 1, Addresses: prefixes("10.0.0.1/24", "fd00:0:0:a::1/64")}}
	cfg.Neighbors = []StaticNeighbor{{netip.MustParseAddr("10.0.0.2"), hostMAC(2)}, {netip.MustParseAddr("fd00:0:0:a::2"), hostMAC(2)}}
	cfg.Routes = []Route{{Prefix: prefixes("20.0.0.0/8")[0], NextHops: []NextHop{{Via: netip.MustParseAddr("10.0.0.2")}}}}
	cfg.FDB.Static = []StaticMAC{{VLAN: 1, MAC: hostMAC(2), Port: 1}, {VLAN: 1, MAC: hostMAC(1), Port: 0}}
	r := newRig(t, cfg)
	f := udp(selfMAC, hostMAC(1), "20.0.0.5", "10.0.0.9")
	r.in(0, f)
	r.one(1)
	b := r.one(0)
	ip, icmp := wire.IPv4(b[14:]), wire.ICMP(b[34:])
	if icmp.Type() != wire.ICMPRedirect || icmp.Code() != wire.ICMPCodeRedirectHost || icmp.Rest() != 10<<24|2 || ip.Dst() != wt.Addr4("10.0.0.9") || wire.Checksum(b[34:14+int(ip.TotalLen())]) != 0 {
		t.Errorf("wrong redirect %x", b)
	}
	r.in(0, f)
	r.one(1)
	r.none(0)
	r.advance(redirectAgain + frame.Millisecond)
	r.in(0, wt.Frame(wt.Eth(selfMAC, hostMAC(1)), wt.IPv4("10.0.0.9", "20.0.0.5"), wt.UDP(9, 9), wt.Zeros(4)))
	r.one(1)
	r.one(0)

	f6 := wt.Frame(wt.Eth(selfMAC, hostMAC(1)), wt.IPv6("fd00:0:0:a::9", "fd00:0:0:a::2"), wt.UDP(1, 2), wt.Zeros(10))
	r.in(0, f6)
	r.one(1)
	b = r.one(0)
	checkICMP6(t, b)
	var nd wire.NDFields
	if _, bad := nd.Decode(b[54 : 54+int(wire.IPv6(b[14:]).PayloadLen())]); bad != frame.Keep || nd.Type != wire.ICMPv6Redirect || nd.Target != wt.Addr6("fd00:0:0:a::2") || nd.RedirectedDest != nd.Target || wire.IPv6(b[14:]).HopLimit() != 255 {
		t.Errorf("wrong redirect %+v of %x", nd, b)
	}
	if mac, ok := nd.Options.LinkLayer(wire.NDTargetLinkLayer); !ok || mac != hostMAC(2) {
		t.Errorf("the redirect names %v", mac)
	}
	if !bytes.Contains(nd.Options, f6[14:54]) {
		t.Errorf("the redirect quotes nothing of the packet: %x", nd.Options)
	}

	cfg.NoRedirects = true
	r = newRig(t, cfg)
	r.in(0, f)
	r.one(1)
	r.none(0)
}
