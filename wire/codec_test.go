package wire_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"pgregory.net/rapid"

	"gswitch/frame"
	"gswitch/wire"
)

type codec interface {
	Encode(b []byte) int
	Decode(b []byte) (int, frame.Reason)
}

// codecs makes an empty record of every kind.
var codecs = []struct {
	name string
	make func() codec
	// Bytes that Decode requires at an offset, for random input to get through.
	offset int
	magic  []byte
	// lossy codecs drop bytes (padding); their encoding decodes to the same.
	lossy bool
}{
	{name: "ethernet", make: func() codec { return &wire.EthernetFields{} }},
	{name: "vlan", make: func() codec { return &wire.VLANFields{} }},
	{name: "arp", make: func() codec { return &wire.ARPFields{} }, magic: []byte{0, 1, 8, 0, 6, 4}},
	{name: "ipv4", make: func() codec { return &wire.IPv4Fields{} }, magic: []byte{0x47}},
	{name: "ipv6", make: func() codec { return &wire.IPv6Fields{} }, magic: []byte{0x61}},
	{name: "hop-by-hop", make: func() codec { return &wire.IPv6ExtFields{Kind: wire.ProtoHopByHop} }, offset: 1, magic: []byte{2}},
	{name: "ah", make: func() codec { return &wire.IPv6ExtFields{Kind: wire.ProtoAH} }, offset: 1, magic: []byte{4}},
	{name: "fragment-as-ext", make: func() codec { return &wire.IPv6ExtFields{Kind: wire.ProtoFragment} }},
	{name: "fragment", make: func() codec { return &wire.IPv6FragmentFields{} }},
	{name: "icmp", make: func() codec { return &wire.ICMPFields{} }},
	{name: "nd-ra", make: func() codec { return &wire.NDFields{} }, magic: []byte{134}},
	{name: "nd-ns", make: func() codec { return &wire.NDFields{} }, magic: []byte{135}},
	{name: "udp", make: func() codec { return &wire.UDPFields{} }},
	{name: "tcp", make: func() codec { return &wire.TCPFields{} }, offset: 12, magic: []byte{0x75}},
	{name: "bth", make: func() codec { return &wire.BTHFields{} }},
	{name: "reth", make: func() codec { return &wire.RETHFields{} }},
	{name: "aeth", make: func() codec { return &wire.AETHFields{} }},
	{name: "immdt", make: func() codec { return &wire.ImmDtFields{} }},
	{name: "atomic", make: func() codec { return &wire.AtomicETHFields{} }},
	{name: "atomic-ack", make: func() codec { return &wire.AtomicAckETHFields{} }},
	{name: "pfc", make: func() codec { return &wire.PFCFields{} }, offset: 12, magic: []byte{0x88, 0x08, 1, 1}, lossy: true},
	{name: "pause", make: func() codec { return &wire.PauseFields{} }, offset: 12, magic: []byte{0x88, 0x08, 0, 1}, lossy: true},
	{name: "gre", make: func() codec { return &wire.GREFields{} }, magic: []byte{0xb0, 0}},
	{name: "erspan-2", make: func() codec { return &wire.ERSPAN2Fields{} }, magic: []byte{0x10}},
	{name: "erspan-3", make: func() codec { return &wire.ERSPAN3Fields{} }, magic: []byte{0x20}},
	{name: "token", make: func() codec { return &wire.TokenFields{} }, offset: 12, magic: []byte{0x88, 0x08, 1, 2}, lossy: true},
	{name: "request", make: func() codec { return &wire.RequestFields{} }, offset: 12, magic: []byte{0x88, 0x08, 1, 3}, lossy: true},
}

// checkCodec decodes b and, if that works, encodes it again.
func checkCodec(t rapid.TB, i int, b []byte) bool {
	c := codecs[i]
	r := c.make()
	n, why := r.Decode(b)
	if why != frame.Keep {
		if n != 0 {
			t.Errorf("%s: %v, but length %d", c.name, why, n)
		}
		return false
	}
	if n <= 0 || n > len(b) {
		t.Fatalf("%s: decoded %d of %d bytes", c.name, n, len(b))
	}
	out := make([]byte, max(n, wire.MinFrame))
	m := r.Encode(out)
	if c.lossy {
		again := c.make()
		if _, why := again.Decode(out[:m]); why != frame.Keep {
			t.Errorf("%s: own encoding is not good: %v", c.name, why)
		}
		out2 := make([]byte, m)
		if again.Encode(out2); !bytes.Equal(out2, out[:m]) {
			t.Errorf("%s: % x is encoded again as % x", c.name, out[:m], out2)
		}
		return true
	}
	if m != n || !bytes.Equal(out[:m], b[:n]) {
		t.Errorf("%s: % x is encoded as % x", c.name, b[:n], out[:m])
	}
	if short := make([]byte, n-1); r.Encode(short) != 0 {
		t.Errorf("%s: encoded into %d of %d bytes", c.name, n-1, n)
	}
	return true
}

func TestCodecsKeepEveryBit(t *testing.T) {
	for i, c := range codecs {
		t.Run(c.name, func(t *testing.T) {
			good := 0
			rapid.Check(t, func(t *rapid.T) {
				n := rapid.IntRange(0, 120).Draw(t, "length")
				b := rapid.SliceOfN(rapid.Byte(), n, n).Draw(t, "bytes")
				if len(b) >= c.offset+len(c.magic) {
					copy(b[c.offset:], c.magic)
				}
				if checkCodec(t, i, b) {
					good++
				}
			})
			if good == 0 && c.name != "nd-ra" && c.name != "nd-ns" {
				t.Error("no input was decoded")
			}
		})
	}
}

func TestNDOptions(t *testing.T) {
	for _, f := range formats() {
		if len(f.name) < 3 || f.name[:3] != "nd-" {
			continue
		}
		var r wire.NDFields
		b := f.b[54 : 54+int(wire.IPv6(f.b[14:]).PayloadLen())]
		if _, why := r.Decode(b); why != frame.Keep {
			t.Fatalf("%s: %v", f.name, why)
		}
		typ := wire.NDSourceLinkLayer
		if f.name == "nd-na" || f.name == "nd-redirect" {
			typ = wire.NDTargetLinkLayer
		}
		if m, ok := r.Options.LinkLayer(typ); !ok || m != macA {
			t.Errorf("%s: link-layer address %v %v", f.name, m, ok)
		}
		out := make([]byte, len(b))
		if r.Encode(out); !bytes.Equal(out, b) {
			t.Errorf("%s: % x is encoded as % x", f.name, b, out)
		}
		b[len(b)-7] = 0 // length of the last option
		if _, why := r.Decode(b); why == frame.Keep {
			t.Errorf("%s: an option of length 0 was taken", f.name)
		}
	}
}

func TestSolicitedNode(t *testing.T) {
	ip, mac := wire.SolicitedNode([16]byte{0: 0x20, 1: 1, 13: 0x12, 14: 0x34, 15: 0x56})
	if ip != [16]byte{0: 0xff, 1: 2, 11: 1, 12: 0xff, 13: 0x12, 14: 0x34, 15: 0x56} || mac != (wire.MAC{0x33, 0x33, 0xff, 0x12, 0x34, 0x56}) {
		t.Errorf("%x %v", ip, mac)
	}
}

func TestPFCBytes(t *testing.T) {
	want := append(unhex(t, `0180c2000001 020000000001 8808 0101 0003 ffff ffff`), make([]byte, 60-22)...)
	f := wire.PFCFields{Src: macAddr1, Enable: 3, Quanta: [8]uint16{0xffff, 0xffff}}
	b := bytes.Repeat([]byte{0xaa}, 64)
	if n := f.Encode(b); n != 60 || !bytes.Equal(b[:60], want) {
		t.Errorf("%d: % x", n, b[:60])
	}
	var g wire.PFCFields
	if _, why := g.Decode(want); why != frame.Keep || g != f {
		t.Errorf("%v %+v", why, g)
	}
	if _, why := new(wire.PauseFields).Decode(want); why != frame.ParseMACControlOp {
		t.Errorf("PFC taken for pause: %v", why)
	}
	p := wire.PauseFields{Src: macAddr1, Quanta: 0x1234}
	want = append(unhex(t, `0180c2000001 020000000001 8808 0001 1234`), make([]byte, 60-18)...)
	if n := p.Encode(b); n != 60 || !bytes.Equal(b[:60], want) {
		t.Errorf("%d: % x", n, b[:60])
	}
	if n := p.Encode(b[:59]); n != 0 {
		t.Errorf("%d bytes written to 59", n)
	}
}

var macAddr1 = wire.MAC{0x02, 0, 0, 0, 0, 1}

func TestMAC(t *testing.T) {
	m, err := wire.ParseMAC("01:80:c2:00:00:0e")
	if err != nil || m.Uint64() != 0x0180c200000e || wire.MACFromUint64(m.Uint64()) != m || !wire.ReservedMulticast(m.Uint64()) || !m.IsMulticast() {
		t.Errorf("%v %v", m, err)
	}
	j, err := json.Marshal(map[wire.MAC]wire.MAC{macA: m})
	if err != nil || string(j) != `{"02:00:00:00:00:01":"01:80:c2:00:00:0e"}` {
		t.Errorf("%s %v", j, err)
	}
	var back map[wire.MAC]wire.MAC
	if err := json.Unmarshal(j, &back); err != nil || back[macA] != m {
		t.Errorf("%v %v", back, err)
	}
	if wire.ReservedMulticast(0x0180c2000010) || wire.ReservedMulticast(0x0180c2000100) {
		t.Error("an address outside the block counts as reserved")
	}
	for _, s := range []string{"", "1:2:3", "02:00:00:00:00:00:00:01", "zz:00:00:00:00:00"} {
		if _, err := wire.ParseMAC(s); err == nil {
			t.Errorf("%q is taken for a MAC address", s)
		}
	}
	e := wire.Ethernet(formats()[0].b)
	if e.DstUint64() != macB.Uint64() || e.SrcUint64() != macA.Uint64() {
		t.Errorf("%x %x", e.DstUint64(), e.SrcUint64())
	}
}

func TestCodecsAllocateNothing(t *testing.T) {
	b := make([]byte, 128)
	if n := testing.AllocsPerRun(100, func() {
		pfc := wire.PFCFields{Src: macAddr1, Enable: 1}
		pfc.Encode(b)
		pfc.Decode(b)
		e := wire.EthernetFields{Dst: macAddr1, Src: macAddr1, EtherType: wire.EtherTypeARP}
		n := e.Encode(b)
		arp := wire.ARPFields{Op: wire.ARPReply, SenderMAC: macAddr1}
		arp.Encode(b[n:])
		arp.Decode(b[n:])
		ip := wire.IPv4Fields{TTL: 64, Proto: wire.ProtoICMP, TotalLen: 28}
		n = ip.Encode(b)
		wire.IPv4(b).UpdateChecksum()
		icmp := wire.ICMPFields{Type: wire.ICMPTimeExceeded}
		icmp.Encode(b[n:])
		wire.UpdateICMPChecksum(0, b[n:n+wire.ICMPLen])
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
