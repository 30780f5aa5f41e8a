package pipeline

import (
	"encoding/binary"
	"math/rand"
	"net/netip"
	"testing"

	"gswitch/frame"
)

// tcp4 makes a VLAN-tagged TCP SYN from 10.1.2.3:1000 to 172.16.0.9:443 and
// fills the Meta as the parser does.
func tcp4(a *frame.Arena, r frame.Ref) *frame.Meta {
	b := make([]byte, 64)
	copy(b, []byte{0x02, 0, 0, 0, 0, 0x0d, 0x02, 0, 0, 0, 0, 0x05, 0x81, 0, 0, 7, 8, 0})
	ip := b[18:]
	copy(ip, []byte{0x45, 0xb8, 0, 40, 0, 0, 0, 0, 64, 6, 0, 0, 10, 1, 2, 3, 172, 16, 0, 9})
	binary.BigEndian.PutUint16(ip[20:], 1000)
	binary.BigEndian.PutUint16(ip[22:], 443)
	ip[33] = 2
	a.SetBytes(r, b)
	m := a.Meta(r)
	m.Flags = frame.HasVLAN | frame.HasIPv4 | frame.HasTCP
	m.EtherType, m.L3, m.L4, m.L3Inner, m.L4Inner = 0x0800, 18, 38, 18, 38
	m.Proto, m.ProtoIn, m.DSCP, m.TTL, m.SrcPort, m.DstPort = 6, 6, 46, 64, 1000, 443
	m.InPort, m.VID, m.Class = 3, 7, 5
	return m
}

// Each condition holds for a frame that meets it, by way of BuildKey, and does
// not for one that differs.
func TestBuildKeyMeetsMatch(t *testing.T) {
	a := frame.MustArena(1, 2048, 256)
	m := tcp4(a, 0)
	pfx := netip.MustParsePrefix
	for name, c := range map[string]struct{ yes, no func(*Match) }{
		"in-port":   {func(m *Match) { m.MatchInPort(3) }, func(m *Match) { m.MatchInPort(4) }},
		"vlan":      {func(m *Match) { m.MatchVLAN(7) }, func(m *Match) { m.MatchVLAN(8) }},
		"class":     {func(m *Match) { m.MatchClass(5) }, func(m *Match) { m.MatchClass(4) }},
		"ethertype": {func(m *Match) { m.MatchEtherType(0x0800) }, func(m *Match) { m.MatchEtherType(0x86dd) }},
		"dst-mac": {func(m *Match) { m.MatchDstMAC(0x02000000000d, 1<<48-1) },
			func(m *Match) { m.MatchDstMAC(0x02000000000c, 1<<48-1) }},
		"src-mac": {func(m *Match) { m.MatchSrcMAC(0x020000000000, 0xffffff000000) },
			func(m *Match) { m.MatchSrcMAC(0x020000000000, 0xffffff0000ff) }},
		"src-ip":   {func(m *Match) { m.MatchSrcIP(pfx("10.1.2.0/24")) }, func(m *Match) { m.MatchSrcIP(pfx("10.1.3.0/24")) }},
		"dst-ip":   {func(m *Match) { m.MatchDstIP(pfx("172.16.0.9/32")) }, func(m *Match) { m.MatchDstIP(pfx("172.16.0.8/32")) }},
		"any-ip":   {func(m *Match) { m.MatchDstIP(pfx("0.0.0.0/0")) }, func(m *Match) { m.MatchDstIP(pfx("::/0")) }},
		"proto":    {func(m *Match) { m.MatchProto(6) }, func(m *Match) { m.MatchProto(17) }},
		"dscp":     {func(m *Match) { m.MatchDSCP(46) }, func(m *Match) { m.MatchDSCP(0) }},
		"tcp-syn":  {func(m *Match) { m.MatchTCPFlags(2, 0x12) }, func(m *Match) { m.MatchTCPFlags(0x12, 0x12) }},
		"src-port": {func(m *Match) { m.MatchSrcPort(1000, 1000) }, func(m *Match) { m.MatchSrcPort(1001, 2000) }},
		"dst-port": {func(m *Match) { m.MatchDstPort(0, 443) }, func(m *Match) { m.MatchDstPort(443+1, 65535) }},
		"fragment": {func(m *Match) { m.MatchFragment(false) }, func(m *Match) { m.MatchFragment(true) }},
	} {
		var yes, no Rule
		c.yes(&yes.Match)
		c.no(&no.Match)
		table, err := NewTernary([]Rule{no, yes})
		if err != nil {
			t.Fatal(err)
		}
		var all, needed Key
		BuildKey(a, 0, NeedAll, &all)
		BuildKey(a, 0, table.Needs(), &needed)
		if !yes.Holds(&all) || no.Holds(&all) {
			t.Errorf("%s: Holds = %v and %v", name, yes.Holds(&all), no.Holds(&all))
		}
		if id := table.Lookup(&needed); id != 1 {
			t.Errorf("%s: Lookup with needs %b = %d", name, table.Needs(), id)
		}
	}
	if p, m := (&Match{}), (&Key{}); !p.Holds(m) {
		t.Error("the zero Match does not hold for everything")
	}

	var k Key
	var port, frag Match
	port.MatchSrcPort(0, 65535)
	frag.MatchFragment(true)
	m.Flags |= frame.IsFragment
	if BuildKey(a, 0, NeedAll, &k); port.Holds(&k) || !frag.Holds(&k) {
		t.Error("a fragment has ports, or is none")
	}
	m.Flags = m.Flags&^frame.IsFragment | frame.HasTunnel
	if BuildKey(a, 0, NeedAll, &k); port.Holds(&k) {
		t.Error("the ports of an inner header are taken for those of the outer one")
	}
}

func TestBuildKeyIPv6(t *testing.T) {
	a := frame.MustArena(1, 2048, 256)
	b := make([]byte, 14+40+8)
	src, dst := netip.MustParseAddr("2001:db8::5"), netip.MustParseAddr("2001:db8:1::6")
	copy(b[14+8:], src.AsSlice())
	copy(b[14+24:], dst.AsSlice())
	a.SetBytes(0, b)
	m := a.Meta(0)
	m.Flags, m.EtherType, m.L3, m.L4, m.Proto = frame.HasIPv6|frame.HasUDP, 0x86dd, 14, 54, 17
	var k Key
	BuildKey(a, 0, NeedAll, &k)
	var yes, no Match
	yes.MatchSrcIP(netip.PrefixFrom(src, 128))
	yes.MatchDstIP(netip.PrefixFrom(dst, 48).Masked())
	no.MatchDstIP(netip.PrefixFrom(src, 48).Masked())
	if !yes.Holds(&k) || no.Holds(&k) {
		t.Errorf("Holds = %v and %v", yes.Holds(&k), no.Holds(&k))
	}
}

// A Meta that promises more than there are bytes leaves fields zero.
func TestBuildKeyShortFrames(t *testing.T) {
	a := frame.MustArena(1, 2048, 256)
	for n := 0; n < 64; n++ {
		tcp4(a, 0)
		a.Meta(0).Len = uint16(n)
		var k Key
		BuildKey(a, 0, NeedAll, &k)
		if n < 38 && k[4]|k[6] != 0 || n < 12 && k[2] != 0 {
			t.Errorf("%d bytes: key %x", n, k)
		}
	}
}

func TestBuildKeyDoesNotAllocate(t *testing.T) {
	a := frame.MustArena(1, 2048, 256)
	tcp4(a, 0)
	keys := make([]Key, 1)
	if n := testing.AllocsPerRun(100, func() { BuildKey(a, 0, NeedAll, &keys[0]) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// Whatever the Meta claims of the bytes, building a key stays inside them.
func FuzzBuildKey(f *testing.F) {
	f.Add([]byte{}, uint32(frame.HasIPv4|frame.HasTCP), uint16(14), uint16(34))
	f.Add(make([]byte, 54), uint32(frame.HasIPv6|frame.HasUDP), uint16(14), uint16(54))
	f.Add(make([]byte, 64), uint32(frame.HasIPv4|frame.HasTCP), uint16(65535), uint16(65535))
	a := frame.MustArena(1, 2048, 256)
	f.Fuzz(func(t *testing.T, b []byte, flags uint32, l3, l4 uint16) {
		if !a.SetBytes(0, b) {
			return
		}
		m := a.Meta(0)
		m.Flags, m.L3, m.L4 = flags, l3, l4
		var all, meta Key
		BuildKey(a, 0, NeedAll, &all)
		BuildKey(a, 0, 0, &meta)
		if all.needs()&^NeedAll != 0 || meta.needs() != 0 {
			t.Errorf("a key without needs has them: %x", meta)
		}
		mask := Key{0: ^uint64(0), 1: 0xffff, 7: ^uint64(0xff << keyTCPFlagsShift)}
		all.and(&mask)
		meta.and(&mask)
		if all != meta {
			t.Errorf("the part that comes from the Meta differs: %x and %x", all, meta)
		}
	})
}

// The whole access list stage of a vector: build and mask the keys, and find
// the rules of 128 flows among 1000 in a warm cache.
func BenchmarkACLStage(b *testing.B) {
	rng := rand.New(rand.NewSource(1))
	table, err := NewTernary(aclRules(1000, rng))
	if err != nil {
		b.Fatal(err)
	}
	a := frame.MustArena(128, 2048, 256)
	for r := range frame.Ref(128) {
		tcp4(a, r)
		ip := a.Bytes(r)[18:]
		binary.BigEndian.PutUint16(ip[14:], uint16(rng.Uint32()))
		binary.BigEndian.PutUint16(ip[18:], uint16(rng.Uint32()))
	}
	cache := NewFlowCache(4096)
	keys, ids := make([]Key, 64), make([]uint32, 64)
	for i := 0; i < b.N; i++ {
		for j := range keys {
			BuildKey(a, frame.Ref(i&1*64+j), table.Needs(), &keys[j])
			table.Mask(&keys[j])
		}
		cache.LookupVec(table, keys, ids)
	}
	perFrame(b, 64)
}

func BenchmarkBuildKey(b *testing.B) {
	a := frame.MustArena(64, 2048, 256)
	for r := range frame.Ref(64) {
		tcp4(a, r)
	}
	keys := make([]Key, 64)
	for name, needs := range map[string]Needs{"meta": 0, "ip": NeedIP, "all": NeedAll} {
		b.Run(name, func(b *testing.B) {
			for i := 0; i < b.N; i++ {
				for r := range keys {
					BuildKey(a, frame.Ref(r), needs, &keys[r])
				}
			}
			perFrame(b, 64)
		})
	}
}
