package wire_test

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"

	"gswitch/frame"
	"gswitch/wire"
)

// controlFrame is what a MAC control frame is made of.
type controlFrame[T any] interface {
	*T
	Encode(b []byte) int
	Decode(b []byte) (int, frame.Reason)
}

// testControlBytes tests that f is encoded as a frame of 60 bytes that begins with want, the last of which is needed,
// and read from it again.
func testControlBytes[T comparable, P controlFrame[T]](t *testing.T, f T, want []byte) {
	t.Helper()
	whole := append(bytes.Clone(want), make([]byte, 60-len(want))...)
	b := bytes.Repeat([]byte{0xaa}, 64)
	if n := P(&f).Encode(b); n != 60 || !bytes.Equal(b[:60], whole) {
		t.Errorf("%d: % x", n, b[:60])
	}
	var g T
	if n, why := P(&g).Decode(whole); n != len(want) || why != frame.Keep || g != f {
		t.Errorf("%d %v %+v", n, why, g)
	}
	if n := P(&f).Encode(b[:59]); n != 0 {
		t.Errorf("%d bytes written to 59", n)
	}
	if _, why := P(&g).Decode(want[:len(want)-1]); why != frame.ParseShortMACControl {
		t.Errorf("without the last byte: %v", why)
	}
}

func TestTokenBytes(t *testing.T) {
	want := unhex(t, `0180c2000001 020000000001 8808 0102 0a000001 0a000203 c000 12b7 11 0002`)
	testControlBytes(t, wire.TokenFields{Src: macAddr1, Flow: wire.FlowID{Addrs: 0x0a0000010a000203, Ports: 0xc00012b7, Proto: 17}, Hops: 2}, want)
	if _, why := new(wire.PFCFields).Decode(append(want, make([]byte, 29)...)); why != frame.ParseMACControlOp {
		t.Errorf("a token taken for PFC: %v", why)
	}
}

func TestRequestBytes(t *testing.T) {
	want := unhex(t, `0180c2000001 020000000001 8808 0103 0a000001 0a000203 c000 12b7 11 0102 03`)
	testControlBytes(t, wire.RequestFields{Src: macAddr1, Flow: wire.FlowID{Addrs: 0x0a0000010a000203, Ports: 0xc00012b7, Proto: 17}, Hops: 0x102, Class: 3}, want)
	if _, why := new(wire.TokenFields).Decode(append(want, make([]byte, 28)...)); why != frame.ParseMACControlOp {
		t.Errorf("a request taken for a token: %v", why)
	}
}

// A marked frame has its mark between the addresses and what was behind them,
// and without it is what it was.
func TestEscapeMark(t *testing.T) {
	a := frame.MustArena(1, 2048, 64)
	p := wire.NewParser(wire.NewHasher(1, false))
	for _, x := range formats() {
		a.Reset(0)
		a.SetBytes(0, x.b)
		v := []frame.Ref{0}
		p.Parse(a, v)
		before := *a.Meta(0)
		if _, _, ok := wire.PopTokenMark(a, 0); ok {
			t.Fatalf("%s: a mark that is not there", x.name)
		}
		if len(x.b) < wire.EthernetLen {
			continue
		}
		if !wire.PushTokenMark(a, 0, 2, 3) {
			t.Fatalf("%s: no room for the mark", x.name)
		}
		b, m := a.Bytes(0), a.Meta(0)
		if !bytes.Equal(b[:12], x.b[:12]) || !bytes.Equal(b[12:16], []byte{0x88, 0xb5, 2, 3}) || !bytes.Equal(b[16:], x.b[12:]) || m.Wire != uint32(len(x.b))+4 {
			t.Fatalf("%s: % x", x.name, b)
		}
		if before.L3 != 0 && m.L3 != before.L3+4 {
			t.Fatalf("%s: L3 at %d, was at %d", x.name, m.L3, before.L3)
		}
		hops, class, ok := wire.PopTokenMark(a, 0)
		if !ok || hops != 2 || class != 3 || !bytes.Equal(a.Bytes(0), x.b) || m.Wire != uint32(len(x.b)) {
			t.Fatalf("%s: %d %d %v % x", x.name, hops, class, ok, a.Bytes(0))
		}
	}
	a.Reset(0)
	a.SetBytes(0, make([]byte, 60))
	a.Push(0, int(a.Meta(0).Head))
	if wire.PushTokenMark(a, 0, 1, 0) {
		t.Error("a mark in no headroom")
	}
}

// Whatever arrives, taking a mark off leaves a frame that can be parsed.
func FuzzEscapeMark(f *testing.F) {
	for _, x := range formats() {
		f.Add(x.b)
		if len(x.b) > 12 {
			f.Add(append(append(append([]byte(nil), x.b[:12]...), 0x88, 0xb5, 1, 3), x.b[12:]...))
		}
	}
	f.Add([]byte("\x01\x80\xc2\x00\x00\x01\x02\x00\x00\x00\x00\x01\x88\xb5"))
	f.Fuzz(func(t *testing.T, b []byte) {
		a := frame.MustArena(1, 2048, 64)
		a.Reset(0)
		if !a.SetBytes(0, b) {
			return
		}
		hops, class, ok := wire.PopTokenMark(a, 0)
		if !ok {
			if !bytes.Equal(a.Bytes(0), b) {
				t.Fatal("changed without a mark")
			}
			return
		}
		rest := append([]byte(nil), a.Bytes(0)...)
		if len(rest) != len(b)-4 || len(rest) < wire.EthernetLen {
			t.Fatalf("%d bytes of %d", len(rest), len(b))
		}
		wire.NewParser(wire.NewHasher(1, false)).Parse(a, []frame.Ref{0})
		if !wire.PushTokenMark(a, 0, hops, class) || !bytes.Equal(a.Bytes(0), b) {
			t.Fatalf("% x became % x", b, a.Bytes(0))
		}
	})
}

func FuzzToken(f *testing.F) {
	x := wire.TokenFields{Src: macAddr1, Flow: wire.FlowID{Addrs: 1 << 40, Ports: 99, Proto: 17}, Hops: 1}
	b := make([]byte, wire.MinFrame)
	x.Encode(b)
	f.Add(b)
	f.Add(b[:31])
	f.Fuzz(func(t *testing.T, b []byte) {
		var x, y wire.TokenFields
		if _, why := x.Decode(b); why != frame.Keep {
			return
		}
		out := make([]byte, wire.MinFrame)
		x.Encode(out)
		if _, why := y.Decode(out); why != frame.Keep || x != y {
			t.Fatalf("%+v became %+v: %v", x, y, why)
		}
	})
}

func FuzzRequest(f *testing.F) {
	x := wire.RequestFields{Src: macAddr1, Flow: wire.FlowID{Addrs: 1 << 40, Ports: 99, Proto: 17}, Hops: 1, Class: 3}
	b := make([]byte, wire.MinFrame)
	x.Encode(b)
	f.Add(b)
	f.Add(b[:32])
	f.Fuzz(func(t *testing.T, b []byte) {
		var x, y wire.RequestFields
		if _, why := x.Decode(b); why != frame.Keep {
			return
		}
		out := make([]byte, wire.MinFrame)
		x.Encode(out)
		if _, why := y.Decode(out); why != frame.Keep || x != y {
			t.Fatalf("%+v became %+v: %v", x, y, why)
		}
	})
}

func TestTokenProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := wire.TokenFields{Src: macAddr1, Flow: wire.FlowID{Addrs: rapid.Uint64().Draw(t, "addrs"), Ports: rapid.Uint32().Draw(t, "ports"), Proto: rapid.Uint8().Draw(t, "proto")}, Hops: rapid.Uint16().Draw(t, "hops")}
		b := make([]byte, wire.MinFrame)
		var y wire.TokenFields
		if x.Encode(b) != 60 {
			t.Fatal("not 60 bytes")
		}
		if _, why := y.Decode(b); why != frame.Keep || x != y {
			t.Fatalf("%+v became %+v", x, y)
		}
	})
}
