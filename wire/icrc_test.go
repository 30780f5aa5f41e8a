package wire_test

import (
	"encoding/binary"
	"testing"

	"gswitch/frame"
	"gswitch/wire"
	wt "gswitch/wire/wiretest"
)

// slowICRC follows the annex to the letter, bit by bit, over a copy: telemetry
// cut out, masked fields set to ones, shift register of 32 bits.
func slowICRC(b []byte, l3, l4, bth int) uint32 {
	extra := bth - l4 - 8
	p := append([]byte{}, b[l3:l4+8]...)
	p = append(p, b[bth:len(b)-4]...)
	udp := p[l4-l3:]
	if p[0]>>4 == 4 {
		p[1], p[8], p[10], p[11] = 0xff, 0xff, 0xff, 0xff
		binary.BigEndian.PutUint16(p[2:], binary.BigEndian.Uint16(p[2:])-uint16(extra))
	} else {
		p[0], p[1], p[2], p[3], p[7] = 0x6f, 0xff, 0xff, 0xff, 0xff
		binary.BigEndian.PutUint16(p[4:], binary.BigEndian.Uint16(p[4:])-uint16(extra))
	}
	binary.BigEndian.PutUint16(udp[2:], 4791)
	binary.BigEndian.PutUint16(udp[4:], binary.BigEndian.Uint16(udp[4:])-uint16(extra))
	udp[6], udp[7], udp[8+4] = 0xff, 0xff, 0xff
	crc := ^uint32(0)
	for _, x := range append([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, p...) {
		for bit := range 8 {
			feedback := crc&1 ^ uint32(x>>bit&1)
			crc >>= 1
			if feedback != 0 {
				crc ^= 0xedb88320
			}
		}
	}
	return ^crc
}

// Captured packets: a congestion notification that a ConnectX-4 Lx sent, and
// an unreliable-connection send (both stand in the tests of scapy's RoCE
// layer, the second with its CRC as 78f353f3).
func TestICRCOfCapturedPackets(t *testing.T) {
	cnp := unhex(t, `e41d2dab2bc2 7cfe90643b32 0800 45c2003c718c40004011 9161 0a001101 0a001201
		000012b700280000 8100ffff40000118 00000000 00000000000000000000000000000000 82fd002a`)
	send := unhex(t, `248a07a8fa22 248a07a8fa22 0800 450100400478 4000 4011 b4d5 c0a80007 c0a80007
		c00012b7002caca2 2460ffff000000d3 00cf1710 4630818be28935d90e9a95505401be885e500000 78f353f3`)
	for name, b := range map[string][]byte{"CNP": cnp, "UC send": send} {
		if !wire.CheckICRC(b, 14, 42) {
			t.Errorf("%s: %08x, the packet says % x", name, wire.ICRC(b, 14, 42), b[len(b)-4:])
		}
		if got := slowICRC(b, 14, 34, 42); got != wire.ICRC(b, 14, 42) {
			t.Errorf("%s: the slow way gives %08x, ICRC %08x", name, got, wire.ICRC(b, 14, 42))
		}
	}
}

// rocePackets are packets that end with an ICRC, without Ethernet padding.
func rocePackets() map[string][]byte {
	block := wt.Payload(hpccBlock)
	rest := []wt.Layer{wt.BTH(wire.RCSendOnly, 7, 99), wt.Payload([]byte("0123456789abcdefghijklmnopqrstuvwxyz")), wt.Zeros(wire.ICRCLen)}
	build := func(l ...wt.Layer) []byte { return wt.Packet(append(append([]wt.Layer{eth}, l...), rest...)...) }
	opt := wt.IPv4("10.0.0.1", "10.0.0.2", wt.IPv4With(func(f *wire.IPv4Fields) { f.Options = []byte{0x94, 4, 0, 0} }))
	return map[string][]byte{
		"ipv4":         build(ip4, wt.UDP(49152, wire.RoCEv2Port)),
		"ipv4 options": build(opt, wt.UDP(49152, wire.RoCEv2Port)),
		"ipv6":         build(ip6, wt.UDP(49152, wire.RoCEv2Port)),
		"vlan":         build(wt.VLAN(3, 1), ip4, wt.UDP(49152, wire.RoCEv2Port)),
		"hpcc":         build(ip4, wt.UDP(49152, wire.HPCCPort), block),
		"hpcc ipv6":    build(ip6, wt.UDP(49152, wire.HPCCPort), block),
		"int-md":       build(ip4, wt.UDP(49152, wire.INTPort), wt.Payload(intMD(wire.RoCEv2Port))),
	}
}

func TestICRCAgainstTheSlowWay(t *testing.T) {
	for name, b := range rocePackets() {
		m, why := wt.Parse(b)
		bth := wire.BTHOffset(&m, b)
		if why != frame.Keep || bth == 0 {
			t.Fatalf("%s: %v", name, why)
		}
		if got, want := wire.ICRC(b, int(m.L3), bth), slowICRC(b, int(m.L3), int(m.L4), bth); got != want {
			t.Errorf("%s: %08x, want %08x", name, got, want)
		}
		wire.PutICRC(b, int(m.L3), bth)
		if !wire.CheckICRC(b, int(m.L3), bth) {
			t.Errorf("%s: its own CRC is refused", name)
		}
	}
}

// Telemetry does not count, whatever its length and content.
func TestICRCIsThatWithoutTelemetry(t *testing.T) {
	p := rocePackets()
	for with, without := range map[string]string{"hpcc": "ipv4", "int-md": "ipv4", "hpcc ipv6": "ipv6"} {
		var crc [2]uint32
		for i, name := range []string{with, without} {
			m, _ := wt.Parse(p[name])
			crc[i] = wire.ICRC(p[name], int(m.L3), wire.BTHOffset(&m, p[name]))
		}
		if crc[0] != crc[1] {
			t.Errorf("%s: %08x, without telemetry %08x", with, crc[0], crc[1])
		}
	}
}

// Every bit counts but those that may change on the way; these do not.
func TestICRCBits(t *testing.T) {
	for name, b := range rocePackets() {
		m, _ := wt.Parse(b)
		l3, l4, bth := int(m.L3), int(m.L4), wire.BTHOffset(&m, b)
		free := map[int]byte{l4 + 6: 0xff, l4 + 7: 0xff, bth + 4: 0xff}
		if m.Flags&frame.HasIPv4 != 0 {
			for _, i := range []int{1, 8, 10, 11} {
				free[l3+i] = 0xff
			}
		} else {
			free[l3], free[l3+1], free[l3+2], free[l3+3], free[l3+7] = 0x0f, 0xff, 0xff, 0xff, 0xff
		}
		for i := l4 + 8; i < bth; i++ {
			free[i] = 0xff
		}
		if m.Flags&frame.HasINT != 0 { // the port is another one anyway
			free[l4+2], free[l4+3] = 0xff, 0xff
		}
		want := wire.ICRC(b, l3, bth)
		for i := range len(b) - wire.ICRCLen {
			for bit := range 8 {
				if i == l3 && (bit >= 4 || m.Flags&frame.HasIPv4 != 0) {
					continue // version and header length: another packet altogether
				}
				c := append([]byte{}, b...)
				c[i] ^= 1 << bit
				same := wire.ICRC(c, l3, bth) == want
				if invariant := i < l3 || free[i]>>bit&1 != 0; same != invariant {
					t.Errorf("%s: byte %d bit %d: the CRC stays: %v", name, i, bit, same)
				}
			}
		}
	}
}

func TestICRCRefusesWhatIsNoPacket(t *testing.T) {
	b := rocePackets()["ipv4"]
	for _, c := range []struct{ n, l3, bth int }{{41, 14, 42}, {57, 14, 42}, {30, 14, 42}, {len(b), 14, 41}, {len(b), 15, 43}, {len(b), len(b), 42}, {len(b), -1, 42}, {0, 0, 0}} {
		if wire.CheckICRC(b[:c.n], c.l3, c.bth) || wire.ICRC(b[:c.n], c.l3, c.bth) != 0 {
			t.Errorf("%+v passed", c)
		}
		wire.PutICRC(b[:c.n], c.l3, c.bth)
	}
}

// FuzzICRC: no panic, and the slow way agrees wherever there is a packet.
func FuzzICRC(f *testing.F) {
	for _, b := range rocePackets() {
		m, _ := wt.Parse(b)
		f.Add(b, int(m.L3), wire.BTHOffset(&m, b))
	}
	f.Fuzz(func(t *testing.T, b []byte, l3, bth int) {
		wire.CheckICRC(b, l3, bth) // with any offsets
		if len(b) > 2048 {
			return
		}
		m, why := wt.Parse(b)
		at := wire.BTHOffset(&m, b)
		if why != frame.Keep || at == 0 || m.Flags&(frame.HasTunnel|frame.HasOptions) != 0 || at+wire.BTHLen+wire.ICRCLen > len(b) {
			return
		}
		if got, want := wire.ICRC(b, int(m.L3), at), slowICRC(b, int(m.L3), int(m.L4), at); got != want {
			t.Errorf("%08x, want %08x", got, want)
		}
	})
}

func TestICRCAllocatesNothing(t *testing.T) {
	b := rocePackets()["hpcc"]
	if n := testing.AllocsPerRun(100, func() { wire.PutICRC(b, 14, 84) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkICRC(b *testing.B) {
	for _, n := range []int{0, 1000} {
		p := wt.Packet(eth, ip4, wt.UDP(49152, wire.RoCEv2Port), wt.BTH(wire.RCSendMiddle, 7, 99), wt.Zeros(n+wire.ICRCLen))
		b.Run(map[int]string{0: "ack", 1000: "data"}[n], func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				wire.PutICRC(p, 14, 42)
			}
		})
	}
}
