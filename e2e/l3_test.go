package e2e

import (
	"fmt"
	"net/netip"
	"testing"

	"gswitch/control/api"
	"gswitch/wire"
)

// One router, two subnets, both families.
func TestRouting(t *testing.T) {
	l := newLab(t, 2, labOptions{ipv6: true})
	for i, h := range l.hosts {
		h.address(t, []string{fmt.Sprintf("10.0.%d.2/24", i), fmt.Sprintf("fd00:%d::2/64", i)}, fmt.Sprintf("10.0.%d.1", i), fmt.Sprintf("fd00:%d::1", i))
	}
	d, _ := runConfig(t, fmt.Sprintf(`version: 1
switches:
  - name: r1
    ports:
      - {interface: d0, netns: %[1]s, address: [10.0.0.1/24, "fd00:0::1/64"]}
      - {interface: d1, netns: %[1]s, address: [10.0.1.1/24, "fd00:1::1/64"]}
`, l.sw))
	a, b := l.hosts[0], l.hosts[1]
	a.pings(t, "10.0.1.2", 56)
	b.pings(t, "10.0.0.2", 1472)
	a.pings(t, "fd00:1::2", 56)
	b.pings(t, "fd00:0::2", 1452)
	// The router itself, on both sides.
	a.pings(t, "10.0.0.1", 56)
	a.pings(t, "10.0.1.1", 56)
	a.pings(t, "fd00:1::1", 56)
	transfer(t, a, b, "10.0.1.2", 4<<20)
	transfer(t, b, a, "fd00:0::2", 4<<20)

	for _, h := range []struct {
		to  string
		ttl int
		reply
	}{
		{"10.0.1.2", 1, reply{netip.MustParseAddr("10.0.0.1"), timeExceeded4}},
		{"10.0.1.2", 2, reply{netip.MustParseAddr("10.0.1.2"), echoReply4}},
		{"fd00:1::2", 1, reply{netip.MustParseAddr("fd00:0::1"), timeExceeded6}},
		{"fd00:1::2", 2, reply{netip.MustParseAddr("fd00:1::2"), echoReply6}},
	} {
		if r := a.ping(t, h.to, h.ttl, 56); r != h.reply {
			t.Errorf("to %s with %d hops: %v, want %v", h.to, h.ttl, r, h.reply)
		}
	}
	if n := d.drops()["ttl-expired"]; n < 2 {
		t.Errorf("ttl-expired: %d, want at least 2", n)
	}
	resolved := map[string]string{}
	for _, n := range show(d, &api.Neighbors{}, "neighbors").Neighbors {
		resolved[n.Address] = n.Mac
	}
	for i, h := range l.hosts {
		for _, address := range []string{fmt.Sprintf("10.0.%d.2", i), netip.MustParseAddr(fmt.Sprintf("fd00:%d::2", i)).String()} {
			if resolved[address] != h.mac.String() {
				t.Errorf("neighbour %s is %q, want %v; all: %v", address, resolved[address], h.mac, resolved)
			}
		}
	}
	d.stop(l.sw)
}

// router1 and router2 are two switches, s1 with h0 and s2 with h1, joined twice. %s
// are the namespace and the ports of the two links at either switch.
const router1 = `
  - name: s1
    ports:
      - {name: h, interface: d0, netns: %[1]s, address: [10.0.0.1/24]}
      - {name: up1, %[2]s, address: [10.1.1.1/30]}
      - {name: up2, %[3]s, address: [10.1.2.1/30]}
    routes:
      - {prefix: 10.0.1.0/24, next_hops: [{via: 10.1.1.2}, {via: 10.1.2.2}]}
`

const router2 = `
  - name: s2
    ports:
      - {name: h, interface: d1, netns: %[1]s, address: [10.0.1.1/24]}
      - {name: up1, %[2]s, address: [10.1.1.2/30]}
      - {name: up2, %[3]s, address: [10.1.2.2/30]}
    routes:
      - {prefix: 10.0.0.0/24, next_hops: [{via: 10.1.1.1}, {via: 10.1.2.1}]}
`

// Flows divide over two links, and each stays on its own, whether the links
// are in memory or veth pairs between two processes.
func TestECMP(t *testing.T) {
	for _, kind := range []string{"wires", "processes"} {
		t.Run(kind, func(t *testing.T) {
			l := newLab(t, 2, labOptions{})
			for i, h := range l.hosts {
				h.address(t, []string{fmt.Sprintf("10.0.%d.2/24", i)}, fmt.Sprintf("10.0.%d.1", i))
			}
			var d1, d2 *daemon
			if kind == "wires" {
				d1, _ = runConfig(t, "version: 1\nswitches:"+fmt.Sprintf(router1, l.sw, "wire: a", "wire: b")+fmt.Sprintf(router2, l.sw, "wire: a", "wire: b"))
				d2 = d1
			} else {
				l.wire(t, "a1", "a2")
				l.wire(t, "b1", "b2")
				at := func(name string) string { return "interface: " + name + ", netns: " + l.sw }
				d1, _ = runConfig(t, "version: 1\nswitches:"+fmt.Sprintf(router1, l.sw, at("a1"), at("b1")))
				d2, _ = runConfig(t, "version: 1\nswitches:"+fmt.Sprintf(router2, l.sw, at("a2"), at("b2")))
			}
			a, b := l.hosts[0], l.hosts[1]
			a.pings(t, "10.0.1.2", 56)
			transfer(t, a, b, "10.0.1.2", 2<<20)
			for ttl, want := range []string{1: "10.0.0.1", 3: "10.0.1.2"} {
				if want == "" {
					continue
				}
				if r := a.ping(t, "10.0.1.2", ttl, 56); r.from.String() != want {
					t.Errorf("hop %d is %v, want %s", ttl, r.from, want)
				}
			}
			if r := a.ping(t, "10.0.1.2", 2, 56).from.String(); r != "10.1.1.2" && r != "10.1.2.2" {
				t.Errorf("hop 2 is %s", r)
			}

			// 64 flows, of 10 frames each.
			links := func() (n [2]uint64) {
				p := d1.ports()
				return [2]uint64{p["s1/up1"].TxFrames, p["s1/up2"].TxFrames}
			}
			gateway := wire.MAC{}
			for _, p := range show(d1, &api.Neighbors{}, "neighbors").Neighbors {
				if p.Address == "10.0.0.2" && p.Mac != a.mac.String() {
					t.Errorf("neighbour %v", p)
				}
			}
			gateway = a.neighbor(t, "10.0.0.1")
			from, to := a.raw(t, etherTest), b.raw(t, 0x0800)
			before := links()
			const flows, each = 64, 10
			for n := range each {
				for i := range flows {
					f := flow{dst: gateway, src: a.mac, srcIP: [4]byte{10, 0, 0, 2}, dstIP: [4]byte{10, 0, 1, 2}, srcPort: uint16(20000 + i), dstPort: 9000, size: 100}
					if err := from.send(f.frame(uint64(n*flows + i))); err != nil {
						t.Fatal(err)
					}
				}
			}
			next := map[uint64]uint64{}
			for range flows * each {
				b, _ := to.recv(patience)
				if b == nil {
					t.Fatalf("frames are lost; drops: %v %v", d1.drops(), d2.drops())
				}
				n, ours := flowNumber(b, 9000)
				if !ours {
					continue
				}
				if n/flows != next[n%flows] {
					t.Fatalf("flow %d: frame %d, want %d", n%flows, n/flows, next[n%flows])
				}
				next[n%flows]++
			}
			after := links()
			n1, n2 := after[0]-before[0], after[1]-before[1]
			t.Logf("%d and %d frames over the two links", n1, n2)
			// Each of 64 flows chooses one of two: fewer than 10 has probability 1e-9.
			if n1 < 10*each || n2 < 10*each || n1+n2 < flows*each {
				t.Errorf("%d and %d frames over the two links", n1, n2)
			}
			d1.stop()
			if d2 != d1 {
				d2.stop()
			}
			if left := xdpPrograms(t, l.sw); left != nil {
				t.Errorf("programs are left on %v", left)
			}
		})
	}
}
