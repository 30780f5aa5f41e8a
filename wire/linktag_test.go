package wire_test

import (
	"bytes"
	"testing"

	"gswitch/frame"
	"gswitch/wire"
	wt "gswitch/wire/wiretest"
)

// A tag that one end puts on is taken off by the other: the frame is as it was,
// and the offsets of its headers follow while it is there.
func TestLinkTag(t *testing.T) {
	plain := wt.Frame(wt.Eth(macB, macA), wt.IPv4("10.0.0.1", "10.0.0.2"), wt.UDP(1000, 2000), wt.Zeros(40))
	tagged := wt.Frame(wt.Eth(macB, macA), wt.VLAN(5, 1), wt.IPv4("10.0.0.1", "10.0.0.2"), wt.UDP(1000, 2000), wt.Zeros(40))
	want := wire.LinkTag{Batch: 0x81, Meter: 0x1234, Stamp: 0x3fff}
	for _, b := range [][]byte{plain, tagged} {
		a := frame.MustArena(4, 2048, frame.DefaultHeadroom)
		r := frame.NewDepot(a).NewPool(a).New(b)
		wire.NewParser(wire.NewHasher(1, false)).Parse(a, []frame.Ref{r})
		l3, l4 := a.Meta(r).L3, a.Meta(r).L4
		if !wire.PushLinkTag(a, r, want) {
			t.Fatal("there is no room")
		}
		m, on := a.Meta(r), a.Bytes(r)
		if m.Wire != uint32(len(b))+8 || m.L3 != l3+8 || m.L4 != l4+8 {
			t.Errorf("length %d, headers at %d and %d", m.Wire, m.L3, m.L4)
		}
		if !bytes.Equal(on[:12], b[:12]) || !bytes.Equal(on[12:20], []byte{0x88, 0xb6, 0x40, 0x81, 0x12, 0x34, 0x3f, 0xff}) || !bytes.Equal(on[20:], b[12:]) {
			t.Errorf("with the tag: % x", on[:34])
		}
		if tag, ok := wire.PopLinkTag(a, r); !ok || tag != want || !bytes.Equal(a.Bytes(r), b) || m.Wire != uint32(len(b)) {
			t.Errorf("%+v, %v, % x", tag, ok, a.Bytes(r))
		}
		if _, ok := wire.PopLinkTag(a, r); ok {
			t.Error("a tag is taken off that is not there")
		}
	}
}

// What is no tag of a known version stays, and so does a frame without room.
func TestLinkTagStays(t *testing.T) {
	a := frame.MustArena(4, 256, 4)
	p := frame.NewDepot(a).NewPool(a)
	for _, b := range [][]byte{
		wt.Frame(wt.EthType(macB, macA, wire.EtherTypeLinkTag), wt.Payload([]byte{0x80, 1, 0, 1, 0, 1, 8, 0}), wt.Zeros(40)),
		wt.Frame(wt.EthType(macB, macA, wire.EtherTypeLinkTag), wt.Payload([]byte{0x41, 1, 0, 1, 0, 1, 8, 0}), wt.Zeros(40)),
		wt.Packet(wt.EthType(macB, macA, wire.EtherTypeLinkTag), wt.Payload([]byte{0x40, 1, 0, 1, 0, 1, 8})),
	} {
		r := p.New(b)
		if _, ok := wire.PopLinkTag(a, r); ok || !bytes.Equal(a.Bytes(r), b) {
			t.Errorf("taken off: % x", b)
		}
		if wire.PushLinkTag(a, r, wire.LinkTag{}) || !bytes.Equal(a.Bytes(r), b) {
			t.Error("a tag found room where there is none")
		}
		p.Free(r)
	}
}

// FuzzLinkTag: what is taken off a frame and put on again gives the same bytes, and
// what is not taken off stays.
func FuzzLinkTag(f *testing.F) {
	plain := wt.Frame(wt.Eth(macB, macA), wt.IPv4("10.0.0.1", "10.0.0.2"), wt.UDP(1000, 2000), wt.Zeros(40))
	tagged := append(append(bytes.Clone(plain[:12]), 0x88, 0xb6, 0x40, 1, 0, 2, 0x3f, 0xff), plain[12:]...)
	f.Add(plain)
	f.Add(tagged)
	f.Add(tagged[:21])
	f.Fuzz(func(t *testing.T, b []byte) {
		a := frame.MustArena(1, 2048, frame.DefaultHeadroom)
		if !a.SetBytes(0, b) {
			return
		}
		tag, ok := wire.PopLinkTag(a, 0)
		if !ok {
			if !bytes.Equal(a.Bytes(0), b) {
				t.Fatalf("% x becomes % x", b, a.Bytes(0))
			}
			return
		}
		if len(a.Bytes(0)) != len(b)-wire.LinkTagLen || !wire.PushLinkTag(a, 0, tag) || !bytes.Equal(a.Bytes(0), b) {
			t.Fatalf("% x with %+v becomes % x", b, tag, a.Bytes(0))
		}
	})
}
