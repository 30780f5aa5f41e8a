package mirror

import (
	"net/netip"
	"testing"

	"gswitch/frame"
	"gswitch/wire"
	wt "gswitch/wire/wiretest"
)

func a4(s string) netip.Addr { return netip.MustParseAddr(s) }

// Every header of a probe is sound and asks for a trace, each is a packet of its own,
// and the checksum of its transport is one that a server refuses.
func TestProbePackets(t *testing.T) {
	for _, proto := range []uint8{wire.ProtoUDP, wire.ProtoTCP} {
		p := Probe{ID: 7, From: a4("10.0.0.2"), Via: []netip.Addr{a4("10.10.0.1"), a4("10.10.0.2"), a4("10.10.0.3")}, Src: a4("10.1.0.2"), Dst: a4("10.0.9.2"), Proto: proto, SrcPort: 40000, DstPort: 80}
		if err := p.Validate(); err != nil {
			t.Fatal(err)
		}
		var ids [1 << 16]bool
		for number := range uint32(60_000) {
			b := p.Append(nil, number)
			for i, dst := range append(p.Via, p.Dst) {
				ip := wire.IPv4(b)
				src := p.From
				if i == 3 {
					src = p.Src
				}
				if number%64 == 0 && !ip.ChecksumOK() || ip.DSCP()&DebugDSCP == 0 || ip.TTL() != ProbeTTL || int(ip.TotalLen()) != len(b) ||
					netip.AddrFrom4([4]byte(b[12:16])) != src || netip.AddrFrom4([4]byte(b[16:20])) != dst || (ip.Proto() == wire.ProtoIPv4) != (i < 3) {
					t.Fatalf("header %d of probe %d: %x", i, number, b)
				}
				if i == 0 && ids[ip.ID()] {
					t.Fatalf("identification %d is used twice", ip.ID())
				}
				ids[ip.ID()] = ids[ip.ID()] || i == 0
				b = b[wire.IPv4Len:]
			}
			sum := wire.SegmentChecksum(wire.PseudoSum4(p.Src.As4(), p.Dst.As4(), proto, len(b)), b)
			if sum == 0 || proto == wire.ProtoUDP && wire.UDP(b).Checksum() == 0 {
				t.Fatalf("probe %d would be taken for a sound packet: %x", number, b)
			}
			if id, n, ok := ProbeOf(proto, b); !ok || id != 7 || n != number {
				t.Fatalf("probe %d is read as number %d of series %d", number, n, id)
			}
			for k := 0; number == 0 && k < len(b); k++ {
				if _, _, ok := ProbeOf(proto, b[:k]); ok {
					t.Fatalf("%d of %d bytes are read as a probe", k, len(b))
				}
			}
		}
	}
	for _, p := range []Probe{{}, {ID: 1, From: a4("10.0.0.1"), Src: a4("10.0.0.1"), Dst: a4("10.0.0.2"), Proto: 17},
		{ID: 1, From: a4("10.0.0.1"), Src: a4("10.0.0.1"), Dst: a4("::1"), Proto: 17, Via: []netip.Addr{a4("10.0.0.3")}},
		{ID: 1, From: a4("10.0.0.1"), Src: a4("10.0.0.1"), Dst: a4("10.0.0.2"), Proto: 1, Via: []netip.Addr{a4("10.0.0.3")}},
		{ID: 1, From: a4("10.0.0.1"), Src: a4("10.0.0.1"), Dst: a4("10.0.0.2"), Proto: 17, Via: make([]netip.Addr, 4)}} {
		if p.Validate() == nil {
			t.Errorf("%+v is taken", p)
		}
	}
}

// everything is a network of which nothing is known.
type everything struct{ last map[string]bool }

func (n everything) Last(s netip.Addr, dst [4]byte) bool {
	return n.last[s.String()+" "+netip.AddrFrom4(dst).String()]
}
func (everything) Station(wire.MAC) bool { return false }

// A probe that is sent by a link and back has its hops in the order in which the
// headers are taken off, although it meets a switch twice; one that ends in between is
// lost, also at the switch that took a header off last.
func TestProbeTraces(t *testing.T) {
	p := Probe{ID: 3, From: a4("10.0.0.2"), Via: []netip.Addr{a4("10.10.0.1"), a4("10.10.0.2")}, Src: a4("10.0.0.2"), Dst: a4("10.10.0.1"), Proto: wire.ProtoUDP, SrcPort: 1, DstPort: 2}
	whole := p.Append(nil, 5)
	at := func(sw string, headers int) (Key, Hop) {
		b := wt.Frame(wt.Eth(wt.MAC(1), wt.MAC(2)), wt.Payload(whole[headers*wire.IPv4Len:]))
		wire.Ethernet(b).SetEtherType(wire.EtherTypeIPv4)
		c := Copied{Switch: a4(sw), Original: b}
		k, h, ok := c.Hop()
		if !ok || h.Probe != 3 || h.Number != 5 {
			t.Fatalf("%+v %+v %t", k, h, ok)
		}
		return k, h
	}
	net := everything{map[string]bool{"10.10.0.1 10.10.0.1": true, "10.10.0.2 10.10.0.2": true}}
	for hops, lost := range map[int]bool{1: true, 2: true, 3: false} {
		ts := NewTraces(net, 10)
		for i := hops - 1; i >= 0; i-- { // the last copy comes first
			k, h := at([]string{"10.10.0.1", "10.10.0.2", "10.10.0.1"}[i], i)
			ts.Add(frame.Time(10-i), k, h)
		}
		v := ts.Advance(10 * frame.Second)
		if len(v) != 1 || len(v[0].Hops) != hops || v[0].Lost != lost || v[0].Loop != nil || v[0].Probe != 3 {
			t.Fatalf("%d hops: %+v", hops, v)
		}
		for i, h := range v[0].Hops {
			if int(h.Depth) != 2-i {
				t.Errorf("%d hops: hop %d has %d headers", hops, i, h.Depth)
			}
		}
	}
}
