package wire_test

import (
	"bytes"
	"testing"

	"gswitch/frame"
	"gswitch/wire"
	wt "gswitch/wire/wiretest"
)

// What is inserted into a datagram and taken out again leaves no trace;
// between the two the frame is good, its checksums right, and its Meta true.
func TestInsertAndRemoveUDP(t *testing.T) {
	p := wire.NewParser(wire.NewHasher(5, false))
	layers := map[string][]wt.Layer{
		"ipv4":    {eth, ip4, udp},
		"ipv6":    {eth, ip6, udp},
		"vlan":    {eth, wt.VLAN(5, 1), ip4, udp},
		"options": {eth, wt.IPv4("10.0.0.1", "10.0.0.2", wt.IPv4With(func(f *wire.IPv4Fields) { f.Options = []byte{0x94, 4, 0, 0} })), udp},
	}
	rng := frame.NewRand(1)
	for name, l := range layers {
		for range 300 {
			body := make([]byte, 16+rng.Uint32n(200))
			for i := range body {
				body[i] = byte(rng.Uint32n(256))
			}
			whole := wt.Frame(append(l, wt.Payload(body))...)
			if name != "ipv6" && rng.Uint32n(4) == 0 {
				m, _ := wt.Parse(whole)
				wire.UDP(whole[m.L4:]).SetChecksum(0)
			}
			// Room at either end or both.
			headroom := int(rng.Uint32n(2)) * 64
			a := frame.MustArena(1, 512, headroom)
			a.SetBytes(0, whole)
			v := []frame.Ref{0}
			p.Parse(a, v)
			m := a.Meta(0)
			at := int(m.L4) + wire.UDPLen + 2*int(rng.Uint32n(9))
			n := 2 * int(rng.Uint32n(32))
			b := wire.InsertUDP(a, 0, at, n)
			if b == nil || len(b) != len(whole)+n || int(m.Wire) != len(b) {
				t.Fatalf("%s: %d bytes with %d more are %d", name, len(whole), n, len(b))
			}
			if what := make([]byte, n); n > 0 {
				if !bytes.Equal(b[at:at+n], what) {
					t.Fatalf("%s: what was inserted is not zero", name)
				}
				for i := range what {
					what[i] = byte(rng.Uint32n(256))
				}
				wire.PatchUDP(m, b, at, what)
			}
			wire.SetUDPDst(m, b, 4321)
			kept := *m
			p.Parse(a, v)
			if kept.Hash = m.Hash; kept != *m || m.Reason != frame.Keep { // the hash stays that of the flow
				t.Fatalf("%s: kept and parsed Meta differ:\n%+v\n%+v", name, kept, *m)
			}
			wt.Check(t, a.Bytes(0), wt.Checksums(), wt.Ports(1000, 4321))
			b = wire.RemoveUDP(a, 0, at, n)
			wire.SetUDPDst(m, b, 2000)
			// A checksum has two forms of zero, and an edit may change one for the other.
			if got := a.Bytes(0); !bytes.Equal(got, whole) {
				t.Fatalf("%s: %d bytes at %d in and out:\n% x\n% x", name, n, at, whole, got)
			}
		}
	}
}

func TestInsertUDPWithoutRoom(t *testing.T) {
	a := frame.MustArena(1, 256, 0)
	b := wt.Frame(eth, ip4, udp, wt.Zeros(256-42-6))
	a.SetBytes(0, b)
	wire.NewParser(wire.NewHasher(5, false)).Parse(a, []frame.Ref{0})
	m := *a.Meta(0)
	if wire.InsertUDP(a, 0, 42, 8) != nil || *a.Meta(0) != m || !bytes.Equal(a.Bytes(0), b) {
		t.Error("a full chunk was changed")
	}
	if wire.InsertUDP(a, 0, 42, 6) == nil {
		t.Error("what fits was refused")
	}
}
