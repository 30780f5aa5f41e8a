package loopguard

import (
	"testing"

	"gswitch/frame"
	"gswitch/wire"
)

var mac = wire.MAC{2, 0, 0, 0, 0, 1}

// A switch reads what it wrote; no bit of it can be changed, and no other secret or address makes it.
func TestProbe(t *testing.T) {
	k := NewKey(7, mac)
	b := make([]byte, 64)
	want := Probe{Port: 513, Sent: 1234567890123}
	n := k.Encode(b, mac, want)
	if n != wire.MinFrame || k.Encode(b[:n-1], mac, want) != 0 {
		t.Fatalf("%d bytes", n)
	}
	if e := wire.Ethernet(b); e.Dst() != Group || e.Src() != mac || e.EtherType() != EtherType {
		t.Errorf("%x", b)
	}
	body := b[wire.EthernetLen:n]
	if got, ok := k.Decode(body); !ok || got != want {
		t.Errorf("%+v %v, want %+v", got, ok, want)
	}
	for i := range bodyLen * 8 {
		body[i/8] ^= 1 << (i % 8)
		if got, ok := k.Decode(body); ok {
			t.Errorf("with bit %d changed: %+v", i, got)
		}
		body[i/8] ^= 1 << (i % 8)
	}
	for _, other := range []Key{NewKey(8, mac), NewKey(7, wire.MAC{2, 0, 0, 0, 0, 2})} {
		if _, ok := other.Decode(body); ok || other.Claims(body) {
			t.Error("another switch takes it for its own")
		}
	}
	if _, ok := k.Decode(body[:bodyLen-1]); ok {
		t.Error("a probe that is cut off is read")
	}
}

// A probe without a signature is refused, whatever its contents.
func FuzzDecode(f *testing.F) {
	k := NewKey(7, mac)
	b := make([]byte, 64)
	n := k.Encode(b, mac, Probe{Port: 3, Sent: frame.Second})
	f.Add(b[wire.EthernetLen:n])
	f.Add(b[wire.EthernetLen:40])
	f.Add([]byte(head))
	f.Fuzz(func(t *testing.T, body []byte) {
		p, ok := k.Decode(body)
		if !ok {
			return
		}
		if k.Encode(b, mac, p); string(b[wire.EthernetLen:][:bodyLen]) != string(body[:bodyLen]) {
			t.Errorf("% x is taken for %+v", body, p)
		}
	})
}
