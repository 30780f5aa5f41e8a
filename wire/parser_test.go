package wire_test

import (
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"gswitch/frame"
	"gswitch/wire"
	wt "gswitch/wire/wiretest"
)

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.Join(strings.Fields(s), ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestParseFormats(t *testing.T) {
	for _, f := range formats() {
		t.Run(f.name, func(t *testing.T) {
			m, why := wt.Parse(f.b)
			if why != frame.Keep {
				t.Fatalf("%v: % x", why, f.b)
			}
			got := format{f.name, f.b, m.Flags, m.L3, m.L4, m.L3Inner, m.L4Inner, m.Proto, m.ProtoIn, m.SrcPort, m.DstPort, f.tshark}
			if d := cmp.Diff(f, got, cmp.AllowUnexported(format{})); d != "" {
				t.Errorf("want -, got +:\n%s", d)
			}
			wt.Check(t, f.b, wt.Checksums())
		})
	}
}

func TestParseOuterFields(t *testing.T) {
	b := wt.Frame(eth, wt.QinQ(200, 6), wt.VLAN(100, 5), wt.IPv4("10.0.0.1", "10.0.0.2", wt.TOS(46<<2|wire.CE), wt.TTL(9)), udp)
	m, why := wt.Parse(b)
	if why != frame.Keep || m.TCI != wire.TCI(6, false, 200) || m.EtherType != wire.EtherTypeIPv4 || m.DSCP != 46 || m.TTL != 9 || m.Flags&frame.IsCE == 0 {
		t.Errorf("%v %+v", why, m)
	}
	b = wt.Frame(eth, wt.IPv6("fd00::1", "fd00::2", wt.TOS(10<<2|wire.ECT1), wt.TTL(3)), wt.IPv4("1.1.1.1", "2.2.2.2", wt.TOS(255), wt.TTL(200)), udp)
	m, why = wt.Parse(b)
	if why != frame.Keep || m.DSCP != 10 || m.TTL != 3 || m.Flags&(frame.IsECT|frame.IsCE) != frame.IsECT {
		t.Errorf("%v %+v", why, m)
	}
}

// edit returns a copy of b with the bytes at off replaced.
func edit(b []byte, off int, with ...byte) []byte {
	c := append([]byte(nil), b...)
	copy(c[off:], with)
	return c
}

// edit4 is edit with the checksum of the outer, untagged IPv4 header made right.
func edit4(b []byte, off int, with ...byte) []byte {
	c := edit(b, off, with...)
	wire.IPv4(c[14:]).UpdateChecksum()
	return c
}

func TestParseReasons(t *testing.T) {
	p4, p6 := wt.Packet(eth, ip4, udp, data), wt.Packet(eth, ip6, udp, data)
	t4 := wt.Packet(eth, ip4, tcp)
	exts := []wt.Layer{eth, ip6}
	for range 9 {
		exts = append(exts, wt.Ext(wire.ProtoDstOpts, make([]byte, 6)))
	}
	// cut shortens the frame and its IPv4 total length alike.
	cut := func(b []byte, n int) []byte { return edit4(b[:n:n], 16, byte((n-14)>>8), byte(n-14)) }
	gre := wt.Packet(eth, ip4, wt.GRE(0, 0, 0), ip4, udp)
	erspan2 := wt.Packet(eth, ip4, wt.GRE(0, 0, 9), wt.ERSPAN2(wire.ERSPAN2Fields{}), eth, ip4, udp)
	erspan3 := wt.Packet(eth, ip4, wt.GRE(0, 0, 9), wt.ERSPAN3(wire.ERSPAN3Fields{HasPlatform: true}), eth, ip4, udp)
	badErspan3 := edit(erspan3, 14+20+8, 0x10)
	for _, c := range []struct {
		name string
		b    []byte
		want frame.Reason
	}{
		{"empty", nil, frame.ParseShortEthernet},
		{"13 bytes", p4[:13], frame.ParseShortEthernet},
		{"tag cut", wt.Packet(eth, wt.VLAN(1, 0))[:16], frame.ParseShortVLAN},
		{"three tags", wt.Frame(eth, wt.VLAN(1, 0), wt.VLAN(2, 0), wt.VLAN(3, 0), ip4, udp), frame.ParseTooManyTags},
		{"arp cut", wt.Packet(eth, wt.ARP(wire.ARPFields{}))[:41], frame.ParseShortARP},
		{"arp of other hardware", edit(wt.Frame(eth, wt.ARP(wire.ARPFields{})), 15, 6), frame.ParseShortARP},
		{"ipv4 cut", p4[:33], frame.ParseShortIPv4},
		{"ipv4 version", edit(p4, 14, 0x55), frame.ParseIPv4Version},
		{"ihl small", edit(p4, 14, 0x44), frame.ParseIPv4HeaderLen},
		{"ihl past frame", edit(p4[:40], 14, 0x4f), frame.ParseIPv4HeaderLen},
		{"total length past frame", p4[:len(p4)-1], frame.ParseIPv4TotalLen},
		{"total length small", edit4(p4, 16, 0, 19), frame.ParseIPv4TotalLen},
		{"ipv4 checksum", edit(p4, 24, 1, 2), frame.ParseIPv4Checksum},
		{"ipv6 cut", p6[:53], frame.ParseShortIPv6},
		{"ipv6 version", edit(p6, 14, 0x40), frame.ParseIPv6Version},
		{"ipv6 payload length", p6[:len(p6)-1], frame.ParseIPv6PayloadLen},
		{"nine extension headers", wt.Packet(append(exts, udp)...), frame.ParseIPv6ExtHeader},
		{"extension header cut", edit(wt.Packet(eth, ip6, wt.Ext(wire.ProtoDstOpts, make([]byte, 6))), 55, 9), frame.ParseIPv6ExtHeader},
		{"tcp cut", cut(t4, 53), frame.ParseShortTCP},
		{"tcp offset small", edit(t4, 46, 0x40), frame.ParseTCPOffset},
		{"tcp offset past packet", edit(t4, 46, 0x60), frame.ParseTCPOffset},
		{"udp cut", cut(p4, 41), frame.ParseShortUDP},
		{"udp length small", edit(p4, 38, 0, 7), frame.ParseUDPLen},
		{"udp length past packet", edit(p4, 38, 1, 0), frame.ParseUDPLen},
		{"icmp cut", cut(wt.Packet(eth, ip4, wt.ICMP(8, 0, 0)), 41), frame.ParseShortICMP},
		{"icmpv6 cut", edit(wt.Packet(eth, ip6, wt.ICMPv6(128, 0, 0))[:57], 18, 0, 3), frame.ParseShortICMP},
		{"bth cut", wt.Frame(eth, ip4, wt.UDP(1, wire.RoCEv2Port), wt.Zeros(11)), frame.ParseShortRoCE},
		{"reth cut", wt.Frame(eth, ip4, wt.UDP(1, wire.RoCEv2Port), wt.BTH(wire.RCWriteOnly, 1, 1), wt.Zeros(15)), frame.ParseShortRoCE},
		{"hpcc cut", wt.Frame(eth, ip4, wt.UDP(1, wire.HPCCPort), wt.Payload(hpccBlock[:41])), frame.ParseShortINT},
		{"hpcc hops", wt.Frame(eth, ip4, wt.UDP(1, wire.HPCCPort), wt.Payload(edit(hpccBlock, 0, 0x60)), wt.BTH(wire.RCSendMiddle, 1, 1)), frame.ParseINTHops},
		{"hpcc without bth", wt.Frame(eth, ip4, wt.UDP(1, wire.HPCCPort), wt.Payload(hpccBlock), wt.Zeros(11)), frame.ParseShortRoCE},
		{"hpcc-grow cut", wt.Frame(eth, ip4, wt.UDP(1, wire.HPCCGrowPort), wt.Payload(hpccBlock[:17])), frame.ParseShortINT},
		{"hpcc-grow empty", wt.Frame(eth, ip4, wt.UDP(1, wire.HPCCGrowPort), wt.Zeros(1)), frame.ParseShortINT},
		{"hpcc-grow without bth", wt.Frame(eth, ip4, wt.UDP(1, wire.HPCCGrowPort), wt.Payload(hpccBlock[:18])), frame.ParseShortRoCE},
		{"int shim cut", wt.Frame(eth, ip4, wt.UDP(1, wire.INTPort), wt.Zeros(3)), frame.ParseShortINT},
		{"int header cut", wt.Frame(eth, ip4, wt.UDP(1, wire.INTPort), wt.Payload(edit(intMD(9), 1, 2)), data), frame.ParseShortINT},
		{"int stack cut", wt.Frame(eth, ip4, wt.UDP(1, wire.INTPort), wt.Payload(edit(intMD(9), 1, 7))), frame.ParseShortINT},
		{"int version", wt.Frame(eth, ip4, wt.UDP(1, wire.INTPort), wt.Payload(edit(intMD(9), 4, 0x10)), data), frame.ParseINTVersion},
		{"int hop length", wt.Frame(eth, ip4, wt.UDP(1, wire.INTPort), wt.Payload(edit(intMD(9), 6, 2)), data), frame.ParseINTHops},
		{"int hop length zero", wt.Frame(eth, ip4, wt.UDP(1, wire.INTPort), wt.Payload(edit(intMD(9), 6, 0)), data), frame.ParseINTHops},
		{"int without bth", wt.Frame(eth, ip4, wt.UDP(1, wire.INTPort), wt.Payload(intMD(4791))), frame.ParseShortRoCE},
		{"gre cut", cut(gre, 37), frame.ParseShortGRE},
		{"gre options cut", edit(cut(gre, 41), 34, 0xb0), frame.ParseShortGRE},
		{"gre version", edit(gre, 35, 1), frame.ParseGREVersion},
		{"inner ipv4", edit(gre, 38, 0x65), frame.ParseIPv4Version},
		{"inner udp length", edit(gre, 62, 0, 1), frame.ParseUDPLen},
		{"erspan 2 cut", cut(erspan2, 49), frame.ParseShortERSPAN},
		{"erspan 2 version", edit(erspan2, 42, 0x20), frame.ParseERSPANVersion},
		{"erspan 3 cut", cut(erspan3, 53), frame.ParseShortERSPAN},
		{"erspan 3 platform cut", cut(erspan3, 60), frame.ParseShortERSPAN},
		{"erspan 3 version", badErspan3, frame.ParseERSPANVersion},
		{"five deep", wt.Packet(eth, ip4, ip4, ip4, ip4, ip4, udp), frame.ParseTunnelDepth},
		{"mac control cut", wt.PFC(macA, 1, 1)[:15], frame.ParseShortMACControl},
		{"pfc cut", wt.PFC(macA, 1, 1)[:33], frame.ParseShortMACControl},
		{"mac control opcode", edit(wt.PFC(macA, 1, 1), 14, 9, 9), frame.ParseMACControlOp},
	} {
		m, got := wt.Parse(c.b)
		if got != c.want {
			t.Errorf("%s: reason %v, want %v (% x)", c.name, got, c.want, c.b)
		}
		checkOffsets(t, &m, len(c.b))
	}
}

func TestKnownMACControl(t *testing.T) {
	for _, op := range []uint16{wire.OpPause, wire.OpPFC, wire.OpToken, wire.OpRequest} {
		b := edit(wt.PFC(macA, 1, 1), 14, byte(op>>8), byte(op))
		if m, why := wt.Parse(b); why != frame.Keep || m.Flags&frame.IsMACControl == 0 {
			t.Errorf("opcode %04x: %v %x", op, why, m.Flags)
		}
		params, ok := wire.KnownMACControl(op)
		if !ok || params == 0 {
			t.Errorf("opcode %04x is not known", op)
		}
		if _, why := wt.Parse(b[:16+params]); why != frame.Keep {
			t.Errorf("opcode %04x without padding: %v", op, why)
		}
		if _, why := wt.Parse(b[:16+params-1]); why != frame.ParseShortMACControl {
			t.Errorf("opcode %04x cut: %v", op, why)
		}
	}
	// The MAC control sublayer lies below tagging.
	tagged := edit(wt.Frame(eth, wt.VLAN(1, 0)), 16, 0x88, 0x08)
	if m, why := wt.Parse(tagged); why != frame.Keep || m.Flags&frame.IsMACControl != 0 {
		t.Errorf("tagged: %v %x", why, m.Flags)
	}
}

// What an ERSPAN envelope holds may be cut or wrong without making the
// envelope bad.
func TestMirroredCopyMayBeBroken(t *testing.T) {
	l := []wt.Layer{eth, ip4, wt.GRE(0, 0, 9), wt.ERSPAN2(wire.ERSPAN2Fields{Truncated: true})}
	whole := wt.Packet(eth, wt.IPv4("1.1.1.1", "2.2.2.2"), udp, wt.Zeros(1000))
	for n := range len(whole) {
		m, why := wt.Parse(wt.Packet(append(l, wt.Payload(whole[:n]))...))
		if why != frame.Keep || m.Proto != wire.ProtoGRE {
			t.Fatalf("copy cut to %d bytes: %v", n, why)
		}
	}
	// Type I: no sequence number, no ERSPAN header.
	b := wt.Packet(eth, ip4, wt.GRE(0, 0, 0), wt.Payload(whole))
	b[36], b[37] = 0x88, 0xbe
	if m, why := wt.Parse(b); why != frame.Keep || m.Flags&frame.HasTunnel == 0 || m.L3Inner != 52 || m.DstPort != 2000 {
		t.Errorf("type I: %v %+v", why, m)
	}
}

// Good layers below a bad one stay filled.
func TestParseKeepsGoodLayers(t *testing.T) {
	b := edit(wt.Frame(eth, wt.VLAN(7, 1), wt.IPv4("10.0.0.1", "10.0.0.2", wt.TTL(9)), udp, data), 42, 0, 7)
	m, why := wt.Parse(b)
	if why != frame.ParseUDPLen || m.Flags != frame.HasVLAN|frame.HasIPv4 || m.L3 != 18 || m.L4 != 0 || m.TTL != 9 || m.Proto != wire.ProtoUDP || m.SrcPort != 0 || m.Hash == 0 {
		t.Errorf("%v %+v", why, m)
	}
}

// In virtual time only headers are materialised: lengths are checked against
// Wire.
func TestParseTruncated(t *testing.T) {
	for _, f := range formats() {
		l := max(f.l4in, f.l3in)
		if l < 34 || strings.Contains(f.name, "fragment") {
			continue
		}
		a := frame.MustArena(1, 2048, 256)
		head := min(len(f.b), int(f.l4in)+wire.UDPLen+wire.HPCCLen+wire.BTHLen+wire.AtomicETHLen)
		a.SetBytes(0, f.b[:head])
		a.Meta(0).Wire = uint32(len(f.b))
		p := wire.NewParser(wire.NewHasher(0, false))
		p.Parse(a, []frame.Ref{0})
		m := *a.Meta(0)
		whole, _ := wt.Parse(f.b)
		if head < len(f.b) {
			whole.Flags |= frame.Truncated
		}
		if d := cmp.Diff(whole, m, ignoreGeometry); d != "" {
			t.Errorf("%s of which %d bytes are there: whole -, cut +:\n%s", f.name, head, d)
		}
	}
	// 9000 bytes of which 54 are there.
	a := frame.MustArena(1, 2048, 256)
	b := wt.Packet(eth, ip4, tcp, wt.Zeros(9000-54))
	a.SetBytes(0, b[:54])
	p := wire.NewParser(wire.NewHasher(0, false))
	if p.Parse(a, []frame.Ref{0}); a.Meta(0).Reason != frame.ParseIPv4TotalLen {
		t.Errorf("without wire length: %v", a.Meta(0).Reason)
	}
	a.Meta(0).Wire = 9000
	if p.Parse(a, []frame.Ref{0}); a.Meta(0).Reason != frame.Keep || a.Meta(0).Flags&frame.Truncated == 0 {
		t.Errorf("with wire length: %v", a.Meta(0).Reason)
	}
	// Cut off because the rest is in another chunk: not truncated.
	a.Meta(0).Next = 7
	if p.Parse(a, []frame.Ref{0}); a.Meta(0).Reason != frame.Keep || a.Meta(0).Flags&frame.Truncated != 0 {
		t.Errorf("chained: %v %x", a.Meta(0).Reason, a.Meta(0).Flags)
	}
}

var ignoreGeometry = cmp.Options{cmpopts.IgnoreFields(frame.Meta{}, "Head", "Len", "Wire", "Next"), cmpopts.IgnoreUnexported(frame.Meta{})}

// checkOffsets holds what later stages rely on: offsets are zero or inside the
// materialised bytes, with the header that the flags promise.
func checkOffsets(t testing.TB, m *frame.Meta, n int) {
	t.Helper()
	need := func(what string, off uint16, size int) {
		if int(off)+size > n {
			t.Errorf("%s at %d does not fit into %d bytes: %+v", what, off, n, m)
		}
	}
	if m.Flags&(frame.HasIPv4|frame.HasIPv6) == 0 && (m.L4 != 0 || m.L4Inner != 0 || m.Proto != 0) {
		t.Errorf("transport without IP: %+v", m)
	}
	if m.Flags&frame.HasIPv4 != 0 {
		need("IPv4", m.L3, wire.IPv4Len)
	}
	if m.Flags&frame.HasIPv6 != 0 {
		need("IPv6", m.L3, wire.IPv6Len)
	}
	if m.Flags&frame.HasTunnel != 0 {
		size := wire.IPv4Len
		if m.Flags&frame.InnerIPv6 != 0 {
			size = wire.IPv6Len
		}
		need("inner IP", m.L3Inner, size)
		if m.L3Inner <= m.L3 {
			t.Errorf("inner header before outer: %+v", m)
		}
	} else if m.L3Inner != m.L3 || m.L4Inner != m.L4 || m.Proto != m.ProtoIn {
		t.Errorf("no tunnel, but inner and outer differ: %+v", m)
	}
	for flag, size := range map[uint32]int{frame.HasTCP: wire.TCPLen, frame.HasUDP: wire.UDPLen, frame.HasICMP: wire.ICMPv6Len} {
		if m.Flags&flag != 0 {
			need("transport", m.L4Inner, size)
			if m.L4Inner <= m.L3Inner {
				t.Errorf("transport before IP: %+v", m)
			}
		}
	}
	if m.Flags&frame.HasRoCE != 0 {
		need("RoCE", m.L4Inner, wire.UDPLen+wire.BTHLen)
	}
	if m.Flags&frame.HasINT != 0 {
		need("INT", m.INT, wire.HPCCBase)
		if m.INT != m.L4+wire.UDPLen || m.Flags&frame.HasUDP == 0 {
			t.Errorf("telemetry is not behind UDP: %+v", m)
		}
	} else if m.INT != 0 {
		t.Errorf("no telemetry, but an offset: %+v", m)
	}
	need("L4", m.L4, 0)
	if m.Flags&frame.IsFragment != 0 && (m.SrcPort != 0 || m.DstPort != 0) {
		t.Errorf("a fragment with ports: %+v", m)
	}
}

// The short cut agrees with the full parser on all that it takes.
func TestPlainAgreesWithGeneral(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	fs := formats()
	plain := 0
	for i := range 200_000 {
		b := append([]byte(nil), fs[i%len(fs)].b...)
		for range rnd.IntN(3) {
			b[rnd.IntN(min(len(b), 64))] = byte(rnd.Uint32())
		}
		plain += comparePaths(t, b, rnd.IntN(100))
		if t.Failed() {
			return
		}
	}
	if plain < 5000 {
		t.Errorf("only %d frames took the short cut", plain)
	}
}

// comparePaths parses b both ways and returns 1 if the short cut took it.
func comparePaths(t testing.TB, b []byte, beyond int) int {
	p := wire.NewParser(wire.NewHasher(3, false))
	a := frame.MustArena(2, 4096, 256)
	for r := range frame.Ref(2) {
		a.SetBytes(r, b)
		a.Meta(r).Wire += uint32(beyond)
		a.Meta(r).Flags = frame.MarkCE | frame.IsClone | frame.HasTCP
	}
	p.Parse(a, []frame.Ref{0})
	p.ParseGeneral(a, []frame.Ref{1})
	if *a.Meta(0) != *a.Meta(1) {
		t.Errorf("general -, Parse +:\n%s\n% x", cmp.Diff(*a.Meta(1), *a.Meta(0), cmpopts.IgnoreUnexported(frame.Meta{})), b)
	}
	if a.Meta(0).Flags&(frame.MarkCE|frame.IsClone) != frame.MarkCE|frame.IsClone {
		t.Error("flags of later stages were lost")
	}
	checkOffsets(t, a.Meta(0), len(b))
	simple := frame.HasIPv4 | frame.HasUDP
	if m := a.Meta(0); m.L3 <= wire.EthernetLen+wire.VLANLen && m.Flags&(simple|frame.HasVLAN|frame.HasTunnel|frame.IsFragment|frame.HasOptions) == simple && m.Reason == frame.Keep {
		if hash, ok := p.Guess(b); !ok || hash != m.Hash {
			t.Errorf("guessed hash %#x, %v, it is %#x:\n% x", hash, ok, m.Hash, b)
		}
	} else {
		p.Guess(b) // whatever it says, it must not panic
	}
	return p.ParsePlain(a, []frame.Ref{0})
}

// More-fragments and each bit of the offset make a fragment; don't-fragment and
// the reserved bit do not.
func TestFragmentBits(t *testing.T) {
	for k := range 16 {
		word := uint16(1) << k
		m, why := wt.Parse(edit4(wt.Frame(eth, ip4, udp), 20, byte(word>>8), byte(word)))
		if got := m.Flags&frame.IsFragment != 0; why != frame.Keep || got != (k < 14) {
			t.Errorf("word %04x: %v, fragment %v", word, why, got)
		}
	}
}

func TestParseAllocatesNothing(t *testing.T) {
	a, v := vector(formats())
	p := wire.NewParser(wire.NewHasher(1, true))
	if n := testing.AllocsPerRun(100, func() { p.Parse(a, v) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// vector puts up to 64 frames of the formats into an arena, over and over.
func vector(fs []format) (*frame.Arena, []frame.Ref) {
	a := frame.MustArena(64, 2048, 256)
	var v []frame.Ref
	for i := range frame.Ref(64) {
		b := append([]byte(nil), fs[int(i)%len(fs)].b...)
		a.SetBytes(i, b)
		v = append(v, i)
	}
	return a, v
}

func BenchmarkParse(b *testing.B) {
	byName := map[string]format{}
	for _, f := range formats() {
		byName[f.name] = f
	}
	pick := func(names ...string) (fs []format) {
		for _, n := range names {
			fs = append(fs, byName[n])
		}
		return fs
	}
	for _, c := range []struct {
		name string
		fs   []format
	}{
		{"udp4", pick("udp4")},
		{"tcp4", pick("tcp4")},
		{"vlan", pick("vlan")},
		{"tcp-udp-vlan", pick("udp4", "tcp4", "vlan", "tcp4-options")},
		{"udp6", pick("udp6")},
		{"roce", pick("roce-send-only", "roce-ack", "roce-write-only-imm")},
		{"internet", pick("tcp4", "udp4", "tcp4", "vlan", "tcp6", "udp4", "tcp4", "icmp", "tcp4", "udp6", "tcp4", "arp")},
		{"all-formats", formats()},
	} {
		b.Run(c.name, func(b *testing.B) {
			a, v := vector(c.fs)
			p := wire.NewParser(wire.NewHasher(1, false))
			b.ReportAllocs()
			for b.Loop() {
				p.Parse(a, v)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(v)), "ns/frame")
		})
	}
}

// What is known of a message of our own is what the parser finds in it.
func TestOwnICMP4(t *testing.T) {
	a := frame.MustArena(2, 2048, frame.DefaultHeadroom)
	pool := frame.NewPool(a)
	r, own := pool.Alloc(), pool.Alloc()
	p := wire.NewParser(wire.NewHasher(5, false))
	rapid.Check(t, func(t *rapid.T) {
		addr := func(what string) string {
			return netip.AddrFrom4([4]byte(rapid.SliceOfN(rapid.Byte(), 4, 4).Draw(t, what))).String()
		}
		b := wt.Packet(eth, wt.IPv4(addr("src"), addr("dst"), wt.TOS(rapid.Uint8Range(0, 63).Draw(t, "dscp")<<2), wt.TTL(rapid.Byte().Draw(t, "ttl"))),
			wt.ICMP(rapid.Byte().Draw(t, "type"), 1, 7), wt.Zeros(rapid.IntRange(0, 200).Draw(t, "body")))
		for _, x := range []frame.Ref{r, own} {
			a.SetBytes(x, b)
			m := a.Meta(x)
			m.Flags = rapid.SampledFrom([]uint32{0, frame.Own, frame.HasUDP | frame.IsECT}).Draw(t, "flags before")
		}
		a.Meta(own).Flags = a.Meta(r).Flags
		p.Parse(a, []frame.Ref{r})
		p.OwnICMP4(a.Meta(own), a.Bytes(own))
		if d := cmp.Diff(a.Meta(r), a.Meta(own), cmpopts.IgnoreUnexported(frame.Meta{})); d != "" {
			t.Fatalf("by the parser -, as our own +:\n%s", d)
		}
	})
}

// Packets of several flows in one vector have the hashes that they have alone.
func TestHashesInVectors(t *testing.T) {
	p := wire.NewParser(wire.NewHasher(3, false))
	a := frame.MustArena(256, 256, 64)
	rnd := rand.New(rand.NewPCG(1, 2))
	var v []frame.Ref
	for r := range frame.Ref(256) {
		l4 := wt.UDP(1, uint16(2+rnd.IntN(2)))
		if rnd.IntN(2) == 0 {
			l4 = wt.TCP(wire.TCPFields{SrcPort: 1, DstPort: uint16(2 + rnd.IntN(2))})
		}
		a.SetBytes(r, wt.Frame(wt.Eth(wt.MAC(1), wt.MAC(2)), wt.IPv4(fmt.Sprintf("10.0.0.%d", rnd.IntN(2)), fmt.Sprintf("10.0.1.%d", rnd.IntN(2))), l4))
		v = append(v, r)
	}
	p.Parse(a, v)
	seen := map[uint32]bool{}
	for _, r := range v {
		got := a.Meta(r).Hash
		p.ParseGeneral(a, v[r:r+1])
		if want := a.Meta(r).Hash; got != want {
			t.Fatalf("packet %d has the hash %#x, alone %#x", r, got, want)
		}
		seen[got] = true
	}
	if len(seen) != 16 {
		t.Errorf("%d hashes, want 16", len(seen))
	}
}

// The zero parser differs in the hash alone, which is 0.
func TestZeroParserHashesNothing(t *testing.T) {
	a := frame.MustArena(2, 2048, 64)
	for _, f := range formats() {
		a.SetBytes(0, f.b)
		a.SetBytes(1, f.b)
		wire.NewParser(wire.NewHasher(3, false)).Parse(a, []frame.Ref{0})
		new(wire.Parser).Parse(a, []frame.Ref{1})
		want := *a.Meta(0)
		want.Head = a.Meta(1).Head
		if want.Hash == 0 {
			t.Errorf("%s: a keyed parser gives the hash 0", f.name)
		}
		want.Hash = 0
		if d := cmp.Diff(&want, a.Meta(1), cmpopts.IgnoreUnexported(frame.Meta{})); d != "" {
			t.Errorf("%s: want -, got +:\n%s", f.name, d)
		}
	}
}
