package bump

import (
	"bytes"
	"testing"

	"gswitch/frame"
	"gswitch/transport"
	"gswitch/wire"
)

// checked reports whether the TCP or UDP checksum of a frame is right.
func checked(b []byte) bool {
	ip := b[wire.EthernetLen:]
	if b[12] == 0x86 {
		h := wire.IPv6(ip)
		return wire.SegmentChecksum(wire.PseudoSum6(h.Src(), h.Dst(), h.NextHeader(), len(ip)-wire.IPv6Len), ip[wire.IPv6Len:]) == 0
	}
	h := wire.IPv4(ip)
	return wire.SegmentChecksum(wire.PseudoSum4(h.Src(), h.Dst(), h.Proto(), len(ip)-wire.IPv4Len), ip[wire.IPv4Len:]) == 0
}

// The room of channels by the headers that they add, for links of 1500 bytes:
// IP 20 or 40, UDP 8, HPCC's block 42, BTH 12, ICRC 4, whole words.
func TestRoom(t *testing.T) {
	g := newRig(t, nil)
	c := g.b[0].Config()
	for _, v := range []struct {
		got, want int
	}{{c.packet(true, 0), 1456}, {c.packet(false, 0), 1436}, {c.Packet(), 1412}, {c.packet(false, c.Default.Telemetry), 1392},
		{int(g.b[0].segment[0]), 1412 - 40}, {int(g.b[0].segment[1]), 1392 - 60}} {
		if v.got != v.want {
			t.Errorf("%d bytes, want %d", v.got, v.want)
		}
	}
}

// SYNs are clamped in both directions, their checksum stays right, and what is
// small enough, or no SYN, stays as it is.
func TestClamp(t *testing.T) {
	for _, v := range []struct {
		name    string
		v6      bool
		flags   uint8
		options []byte
		at      int // of the segment size in the options
		want    uint16
	}{
		{"plain", false, wire.TCPSyn, []byte{2, 4, 0x05, 0xb4}, 2, 1372},
		{"answer", false, wire.TCPSyn | wire.TCPAck, []byte{2, 4, 0x05, 0xb4}, 2, 1372},
		{"IPv6", true, wire.TCPSyn, []byte{2, 4, 0x05, 0xa0}, 2, 1332},
		{"behind others", false, wire.TCPSyn, []byte{1, 3, 3, 7, 2, 4, 0x05, 0xb4}, 6, 1372},
		{"at an odd offset", false, wire.TCPSyn, []byte{1, 2, 4, 0x05, 0xb4, 0, 0, 0}, 3, 1372},
		{"small", false, wire.TCPSyn, []byte{2, 4, 0x02, 0x18}, 2, 536},
		{"no SYN", false, wire.TCPAck, []byte{2, 4, 0x05, 0xb4}, 2, 1460},
		{"behind the end", false, wire.TCPSyn, []byte{0, 2, 4, 0x05, 0xb4, 0, 0, 0}, 3, 1460},
		{"length 0", false, wire.TCPSyn, []byte{8, 0, 2, 4, 0x05, 0xb4, 0, 0}, 4, 1460},
		{"too long", false, wire.TCPSyn, []byte{8, 40, 2, 4, 0x05, 0xb4, 0, 0}, 4, 1460},
	} {
		for from := range 2 { // untouched by the sender's bump, or by the receiver's
			g := newRig(t, nil)
			g.send(1, arp(1))
			g.send(0, arp(0))
			g.run(frame.Millisecond, nil)
			g.got = [2][][]byte{}
			p := packet{from: from, to: 1 - from, v6: v.v6, proto: wire.ProtoTCP, sport: 9, dport: 80, flags: v.flags, options: v.options}
			b := p.bytes()
			if from == 0 {
				g.send(0, b)
			} else { // as it comes from a host without a bump, to one that may get one
				r := g.pool.New(b)
				g.b[0].Receive(g.now, Outer, []frame.Ref{r})
			}
			g.run(frame.Millisecond, nil)
			got := g.got[1-from]
			if len(got) != 1 {
				t.Fatalf("%s: %d frames", v.name, len(got))
			}
			head := wire.EthernetLen + wire.IPv4Len + wire.TCPLen
			if v.v6 {
				head += wire.IPv6Len - wire.IPv4Len
			}
			if size := be.Uint16(got[0][head+v.at:]); size != v.want || !checked(got[0]) {
				t.Errorf("%s, from %d: segments of %d, want %d; checksum right: %v", v.name, from, size, v.want, checked(got[0]))
			}
			g.run(40*frame.Second, nil)
		}
	}
}

// Checksums that the kernel left to a device are filled in, whether the frame
// passes or is carried.
func TestPartialChecksums(t *testing.T) {
	for _, p := range []packet{
		{to: 1, proto: wire.ProtoTCP, sport: 1, dport: 2, flags: wire.TCPAck, body: []byte("odd")},
		{to: 1, proto: wire.ProtoUDP, sport: 1, dport: 2, body: []byte("even")},
		{to: 1, v6: true, proto: wire.ProtoTCP, sport: 1, dport: 2, flags: wire.TCPAck, body: []byte("x")},
		{to: 1, v6: true, proto: wire.ProtoUDP, sport: 1, dport: 2, body: []byte("yy")},
	} {
		g := newRig(t, nil)
		g.send(1, arp(1))
		whole, part := p, p
		part.partial = true
		for range 3 {
			g.send(0, part.bytes())
			g.run(5*frame.Millisecond, nil)
		}
		if n := len(g.got[1]); n != 3 || g.b[0].count.Carried == 0 || g.b[0].count.PassedOut == 0 {
			t.Fatalf("%d arrived, %d carried", n, g.b[0].count.Carried)
		}
		for _, b := range g.got[1] {
			if !bytes.Equal(b, whole.bytes()) {
				t.Errorf("% x\nwant\n% x", b, whole.bytes())
			}
		}
		g.idle()
	}
}

// What is too long for its channel: the kernel is notified as by a router (RFC
// 1191, RFC 8201); what may be cut passes untouched.
func TestTooLong(t *testing.T) {
	for _, v := range []struct {
		p        packet
		size     int
		informed bool
	}{
		{packet{to: 1, proto: wire.ProtoUDP, fragment: wire.IPv4DontFragment}, 1384, false},
		{packet{to: 1, proto: wire.ProtoUDP, fragment: wire.IPv4DontFragment}, 1385, true},
		{packet{to: 1, proto: wire.ProtoUDP}, 1400, false},
		{packet{to: 1, v6: true, proto: wire.ProtoUDP}, 1344, false},
		{packet{to: 1, v6: true, proto: wire.ProtoUDP}, 1345, true},
	} {
		g := newRig(t, nil)
		p := v.p
		p.sport, p.dport, p.body = 5, 6, make([]byte, 8)
		g.meet(p)
		p.body = make([]byte, v.size)
		drops := g.b[0].count.Drops[frame.MTUExceeded]
		g.send(0, p.bytes())
		g.run(5*frame.Millisecond, nil)
		if !v.informed {
			if len(g.got[1]) != 1 || len(g.got[0]) != 0 || !bytes.Equal(g.got[1][0], p.bytes()) {
				t.Errorf("%d bytes, IPv6 %v: %d arrived, %d errors", v.size, p.v6, len(g.got[1]), len(g.got[0]))
			}
			continue
		}
		if len(g.got[1]) != 0 || len(g.got[0]) != 1 || g.b[0].count.Drops[frame.MTUExceeded] != drops+1 {
			t.Fatalf("%d bytes, IPv6 %v: %d arrived, %d errors", v.size, p.v6, len(g.got[1]), len(g.got[0]))
		}
		e := g.got[0][0]
		if wire.Ethernet(e).Dst() != mac(0) || wire.Ethernet(e).Src() != mac(1) {
			t.Errorf("the error goes from %v to %v", wire.Ethernet(e).Src(), wire.Ethernet(e).Dst())
		}
		ip, sent := e[wire.EthernetLen:], p.bytes()[wire.EthernetLen:]
		if p.v6 {
			h := wire.IPv6(ip)
			msg := ip[wire.IPv6Len:]
			if h.SrcAddr() != v6(1) || h.DstAddr() != v6(0) || len(ip) != 1280 || msg[0] != 2 || msg[1] != 0 || be.Uint32(msg[4:]) != 1392 ||
				wire.SegmentChecksum(wire.PseudoSum6(h.Src(), h.Dst(), wire.ProtoICMPv6, len(msg)), msg) != 0 || !bytes.HasPrefix(sent, msg[8:]) {
				t.Errorf("% x", ip[:64])
			}
		} else {
			h := wire.IPv4(ip)
			msg := ip[wire.IPv4Len:]
			if h.SrcAddr() != v4(1) || h.DstAddr() != v4(0) || !h.ChecksumOK() || len(ip) != 576 || msg[0] != 3 || msg[1] != 4 || be.Uint32(msg[4:]) != 1412 ||
				wire.Checksum(msg) != 0 || !bytes.HasPrefix(sent, msg[8:]) {
				t.Errorf("% x", ip[:64])
			}
		}
		g.idle()
	}
}

// Of errors about long packets there are only so many.
func TestTooLongLimited(t *testing.T) {
	g := newRig(t, nil)
	g.meet(udp(0, 8))
	for range 100 {
		g.send(0, udp(0, 1440).bytes())
	}
	g.run(5*frame.Millisecond, nil)
	if n := len(g.got[0]); n != 10 {
		t.Errorf("%d errors", n)
	}
	g.idle()
}

// Fragments, broadcasts, and what is not IP pass as they are, although there
// is a channel.
func TestUntouched(t *testing.T) {
	g := newRig(t, nil)
	g.meet(udp(0, 8))
	fragment := udp(1, 100)
	fragment.fragment = wire.IPv4MoreFragments
	long := udp(1, 100)
	long.fragment = 5
	broadcast := udp(1, 100).bytes()
	copy(broadcast, wire.BroadcastMAC[:])
	tagged := append(append(bytes.Clone(udp(1, 100).bytes()[:12]), 0x81, 0, 0, 5), udp(1, 100).bytes()[12:]...)
	strange := append(bytes.Clone(udp(1, 8).bytes()[:12]), 0x88, 0xb5, 1, 2, 3, 4)
	broken := udp(1, 100).bytes()
	broken[wire.EthernetLen] = 0x41
	c := g.b[0].count.Carried
	for _, b := range [][]byte{fragment.bytes(), long.bytes(), broadcast, tagged, strange, broken, arp(0)} {
		g.got = [2][][]byte{}
		g.send(0, bytes.Clone(b))
		g.run(2*frame.Millisecond, nil)
		if len(g.got[1]) != 1 || !bytes.Equal(g.got[1][0], b) {
			t.Errorf("sent % x\ngot  % x", b, g.got[1])
		}
	}
	if g.b[0].count.Carried != c {
		t.Error("one of them was carried")
	}
	g.idle()
}

// A host without a bump gets what the kernel sends, byte for byte, and its
// answer to the question never reaches the kernel; it is asked again only after
// a long time.
func TestAbsent(t *testing.T) {
	for _, v6 := range []bool{false, true} {
		g := newRig(t, nil)
		g.send(0, arp(0))
		p := packet{to: 1, v6: v6, proto: wire.ProtoTCP, sport: 7, dport: 8, flags: wire.TCPAck, body: []byte("as it is")}
		questions, others := 0, [][]byte(nil)
		g.bare = func(b []byte) {
			if l4 := wire.EthernetLen + wire.IPv4Len; !v6 && b[23] == wire.ProtoUDP && be.Uint16(b[l4+2:]) == Port || v6 && b[20] == wire.ProtoUDP {
				questions++
				g.link[0] = append(g.link[0], flight{g.now + g.delay, g.pool.New(portUnreachable(b, v6))})
				return
			}
			if b[12] == 8 && b[13] == 6 {
				return
			}
			others = append(others, bytes.Clone(b))
		}
		for range 50 {
			g.send(0, p.bytes())
			g.run(100*frame.Millisecond, nil)
		}
		if questions != 1 || len(others) != 50 || len(g.got[0]) != 0 || g.b[0].count.Refusals != 1 {
			t.Errorf("IPv6 %v: %d questions, %d frames arrived, the kernel got %d, %d refusals", v6, questions, len(others), len(g.got[0]), g.b[0].count.Refusals)
		}
		for _, b := range others {
			if !bytes.Equal(b, p.bytes()) {
				t.Errorf("% x", b)
			}
		}
		syn := p
		syn.flags, syn.options, others = wire.TCPSyn, []byte{2, 4, 0x05, 0xb4}, nil
		g.send(0, syn.bytes())
		g.run(frame.Millisecond, nil)
		if len(others) != 1 || !bytes.Equal(others[0], syn.bytes()) {
			t.Errorf("a SYN was changed")
		}
		g.run(2*askLater, nil)
		g.send(0, p.bytes())
		g.run(frame.Second, nil)
		if questions != 2 {
			t.Errorf("%d questions", questions)
		}
	}
}

// A host that does not answer is asked a few times.
func TestNoAnswer(t *testing.T) {
	g := newRig(t, nil)
	g.send(0, arp(0))
	questions := 0
	g.bare = func(b []byte) {
		if b[23] == wire.ProtoUDP && be.Uint16(b[36:]) == Port {
			questions++
		}
	}
	for range 100 {
		g.send(0, udp(0, 8).bytes())
		g.run(100*frame.Millisecond, nil)
	}
	if questions != askTries {
		t.Errorf("%d questions in ten seconds", questions)
	}
}

// A bump that is taken away: its host's kernel refuses frames of channels, and
// packets pass untouched at once.
func TestTakenAway(t *testing.T) {
	for _, answers := range []bool{true, false} {
		g := newRig(t, func(int) Config { return config(t, transport.GoBackN) })
		g.meet(udp(0, 8))
		arrived := 0
		g.bare = func(b []byte) {
			if b[23] != wire.ProtoUDP {
				return
			}
			switch port := be.Uint16(b[36:]); {
			case port != 2000 && answers:
				g.link[0] = append(g.link[0], flight{g.now + g.delay, g.pool.New(portUnreachable(b, false))})
			case port == 2000:
				arrived++
			}
		}
		for range 100 {
			g.send(0, udp(0, 8).bytes())
			g.run(100*frame.Millisecond, nil)
		}
		if arrived < 60 || len(g.got[0]) != 0 {
			t.Errorf("answers %v: %d of 100 arrived, the kernel got %d", answers, arrived, len(g.got[0]))
		}
		if answers && arrived < 98 {
			t.Errorf("%d of 100 arrived", arrived)
		}
	}
}

// portUnreachable is what a kernel answers to a datagram for a port where
// there is no listener.
func portUnreachable(b []byte, v6 bool) []byte {
	out := make([]byte, wire.EthernetLen, 1500)
	copy(out, b[6:12])
	copy(out[6:], b[:6])
	copy(out[12:], b[12:14])
	if v6 {
		msg := append([]byte{1, 4, 0, 0, 0, 0, 0, 0}, b[wire.EthernetLen:]...)
		h, old := wire.IPv6Fields{PayloadLen: uint16(len(msg)), NextHeader: wire.ProtoICMPv6, HopLimit: 64}, wire.IPv6(b[wire.EthernetLen:])
		h.Src, h.Dst = old.Dst(), old.Src()
		wire.UpdateICMPChecksum(wire.PseudoSum6(h.Src, h.Dst, wire.ProtoICMPv6, len(msg)), msg)
		head := make([]byte, wire.IPv6Len)
		h.Encode(head)
		return append(append(out, head...), msg...)
	}
	msg := append([]byte{3, 3, 0, 0, 0, 0, 0, 0}, b[wire.EthernetLen:]...)
	old := wire.IPv4(b[wire.EthernetLen:])
	h := wire.IPv4Fields{TotalLen: uint16(wire.IPv4Len + len(msg)), TTL: 64, Proto: wire.ProtoICMP, Src: old.Dst(), Dst: old.Src()}
	wire.UpdateICMPChecksum(0, msg)
	head := make([]byte, wire.IPv4Len)
	h.Encode(head)
	wire.IPv4(head).UpdateChecksum()
	return append(append(out, head...), msg...)
}
