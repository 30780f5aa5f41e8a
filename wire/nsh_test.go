package wire_test

import (
	"bytes"
	"testing"

	"gswitch/frame"
	"gswitch/wire"
	wt "gswitch/wire/wiretest"
)

// A packet with slack is the same packet behind it, and without it what it was.
func checkSlack(t testing.TB, b []byte, initial, left int64) {
	t.Helper()
	a := frame.MustArena(1, 2048, 64)
	p := wire.NewParser(wire.NewHasher(1, false))
	v := []frame.Ref{0}
	if !a.SetBytes(0, b) {
		return
	}
	p.Parse(a, v)
	m := a.Meta(0)
	if m.Reason != frame.Keep || wire.SlackAt(m, b) != nil {
		return
	}
	before := *m
	h := wire.PushSlack(a, 0, initial)
	if ip := before.Flags&(frame.HasIPv4|frame.HasIPv6) != 0; (h != nil) != ip {
		t.Fatalf("slack given: %v, to an IP packet: %v", h != nil, ip)
	}
	if h == nil {
		if *m != before || !bytes.Equal(a.Bytes(0), b) {
			t.Fatal("a frame that was refused changed")
		}
		return
	}
	h.SetLeft(left)
	kept := *m
	p.Parse(a, v)
	if *m != kept {
		t.Fatalf("kept and parsed Meta differ:\n%+v\n%+v", kept, *m)
	}
	h = wire.SlackAt(m, a.Bytes(0))
	if h == nil || h.Initial() != initial || h.Left() != left {
		t.Fatalf("slack % x, want %d of %d", h, left, initial)
	}
	if m.Hash != before.Hash || m.Wire != before.Wire+wire.NSHLen || m.EtherType != before.EtherType {
		t.Fatalf("behind slack it is another packet:\n%+v\n%+v", *m, before)
	}
	if i, l, ok := wire.PopSlack(a, 0); !ok || i != initial || l != left || !bytes.Equal(a.Bytes(0), b) || *m != before {
		t.Fatalf("% x became % x", b, a.Bytes(0))
	}
	if _, _, ok := wire.PopSlack(a, 0); ok {
		t.Fatal("slack is taken off twice")
	}
}

func TestSlack(t *testing.T) {
	for _, x := range formats() {
		checkSlack(t, x.b, 1_000_000, -3000)
	}
	a := frame.MustArena(1, 256, 8)
	a.SetBytes(0, wt.Frame(eth, ip4, udp))
	wire.NewParser(wire.NewHasher(1, false)).Parse(a, []frame.Ref{0})
	if wire.PushSlack(a, 0, 1) != nil {
		t.Error("slack in no headroom")
	}
}

// What a foreign service header announces is not looked at.
func TestOtherServiceHeaders(t *testing.T) {
	good := wt.Frame(eth, wt.Slack(5, 4), ip4, udp, data)
	if m, why := wt.Parse(good); why != frame.Keep || m.Flags&frame.HasUDP == 0 {
		t.Fatalf("%v %+v", why, m)
	}
	for name, change := range map[string]func(b []byte){
		"version":  func(b []byte) { b[0] |= 0x40 },
		"oam":      func(b []byte) { b[0] |= 0x20 },
		"length":   func(b []byte) { b[1]++ },
		"metadata": func(b []byte) { b[2] = 2 },
		"ethernet": func(b []byte) { b[3] = 3 },
		"path":     func(b []byte) { b[6]++ },
	} {
		b := bytes.Clone(good)
		change(b[wire.EthernetLen:])
		m, why := wt.Parse(b)
		if why != frame.Keep || m.EtherType != wire.EtherTypeNSH || m.L3 != wire.EthernetLen || m.Flags != 0 || wire.SlackAt(&m, b) != nil {
			t.Errorf("%s: %v %+v", name, why, m)
		}
	}
	for n := range wire.NSHLen {
		b := good[:wire.EthernetLen+n]
		if m, _ := wt.Parse(b); m.EtherType != wire.EtherTypeNSH || wire.SlackAt(&m, b) != nil {
			t.Fatalf("%d bytes of a header: %+v", n, m)
		}
	}
}

// Whatever arrives, slack goes on and off without a trace.
func FuzzSlack(f *testing.F) {
	for _, x := range formats() {
		f.Add(x.b, int64(1), int64(-1))
	}
	f.Fuzz(func(t *testing.T, b []byte, initial, left int64) {
		if len(b) <= 1500 {
			checkSlack(t, b, initial, left)
		}
	})
}
