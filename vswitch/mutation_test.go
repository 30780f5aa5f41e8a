package vswitch

import (
	"encoding/binary"
	"flag"
	"net/netip"
	"testing"

	"gswitch/frame"
	"gswitch/pfc"
	"gswitch/pipeline"
	"gswitch/wire"
	wt "gswitch/wire/wiretest"
)

var mutations = flag.Int("mutations", 200_000, "frames that TestMutatedFrames sends through a whole switch")

// everything is a switch with one port of each kind: routed, transparent,
// access, trunk, with lists, storm control, lossless classes and a mirror.
func everything() *Config {
	cfg := rated(baseConfig(6), 10e9)
	cfg.VLANs = []VLANConfig{{ID: 10, Name: "red", Addresses: prefixes("10.0.10.1/24", "fd00:0:0:10::1/64")}, {ID: 20}}
	cfg.Ports[0].Addresses = prefixes("10.0.0.1/24", "fd00:0:0:a::1/64")
	cfg.Ports[1].Addresses = prefixes("10.0.1.1/24", "fd00:0:0:b::1/64")
	cfg.Ports[2].Storm = StormControl{Broadcast: 1e9, Multicast: 1e9, UnknownUnicast: 1e9}
	cfg.Ports[3].VLANMode, cfg.Ports[3].PVID = VLANAccess, 10
	cfg.Ports[4].VLANMode, cfg.Ports[4].PVID = VLANTrunk, 20
	cfg.Ports[5].MTU = 600
	cfg.Loopbacks = []netip.Addr{netip.MustParseAddr("10.255.0.1")}
	cfg.Neighbors = []StaticNeighbor{{netip.MustParseAddr("10.0.1.2"), hostMAC(2)}}
	cfg.Routes = []Route{
		{Prefix: netip.MustParsePrefix("0.0.0.0/0"), NextHops: []NextHop{{Via: netip.MustParseAddr("10.0.1.2")}, {Via: netip.MustParseAddr("10.0.0.7")}}},
		{Prefix: netip.MustParsePrefix("192.0.2.0/24"), Refuse: Blackhole},
	}
	cfg.Mirrors = []Mirror{{Name: "m", Port: 5, Truncate: 64}}
	var drop, mark pipeline.Match
	drop.MatchDstPort(53, 60)
	mark.MatchProto(wire.ProtoUDP)
	cfg.ACLs = []ACL{{Name: "in", Default: pipeline.Action{Ops: pipeline.OpPermit}, Rules: []ACLRule{
		{Match: drop, Priority: 2, Action: pipeline.Action{Ops: pipeline.OpDrop | pipeline.OpMirror}},
		{Match: mark, Priority: 1, Action: pipeline.Action{Ops: pipeline.OpSetDSCP | pipeline.OpSetPCP | pipeline.OpSetClass, DSCP: 40, PCP: 5, Class: 5}, Police: &Police{Rate: 5e9, Burst: 100_000}},
	}}}
	for i := range cfg.Ports {
		cfg.Ports[i].ACL = "in"
	}
	cfg.PFC = PFCConfig{Mode: pfc.PFC, Classes: 1<<3 | 1<<4, Watchdog: pfc.Watchdog{Detect: frame.Millisecond}}
	cfg.Buffer = BufferConfig{Size: 2 << 20, XOFF: 50_000, XONOffset: 10_000}
	return cfg
}

// seeds are well-formed frames of every kind that the switch looks into.
func seeds() [][]byte {
	opt := make([]byte, wire.NDLinkLayerLen)
	wire.PutNDLinkLayer(opt, wire.NDSourceLinkLayer, hostMAC(1))
	v4 := func(l ...wt.Layer) []byte {
		return wt.Frame(append([]wt.Layer{wt.Eth(selfMAC, hostMAC(1)), wt.IPv4("10.0.0.9", "10.0.1.2")}, l...)...)
	}
	target := wt.Addr6("fd00:0:0:a::1")
	return [][]byte{
		l2(2, 1), l2(1, 2), tagged(2, 1, 3, 200), udp(wire.BroadcastMAC, hostMAC(1), "255.255.255.255", "10.0.0.9"),
		v4(wt.UDP(1000, 53), wt.Zeros(20)), v4(wt.UDP(1000, 4791), wt.Zeros(60)), v4(wt.ICMP(wire.ICMPEcho, 0, 1), wt.Zeros(30)),
		v4(wt.UDP(1, 2), wt.Zeros(1200)),
		udp(selfMAC, hostMAC(1), "10.0.0.1", "10.0.0.9"), udp(selfMAC, hostMAC(1), "8.8.8.8", "10.0.0.9", wt.TTL(1)), udp(selfMAC, hostMAC(1), "10.0.1.77", "10.0.0.9"),
		wt.Frame(wt.Eth(selfMAC, hostMAC(1)), wt.IPv4("10.0.0.9", "10.255.0.1"), wt.ICMP(wire.ICMPEcho, 0, 1)),
		arp(wire.ARPRequest, wire.BroadcastMAC, hostMAC(1), "10.0.0.9", "10.0.0.1"), arp(wire.ARPReply, selfMAC, hostMAC(3), "10.0.1.77", "10.0.1.1"),
		wt.Frame(wt.Eth(selfMAC, hostMAC(1)), wt.IPv6("fd00:0:0:a::9", "fd00:0:0:b::2"), wt.UDP(1, 2), wt.Zeros(10)),
		wt.Frame(wt.Eth(wire.MAC{0x33, 0x33, 0xff, 0, 0, 1}, hostMAC(1)), wt.IPv6("fd00:0:0:a::9", "ff02::1:ff00:1", wt.TTL(255)), wt.ND(wire.NDFields{Type: wire.ICMPv6NeighborSolicitation, Target: target, Options: opt})),
		wt.Frame(wt.Eth(selfMAC, hostMAC(1)), wt.IPv4("10.0.0.9", "10.0.1.2"), wt.IPv4("1.1.1.1", "2.2.2.2"), wt.TCP(wire.TCPFields{SrcPort: 1, DstPort: 2})),
		wt.Frame(wt.QinQ(20, 4), wt.Payload(nil))[:60], wt.Frame(wt.Eth(hostMAC(2), hostMAC(1)), wt.QinQ(20, 4), wt.VLAN(10, 1), wt.IPv4("10.0.0.9", "10.0.1.2"), wt.UDP(1, 2)),
		pfcFrame(1<<3, 500), pfcFrame(0xff, 0),
		roce(1, 1, 100), marked(roce(1, 1, 100), 2), marked(roce(2, 3, 100), 1), token(roce(1, 1, 100), 2), token(roce(1, 2, 100), 0xffff),
	}
}

// mutate damages a frame as wires and attackers do: flipped bits, edge values,
// cut and stretched ends, spliced frames.
func mutate(rnd *frame.Rand, b []byte, all [][]byte) []byte {
	b = append([]byte(nil), b...)
	for range 1 + rnd.Uint32n(4) {
		i := int(rnd.Uint32n(uint32(len(b))))
		switch rnd.Uint32n(7) {
		case 0:
			b[i] ^= 1 << rnd.Uint32n(8)
		case 1:
			b[i] = [...]byte{0, 1, 0x7f, 0x80, 0xff}[rnd.Uint32n(5)]
		case 2:
			b[i] = byte(rnd.Uint64())
		case 3:
			if i+2 <= len(b) {
				binary.BigEndian.PutUint16(b[i:], [...]uint16{0x0800, 0x86dd, 0x0806, 0x8100, 0x88a8, 0x8808, 0xffff, 0}[rnd.Uint32n(8)])
			}
		case 4:
			if i > 0 {
				b = b[:i]
			}
		case 5:
			b = append(b, make([]byte, rnd.Uint32n(400))...)
		case 6:
			o := all[rnd.Uint32n(uint32(len(all)))]
			b = append(b[:i:i], o[rnd.Uint32n(uint32(len(o))):]...)
		}
		if len(b) > 1700 {
			b = b[:1700]
		}
	}
	return b
}

// TestMutatedFrames sends damaged frames through a whole switch. Nothing
// panics, and every frame that comes in or is made leaves by a port or by a
// counter. Run with -mutations 10000000 for the long form.
func TestMutatedFrames(t *testing.T) {
	for i, name := range []string{"crossbar", "escape"} {
		t.Run(name, func(t *testing.T) {
			cfg := everything()
			congested(cfg)
			if name == "crossbar" {
				WithCrossbar(cfg, Crossing{})
			} else {
				escapes(cfg)
			}
			sendMutated(t, cfg, uint64(42+i), *mutations/2)
		})
	}
}

// Systems gives all ports the options of systems, which register themselves and
// so cannot be imported here: systems_test.go sets it.
var Systems func(cfg *Config)

// Escapes is that for frames that escape, at all ports but the first.
var Escapes func(cfg *Config)

// congested has every port notify senders and the routes go by load.
func congested(cfg *Config) {
	Systems(cfg)
	cfg.Paths = PathsConfig{Choose: pipeline.ChooseAdaptive, Thresholds: []uint64{500, 2000}, Assigned: true}
}

// escapes lets frames escape at all ports but the first.
func escapes(cfg *Config) {
	cfg.Class.Queue[6] = 7
	Escapes(cfg)
}

// marked puts the mark of one that escaped into a frame.
func marked(b []byte, hops uint8) []byte {
	return append(append(append([]byte(nil), b[:12]...), 0x88, 0xb5, hops, 3), b[12:]...)
}

// token is a token for the flow of a data frame.
func token(data []byte, hops uint16) []byte {
	f := wire.TokenFields{Src: hostMAC(9), Hops: hops, Flow: wire.FlowID{Addrs: binary.BigEndian.Uint64(data[26:]), Ports: binary.BigEndian.Uint32(data[34:]), Proto: wire.ProtoUDP}}
	b := make([]byte, wire.MinFrame)
	f.Encode(b)
	return b
}

// sendMutated sends frames, most of them damaged, through a switch.
func sendMutated(t *testing.T, cfg *Config, seed uint64, frames int) {
	r := newRigOf(t, cfg, 1, 8192)
	rnd := frame.NewRand(seed)
	all := seeds()
	n := r.sw.Nodes[0]
	var v [vector]frame.Ref
	for sent := 0; sent < frames; sent += vector {
		for i := range v {
			b := all[rnd.Uint32n(uint32(len(all)))]
			if rnd.Uint32n(8) != 0 {
				b = mutate(&rnd, b, all)
			}
			if v[i] = r.pools[0].New(b); v[i] == frame.Nil {
				t.Fatal("chunks leak")
			}
		}
		r.now += 20 * frame.Microsecond
		in := uint16(rnd.Uint32n(6))
		n.Expect(in, v[0])
		n.Receive(r.now, in, v[:])
		n.Advance(r.now)
		for p := uint16(0); p < 6; p++ {
			r.out(p)
		}
	}
	r.account(t)
}

// account checks that what came in and what was made equals what left, what
// was dropped and what is held.
func (r *rig) account(t *testing.T) {
	t.Helper()
	var in, out, lost uint64
	held := uint64(0)
	n := r.sw.Nodes[0]
	for p := range r.sw.Program().ports {
		c := r.counts(uint16(p))
		in += c.Rx.Frames
		out += c.Tx.Frames
		for _, d := range c.Drops {
			lost += d
		}
		f, _ := n.Scheduler(uint16(p)).Backlog()
		held += uint64(f)
	}
	if n.inputs != nil {
		held += uint64(n.inputs.(waiting).Held())
	}
	for _, d := range n.SelfDrops() {
		lost += d
	}
	for _, nb := range n.Neighbors() {
		held += uint64(nb.Pending)
	}
	made := n.Counts().Made
	if in+made != out+lost+held {
		t.Errorf("%d frames came in and %d were made, but %d left, %d were dropped and %d are held: %d are missing", in, made, out, lost, held, int64(in+made)-int64(out+lost+held))
	}
	if in == 0 || out == 0 || lost == 0 {
		t.Errorf("in %d, out %d, dropped %d: the test shows little", in, out, lost)
	}
}

func FuzzSwitch(f *testing.F) {
	for _, b := range seeds() {
		f.Add(uint8(0), b)
		f.Add(uint8(3), b)
		f.Add(uint8(129), b)
	}
	f.Fuzz(func(t *testing.T, port uint8, b []byte) {
		if len(b) == 0 || len(b) > 1700 {
			return
		}
		cfg := everything()
		congested(cfg)
		if port >= 128 {
			escapes(cfg)
		} else {
			WithCrossbar(cfg, Crossing{})
		}
		r := newRigOf(t, cfg, 1, 256)
		r.in(uint16(port%6), b, b)
		for p := uint16(0); p < 6; p++ {
			r.out(p)
		}
	})
}
