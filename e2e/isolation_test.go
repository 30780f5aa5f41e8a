package e2e

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"gswitch/lldp"
	"gswitch/wire"
	wt "gswitch/wire/wiretest"
)

// misbehaviour is what an untrusted host sends, a burst at a time, and the one that it
// sends to, whose port is slow.
type misbehaviour struct {
	name  string
	burst func(rng *rand.Rand, from, to wire.MAC) (first, second [][]byte)
}

func repeated(n int, b []byte) (v [][]byte) {
	for range n {
		v = append(v, b)
	}
	return v
}

func encoded(encode func([]byte) int) []byte {
	b := make([]byte, 1500)
	return b[:encode(b)]
}

// misbehaviours are those of the property in virtual time, in short.
var misbehaviours = []misbehaviour{
	{"small frames to a slow port", func(_ *rand.Rand, from, to wire.MAC) (a, b [][]byte) {
		return repeated(32, wt.Frame(wt.Eth(to, from), wt.IPv4("10.0.0.3", "10.0.0.4"), wt.UDP(1, 2), wt.Zeros(18))), nil
	}},
	{"a lossless class, and pauses of every class without end", func(_ *rand.Rand, from, to wire.MAC) (a, b [][]byte) {
		a = repeated(32, wt.Frame(wt.Eth(to, from), wt.VLAN(0, 3), wt.IPv4("10.0.0.3", "10.0.0.4"), wt.UDP(1, 2), wt.Zeros(200)))
		return a, [][]byte{wt.PFC(to, 0xff, 0xffff), wt.Pause(to, 0xffff)}
	}},
	{"addresses without end, and requests for them", func(rng *rand.Rand, from, to wire.MAC) (a, b [][]byte) {
		for range 16 {
			src := wire.MAC{2, 9, byte(rng.Uint32()), byte(rng.Uint32()), byte(rng.Uint32()), byte(rng.Uint32())}
			a = append(a, wt.Frame(wt.Eth(to, src), wt.IPv4("10.0.0.3", "10.0.0.4"), wt.UDP(1, 2), wt.Zeros(18)),
				wt.Frame(wt.Eth(to, from), wt.ARP(wire.ARPFields{Op: wire.ARPRequest, SenderMAC: from, SenderIP: [4]byte{10, 0, byte(rng.Uint32()), 9}, TargetIP: [4]byte{10, 0, 0, byte(rng.Uint32())}})))
		}
		return a, nil
	}},
	{"tokens, clocks, names and tags", func(rng *rand.Rand, from, to wire.MAC) (a, b [][]byte) {
		for range 8 {
			token := wire.TokenFields{Src: from, Flow: wire.FlowID{Addrs: rng.Uint64(), Ports: rng.Uint32(), Proto: 17}, Hops: 1}
			clock := wire.PTPFields{Src: from, Type: []wire.PTPType{wire.PTPSync, wire.PTPPdelayReq, wire.PTPAnnounce}[rng.IntN(3)], Domain: 83, Clock: rng.Uint64(), Sequence: uint16(rng.Uint32()), Time: wire.PTPTime{Seconds: rng.Uint64N(4)}}
			name := lldp.Unit{Src: from, Chassis: lldp.ID{Kind: lldp.ChassisMAC, Value: []byte{2, 0, 0, 0, byte(rng.Uint32()), 1}}, Port: lldp.ID{Kind: lldp.PortMAC, Value: []byte{2, 0, 0, 0, 0, 1}}, TTL: 120}
			f := wt.Frame(wt.Eth(to, from), wt.IPv4("10.0.0.3", "10.0.0.4"), wt.UDP(1, wire.HPCCPort), wt.Zeros(60))
			a = append(a, encoded(token.Encode), encoded(clock.Encode), encoded(name.Encode), f,
				slices.Concat(f[:12], []byte{0x88, 0xb6, 0x40, byte(rng.Uint32()), 0, 1, 0, byte(rng.Uint32())}, f[12:]))
		}
		return a, nil
	}},
	{"notices", func(_ *rand.Rand, from, to wire.MAC) (a, b [][]byte) {
		return repeated(32, wt.Frame(wt.Eth(wire.MAC{2, 0xe2, 0, 0, 0, 1}, from), wt.IPv4("192.0.0.8", "10.0.0.1"), wt.ICMP(253, 0, 0), wt.Zeros(60))), nil
	}},
	{"noise", func(rng *rand.Rand, from, to wire.MAC) (a, b [][]byte) {
		for range 32 {
			f := wt.Frame(wt.Eth(to, from), wt.IPv4("10.0.0.3", "10.0.0.4"), wt.UDP(1, 2), wt.Zeros(rng.IntN(200)))
			for range rng.IntN(8) {
				f[12+rng.IntN(len(f)-12)] = byte(rng.Uint32())
			}
			a = append(a, f[:14+rng.IntN(len(f)-13)])
		}
		return a, nil
	}},
}

// Whatever two untrusted hosts send, each frame of a paced flow between two others
// arrives, in order. It is counts that are judged: what a full ring of the two's
// cables refused is not the switch's. The two's ports have no rate: by a worker that is
// late an emulated link carries less than it says, and the two would lose to that.
func TestIsolationOnRealFrames(t *testing.T) {
	for _, inside := range []string{"buffer: {}", "crossbar: {ingress: 1MiB}"} {
		t.Run(inside, func(t *testing.T) { isolatedOnRealFrames(t, inside) })
	}
}

func isolatedOnRealFrames(t *testing.T, inside string) {
	l := newLab(t, 4, labOptions{})
	d, _ := runConfig(t, fmt.Sprintf(`version: 1
switches:
  - name: s1
    %[2]s
    lldp: {}
    fdb: {max: 1024}
    pfc: {classes: [3]}
    vlans: [{id: 1, address: [10.0.0.254/16]}]
    ports: [{interface: d0, netns: %[1]s}, {interface: d1, netns: %[1]s}, {interface: d2, netns: %[1]s, rate: 100Mbps}, {interface: d3, netns: %[1]s, rate: 1Mbps}]
`, l.sw, inside))
	ends := [2]*raw{l.hosts[2].raw(t, etherTest), l.hosts[3].raw(t, etherTest)}
	refused := func() (n uint64) {
		add := func(k netlink.Link) error { n += k.Attrs().Statistics.TxDropped; return nil }
		link(t, l.hosts[0].ns, "eth0", add)
		link(t, l.sw, l.hosts[1].port(), add)
		return n
	}
	for _, m := range misbehaviours {
		t.Run(m.name, func(t *testing.T) {
			before := refused()
			quit := make(chan struct{})
			var strangers sync.WaitGroup
			strangers.Go(func() {
				rng := rand.New(rand.NewPCG(1, 2))
				for tick := time.NewTicker(2 * time.Millisecond); ; {
					select {
					case <-quit:
						tick.Stop()
						return
					case <-tick.C:
					}
					first, second := m.burst(rng, l.hosts[2].mac, l.hosts[3].mac)
					for i, v := range [2][][]byte{first, second} {
						for _, f := range v {
							_ = ends[i].send(f) // what the interface refuses does no harm
						}
					}
				}
			})
			s := startStream(t, l.hosts[0], l.hosts[1], flow{srcIP: [4]byte{10, 0, 0, 1}, dstIP: [4]byte{10, 0, 0, 2}, dstPort: 9200, size: 300}, 1000)
			s.flowing(300)
			// The strangers end first: where their addresses have not been learned, what
			// they send is flooded to the stream's receiver, without end.
			close(quit)
			strangers.Wait()
			lost := s.stop()
			kernel := int64(refused() - before)
			t.Logf("%d frames sent, %d lost, %d refused by a cable; drops %v", s.sent.Load(), lost, kernel, d.drops())
			if lost < 0 || lost > kernel || s.reordered.Load() != 0 || s.duplicate.Load() != 0 {
				t.Errorf("of %d frames %d are lost, cables refused %d; %d reordered, %d duplicates; drops %v", s.sent.Load(), lost, kernel, s.reordered.Load(), s.duplicate.Load(), d.drops())
			}
		})
	}
	// The frames of both did reach the switch.
	if p := d.ports(); p["d2"].RxFrames < 2000 || p["d3"].Drops == 0 && p["d2"].Drops == 0 {
		t.Errorf("the strangers' ports: %v, %v", p["d2"], p["d3"])
	}
	d.stop(l.sw)
}
