package wire_test

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"gswitch/frame"
	"gswitch/wire"
	wt "gswitch/wire/wiretest"
)

// hold parses b into an arena of one frame.
func hold(b []byte) (*frame.Arena, *frame.Meta) {
	a := frame.MustArena(1, 2048, 256)
	a.SetBytes(0, b)
	wire.NewParser(wire.NewHasher(5, false)).Parse(a, []frame.Ref{0})
	return a, a.Meta(0)
}

func TestEdits(t *testing.T) {
	for _, ip := range []wt.Layer{
		wt.IPv4("10.0.0.1", "10.0.0.2", wt.TOS(wire.ECT0), wt.TTL(2)),
		wt.IPv6("fd00::1", "fd00::2", wt.TOS(wire.ECT0), wt.TTL(2)),
	} {
		for _, l := range [][]wt.Layer{{eth, ip, tcp}, {eth, wt.VLAN(3, 1), ip, udp}} {
			a, m := hold(wt.Frame(l...))
			if !wire.SetDSCP(a, 0, 46) || !wire.MarkCE(a, 0) || !wire.MarkCE(a, 0) || !wire.DecTTL(a.Meta(0), a.Bytes(0)) || wire.DecTTL(a.Meta(0), a.Bytes(0)) {
				t.Error("an edit did not answer as it should")
			}
			wire.RewriteMACs(a, 0, wt.MAC(7), wt.MAC(8))
			wt.Check(t, a.Bytes(0), wt.DSCP(46), wt.ECN(wire.CE), wt.HasTTL(1), wt.MACs(wt.MAC(7), wt.MAC(8)), wt.Ports(1000, 2000), wt.Checksums())
			if m.TTL != 1 || m.DSCP != 46 || m.Flags&(frame.IsCE|frame.IsECT) != frame.IsCE {
				t.Errorf("%+v", m)
			}
		}
	}
	// Not ECN-capable: left alone.
	b := wt.Frame(eth, ip4, udp)
	a, _ := hold(b)
	if wire.MarkCE(a, 0) || !bytes.Equal(a.Bytes(0), b) {
		t.Error("a Not-ECT packet was marked")
	}
}

func TestVLANEdits(t *testing.T) {
	b := wt.Frame(eth, ip4, udp, data)
	a, m := hold(b)
	if wire.SetPCP(a, 0, 3) || wire.PopVLAN(a, 0) {
		t.Error("a tag was edited where there is none")
	}
	wire.PushVLAN(a, 0, wire.EtherTypeVLAN, wire.TCI(1, false, 100))
	wt.Check(t, a.Bytes(0), wt.Tagged(100, 1), wt.Ports(1000, 2000), wt.MACs(macB, macA))
	wire.PushVLAN(a, 0, wire.EtherTypeQinQ, wire.TCI(2, true, 200))
	wire.SetPCP(a, 0, 7)
	wt.Check(t, a.Bytes(0), wt.Tagged(200, 7), wt.Ports(1000, 2000))
	if m.L3 != 22 || m.L4 != 42 || !wire.TCIDEI(m.TCI) {
		t.Errorf("%+v", m)
	}
	if !wire.PopVLAN(a, 0) || m.TCI != wire.TCI(1, false, 100) || m.Flags&frame.HasVLAN == 0 {
		t.Errorf("%+v", m)
	}
	if !wire.PopVLAN(a, 0) || m.TCI != 0 || m.Flags&frame.HasVLAN != 0 || !bytes.Equal(a.Bytes(0), b) {
		t.Errorf("%+v", m)
	}
	for wire.PushVLAN(a, 0, wire.EtherTypeVLAN, 5) {
	}
	if m.Head != 0 {
		t.Errorf("push gave up with %d bytes of headroom", m.Head)
	}
}

func TestEditsKeepMetaTrue(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	ops := make([]byte, 24)
	for range 50 {
		for _, f := range formats() {
			for i := range ops {
				ops[i] = byte(rnd.Uint32())
			}
			checkEdits(t, f.b, ops)
		}
	}
}

// TestDecTTLChecksum: the checksum of every header is what a patch of the word of TTL and
// protocol makes of it, also where the sum is 0 or overflows.
func TestDecTTLChecksum(t *testing.T) {
	a, m := hold(wt.Frame(eth, wt.IPv4("10.0.0.1", "10.0.0.2", wt.TTL(255)), udp))
	h := wire.IPv4(a.Bytes(0)[m.L3:])
	for sum := range 1 << 16 {
		for _, ttl := range []uint8{2, 64, 255} {
			m.TTL = ttl
			h.SetTTL(ttl)
			h.SetChecksum(uint16(sum))
			word := uint16(ttl)<<8 | uint16(wire.ProtoUDP)
			wire.DecTTL(a.Meta(0), a.Bytes(0))
			if got, want := h.Checksum(), wire.PatchChecksum(uint16(sum), word, word-1<<8); got != want || h.TTL() != ttl-1 {
				t.Fatalf("TTL %d, checksum %#04x: got %#04x, TTL %d; want %#04x", ttl, sum, got, h.TTL(), want)
			}
		}
	}
}

func TestEditsAllocateNothing(t *testing.T) {
	a, _ := hold(wt.Frame(eth, wt.IPv4("10.0.0.1", "10.0.0.2", wt.TTL(255)), udp))
	if n := testing.AllocsPerRun(100, func() {
		wire.PushVLAN(a, 0, wire.EtherTypeVLAN, 5)
		wire.SetPCP(a, 0, 3)
		wire.PopVLAN(a, 0)
		wire.SetDSCP(a, 0, 3)
		wire.MarkCE(a, 0)
		wire.DecTTL(a.Meta(0), a.Bytes(0))
		wire.RewriteMACs(a, 0, macA, macB)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkEdits(b *testing.B) {
	a, m := hold(wt.Frame(eth, wt.IPv4("10.0.0.1", "10.0.0.2", wt.TTL(255)), udp))
	run := func(name string, f func()) {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				f()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N), "ns/frame")
		})
	}
	run("dec-ttl", func() { m.TTL = 64; wire.DecTTL(a.Meta(0), a.Bytes(0)) })
	run("push-pop-vlan", func() { wire.PushVLAN(a, 0, wire.EtherTypeVLAN, 5); wire.PopVLAN(a, 0) })
	run("rewrite-macs", func() { wire.RewriteMACs(a, 0, macA, macB) })
	run("set-dscp", func() { wire.SetDSCP(a, 0, 9) })
}
