package lossradar

import (
	"testing"

	"gswitch/frame"
	"gswitch/wire"
	wt "gswitch/wire/wiretest"
)

// The signature of a frame that goes on is that which it came with, but for the
// time to live, which the switch has taken one from. Marks do not belong to it.
func TestOnward(t *testing.T) {
	a := frame.MustArena(1, 2048, frame.DefaultHeadroom)
	for ttl := uint8(2); ttl < 5; ttl++ {
		a.SetBytes(0, wt.Frame(wt.Eth(wt.MAC(1), wt.MAC(2)), wt.IPv4("10.0.0.1", "10.0.0.2", wt.IPv4With(func(f *wire.IPv4Fields) { f.ID, f.TTL = 77, ttl })), wt.UDP(1, 2), wt.Zeros(40)))
		wire.NewParser(wire.NewHasher(1, false)).Parse(a, []frame.Ref{0})
		came, ok := OfFrame(a.Bytes(0), a.Meta(0))
		wire.DecTTL(a.Meta(0), a.Bytes(0))
		ip := wire.IPv4(a.Bytes(0)[wire.EthernetLen:])
		ip.SetTOS(ip.TOS() | 1<<2 | wire.CE) // marked on the way
		ip.UpdateChecksum()
		left, still := OfFrame(a.Bytes(0), a.Meta(0))
		if got := came.At(5).Onward(a.Meta(0)); !ok || !still || got != left || left.Fields().Expires != (ttl == 2) {
			t.Errorf("from a time to live of %d: %+v, want %+v", ttl, got.Fields(), left.Fields())
		}
	}
}

// Packets of one flow differ where their identification does not: by the low half of
// the PSN, or of TCP's sequence number. Two with one signature would cancel each other.
func TestSequencesDistinguishPackets(t *testing.T) {
	a := frame.MustArena(1, 2048, frame.DefaultHeadroom)
	for name, transport := range map[string]func(n uint32) []wt.Layer{
		"RoCEv2": func(n uint32) []wt.Layer {
			return []wt.Layer{wt.UDP(49152, wire.RoCEv2Port), wt.BTH(wire.RCSendMiddle, 7, n), wt.Zeros(40)}
		},
		"TCP": func(n uint32) []wt.Layer {
			return []wt.Layer{wt.TCP(wire.TCPFields{SrcPort: 1000, DstPort: 80, Seq: n}), wt.Zeros(40)}
		},
	} {
		seen := map[Signature]uint32{}
		for n := range uint32(100) {
			a.SetBytes(0, wt.Frame(append([]wt.Layer{wt.Eth(wt.MAC(1), wt.MAC(2)), wt.IPv4("10.0.0.1", "10.0.0.2")}, transport(n*655)...)...))
			wire.NewParser(wire.NewHasher(1, false)).Parse(a, []frame.Ref{0})
			s, ok := OfFrame(a.Bytes(0), a.Meta(0))
			if before, is := seen[s]; !ok || is {
				t.Fatalf("%s: packet %d has the signature of packet %d: %+v", name, n, before, s.Fields())
			}
			seen[s] = n
			if s.Fields().Sequence != uint16(n*655) {
				t.Errorf("%s: sequence %d for %d", name, s.Fields().Sequence, n*655)
			}
		}
	}
}

// Fragments of a packet differ by their offset: two that a link loses are two.
func TestFragmentsDiffer(t *testing.T) {
	a := frame.MustArena(1, 2048, frame.DefaultHeadroom)
	seen := map[Signature]uint16{}
	for at := range uint16(4) {
		offset := at * 10 // in units of 8 bytes
		a.SetBytes(0, wt.Frame(wt.Eth(wt.MAC(1), wt.MAC(2)), wt.IPv4("10.0.0.1", "10.0.0.2", wt.IPv4With(func(f *wire.IPv4Fields) {
			f.ID, f.Proto, f.FlagsOffset = 77, wire.ProtoUDP, offset
			if at < 3 {
				f.FlagsOffset |= wire.IPv4MoreFragments
			}
		})), wt.Zeros(80)))
		wire.NewParser(wire.NewHasher(1, false)).Parse(a, []frame.Ref{0})
		s, ok := OfFrame(a.Bytes(0), a.Meta(0))
		if before, is := seen[s]; !ok || is || s.Fields().Sequence != offset {
			t.Errorf("the fragment at %d: %+v, %t; before it %d", offset, s.Fields(), ok, before)
		}
		seen[s] = offset
	}
}
