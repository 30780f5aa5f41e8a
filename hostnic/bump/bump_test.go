package bump

import (
	"bytes"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"gswitch/frame"
	inband "gswitch/int"
	"gswitch/transport"
	"gswitch/wire"
)

// What the kernel sends comes out at the other end byte for byte, for both
// families and all protocols, through channels.
func TestCarries(t *testing.T) {
	for _, mode := range []inband.Mode{inband.None, inband.HPCC, inband.HPCCGrow, inband.INTMD} {
		g := newRig(t, func(int) Config {
			c := config(t, transport.IRN)
			c.Default.Telemetry = mode
			return c
		})
		for _, p := range []packet{
			{proto: wire.ProtoUDP, sport: 7, dport: 9, body: make([]byte, 100)},
			{proto: wire.ProtoTCP, sport: 7, dport: 9, body: []byte("hello")},
			{proto: wire.ProtoICMP, body: make([]byte, 56)},
			{v6: true, proto: wire.ProtoUDP, sport: 7, dport: 9, body: make([]byte, 101)},
			{v6: true, proto: wire.ProtoTCP, sport: 7, dport: 9, body: []byte("hello!")},
			{v6: true, proto: wire.ProtoICMPv6, body: make([]byte, 57)},
		} {
			p.to = 1
			name := fmt.Sprintf("%v, protocol %d, IPv6 %v", mode, p.proto, p.v6)
			g.send(1, arp(1))
			g.send(0, p.bytes())
			g.run(5*frame.Millisecond, nil)
			g.send(0, p.bytes())
			g.run(5*frame.Millisecond, nil)
			g.got = [2][][]byte{}
			carried, delivered := g.b[0].count.Carried, g.b[1].count.Delivered
			g.send(0, p.bytes())
			g.run(5*frame.Millisecond, nil)
			if g.b[0].count.Carried != carried+1 || g.b[1].count.Delivered != delivered+1 || len(g.got[1]) != 1 || !bytes.Equal(g.got[1][0], p.bytes()) {
				t.Fatalf("%s: carried %d, delivered %d:\n% x\nwant\n% x", name, g.b[0].count.Carried-carried, g.b[1].count.Delivered-delivered, g.got[1], p.bytes())
			}
			// The answer goes the same channel back.
			back := p
			back.from, back.to, back.sport, back.dport = 1, 0, p.dport, p.sport
			opened := g.b[1].count.Opened
			g.send(1, back.bytes())
			g.run(5*frame.Millisecond, nil)
			if len(g.got[0]) != 1 || !bytes.Equal(g.got[0][0], back.bytes()) || g.b[0].count.Delivered == 0 || g.b[1].count.Opened != opened {
				t.Fatalf("%s: the way back: % x", name, g.got[0])
			}
		}
		g.idle()
	}
}

// A channel whose way of recovery does not serve the transparent mode is refused for that.
func TestRecoveryOfChannels(t *testing.T) {
	g := newRig(t, nil)
	for _, k := range transport.Kinds() {
		m := message{recovery: k.Code, packet: 1412, cap: 128, cc: "none"}
		if _, why := g.b[1].takeChannel(g.now, 0, &key{host: true}, ends{}, &m); (why == unknownFormat) == k.Transparent {
			t.Errorf("%v: refused for reason %d", k, why)
		}
	}
	if at, why := g.b[1].takeChannel(g.now, 0, &key{host: true}, ends{}, &message{recovery: transport.OwnCodes, packet: 1412, cap: 128, cc: "none"}); at >= 0 || why != unknownFormat {
		t.Errorf("a way that nobody knows: channel %d, reason %d", at, why)
	}
}

// Under loss, reordering and duplicates each packet arrives once and in order,
// or is dropped with a reason; so it is in all ways of recovery.
func TestOnceInOrder(t *testing.T) {
	for _, mode := range transport.Kinds() {
		if !mode.Transparent {
			continue
		}
		rapid.Check(t, func(rt *rapid.T) {
			loss := rapid.IntRange(0, 15).Draw(rt, "loss")
			late := rapid.IntRange(0, 15).Draw(rt, "late")
			twice := rapid.IntRange(0, 10).Draw(rt, "twice")
			size := rapid.IntRange(8, 1300).Draw(rt, "size")
			count := rapid.IntRange(1, 300).Draw(rt, "count")
			rng := frame.NewRand(rapid.Uint64().Draw(rt, "seed"))
			g := newRig(t, func(int) Config {
				c := config(t, mode)
				c.Queue = 200 << 10
				return c
			})
			g.meet(udp(1<<32, 8))
			before := g.b[0].count.Carried
			g.fault = func(int, []byte) []frame.Time {
				if int(rng.Uint32n(100)) < loss {
					return nil
				}
				l := []frame.Time{0}
				if int(rng.Uint32n(100)) < late {
					l[0] = frame.Time(rng.Uint32n(100)) * frame.Microsecond
				}
				if int(rng.Uint32n(100)) < twice {
					l = append(l, frame.Time(rng.Uint32n(50))*frame.Microsecond)
				}
				return l
			}
			for n := range count {
				g.send(0, udp(uint64(n), size).bytes())
				if n%7 == 0 {
					g.run(tick, nil)
				}
			}
			g.run(20*frame.Second, func() bool { return len(g.got[1]) >= int(g.b[0].count.Carried-before) })
			g.fault = nil
			g.run(frame.Second, nil)
			carried, dropped := g.b[0].count.Carried-before, g.b[0].count.Drops[frame.QueueTail]+g.b[0].count.Drops[frame.BufferFull]
			if carried+dropped != uint64(count) || uint64(len(g.got[1])) != carried {
				rt.Fatalf("%v: of %d packets %d were carried, %d dropped, %d arrived: %+v", mode, count, carried, dropped, len(g.got[1]), g.b[0].count)
			}
			last := -1
			for _, b := range g.got[1] {
				n := int(numberOf(b))
				if n <= last {
					rt.Fatalf("%v: %d after %d", mode, n, last)
				}
				last = n
			}
			g.idle()
		})
	}
}

// Both ends open a channel for the same tuple at once: one stays, and nothing
// is lost in it.
func TestBothOpen(t *testing.T) {
	g := newRig(t, nil)
	g.meet(udp(0, 8))
	a := packet{from: 0, to: 1, proto: wire.ProtoTCP, sport: 5, dport: 6, body: []byte("a")}
	b := packet{from: 1, to: 0, proto: wire.ProtoTCP, sport: 6, dport: 5, body: []byte("b")}
	g.send(0, a.bytes())
	g.send(1, b.bytes())
	g.run(20*frame.Millisecond, nil)
	for i, x := range g.b {
		if n, _ := x.Open(); n != 2 {
			t.Errorf("host %d has %d channels", i, n)
		}
	}
	c0, c1 := g.b[0].count.Carried, g.b[1].count.Carried
	g.send(0, a.bytes())
	g.send(1, b.bytes())
	g.run(5*frame.Millisecond, nil)
	if g.b[0].count.Carried != c0+1 || g.b[1].count.Carried != c1+1 || len(g.got[0]) != 2 || len(g.got[1]) != 2 {
		t.Errorf("%d, %d arrived", len(g.got[0]), len(g.got[1]))
	}
	g.idle()
}

// Channels are bounded: tuples beyond share one, and beyond that pass.
func TestOverflow(t *testing.T) {
	g := newRig(t, func(int) Config {
		c := config(t, transport.IRN)
		c.Channels = 3
		return c
	})
	g.meet(udp(0, 8))
	for port := range 10 {
		p := udp(0, 8)
		p.sport = uint16(3000 + port)
		for range 3 {
			g.send(0, p.bytes())
			g.run(5*frame.Millisecond, nil)
		}
	}
	if tuples, hosts := g.b[0].Open(); tuples != 3 || hosts != 1 {
		t.Errorf("%d channels for tuples, %d for hosts", tuples, hosts)
	}
	if len(g.got[1]) != 30 || g.b[0].count.Overflows == 0 {
		t.Errorf("%d arrived, %d overflows", len(g.got[1]), g.b[0].count.Overflows)
	}
	g.idle()
}

// A full queue drops what comes, and marks before that what may be marked.
func TestQueueBound(t *testing.T) {
	g := newRig(t, func(int) Config {
		c := config(t, transport.IRN)
		c.Queue, c.Mark = 20_000, 10_000
		return c
	})
	g.meet(udp(0, 8))
	drops := g.b[0].count.Drops[frame.QueueTail]
	for n := range 40 {
		p := udp(uint64(n), 1000)
		p.tos = wire.ECT0
		g.send(0, p.bytes())
	}
	g.run(50*frame.Millisecond, nil)
	marked := 0
	for _, b := range g.got[1] {
		if ip := wire.IPv4(b[wire.EthernetLen:]); !ip.ChecksumOK() {
			t.Error("a header checksum is wrong")
		} else if ip.ECN() == wire.CE {
			marked++
		}
	}
	dropped := int(g.b[0].count.Drops[frame.QueueTail] - drops)
	if dropped == 0 || len(g.got[1])+dropped != 40 || marked == 0 || marked == len(g.got[1]) || uint64(marked) != g.b[0].count.Marked {
		t.Errorf("%d arrived, %d dropped, %d marked", len(g.got[1]), dropped, marked)
	}
	g.idle()
}

// A SYN of a program beside a queue full of data is never marked: it is not
// ECN-capable (RFC 3168, section 6.1.1).
func TestQueueMarksNoSYN(t *testing.T) {
	g := newRig(t, func(int) Config {
		c := config(t, transport.IRN)
		c.Queue, c.Mark = 60_000, 2000
		return c
	})
	g.meet(udp(0, 8))
	syn := packet{from: 0, to: 1, proto: wire.ProtoTCP, sport: 5, dport: 6, body: []byte("SYN")}
	g.send(0, syn.bytes())
	g.run(20*frame.Millisecond, nil) // there is a channel for these ports now
	data := syn
	data.tos, data.body = wire.ECT0, make([]byte, 1000)
	for range 20 {
		g.send(0, data.bytes())
		g.send(0, syn.bytes())
	}
	g.run(50*frame.Millisecond, nil)
	seen := map[[2]bool]int{}
	for _, b := range g.got[1] {
		ip := wire.IPv4(b[wire.EthernetLen:])
		seen[[2]bool{ip.TotalLen() < 500, ip.ECN() == wire.CE}]++
	}
	if seen[[2]bool{true, true}] != 0 || seen[[2]bool{true, false}] != 21 || seen[[2]bool{false, true}] == 0 {
		t.Errorf("arrived, by whether small and marked: %v", seen)
	}
	g.idle()
}

// A bump that starts again in the middle: what was under way may be lost, and
// nothing comes twice or behind what was sent later in the same channel; then
// packets travel in channels again.
func TestRestart(t *testing.T) {
	for _, which := range []int{0, 1} {
		g := newRig(t, nil)
		g.meet(udp(1<<32, 8))
		n := uint64(0)
		burst := func(k int) {
			for range k {
				g.send(0, udp(n, 500).bytes())
				n++
				g.run(2*tick, nil)
			}
		}
		burst(200)
		g.restart(which)
		if which == 1 {
			g.send(1, arp(1))
		}
		burst(2000)
		g.run(frame.Second, nil)
		c := g.b[0].count.Carried
		burst(10)
		g.run(10*frame.Millisecond, nil)
		if g.b[0].count.Carried != c+10 {
			t.Errorf("restart of %d: no channel again: %+v\n%+v", which, g.b[0].count, g.b[1].count)
		}
		seen := map[uint64]bool{}
		for _, b := range g.got[1] {
			k := numberOf(b)
			if seen[k] {
				t.Errorf("restart of %d: packet %d came twice", which, k)
			}
			seen[k] = true
		}
		if lost := int(n) - len(seen); lost > 300 {
			t.Errorf("restart of %d: %d of %d packets were lost", which, lost, n)
		}
		if last := numberOf(g.got[1][len(g.got[1])-1]); last != n-1 {
			t.Errorf("restart of %d: the last packet that came is %d of %d", which, last, n)
		}
		g.idle()
	}
}

// The kernel's link address changes: channels begin anew with it.
func TestAnotherStation(t *testing.T) {
	g := newRig(t, nil)
	g.meet(udp(0, 8))
	g.run(2*anotherStation, nil)
	b := udp(1, 8).bytes()
	b[11] = 99
	g.send(0, b)
	g.run(20*frame.Millisecond, nil)
	if g.b[0].mac&0xff != 99 {
		t.Error("the new address was not learned")
	}
	c := g.b[0].count.Carried
	g.send(0, b)
	g.run(20*frame.Millisecond, nil)
	if g.b[0].count.Carried != c+1 || g.got[1][len(g.got[1])-1][11] != 99 {
		t.Error("no channel with the new address")
	}
	g.idle()
}

// Rules: what passes is not asked about; what shares, shares.
func TestRules(t *testing.T) {
	g := newRig(t, func(int) Config {
		c := config(t, transport.IRN)
		share := c.Default
		share.Flows, share.Proto = PerHost, wire.ProtoUDP
		c.Rules = []Rule{{Proto: wire.ProtoTCP, PortLo: 22, PortHi: 22, Flows: Pass}, share}
		return c
	})
	ssh := packet{from: 0, to: 1, proto: wire.ProtoTCP, sport: 5000, dport: 22, flags: wire.TCPSyn, options: []byte{2, 4, 5, 180}}
	g.send(1, arp(1))
	g.send(0, ssh.bytes())
	g.run(20*frame.Millisecond, nil)
	if g.b[0].count.Asked != 0 || len(g.got[1]) != 1 || !bytes.Equal(g.got[1][0], ssh.bytes()) {
		t.Errorf("asked %d times; % x", g.b[0].count.Asked, g.got[1])
	}
	g.meet(udp(0, 8))
	for port := range 5 {
		p := udp(0, 8)
		p.sport = uint16(4000 + port)
		g.send(0, p.bytes())
		g.run(5*frame.Millisecond, nil)
	}
	if tuples, hosts := g.b[0].Open(); tuples != 0 || hosts != 1 {
		t.Errorf("%d channels for tuples, %d for hosts", tuples, hosts)
	}
	g.idle()
}

// A frame costs no memory.
func TestAllocations(t *testing.T) {
	g := newRig(t, nil)
	g.meet(udp(0, 8))
	once := g.once(udp(0, 1000).bytes())
	before := g.b[1].count.Delivered
	for range 100 {
		once()
	}
	if n := testing.AllocsPerRun(200, once); n != 0 {
		t.Errorf("%v allocations for a packet", n)
	}
	if g.b[1].count.Delivered < before+300 {
		t.Errorf("only %d packets came by the channel", g.b[1].count.Delivered-before)
	}
	g.idle()
}

// What a packet takes from one kernel to the other, and its acknowledgement
// back: both bumps, without their engines.
func BenchmarkPacket(b *testing.B) {
	for _, size := range []int{24, 1350} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			g := newRig(b, nil)
			g.meet(udp(0, 8))
			once := g.once(udp(0, size).bytes())
			b.ReportAllocs()
			for b.Loop() {
				once()
			}
		})
	}
}

// once returns a function that sends a packet from one kernel to the other.
func (g *rig) once(p []byte) func() {
	var out [64]frame.Ref
	var fly [2][]frame.Ref
	for i := range fly {
		fly[i] = make([]frame.Ref, 0, 64)
	}
	v := make([]frame.Ref, 1)
	return func() {
		v[0] = g.pool.New(p)
		g.b[0].Receive(g.now, Inner, v)
		for range 20 {
			g.now += tick
			for i, b := range g.b {
				if len(fly[i]) > 0 {
					b.Receive(g.now, Outer, fly[i])
					fly[i] = fly[i][:0]
				}
				b.Advance(g.now)
				fly[1-i] = append(fly[1-i], out[:b.Transmit(g.now, Outer, out[:])]...)
				for _, r := range out[:b.Transmit(g.now, Inner, out[:])] {
					g.pool.Free(r)
				}
			}
		}
	}
}
