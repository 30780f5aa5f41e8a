package bump

import (
	"bytes"
	"net/netip"
	"testing"

	"gswitch/frame"
	"gswitch/wire"
)

// A peer that puts packets of another host, or for another, into its channel,
// does not get them delivered.
func TestForged(t *testing.T) {
	for _, v6 := range []bool{false, true} {
		g := newRig(t, nil)
		p := packet{to: 1, v6: v6, proto: wire.ProtoUDP, sport: 1, dport: 2, body: make([]byte, 20)}
		g.meet(p)
		b := g.b[0]
		k := key{}
		for i := range b.channels {
			k = b.channels[i].key
		}
		send := func(packet []byte) {
			r := g.pool.New(packet[wire.EthernetLen:])
			if why := b.nic.SendFrame(g.now, b.channels[b.byKey.find(&k)].qpn, r); why != frame.Keep {
				t.Fatal(why)
			}
			g.run(frame.Millisecond, nil)
		}
		p.src = netip.MustParseAddr("10.9.9.9")
		if v6 {
			p.src = netip.MustParseAddr("fd00::99")
		}
		send(p.bytes())
		p.src = netip.Addr{}
		other := p
		other.to = 5
		send(other.bytes())
		short := p.bytes()
		send(short[:len(short)-3])
		short[wire.EthernetLen] = 0x55
		send(short)
		if len(g.got[1]) != 0 || g.b[1].count.Drops[frame.ChannelPacket] != 4 {
			t.Errorf("IPv6 %v: %d were delivered, %d dropped", v6, len(g.got[1]), g.b[1].count.Drops[frame.ChannelPacket])
		}
		send(p.bytes())
		if len(g.got[1]) != 1 {
			t.Error("what is right is not delivered")
		}
		g.idle()
	}
}

// Datagrams of an earlier incarnation that come late do nothing.
func TestLateDatagrams(t *testing.T) {
	g := newRig(t, nil)
	var old [][]byte
	g.fault = func(from int, b []byte) []frame.Time {
		if l4 := wire.EthernetLen + wire.IPv4Len; from == 0 && b[23] == wire.ProtoUDP && be.Uint16(b[l4+2:]) == Port {
			old = append(old, bytes.Clone(b))
		}
		return []frame.Time{0}
	}
	g.meet(udp(0, 8))
	g.fault = nil
	g.restart(0)
	g.meet(udp(0, 8))
	lost, open := g.b[1].count.Lost, g.b[1].count.Opened
	inc := g.b[1].peers[0].incarnation
	for _, b := range old {
		g.b[1].Receive(g.now, Outer, []frame.Ref{g.pool.New(b)})
		g.run(20*frame.Millisecond, nil)
	}
	if g.b[1].count.Lost != lost || g.b[1].count.Opened != open || g.b[1].peers[0].incarnation != inc || len(old) < 2 {
		t.Errorf("%d old datagrams: %+v", len(old), g.b[1].count)
	}
	c := g.b[0].count.Carried
	g.send(0, udp(0, 8).bytes())
	g.run(frame.Millisecond, nil)
	if g.b[0].count.Carried != c+1 || len(g.got[1]) != 1 {
		t.Error("the channel does not work any more")
	}
	g.idle()
}

// Questions from many addresses cost bounded memory, and do not push out
// peers with channels.
func TestFlood(t *testing.T) {
	g := newRig(t, nil)
	g.meet(udp(0, 8))
	asked := g.b[1].count.Asked
	var b [messageLen]byte
	for i := range 5 * MaxPeers {
		m := message{kind: hello, from: uint64(i) + 1, nonce: 7}
		m.encode(&b)
		p := packet{from: 0, to: 1, proto: wire.ProtoUDP, sport: Port, dport: Port, body: b[:], src: netip.AddrFrom4([4]byte{10, 1, byte(i >> 8), byte(i)})}
		g.b[1].Receive(g.now, Outer, []frame.Ref{g.pool.New(p.bytes())})
		if i%16 == 0 {
			g.run(frame.Millisecond, nil)
		}
	}
	g.run(10*frame.Millisecond, nil)
	if len(g.b[1].peers) != MaxPeers || g.b[1].byAddr.n != MaxPeers {
		t.Errorf("%d peers, %d in the table", len(g.b[1].peers), g.b[1].byAddr.n)
	}
	// Each question has one answer, of its length, and nothing else follows.
	if g.run(2*frame.Second, nil); g.b[1].count.Asked != asked {
		t.Errorf("%d questions to who is not there", g.b[1].count.Asked-asked)
	}
	g.got = [2][][]byte{}
	c := g.b[0].count.Carried
	g.send(0, udp(0, 8).bytes())
	g.run(frame.Millisecond, nil)
	if g.b[0].count.Carried != c+1 || len(g.got[1]) != 1 {
		t.Error("the channel does not work any more")
	}
	g.idle()
}

// The table against a map.
func FuzzTable(f *testing.F) {
	f.Add([]byte{1, 2, 3, 0x81, 2, 0x82, 5, 6, 7, 8, 9, 0x85})
	f.Fuzz(func(t *testing.T, ops []byte) {
		table, want := newTable(64, 7), map[key]int{}
		for i, op := range ops {
			k := key{r1: uint64(op & 63)}
			switch _, there := want[k]; {
			case op >= 128:
				table.remove(&k)
				delete(want, k)
			case !there:
				table.put(k, i)
				want[k] = i
			}
			for n := range uint64(64) {
				k := key{r1: n}
				id, there := want[k]
				if got := table.find(&k); there && got != id || !there && got != -1 {
					t.Fatalf("after %d operations: %d is %d, want %d", i, n, got, id)
				}
			}
			if table.n != len(want) {
				t.Fatalf("%d entries, want %d", table.n, len(want))
			}
		}
	})
}

func FuzzMessage(f *testing.F) {
	var b [messageLen]byte
	for _, m := range []message{
		{kind: hello, from: 1, nonce: 2}, {kind: welcome, from: 3, to: 1, nonce: 4, echo: 2}, {kind: confirm, from: 1, to: 3, echo: 4},
		{kind: open, from: 1, to: 3, id: 9, qpn: 0x123456, psn: 0xffffff, proto: 6, lport: 80, rport: 81, packet: 1412, cap: 128, recovery: 1, telemetry: 1, class: 3, cc: "hpcc"},
		{kind: accept, from: 3, to: 1, id: 9, qpn: 5, peer: 0x123456, packet: 1412}, {kind: refuse, from: 3, to: 1, id: 9, reason: noRoom},
		{kind: closing, from: 1, to: 3, id: 9, host: true}, {kind: reset, from: 1, to: 3, peer: 7, cc: "sixteen-letters-"},
	} {
		m.encode(&b)
		f.Add(bytes.Clone(b[:]))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		var m message
		if m.decode(in) != nil {
			return
		}
		var out [messageLen]byte
		if m.encode(&out); !bytes.Equal(in, out[:]) {
			t.Errorf("% x\nreads as %+v\nand writes % x", in, m, out)
		}
	})
}

// seeds are frames of every kind, from both sides.
func seeds(t testing.TB) (frames [][]byte) {
	g := newRig(t, nil)
	g.fault = func(_ int, b []byte) []frame.Time {
		if len(frames) < 40 {
			frames = append(frames, bytes.Clone(b))
		}
		return []frame.Time{0}
	}
	g.meet(udp(0, 8))
	six := udp(0, 8)
	six.v6 = true
	for _, p := range []packet{six, {to: 1, proto: wire.ProtoTCP, sport: 1, dport: 2, flags: wire.TCPSyn, options: []byte{2, 4, 5, 180, 1, 3, 3, 7}},
		{to: 1, proto: wire.ProtoICMP, body: []byte("ping")}} {
		for range 3 {
			g.send(0, p.bytes())
			g.run(5*frame.Millisecond, nil)
		}
	}
	return append(frames, portUnreachable(frames[1], false), six.bytes(), udp(1, 1440).bytes())
}

// Whatever comes at either port: no panic, no chunk lost, no channel harmed
// by what is not of its peer, and nothing delivered that its peer did not send.
func FuzzFrames(f *testing.F) {
	for _, b := range seeds(f) {
		f.Add(b, true)
		f.Add(b, false)
	}
	f.Fuzz(func(t *testing.T, in []byte, outer bool) {
		if len(in) == 0 || len(in) > 1800 {
			return
		}
		g := newRig(t, nil)
		g.meet(udp(0, 8))
		port := Inner
		if outer {
			port = Outer
		}
		for range 2 {
			r := g.pool.New(bytes.Clone(in))
			if r == frame.Nil {
				return
			}
			g.b[1].Receive(g.now, port, []frame.Ref{r})
			g.run(2*frame.Millisecond, nil)
		}
		g.run(60*frame.Second, nil)
		for i := range g.b {
			g.b[i].Flush(g.now)
		}
		for i := range g.link {
			for _, f := range g.link[i] {
				g.pool.Free(f.r)
			}
		}
		if n := g.pool.Available(); n != chunks {
			t.Errorf("%d chunks are lost", chunks-n)
		}
	})
}

// Frames of a queue pair with any bytes in them, with a right invariant CRC.
func FuzzChannel(f *testing.F) {
	f.Add([]byte{0x45, 0, 0, 20}, uint8(0), uint32(0))
	f.Add(udp(3, 30).bytes()[wire.EthernetLen:], uint8(1), uint32(3))
	f.Fuzz(func(t *testing.T, body []byte, skip uint8, flip uint32) {
		if len(body) == 0 || len(body) > 1400 {
			return
		}
		g := newRig(t, nil)
		g.meet(udp(0, 8))
		b := g.b[0]
		r := g.pool.New(body)
		g.fault = func(from int, p []byte) []frame.Time {
			if from != 0 || p[23] != wire.ProtoUDP || be.Uint16(p[36:]) != wire.HPCCPort {
				return []frame.Time{0}
			}
			bth := wire.EthernetLen + wire.IPv4Len + wire.UDPLen + wire.HPCCLen
			psn := be.Uint32(p[bth+8:])
			be.PutUint32(p[bth+8:], psn^flip&0x3f)
			p[bth+1] ^= skip & 0x30
			wire.PutICRC(p, wire.EthernetLen, bth)
			return []frame.Time{0, 10 * frame.Microsecond}
		}
		if b.nic.SendFrame(g.now, b.channels[0].qpn, r) != frame.Keep {
			t.Fatal("it was not taken")
		}
		g.run(100*frame.Millisecond, nil)
		g.fault = nil
		for _, p := range g.got[1] {
			if !bytes.Equal(p[wire.EthernetLen+12:wire.EthernetLen+20], []byte{10, 0, 0, 1, 10, 0, 0, 2}) {
				t.Errorf("delivered % x", p)
			}
		}
		g.run(60*frame.Second, nil)
		for i := range g.b {
			g.b[i].Flush(g.now)
		}
		if n := g.pool.Available(); n != chunks {
			t.Errorf("%d chunks are lost", chunks-n)
		}
	})
}

// A peer that uses another one's address, and has what both sent to it, ends none of
// the channels between those two, and opens none: it was sent other incarnations.
func TestPeersAreDistinguished(t *testing.T) {
	g := newRig(t, nil)
	g.meet(udp(1<<32, 8))
	ours, at := g.b[0], g.b[0].peers[0].ends
	third := netip.MustParseAddr("10.0.0.99")
	id := -1
	for i := range ours.channels {
		if ours.channels[i].state == opened {
			id = i
		}
	}
	if id < 0 {
		t.Fatal("there is no channel")
	}
	c, before := ours.channels[id], ours.count
	m := message{from: g.b[1].incarnation(third), to: ours.incarnation(third), qpn: 0x123, peer: c.remote, packet: uint32(c.packet), cap: 64, cc: c.rule.CC, host: c.key.host,
		proto: c.key.proto, lport: uint16(c.key.ports), rport: uint16(c.key.ports >> 16), port: ours.nic.SourcePort(c.qpn)}
	for _, m.kind = range []kind{open, reset, closing} {
		if m.peer = c.remote; m.kind == closing {
			m.peer = c.qpn
		}
		ours.takeMessage(g.now, 0, &c.key, at, &m)
	}
	// An attacker that gets the right ones and does not see the frames has neither the
	// channel's number nor its port.
	m.from, m.to, m.kind, m.peer, m.port = ours.peers[0].incarnation, ours.incarnation(at.remote), reset, c.remote, m.port^1
	ours.takeMessage(g.now, 0, &c.key, at, &m)
	if now := ours.channels[id]; now.id != c.id || now.state != opened || ours.count.Closed != before.Closed || ours.count.Opened != before.Opened || ours.count.Stale != before.Stale+4 {
		t.Errorf("the channel is %v; %+v", now.state, ours.count)
	}
	if m.port ^= 1; ours.channels[id].id == c.id {
		if ours.takeMessage(g.now, 0, &c.key, at, &m); ours.count.Closed != before.Closed+1 {
			t.Error("a reset of the peer itself, by what its frames have, is not taken")
		}
	}
	g.run(10*frame.Second, nil)
	g.idle()
}

// An attacker that sees none of the frames between two hosts does not end their channels by errors
// of ICMP, whatever they quote of what it can find out; one that got the frames does.
func TestForgedUnreachables(t *testing.T) {
	g := newRig(t, nil)
	var datagram, carried []byte
	g.fault = func(from int, b []byte) []frame.Time {
		if from == 0 && b[23] == wire.ProtoUDP {
			switch be.Uint16(b[36:]) {
			case Port:
				datagram = bytes.Clone(b)
			case wire.HPCCPort, wire.RoCEv2Port:
				carried = bytes.Clone(b)
			}
		}
		return []frame.Time{0}
	}
	g.meet(udp(0, 8))
	g.send(0, udp(0, 8).bytes())
	g.run(10*frame.Millisecond, nil)
	g.fault = nil
	if datagram == nil || carried == nil {
		t.Fatal("nothing was seen")
	}
	_, head, _ := wire.TelemetryLen(carried, 42, len(carried), be.Uint16(carried[36:]))
	if head != wire.RoCEv2Port {
		t.Fatalf("a frame of a channel to port %d", head)
	}
	n, _, _ := wire.TelemetryLen(carried, 42, len(carried), be.Uint16(carried[36:]))
	bth := 42 + n
	ours := g.b[0]
	receive := func(b []byte) (refused bool) {
		before := ours.count.Refusals
		ours.Receive(g.now, Outer, []frame.Ref{g.pool.New(portUnreachable(b, false))})
		g.run(frame.Millisecond, nil)
		return ours.count.Refusals != before
	}
	changed := func(b []byte, change func(b []byte)) []byte {
		b = bytes.Clone(b)
		change(b)
		return b
	}
	for name, b := range map[string][]byte{
		"eight bytes of a datagram":   datagram[:42],
		"a datagram that was guessed": changed(datagram, func(b []byte) { b[42+8] ^= 1 }),
		"a frame from another port":   changed(carried, func(b []byte) { b[35] ^= 1 }),
		"a frame of another number":   changed(carried, func(b []byte) { b[bth+5] ^= 4 }),
		"eight bytes of a frame":      carried[:42],
	} {
		if receive(b) || ours.count.Closed != 0 {
			t.Errorf("%s ends the channels", name)
		}
	}
	if !receive(carried) {
		t.Error("a frame that was sent, and is refused, ends no channel")
	}
	g.run(2*frame.Second, nil)
	g.idle()
}
