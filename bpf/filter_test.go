package bpf

import (
	"errors"
	"net"
	"os"
	"testing"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// load loads a program, or skips the test without the privilege to.
func load(t *testing.T, f Filter) *Program {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root to load XDP programs")
	}
	p, err := Load(f, false)
	if errors.Is(err, unix.EPERM) || errors.Is(err, ErrNotSupported) {
		t.Skipf("cannot load XDP programs here: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

// Bytes of test frames.
var (
	macs  = []byte{2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1}
	mac2  = net.HardwareAddr{2, 0, 0, 0, 0, 2}
	tag   = []byte{0x81, 0x00, 0x60, 0x0a}
	stag  = []byte{0x88, 0xa8, 0x60, 0x14}
	arp   = []byte{0x08, 0x06}
	ip4   = []byte{0x08, 0x00}
	ip6   = []byte{0x86, 0xdd}
	ports = []byte{0x12, 0x34, 0x12, 0xb7, 0, 8, 0, 0} // to port 4791
)

// v4 returns an IPv4 header with words of options and a fragment offset.
func v4(protocol byte, options int, fragment byte) []byte {
	h := make([]byte, 20+4*options)
	h[0], h[7], h[9] = 0x45+byte(options), fragment, protocol
	return h
}

func v6(next byte) []byte {
	h := make([]byte, 40)
	h[0], h[6] = 0x60, next
	return h
}

func packet(parts ...[]byte) []byte {
	b := append([]byte{}, macs...)
	for _, p := range parts {
		b = append(b, p...)
	}
	return append(b, make([]byte, max(0, 60-len(b)))...)
}

// run gives a frame to the program and reports whether it was meant for a
// socket.
func run(t *testing.T, p *Program, b []byte) bool {
	t.Helper()
	before, err := p.Counters()
	if err != nil {
		t.Fatal(err)
	}
	action, err := p.objects.GswitchPort.Run(&ebpf.RunOptions{Data: b})
	if err != nil {
		t.Fatal(err)
	}
	const pass = 2 // XDP_PASS: no queue has a socket here
	after, err := p.Counters()
	if err != nil || action != pass {
		t.Fatalf("action %d, %v", action, err)
	}
	hit, miss := after.NoSocket-before.NoSocket, after.Passed-before.Passed
	if hit+miss != 1 || after.Redirected != 0 {
		t.Fatalf("one frame changed the counters from %+v to %+v", before, after)
	}
	return hit == 1
}

func TestFilter(t *testing.T) {
	udp4 := packet(ip4, v4(17, 0, 0), ports)
	for _, c := range []struct {
		name   string
		filter Filter
		frame  []byte
		hit    bool
	}{
		{"no filter takes all", Filter{}, udp4, true},
		{"EtherType", Filter{EtherTypes: []uint16{0x0806}}, packet(arp), true},
		{"other EtherType", Filter{EtherTypes: []uint16{0x0806}}, udp4, false},
		{"EtherType behind a tag", Filter{EtherTypes: []uint16{0x0806}}, packet(tag, arp), true},
		{"EtherType behind two tags", Filter{EtherTypes: []uint16{0x0806}}, packet(stag, tag, arp), true},
		{"EtherType behind three tags", Filter{EtherTypes: []uint16{0x0806}}, packet(stag, tag, tag, arp), false},
		{"destination MAC", Filter{MACs: []net.HardwareAddr{mac2}}, udp4, true},
		{"other MAC", Filter{MACs: []net.HardwareAddr{{2, 0, 0, 0, 0, 1}}}, udp4, false},
		{"protocol", Filter{Protocols: []uint8{17}}, udp4, true},
		{"other protocol", Filter{Protocols: []uint8{6}}, udp4, false},
		{"protocol of a later fragment", Filter{Protocols: []uint8{17}}, packet(ip4, v4(17, 0, 9), ports), true},
		{"protocol of IPv6", Filter{Protocols: []uint8{58}}, packet(ip6, v6(58)), true},
		{"port", Filter{Ports: []uint16{4791}}, udp4, true},
		{"port behind options", Filter{Ports: []uint16{4791}}, packet(ip4, v4(17, 10, 0), ports), true},
		{"port of TCP", Filter{Ports: []uint16{4791}}, packet(ip4, v4(6, 0, 0), ports), true},
		{"port of IPv6", Filter{Ports: []uint16{4791}}, packet(tag, ip6, v6(17), ports), true},
		{"source port", Filter{Ports: []uint16{0x1234}}, udp4, false},
		{"port of a later fragment", Filter{Ports: []uint16{4791}}, packet(ip4, v4(17, 0, 9), ports), false},
		{"port of a protocol without ports", Filter{Ports: []uint16{4791}}, packet(ip4, v4(47, 0, 0), ports), false},
		{"number of another kind", Filter{Protocols: []uint8{17}, EtherTypes: []uint16{6}, Ports: []uint16{17}}, packet(ip4, v4(6, 0, 0), ports), false},
		{"any of several", Filter{EtherTypes: []uint16{0x0806}, Ports: []uint16{4791}}, udp4, true},
		{"all but: selected", Filter{EtherTypes: []uint16{0x0806}, Invert: true}, packet(arp), false},
		{"all but: the rest", Filter{EtherTypes: []uint16{0x0806}, Invert: true}, udp4, true},
		{"port behind a header shorter than IPv4's", Filter{Ports: []uint16{0}}, packet(ip4, append([]byte{0x44}, v4(17, 0, 0)[1:]...), ports), false},
		{"cut off in the ports", Filter{Ports: []uint16{4791}}, udp4[:36], false},
		{"cut off in the IPv4 header", Filter{Protocols: []uint8{17}}, udp4[:30], false},
		{"cut off in the tag", Filter{EtherTypes: []uint16{0x0806}}, packet(tag)[:16], false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if hit := run(t, load(t, c.filter), c.frame); hit != c.hit {
				t.Fatalf("meant for a socket: %v, want %v", hit, c.hit)
			}
		})
	}
}

func TestFilterErrors(t *testing.T) {
	for name, f := range map[string]Filter{
		"short MAC":      {MACs: []net.HardwareAddr{{1, 2, 3}}},
		"too many":       {Ports: make([]uint16, 1025)},
		"invert nothing": {Invert: true},
	} {
		if p, err := Load(f, false); err == nil {
			p.Close()
			t.Errorf("%s: accepted", name)
		}
	}
}
