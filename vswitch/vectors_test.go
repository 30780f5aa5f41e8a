package vswitch

import (
	"encoding/binary"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"gswitch/pipeline"
	"gswitch/wire"
	wt "gswitch/wire/wiretest"
)

// vectorsConfig is a switch whose ports 0 and 8 lead to ports of all kinds: 1 and 2 are in a VLAN
// each, and 2 takes small frames only; 3 is a trunk; 4 gets mirror copies; 5 and 6 are two
// ways of a route; 7 has no link.
func vectorsConfig(choose pipeline.Chooser) *Config {
	cfg := baseConfig(9)
	cfg.Buffer.Size, cfg.Buffer.FloodShare = 8<<20, 0.125
	cfg.NoRedirects = true
	cfg.VLANs = []VLANConfig{{ID: 10, Addresses: prefixes("10.0.0.1/24")}, {ID: 20}}
	cfg.Paths = PathsConfig{Choose: choose, Thresholds: []uint64{300, 1500}}
	for i := range cfg.Ports {
		cfg.Ports[i].Trust = TrustDSCP
	}
	access := func(p int, vid uint16) { cfg.Ports[p].VLANMode, cfg.Ports[p].PVID = VLANAccess, vid }
	for _, p := range []int{0, 8} {
		cfg.Ports[p].VLANMode, cfg.Ports[p].PVID, cfg.Ports[p].ACL = VLANTrunk, 10, "in"
	}
	access(1, 10)
	access(2, 20)
	cfg.Ports[2].MTU = 600
	cfg.Ports[3].VLANMode = VLANTrunk
	access(7, 10)
	cfg.Ports[5].Addresses, cfg.Ports[6].Addresses = prefixes("10.0.5.1/24"), prefixes("10.0.6.1/24")
	r := Route{Prefix: netip.MustParsePrefix("20.0.0.0/8")}
	for _, p := range []int{5, 6} {
		via := netip.MustParseAddr(fmt.Sprintf("10.0.%d.2", p))
		cfg.Neighbors = append(cfg.Neighbors, StaticNeighbor{Addr: via, MAC: hostMAC(p)})
		r.NextHops = append(r.NextHops, NextHop{Via: via})
	}
	cfg.Routes = []Route{r}
	cfg.FDB.Static = []StaticMAC{{VLAN: 10, MAC: hostMAC(11), Port: 1}, {VLAN: 20, MAC: hostMAC(12), Port: 2},
		{VLAN: 10, MAC: hostMAC(13), Port: 3}, {VLAN: 10, MAC: hostMAC(17), Port: 7}}
	cfg.ACLs = []ACL{{Name: "in", Default: pipeline.Action{Ops: pipeline.OpPermit}, Rules: []ACLRule{
		rule(to("10.0.0.11/32"), 1, pipeline.Action{Ops: pipeline.OpMirror}),
		rule(to("10.0.0.14/32"), 1, pipeline.Action{Ops: pipeline.OpRedirect, Port: 3}),
		rule(to("10.0.0.15/32"), 1, pipeline.Action{Ops: pipeline.OpMirror | pipeline.OpDrop}),
	}}}
	cfg.Mirrors = []Mirror{{Name: "m", Port: 4, Truncate: 80}}
	return cfg
}

// vectorFlows are flows from port 0 that leave in all the ways of vectorsConfig, or do not.
var vectorFlows = []func(id uint16, class uint8, size int) []byte{
	vectorFlow(11, 10, "10.0.0.11", 64),  // one port, mirrored
	vectorFlow(12, 20, "10.0.0.12", 64),  // a port with a small MTU
	vectorFlow(13, 10, "10.0.0.13", 64),  // the trunk
	vectorFlow(17, 10, "10.0.0.17", 64),  // the port without a link
	vectorFlow(19, 10, "10.0.0.19", 64),  // unknown: flooded
	vectorFlow(12, 20, "10.0.0.14", 64),  // redirected
	vectorFlow(11, 10, "10.0.0.15", 64),  // mirrored and dropped
	vectorFlow(0, 10, "20.7.0.1", 64),    // routed
	vectorFlow(0, 10, "20.7.0.2", 1),     // its time to live is over
	vectorFlow(0, 10, "30.0.0.1", 64),    // no route
	vectorFlow(0, 20, "20.7.0.1", 64),    // for another VLAN's router
	vectorFlow(11, 30, "10.0.0.11", 64),  // of a VLAN that the port is not in
	vectorFlow(255, 20, "10.0.0.12", 64), // broadcast
}

// vectorFlow makes frames to a host whose source port identifies them. 0 is the switch itself,
// 255 all hosts.
func vectorFlow(host int, vid uint16, ip string, ttl uint8) func(uint16, uint8, int) []byte {
	dst := hostMAC(host)
	switch host {
	case 0:
		dst = selfMAC
	case 255:
		dst = wire.BroadcastMAC
	}
	return func(id uint16, class uint8, size int) []byte {
		l3 := wt.IPv4("10.0.0.9", ip, wt.TOS(class<<5), wt.TTL(ttl))
		return wt.Frame(wt.Eth(dst, hostMAC(1)), wt.VLAN(vid, 0), l3, wt.UDP(id, 2000), wt.Zeros(size))
	}
}

// A vector does what its frames would do one by one, also where vectors of several ports
// reach another worker together: the same leave by each port, those of a flow in order, the
// same are dropped for the same reasons, and the same is charged for them.
func TestVectorsActAsTheirFrames(t *testing.T) {
	choosers := []pipeline.Chooser{pipeline.ChooseHash, pipeline.ChooseAdaptive, pipeline.ChooseLeast}
	rapid.Check(t, func(rt *rapid.T) {
		s := &subTest{T: t}
		defer s.finish()
		// Queues whose loads matter have no trains, and other workers know those of a vector later.
		choose, workers := rapid.SampledFrom(choosers).Draw(rt, "choose"), 1
		if choose == pipeline.ChooseHash {
			workers = rapid.IntRange(1, 2).Draw(rt, "workers")
		}
		make := func() *rig {
			cfg := vectorsConfig(choose)
			for i := range cfg.Ports {
				cfg.Ports[i].Worker = i % workers
			}
			r := newRigOf(s, cfg, workers, 4096)
			r.setLink(7, false)
			r.runAll()
			return r
		}
		together, alone := make(), make()
		var of []int // the flow of each frame, by its identification
		for range rapid.IntRange(1, 4).Draw(rt, "vectors") {
			port := rapid.SampledFrom([]uint16{0, 8}).Draw(rt, "port")
			var v [][]byte
			for len(v) < rapid.IntRange(1, 58).Draw(rt, "frames") {
				flow := rapid.IntRange(0, len(vectorFlows)-1).Draw(rt, "flow")
				class := uint8(rapid.IntRange(0, 2).Draw(rt, "class"))
				for range rapid.IntRange(1, 6).Draw(rt, "run") {
					size := rapid.IntRange(10, 1200).Draw(rt, "size")
					v = append(v, vectorFlows[flow](uint16(len(of)), class, size))
					of = append(of, int(port)<<8|flow<<2|int(class))
				}
			}
			together.receive(port, v...)
			for _, b := range v {
				alone.in(port, b)
			}
			if rapid.Bool().Draw(rt, "taken") {
				together.runAll()
			}
		}
		together.runAll()
		if got, want := together.charged(), alone.charged(); got != want {
			rt.Errorf("charged for vectors\n%s, and for their frames alone\n%s", got, want)
		}
		for p := range uint16(9) {
			got, want := byFlow(together.out(p), of), byFlow(alone.out(p), of)
			if !maps.EqualFunc(got, want, slices.Equal) {
				rt.Errorf("port %d sends\n%v\nof vectors, and of their frames alone\n%v", p, got, want)
			}
		}
		if got, want := together.drops(), alone.drops(); !maps.Equal(got, want) {
			rt.Errorf("dropped of vectors: %v; of their frames alone: %v", got, want)
		}
		if got := together.charged(); got != "" {
			rt.Errorf("charged when all has left: %s", got)
		}
	})
}

// charged returns what each worker holds, as text: frames, bytes by ingress port and class,
// and copies of floods by egress port.
func (r *rig) charged() string {
	var b strings.Builder
	for w, n := range r.sw.Nodes {
		if n.chunks.held != 0 {
			fmt.Fprintf(&b, "worker %d: %d frames", w, n.chunks.held)
		}
		for p := range n.ports {
			for class := range uint8(8) {
				if bytes := n.buffer.Held(uint16(p), class); bytes != 0 {
					fmt.Fprintf(&b, ", %d bytes of port %d, class %d", bytes, p, class)
				}
			}
			if floods := n.ports[p].floods.frames; floods != 0 {
				fmt.Fprintf(&b, ", %d copies of floods to port %d", floods, p)
			}
		}
	}
	return b.String()
}

// byFlow returns the frames that a port sent by their flows, each as text; errors of the
// switch itself have none.
func byFlow(frames [][]byte, of []int) map[int][]string {
	m := map[int][]string{}
	for _, b := range frames {
		flow, l3 := -1, 14
		if b[12] == 0x81 {
			l3 = 18
		}
		if b[l3+9] == 17 {
			flow = of[binary.BigEndian.Uint16(b[l3+20:])]
		}
		m[flow] = append(m[flow], fmt.Sprintf("%x", b))
	}
	return m
}
