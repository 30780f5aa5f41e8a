package bump

import (
	"net/netip"
	"testing"

	"gswitch/cc"
	"gswitch/frame"
	"gswitch/hostnic"
	inband "gswitch/int"
	"gswitch/scheduler"
	"gswitch/transport"
	"gswitch/wire"
)

const (
	tick   = 5 * frame.Microsecond // how late the engine of these tests may be
	chunks = 8192
)

// flight is a frame on the link.
type flight struct {
	at frame.Time
	r  frame.Ref
}

// rig is two bumps on one link, each with a kernel that the test is.
type rig struct {
	t    testing.TB
	now  frame.Time
	pool *frame.Pool
	b    [2]*Bump
	// cfg makes a bump; incarnations count its starts.
	cfg   func(i int) Config
	seeds uint64
	link  [2][]flight
	delay frame.Time
	// fault, if set, says for a frame on the link how many copies arrive, and
	// how much later each.
	fault func(from int, b []byte) []frame.Time
	got   [2][][]byte
	// bare, if set, is a host without a bump: what the link brings it.
	bare func(b []byte)
}

func mac(i int) wire.MAC { return wire.MAC{2, 0, 0, 0, 1, byte(i + 1)} }
func v4(i int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)})
}
func v6(i int) netip.Addr {
	return netip.AddrFrom16([16]byte{0: 0xfd, 15: byte(i + 1)})
}

func factory(t testing.TB, name string) func(*cc.Env) cc.Algorithm {
	f, err := cc.Factory(name, nil)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func config(t testing.TB, mode *transport.Kind) Config {
	return Config{
		NIC: hostnic.Config{Name: "h", Rate: 1e9, Overhead: scheduler.EthernetOverhead, Burst: 50 * frame.Microsecond, BaseRTT: 100 * frame.Microsecond,
			AckClass: -1, AckPauseClass: -1},
		MTU:       1500,
		Transport: transport.Config{Recovery: mode, Cap: 256, RTOHigh: 5 * frame.Millisecond, RTOLow: frame.Millisecond, N: 3},
		Default:   Rule{CC: "none", New: factory(t, "none"), Telemetry: inband.HPCC},
	}
}

func newRig(t testing.TB, cfg func(i int) Config) *rig {
	g := &rig{t: t, pool: frame.NewPool(frame.MustArena(chunks, 2048, 128)), cfg: cfg, delay: 20 * frame.Microsecond}
	if cfg == nil {
		g.cfg = func(int) Config { return config(t, transport.IRN) }
	}
	for i := range g.b {
		g.start(i)
	}
	return g
}

// start begins a new incarnation.
func (g *rig) start(i int) {
	g.seeds++
	c := g.cfg(i)
	c.NIC.Seed = g.seeds*0x9e3779b97f4a7c15 + uint64(i)
	b, err := New(&c, g.pool)
	if err != nil {
		g.t.Fatal(err)
	}
	g.b[i] = b
}

// restart kills a bump and begins anew.
func (g *rig) restart(i int) {
	g.b[i].SetLink(g.now, Outer, false)
	g.b[i].SetLink(g.now, Inner, false)
	g.b[i].Flush(g.now)
	g.start(i)
}

// send is the kernel of i sending a frame.
func (g *rig) send(i int, b []byte) {
	r := g.pool.New(b)
	if r == frame.Nil {
		g.t.Fatal("no chunk is left")
	}
	g.pool.Meta(r).Wire = uint32(len(b))
	g.b[i].Receive(g.now, Inner, []frame.Ref{r})
}

// step does what is due now.
func (g *rig) step() {
	var out [64]frame.Ref
	for i, b := range g.b {
		g.arrive(i)
		b.Advance(g.now)
		for _, r := range out[:b.Transmit(g.now, Outer, out[:])] {
			g.depart(i, r)
		}
		for _, r := range out[:b.Transmit(g.now, Inner, out[:])] {
			g.got[i] = append(g.got[i], append([]byte(nil), g.pool.Bytes(r)...))
			g.pool.Free(r)
		}
	}
}

// arrive hands over what the link brings to i.
func (g *rig) arrive(i int) {
	var v []frame.Ref
	keep := g.link[i][:0]
	for _, f := range g.link[i] {
		if f.at > g.now {
			keep = append(keep, f)
			continue
		}
		v = append(v, f.r)
	}
	g.link[i] = keep
	if g.bare != nil && i == 1 {
		for _, r := range v {
			g.bare(g.pool.Bytes(r))
			g.pool.Free(r)
		}
		return
	}
	if len(v) > 0 {
		g.b[i].Receive(g.now, Outer, v)
	}
}

func (g *rig) depart(i int, r frame.Ref) {
	late := []frame.Time{0}
	if g.fault != nil {
		late = g.fault(i, g.pool.Bytes(r))
	}
	for n, l := range late {
		c := r
		if n > 0 {
			if c = g.pool.Copy(r); c == frame.Nil {
				continue
			}
		}
		g.link[1-i] = append(g.link[1-i], flight{g.now + g.delay + l, c})
	}
	if len(late) == 0 {
		g.pool.Free(r)
	}
}

// run steps for the given time, or until done says so.
func (g *rig) run(most frame.Time, done func() bool) bool {
	for end := g.now + most; g.now < end; {
		g.step()
		if done != nil && done() {
			return true
		}
		g.now += tick
		if len(g.link[0])+len(g.link[1]) == 0 {
			g.now = min(end, max(g.now, min(g.b[0].Wake(g.now), g.b[1].Wake(g.now))))
		}
	}
	return false
}

// meet lets both find out about each other, and opens the channel of a tuple.
func (g *rig) meet(p packet) {
	g.t.Helper()
	g.send(1, arp(1)) // so that both know their stations
	g.send(0, p.bytes())
	ok := g.run(frame.Second, func() bool {
		if len(g.b[0].peers) == 0 || g.b[0].peers[0].state != known {
			return false
		}
		g.send(0, p.bytes())
		return g.carries(0) > 0
	})
	if !ok {
		g.t.Fatalf("no channel after %v: %+v %+v", g.now.Duration(), g.b[0].count, g.b[1].count)
	}
	g.run(10*frame.Millisecond, nil)
	g.got = [2][][]byte{}
}

func (g *rig) carries(i int) uint64 { return g.b[i].count.Carried }

// idle sees that nothing is left: no chunk, and after the idle time no channel.
func (g *rig) idle() {
	g.t.Helper()
	g.run(40*frame.Second, nil)
	for i, b := range g.b {
		if t, h := b.Open(); t+h != 0 || b.NIC().Counts().QPsOpen != 0 {
			g.t.Errorf("host %d: %d channels, %d queue pairs are left", i, t+h, b.NIC().Counts().QPsOpen)
		}
	}
	if n := g.pool.Available(); n != chunks {
		g.t.Errorf("%d chunks are lost", chunks-n)
	}
}

// packet is what a kernel sends.
type packet struct {
	from, to     int
	v6           bool
	proto        uint8
	sport, dport uint16
	flags        uint8 // of TCP
	options      []byte
	fragment     uint16 // word of the IPv4 header
	tos          uint8
	body         []byte
	partial      bool // the checksum is left to the device
	src          netip.Addr
}

func (p packet) bytes() []byte {
	var seg []byte
	field := 6
	switch p.proto {
	case wire.ProtoTCP:
		field = 16
		h := wire.TCPFields{SrcPort: p.sport, DstPort: p.dport, Flags: p.flags, Options: p.options}
		seg = make([]byte, wire.TCPLen+len(p.options)+len(p.body))
		copy(seg[h.Encode(seg):], p.body)
	case wire.ProtoUDP:
		seg = make([]byte, wire.UDPLen+len(p.body))
		h := wire.UDPFields{SrcPort: p.sport, DstPort: p.dport, Length: uint16(len(seg))}
		copy(seg[h.Encode(seg):], p.body)
	default:
		field = 2
		seg = make([]byte, wire.ICMPLen+len(p.body))
		seg[0] = wire.ICMPEcho
		if p.v6 {
			seg[0] = wire.ICMPv6Echo
		}
		copy(seg[wire.ICMPLen:], p.body)
	}
	eth := wire.EthernetFields{Dst: mac(p.to), Src: mac(p.from), EtherType: wire.EtherTypeIPv4}
	var pseudo uint64
	var head []byte
	if p.v6 {
		eth.EtherType = wire.EtherTypeIPv6
		src, dst := v6(p.from), v6(p.to)
		if p.src.IsValid() {
			src = p.src
		}
		ip := wire.IPv6Fields{TrafficClass: p.tos, PayloadLen: uint16(len(seg)), NextHeader: p.proto, HopLimit: 64, Src: src.As16(), Dst: dst.As16()}
		head = make([]byte, wire.IPv6Len)
		ip.Encode(head)
		pseudo = wire.PseudoSum6(ip.Src, ip.Dst, p.proto, len(seg))
	} else {
		src, dst := v4(p.from), v4(p.to)
		if p.src.IsValid() {
			src = p.src
		}
		ip := wire.IPv4Fields{TOS: p.tos, TotalLen: uint16(wire.IPv4Len + len(seg)), TTL: 64, Proto: p.proto, FlagsOffset: p.fragment, Src: src.As4(), Dst: dst.As4()}
		head = make([]byte, wire.IPv4Len)
		ip.Encode(head)
		wire.IPv4(head).UpdateChecksum()
		pseudo = wire.PseudoSum4(ip.Src, ip.Dst, p.proto, len(seg))
		if p.proto == wire.ProtoICMP {
			pseudo = 0
		}
	}
	sum := wire.SegmentChecksum(pseudo, seg)
	if p.partial {
		sum = ^wire.SegmentChecksum(pseudo, nil)
	}
	be.PutUint16(seg[field:], sum)
	out := make([]byte, wire.EthernetLen, 1600)
	eth.Encode(out)
	return append(append(out, head...), seg...)
}

func arp(i int) []byte {
	b := make([]byte, wire.EthernetLen+wire.ARPLen)
	eth := wire.EthernetFields{Dst: wire.BroadcastMAC, Src: mac(i), EtherType: wire.EtherTypeARP}
	eth.Encode(b)
	a := wire.ARPFields{Op: wire.ARPRequest, SenderMAC: mac(i), SenderIP: v4(i).As4(), TargetIP: v4(1 - i).As4()}
	a.Encode(b[wire.EthernetLen:])
	return b
}

// udp is a datagram from 0 to 1 with a number in it.
func udp(n uint64, size int) packet {
	p := packet{from: 0, to: 1, proto: wire.ProtoUDP, sport: 1000, dport: 2000, fragment: wire.IPv4DontFragment, body: make([]byte, max(8, size))}
	be.PutUint64(p.body, n)
	return p
}

// numberOf is the number in a datagram.
func numberOf(b []byte) uint64 {
	if b[12] == 0x86 {
		return be.Uint64(b[wire.EthernetLen+wire.IPv6Len+wire.UDPLen:])
	}
	return be.Uint64(b[wire.EthernetLen+wire.IPv4Len+wire.UDPLen:])
}
