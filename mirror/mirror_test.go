package mirror

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"

	"gswitch/capture/capturetest"
	"gswitch/frame"
	"gswitch/wire"
	wt "gswitch/wire/wiretest"
)

var eth = wt.Eth(wt.MAC(1), wt.MAC(2))

func tcp(flags uint8, src, dst uint16) wt.Layer {
	return wt.TCP(wire.TCPFields{SrcPort: src, DstPort: dst, Flags: flags})
}

func roce(opcode, syndrome uint8) []wt.Layer {
	return []wt.Layer{wt.IPv4("10.0.0.1", "10.0.0.2", id(5)), wt.UDP(50000, wire.RoCEv2Port), wt.BTH(opcode, 7, 9), wt.Payload([]byte{syndrome, 0, 0, 0}), wt.Zeros(8)}
}

func id(v uint16) wt.IPOption { return wt.IPv4With(func(f *wire.IPv4Fields) { f.ID = v }) }

func classifier(t *testing.T, sample uint8) *Classifier {
	t.Helper()
	c, err := NewClassifier(Default(sample, GREProtoERSPAN3))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Everflow's rules, on plain packets and on packets in a tunnel alike.
func TestRules(t *testing.T) {
	c := classifier(t, 10)
	ip := wt.IPv4("10.0.0.1", "10.0.0.2", id(5))
	type packet struct {
		name   string
		layers []wt.Layer
		want   []string
	}
	var all []packet
	for _, f := range []struct {
		flags uint8
		want  []string
	}{
		{wire.TCPSyn, []string{"syn"}}, {wire.TCPSyn | wire.TCPAck, []string{"syn"}}, {wire.TCPFin | wire.TCPAck, []string{"fin"}},
		{wire.TCPRst, []string{"rst"}}, {wire.TCPRst | wire.TCPAck, []string{"rst"}}, {wire.TCPAck, nil}, {wire.TCPPsh | wire.TCPAck, nil},
	} {
		all = append(all, packet{"TCP", []wt.Layer{ip, tcp(f.flags, 1000, 80)}, f.want})
	}
	all = append(all,
		packet{"BGP there", []wt.Layer{ip, tcp(wire.TCPAck, 1000, 179)}, []string{"bgp-to"}},
		packet{"BGP back", []wt.Layer{ip, tcp(wire.TCPAck, 179, 1000)}, []string{"bgp-from"}},
		packet{"UDP to BGP's port", []wt.Layer{ip, wt.UDP(179, 179)}, nil},
		packet{"marked", []wt.Layer{wt.IPv4("10.0.0.1", "10.0.0.2", id(5), wt.TOS(1<<2)), wt.UDP(1, 2)}, []string{"debug"}},
		packet{"another DSCP", []wt.Layer{wt.IPv4("10.0.0.1", "10.0.0.2", id(5), wt.TOS(2<<2)), wt.UDP(1, 2)}, nil},
		packet{"two rules, one copy", []wt.Layer{wt.IPv4("10.0.0.1", "10.0.0.2", id(5), wt.TOS(1<<2)), tcp(wire.TCPSyn, 1, 2)}, []string{"syn", "debug"}},
		packet{"NAK", roce(wire.RCAcknowledge, 0x60), []string{"nak"}},
		packet{"RNR NAK is none", roce(wire.RCAcknowledge, 0x20), nil},
		packet{"ACK", roce(wire.RCAcknowledge, 0x1f), nil},
		packet{"CNP", roce(wire.RoCECongestionNotify, 0), []string{"cnp"}},
		packet{"data that looks like a NAK", roce(4, 0x60), nil},
		packet{"sampled", []wt.Layer{wt.IPv4("10.0.0.1", "10.0.0.2", id(0x400)), wt.UDP(1, 2)}, []string{"sample"}},
		packet{"a fragment's payload is no header", []wt.Layer{wt.IPv4("10.0.0.1", "10.0.0.2", id(5), wt.IPv4With(func(f *wire.IPv4Fields) { f.FlagsOffset = 100 })), tcp(wire.TCPSyn, 1, 2)}, nil},
	)
	for _, p := range all {
		for _, tunnel := range []bool{false, true} {
			layers := append([]wt.Layer{eth}, p.layers...)
			if tunnel {
				layers = slices.Insert(layers, 1, wt.IPv4("192.168.0.1", "192.168.0.2", id(7)))
			}
			b := wt.Frame(layers...)
			m, why := wt.Parse(b)
			if why != frame.Keep {
				t.Fatalf("%s: %v", p.name, why)
			}
			if got := c.Names(c.Match(&m, b)); !slices.Equal(got, p.want) || c.Match(&m, b) != together(c, b) {
				t.Errorf("%s, in a tunnel: %t: %v, in a vector %v, want %v", p.name, tunnel, got, c.Names(together(c, b)), p.want)
			}
		}
	}
	syns, fin := wt.Frame(eth, ip, tcp(wire.TCPSyn, 1, 2)), wt.Frame(eth, ip, tcp(wire.TCPFin, 1, 2))
	if got := c.Names(together(c, syns, fin, syns)); !slices.Equal(got, []string{"syn", "fin"}) {
		t.Errorf("a vector matches %v", got)
	}
	pause := wt.PFC(wt.MAC(3), 1, 0xffff)
	m, _ := wt.Parse(pause)
	if got := c.Names(c.Match(&m, pause)); !slices.Equal(got, []string{"pause"}) {
		t.Errorf("a pause: %v", got)
	}
	arp := wt.Frame(eth, wt.ARP(wire.ARPFields{Op: wire.ARPRequest}))
	if m, _ = wt.Parse(arp); c.Match(&m, arp) != 0 {
		t.Error("ARP matches")
	}
	// A copy of a SYN, and one that a load balancer has put into a tunnel again.
	s := Session{ID: 1, Src: netip.MustParseAddr("10.10.0.10"), Dst: netip.MustParseAddr("10.255.0.1")}
	syn := wt.Frame(eth, ip, tcp(wire.TCPSyn, 1, 2))
	b := make([]byte, 512)
	n, _ := s.Copy(b, syn, uint32(len(syn)), Info{})
	if m, _ = wt.Parse(b[:n]); c.Match(&m, b[:n]) != 0 {
		t.Errorf("a copy is copied: %v", c.Names(c.Match(&m, b[:n])))
	}
}

// One of 1,024, the same everywhere.
func TestSample(t *testing.T) {
	c := classifier(t, 10)
	hits := 0
	for v := range 1 << 16 {
		b := wt.Frame(eth, wt.IPv4("10.0.0.1", "10.0.0.2", id(uint16(v))), wt.UDP(1, 2))
		m, _ := wt.Parse(b)
		if c.Match(&m, b) != 0 {
			hits++
			if v%1024 != 0 {
				t.Fatalf("identification %#x is sampled", v)
			}
		}
	}
	if hits != 64 {
		t.Errorf("%d of 65,536, want 64", hits)
	}
}

// Packets without an identification are sampled, too, one in so many of them and not all:
// by their checksum, or by their PSN. Their copies make a trace of each.
func TestNoIdentification(t *testing.T) {
	c := classifier(t, 4)
	none := wt.IPv4With(func(f *wire.IPv4Fields) { f.ID, f.FlagsOffset = 0, wire.IPv4DontFragment })
	s := Session{ID: 1, Dst: netip.MustParseAddr("10.255.0.1")}
	const all = 4096
	for what, frameOf := range map[string]func(i int) []byte{
		"UDP": func(i int) []byte {
			return wt.Frame(eth, wt.IPv4("10.0.0.1", "10.0.0.2", none), wt.UDP(1, 2), wt.Payload([]byte{byte(i >> 8), byte(i)}))
		},
		"TCP": func(i int) []byte {
			return wt.Frame(eth, wt.IPv4("10.0.0.1", "10.0.0.2", none), tcp(wire.TCPAck, 1, 2), wt.Payload([]byte{byte(i >> 8), byte(i)}))
		},
		"RoCEv2": func(i int) []byte {
			b := wt.Frame(append([]wt.Layer{eth}, roce(4, 0)...)...)
			copy(b[14+4:], []byte{0, 0, 0x40, 0}) // no identification, must not be fragmented
			copy(b[14+20+6:], []byte{0, 0})
			binary.BigEndian.PutUint16(b[14+20+8+10:], uint16(i))
			binary.BigEndian.PutUint16(b[14+10:], 0)
			binary.BigEndian.PutUint16(b[14+10:], wire.Checksum(b[14:34]))
			return b
		},
		"UDP without a checksum": func(i int) []byte {
			b := wt.Frame(eth, wt.IPv4("10.0.0.1", "10.0.0.2", none), wt.UDP(1, 2), wt.Payload([]byte{0: byte(i >> 8), 1: byte(i), 40: 0}))
			copy(b[14+20+6:], []byte{0, 0})
			return b
		},
		"a flow each": func(i int) []byte {
			b := wt.Frame(eth, wt.IPv4("10.0.0.1", "10.0.0.2", none), wt.UDP(uint16(i), 2))
			copy(b[14+20+6:], []byte{0, 0})
			return b
		},
		"ICMP": func(i int) []byte {
			return wt.Frame(eth, wt.IPv4("10.0.0.1", "10.0.0.2", none), wt.ICMP(wire.ICMPEcho, 0, uint32(i)))
		},
		"of a protocol that nobody knows": func(i int) []byte {
			return wt.Frame(eth, wt.IPv4("10.0.0.1", "10.0.0.2", none, wt.IPv4With(func(f *wire.IPv4Fields) { f.Proto = 50 })), wt.Payload([]byte{3: 9, 6: byte(i >> 8), 7: byte(i)}))
		},
	} {
		hits := 0
		traces := NewTraces(everywhere{}, all)
		for i := range all {
			b := frameOf(i)
			m, why := wt.Parse(b)
			if why != frame.Keep {
				t.Fatalf("%s: %v", what, why)
			}
			hit := c.Match(&m, b)
			if hit != together(c, b) {
				t.Fatalf("%s: %v, in a vector %v", what, c.Names(hit), c.Names(together(c, b)))
			}
			if hit != 0 {
				hits++
			}
			for hop := range 2 {
				s.Src = netip.AddrFrom4([4]byte{10, 10, 0, byte(hop + 1)})
				copied := make([]byte, 512)
				n, _ := s.Copy(copied, b, uint32(len(b)), Info{At: frame.Time(i + 1)})
				k, h, ok := Parse(copied[:n])
				if !ok {
					t.Fatalf("%s: copy %d", what, i)
				}
				h.TTL, h.InnerTTL = 64-uint8(hop), 64-uint8(hop)
				traces.Add(frame.Time(i+1), k, h)
			}
		}
		if hits < all/16/2 || hits > all/16*2 {
			t.Errorf("%s: %d of %d are sampled, want one in 16", what, hits, all)
		}
		v := traces.Advance(2 * frame.Second)
		for _, tr := range v {
			if len(tr.Hops) != 2 {
				t.Fatalf("%s: a trace of %d hops", what, len(tr.Hops))
			}
		}
		if len(v) != all {
			t.Errorf("%s: %d traces of %d packets", what, len(v), all)
		}
	}
}

// everywhere is a network in which packets may end at each switch.
type everywhere struct{}

func (everywhere) Last(netip.Addr, [4]byte) bool { return true }
func (everywhere) Station(wire.MAC) bool         { return false }

func TestRuleErrors(t *testing.T) {
	for want, rules := range map[string][]Rule{
		"without a name": {{View: Both}}, "looks at no headers": {{Name: "a"}}, "two rules": {{Name: "a", View: Both}, {Name: "a", View: Both}},
		"not possible": {{Name: "a", View: Both, SampleBits: 4, SampleValue: 16}}, "no IP header": {{Name: "a", View: Both, MACControl: true, DSCP: 1}}, "65 rules": make([]Rule, 65),
	} {
		if _, err := NewClassifier(rules); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", want, err)
		}
	}
}

// The bytes of Everflow's format: a SYN of 60 bytes in plain GRE.
func TestCopyVector(t *testing.T) {
	orig, _ := hex.DecodeString("020000000a01020000000002080045000028" + "1c4640004006" + "0087" + "0a0001020a000902" + "9c400050112233440000000050" + "02ffffb0e80000" + "000000000000")
	if len(orig) != 60 {
		t.Fatalf("%d bytes", len(orig))
	}
	s := Session{Src: netip.MustParseAddr("10.10.0.10"), Dst: netip.MustParseAddr("10.255.0.1"), Format: GRE}
	b := make([]byte, 200)
	n, length := s.Copy(b, orig, 60, Info{})
	if want, _ := hex.DecodeString("45000054000040" + "00402f25680a0a000a0aff0001" + "000088be"); n != 98 || length != 98 || !reflect.DeepEqual(b[14:38], want) || !reflect.DeepEqual(b[38:98], orig) {
		t.Errorf("%d bytes: %x", n, b[:n])
	}
	if n, _ := s.Copy(b[:90], orig, 60, Info{}); n != 0 {
		t.Error("a copy without room was written")
	}
	// What there is room for is kept, and no more is promised.
	long := append(slices.Clone(orig), make([]byte, 140)...)
	if n, length := s.Copy(b[:180], long, 200, Info{}); n != 180 || length != 180 {
		t.Errorf("%d bytes, %d on the link", n, length)
	}
	// In virtual time the link has what memory has not.
	if n, length := s.Copy(b, orig, 1000, Info{}); n != 98 || length != 1038 {
		t.Errorf("%d bytes, %d on the link", n, length)
	}
	if n, length := s.Copy(b, orig, 1000, Info{Cut: true}); n != 98 || length != 98 {
		t.Errorf("%d bytes, %d on the link of a frame in several chunks", n, length)
	}
}

// Wireshark sees the original in each format, and what the copy reports of it.
func TestTsharkDissectsCopies(t *testing.T) {
	orig := wt.Frame(eth, wt.IPv4("10.0.1.2", "10.0.9.2"), tcp(wire.TCPSyn, 40000, 80), wt.Zeros(300))
	var frames [][]byte
	for _, format := range []Format{ERSPAN3, ERSPAN2, GRE} {
		for _, snap := range []int{0, 128} {
			s := Session{ID: 5, Src: netip.MustParseAddr("10.10.0.10"), Dst: netip.MustParseAddr("10.255.0.1"), Format: format, Snap: snap, Switch: 10, sequence: 41}
			b := make([]byte, 1000)
			n, length := s.Copy(b, orig, uint32(len(orig)), Info{At: 3*frame.Second + 7, Port: 4, VLAN: 1})
			if int(length) != n || snap > 0 && n != format.Overhead()+128 {
				t.Fatalf("%d bytes, %d on the link", n, length)
			}
			copy(b[6:], []byte{2, 0, 0, 0, 0, 9})
			frames = append(frames, b[:n])
		}
	}
	lines := capturetest.Dissect(t, frames, "erspan.spanid", "erspan.timestamp", "gre.sequence_number", "tcp.flags.syn", "tcp.dstport", "ip.src")
	for i, l := range lines {
		v := strings.Split(l, "|")
		session, sequence := "5", "41"
		if i >= 4 {
			session, sequence = "", ""
		}
		if v[0] != session || v[2] != sequence || v[3] != "1" || v[4] != "80" || v[5] != "10.10.0.10,10.0.1.2" || i < 2 && !strings.HasPrefix(v[1], "7") {
			t.Errorf("copy %d: %s", i, l)
		}
	}
	if len(lines) != 6 {
		t.Errorf("%d copies", len(lines))
	}
}

// The vectors of Microsoft's specification of receive side scaling.
func TestToeplitz(t *testing.T) {
	key, _ := hex.DecodeString("6d5a56da255b0ec24167253d43a38fb0d0ca2bcbae7b30b477cb2da38030f20c6a42b73bbeac01fa")
	in, _ := hex.DecodeString("420995bba18e6450" + "0aea06e6")
	if h := Toeplitz(key, in); h != 0x51ccc178 {
		t.Errorf("%#x with ports", h)
	}
	if h := Toeplitz(key, in[:8]); h != 0x323e8fc2 {
		t.Errorf("%#x without", h)
	}
}

// analyzers are n addresses.
func analyzers(n int) (v []netip.Addr) {
	for i := range n {
		v = append(v, netip.AddrFrom4([4]byte{10, 9, 0, byte(i + 1)}))
	}
	return v
}

// All copies of a packet, plain and in a tunnel and from whichever switch, go to one
// analyzer (check 6 of the paper's stickiness: 100,000 flows, eight analyzers within 3 %);
// the flows of one that is gone move, and no others; the order of the list does not
// matter.
func TestAnalyzers(t *testing.T) {
	all := analyzers(8)
	s, err := NewAnalyzers(all)
	if err != nil {
		t.Fatal(err)
	}
	turned := slices.Clone(all)
	slices.Reverse(turned)
	other, _ := NewAnalyzers(turned)
	left := slices.Delete(slices.Clone(all), 3, 4)
	less, _ := NewAnalyzers(left)
	r := rand.New(rand.NewPCG(1, 9))
	load := make([]int, 8)
	for range 100_000 {
		src, dst := netip.AddrFrom4([4]byte{10, byte(r.Uint32()), byte(r.Uint32()), 1}).String(), netip.AddrFrom4([4]byte{10, byte(r.Uint32()), byte(r.Uint32()), 2}).String()
		ip := wt.IPv4(src, dst)
		udp := wt.UDP(uint16(r.Uint32()), 4791)
		plain := &Copied{Switch: addr(0), Original: wt.Frame(eth, ip, udp)}
		tunnelled := &Copied{Switch: addr(1), Original: wt.Frame(wt.Eth(wt.MAC(9), wt.MAC(8)), wt.IPv4("192.168.0.1", "192.168.0.2"), ip, udp)}
		a := s.Of(plain)
		if b := s.Of(tunnelled); a != b {
			t.Fatalf("plain at %d, in a tunnel at %d", a, b)
		}
		next := &Copied{Switch: addr(0), Original: wt.Frame(eth, wt.IPv4(src, dst, wt.IPv4With(func(f *wire.IPv4Fields) { f.ID = uint16(r.Uint32()) })), udp)}
		if b := s.Of(next); b != a {
			t.Fatalf("a packet of a flow at %d, another one at %d", a, b)
		}
		if b := turned[other.Of(plain)]; b != all[a] {
			t.Fatalf("at %v, with the list turned at %v", all[a], b)
		}
		load[a]++
		if b := left[less.Of(plain)]; a != 3 && b != all[a] {
			t.Fatalf("a flow of %v moved to %v", all[a], b)
		}
	}
	for i, n := range load {
		if n < 12_500*97/100 || n > 12_500*103/100 {
			t.Errorf("analyzer %d has %d flows of 100,000", i, n)
		}
	}
	// The pauses of a port stay together, those of ports do not all meet.
	at := map[int]bool{}
	for i := range 50 {
		pause := &Copied{Switch: addr(0), Original: wt.PFC(wt.MAC(uint16(i)), 8, 100)}
		at[s.Of(pause)] = true
		if s.Of(pause) != s.Of(&Copied{Switch: addr(0), Original: wt.PFC(wt.MAC(uint16(i)), 8, 0)}) {
			t.Fatal("pause and resume of a port at two analyzers")
		}
	}
	if len(at) < 4 {
		t.Errorf("the pauses of 50 ports are at %d analyzers", len(at))
	}
	for _, bad := range [][]netip.Addr{nil, analyzers(65), {all[0], all[0]}, {netip.MustParseAddr("fd00::1")}} {
		if _, err := NewAnalyzers(bad); err == nil {
			t.Errorf("%v can share", bad)
		}
	}
}

// What a path or a receive queue has sorted does not gather at a few analyzers: flows that a
// switch sends one of eight ways, or that the hash of receive side scaling (with the well-known
// key) puts into one of eight queues, are shared evenly.
func TestAnalyzersOfOnePath(t *testing.T) {
	s, err := NewAnalyzers(analyzers(8))
	if err != nil {
		t.Fatal(err)
	}
	rss, _ := hex.DecodeString("6d5a56da255b0ec24167253d43a38fb0d0ca2bcbae7b30b477cb2da38030f20c6a42b73bbeac01fa")
	paths := wire.NewHasher(1, false)
	for name, sorts := range map[string]func(in []byte) bool{
		"path": func(in []byte) bool {
			return paths.IPv4(binary.BigEndian.Uint64(in), binary.BigEndian.Uint32(in[8:]), wire.ProtoUDP)>>29 == 3
		},
		"queue": func(in []byte) bool { return Toeplitz(rss, in)&7 == 3 },
	} {
		r := rand.New(rand.NewPCG(5, 9))
		load, flows := make([]int, 8), 0
		for range 100_000 {
			in := binary.BigEndian.AppendUint64(nil, 0x0a00000a_00000000|uint64(r.Uint32()&0xffff)<<32|uint64(r.Uint32()&0xffff))
			in = binary.BigEndian.AppendUint32(in, r.Uint32())
			if !sorts(in) {
				continue
			}
			flows++
			ip := wt.IPv4(netip.AddrFrom4([4]byte(in)).String(), netip.AddrFrom4([4]byte(in[4:])).String())
			load[s.Of(&Copied{Switch: addr(0), Original: wt.Frame(eth, ip, wt.UDP(binary.BigEndian.Uint16(in[8:]), binary.BigEndian.Uint16(in[10:])))})]++
		}
		for i, n := range load { // five standard deviations
			if n < flows/8*88/100 || n > flows/8*112/100 {
				t.Errorf("of one %s: analyzer %d has %d flows of %d", name, i, n, flows)
			}
		}
	}
}

// A network of switches in a row: T1 A1 C1 A2 T2. T2 is where 10.0.9.0/24 is.
type row struct{}

var switches = []string{"T1", "A1", "C1", "A2", "T2"}

func addr(i int) netip.Addr  { return netip.AddrFrom4([4]byte{10, 10, 0, byte(i)}) }
func station(i int) wire.MAC { return wt.MAC(uint16(100 + i)) }
func (row) Last(s netip.Addr, dst [4]byte) bool {
	return dst[2] == 9 && s == addr(4) || dst[2] == 1 && s == addr(0)
}
func (row) Station(m wire.MAC) bool { return m[5] >= 100 && m[5] < 105 }

// at is the copy of a packet that a switch made.
func at(sw int, ttl uint8, from wire.MAC) Hop {
	return Hop{Switch: addr(sw), TTL: ttl, InnerTTL: ttl, From: from, OuterDst: [4]byte{10, 0, 9, 2}}
}

func trace(t *testing.T, hops ...Hop) *Trace {
	t.Helper()
	x := NewTraces(row{}, 10)
	r := rand.New(rand.NewPCG(2, 2))
	r.Shuffle(len(hops), func(i, j int) { hops[i], hops[j] = hops[j], hops[i] })
	for i, h := range hops {
		x.Add(frame.Time(i), Key{ID: 1}, h)
	}
	v := x.Advance(2 * frame.Second)
	if len(v) != 1 || len(x.open) != 0 {
		t.Fatalf("%d traces", len(v))
	}
	return v[0]
}

func path(tr *Trace) (v []string) {
	for _, h := range tr.Hops {
		v = append(v, switches[h.Switch.As4()[3]])
	}
	return v
}

func TestTraces(t *testing.T) {
	host := wt.MAC(1)
	good := trace(t, at(0, 64, host), at(1, 63, station(0)), at(2, 62, station(1)), at(3, 61, station(2)), at(4, 60, station(3)))
	if !slices.Equal(path(good), switches) || good.Lost || good.Loop != nil || good.Gaps != 0 {
		t.Errorf("%v: %+v", path(good), good)
	}
	lost := trace(t, at(0, 64, host), at(1, 63, station(0)))
	if !lost.Lost || lost.Loop != nil || !slices.Equal(path(lost), []string{"T1", "A1"}) {
		t.Errorf("%+v", lost)
	}
	loop := trace(t, at(0, 64, host), at(1, 63, station(0)), at(2, 62, station(1)), at(1, 61, station(2)), at(2, 60, station(1)), at(1, 59, station(2)))
	if !slices.Equal(loop.Loop, []netip.Addr{addr(1), addr(2)}) || loop.Lost {
		t.Errorf("%+v", loop)
	}
	one := trace(t, at(0, 64, host), at(2, 62, station(1)), at(3, 61, station(2)), at(4, 60, station(3)))
	if one.Gaps != 1 || one.Missing[station(1)] != 1 || one.Lost || one.Loop != nil {
		t.Errorf("%+v", one)
	}
	two := trace(t, at(0, 64, host), at(3, 61, station(2)), at(4, 60, station(3)))
	if two.Gaps != 2 || two.Missing[wire.MAC{}] != 2 {
		t.Errorf("%+v", two)
	}
	first := trace(t, at(1, 63, station(0)), at(2, 62, station(1)), at(3, 61, station(2)), at(4, 60, station(3)))
	if first.Gaps != 1 || first.Missing[station(0)] != 1 {
		t.Errorf("%+v", first)
	}
	// A switch reports its drop before and after the copies of its arrival came.
	end := at(1, 63, station(0))
	end.Reason = frame.NoRoute
	for _, hops := range [][]Hop{{at(0, 64, host), at(1, 63, station(0)), end}, {end}} {
		if dropped := trace(t, hops...); len(dropped.Dropped) != 1 || dropped.Loop != nil || len(dropped.Hops) != len(hops)-1 {
			t.Errorf("%+v", dropped)
		}
	}
	// A load balancer at T2: the packet comes as it is, and goes back in a tunnel.
	in, out := at(4, 60, station(3)), at(4, 64, wt.MAC(9))
	out.Depth, out.InnerTTL, out.OuterDst = 1, 59, [4]byte{10, 0, 1, 2}
	back := []Hop{out}
	for i, sw := range []int{3, 2, 1, 0} {
		h := at(sw, uint8(63-i), station(sw+1))
		h.Depth, h.InnerTTL, h.OuterDst = 1, 59, [4]byte{10, 0, 1, 2}
		back = append(back, h)
	}
	slb := trace(t, append(back, at(0, 64, host), at(1, 63, station(0)), at(2, 62, station(1)), at(3, 61, station(2)), in)...)
	if slb.Loop != nil || slb.Lost || slb.Gaps != 0 || len(slb.Hops) != 10 {
		t.Errorf("%v: %+v", path(slb), slb)
	}
}

// A trace is whole when nothing came for a second; the timer starts anew with each
// copy.
func TestTracesEnd(t *testing.T) {
	x := NewTraces(row{}, 10)
	for i, now := range []frame.Time{0, 9, 18} {
		x.Add(now*frame.Second/10, Key{ID: 1}, at(i, uint8(64-i), wire.MAC{}))
	}
	if v := x.Advance(2799 * frame.Millisecond); v != nil {
		t.Errorf("whole at 2.8 s: %v", v)
	}
	if v := x.Advance(2800 * frame.Millisecond); len(v) != 1 || len(v[0].Hops) != 3 {
		t.Errorf("%v", v)
	}
	x.Add(0, Key{ID: 1}, at(0, 64, wire.MAC{}))
	x.Advance(frame.Second)
	x.Add(1100*frame.Millisecond, Key{ID: 1}, at(1, 63, wire.MAC{}))
	if v := x.Advance(3 * frame.Second); len(v) != 1 || len(v[0].Hops) != 1 {
		t.Errorf("%v", v)
	}
	// The identification comes round after 78 ms: no loop, another trace, whether the
	// first one is open still or was finished for want of room.
	for _, limit := range []int{10, 100} {
		x := NewTraces(row{}, limit)
		whole, loops := 0, 0
		for i := range 813 {
			now := 10*frame.Second + frame.Time(i)*1229*frame.Microsecond
			for sw := range 5 {
				x.Add(now, Key{ID: uint16(i % 64 * 1024)}, at(sw, uint8(64-sw), station(sw-1)))
			}
			for _, tr := range x.Advance(now) {
				whole++
				loops += len(tr.Loop)
			}
		}
		for _, tr := range x.Advance(20 * frame.Second) {
			whole++
			loops += len(tr.Loop)
		}
		if whole != 813 || loops != 0 || (x.Early == 0) != (limit == 100) {
			t.Errorf("room for %d: %d traces, %d loops, %d early", limit, whole, loops, x.Early)
		}
	}
}

// What a session writes, the analyzer reads.
func TestParseCopies(t *testing.T) {
	inner := []wt.Layer{wt.IPv4("10.0.1.2", "10.0.9.2", id(77), wt.TTL(61), wt.TOS(1<<2|2)), tcp(wire.TCPSyn, 40000, 80)}
	plain := wt.Frame(append([]wt.Layer{eth}, inner...)...)
	tunnelled := wt.Frame(append([]wt.Layer{eth, wt.IPv4("192.168.0.1", "192.168.0.2", wt.TTL(50))}, inner...)...)
	for _, format := range []Format{ERSPAN3, ERSPAN2, GRE} {
		s := Session{ID: 1, Src: addr(3), Dst: netip.MustParseAddr("10.255.0.1"), Format: format, Snap: 128}
		for i, orig := range [][]byte{plain, tunnelled} {
			b := make([]byte, 1000)
			n, _ := s.Copy(b, orig, uint32(len(orig)), Info{At: 5*frame.Second + 6})
			k, h, ok := Parse(b[:n])
			if !ok || k != (Key{Src: [4]byte{10, 0, 1, 2}, Dst: [4]byte{10, 0, 9, 2}, SrcPort: 40000, DstPort: 80, ID: 77, Proto: 6}) {
				t.Fatalf("%+v, %t", k, ok)
			}
			want := Hop{Switch: addr(3), TTL: 61, InnerTTL: 61, Bytes: 40, From: wt.MAC(2), DSCP: 1, ECN: 2, OuterDst: [4]byte{10, 0, 9, 2}, Opens: true}
			if i == 1 {
				want.TTL, want.Depth, want.Bytes, want.DSCP, want.ECN, want.OuterDst, want.Then = 50, 1, 60, 0, 0, [4]byte{192, 168, 0, 2}, [4]byte{10, 0, 9, 2}
			}
			if format == ERSPAN3 {
				want.At = 5*frame.Second + 6
			}
			if h != want {
				t.Errorf("%+v, want %+v", h, want)
			}
		}
	}
}

func FuzzParse(f *testing.F) {
	s := Session{ID: 1, Src: addr(3), Dst: addr(4)}
	b := make([]byte, 1000)
	orig := wt.Frame(eth, wt.IPv4("10.0.1.2", "10.0.9.2"), tcp(2, 1, 2))
	n, _ := s.Copy(b, orig, uint32(len(orig)), Info{})
	f.Add(b[:n])
	f.Fuzz(func(t *testing.T, b []byte) {
		if k, h, ok := Parse(b); ok {
			x := NewTraces(row{}, 2)
			x.Add(0, k, h)
			x.Add(1, k, h)
			x.Advance(10 * frame.Second)
		}
	})
}

// together is what frames of one vector match, all of them.
func together(c *Classifier, frames ...[]byte) uint64 {
	a := frame.MustArena(len(frames), 4096, 0)
	var v []frame.Ref
	for i, b := range frames {
		a.SetBytes(frame.Ref(i), b)
		v = append(v, frame.Ref(i))
	}
	wire.NewParser(wire.NewHasher(0, false)).Parse(a, v)
	var hits [vector]uint64
	any, each := c.MatchAll(a, v, &hits), uint64(0)
	for _, h := range hits {
		each |= h
	}
	if any != each {
		panic("a vector matches what none of its frames does")
	}
	return any
}

func FuzzMatch(f *testing.F) {
	f.Add(wt.Frame(eth, wt.IPv4("10.0.1.2", "10.0.9.2"), tcp(2, 1, 2)))
	f.Add(wt.Frame(append([]wt.Layer{eth}, roce(wire.RCAcknowledge, 0x60)...)...))
	c, err := NewClassifier(Default(4, GREProtoERSPAN2))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) < 14 || len(b) > 2000 {
			return
		}
		m, _ := wt.Parse(b)
		if one, all := c.Match(&m, b), together(c, b); one != all {
			t.Errorf("it matches %v, in a vector %v", c.Names(one), c.Names(all))
		}
	})
}

func BenchmarkMatch(b *testing.B) {
	c, err := NewClassifier(Default(10, GREProtoERSPAN3))
	if err != nil {
		b.Fatal(err)
	}
	for name, layers := range map[string][]wt.Layer{"plain": {wt.IPv4("10.0.0.1", "10.0.0.2", id(5)), tcp(wire.TCPAck, 1000, 80)}, "tunnel": {wt.IPv4("192.168.0.1", "192.168.0.2", id(5)), wt.IPv4("10.0.0.1", "10.0.0.2", id(5)), tcp(wire.TCPAck, 1000, 80)}} {
		p := wt.Frame(append([]wt.Layer{eth}, layers...)...)
		m, _ := wt.Parse(p)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				c.Match(&m, p)
			}
		})
	}
}

// Packets that have one identification for all make no trace without end: what is
// open is bounded in hops and in time, and what was cut off is counted.
func TestTracesAreBounded(t *testing.T) {
	x := NewTraces(row{}, 10)
	k := Key{Src: [4]byte{10, 0, 0, 1}, ID: 0}
	total, longest := 0, 0
	take := func(v []*Trace) {
		for _, tr := range v {
			total += len(tr.Hops)
			longest = max(longest, len(tr.Hops))
		}
	}
	const copies = 200_000
	now := frame.Time(0)
	for i := range copies {
		now += frame.Millisecond / 2
		// Each at another switch: none is a second copy.
		x.Add(now, k, Hop{Switch: netip.AddrFrom4([4]byte{1, byte(i >> 16), byte(i >> 8), byte(i)}), TTL: 64})
		take(x.Advance(now))
	}
	take(x.Advance(now + 2*IdleTime))
	if total != copies || longest != mostHops || x.Early != copies/mostHops {
		t.Errorf("%d copies in traces of up to %d hops, %d of them early", total, longest, x.Early)
	}
	// Slow ones end by their age.
	x = NewTraces(row{}, 10)
	for i := range 100 {
		x.Add(frame.Time(i)*frame.Second/2, k, Hop{Switch: netip.AddrFrom4([4]byte{1, 0, 0, byte(i)}), TTL: 64})
	}
	if v := x.Advance(50*frame.Second + 2*IdleTime); len(v) != 5 || len(v[0].Hops) != 20 || x.Early != 4 {
		t.Errorf("%d traces, %d early", len(v), x.Early)
	}
}

// With another idle time traces are whole after that. Those that are not yet are reported as
// they would be judged, the newest first, and stay as they were.
func TestNewest(t *testing.T) {
	x := NewTraces(row{}, 10)
	x.Idle = 50 * frame.Millisecond
	for i := range 5 {
		h := at(i, uint8(64-i), station(i-1))
		h.OuterDst = [4]byte{10, 0, 9, 1}
		x.Add(0, Key{ID: 1}, h)
	}
	for i := range 2 {
		h := at(i, uint8(64-i), station(i-1))
		h.OuterDst = [4]byte{10, 0, 9, 1}
		x.Add(frame.Millisecond, Key{ID: 2}, h)
	}
	seen := ""
	x.Newest(func(tr *Trace) bool {
		seen += fmt.Sprint(tr.Key.ID, len(tr.Hops), tr.Lost, " ")
		return true
	})
	if seen != "2 2 true 1 5 false " {
		t.Errorf("%q", seen)
	}
	first := ""
	x.Newest(func(tr *Trace) bool { first += fmt.Sprint(tr.Key.ID); return false })
	if first != "2" {
		t.Errorf("%q", first)
	}
	if v := x.Advance(50*frame.Millisecond - 1); v != nil {
		t.Errorf("%v", v)
	}
	if v := x.Advance(50 * frame.Millisecond); len(v) != 1 || v[0].Key.ID != 1 || len(v[0].Hops) != 5 || v[0].Lost || v[0].Gaps != 0 {
		t.Errorf("%v", v)
	}
	if v := x.Advance(51 * frame.Millisecond); len(v) != 1 || !v[0].Lost {
		t.Errorf("%v", v)
	}
}
