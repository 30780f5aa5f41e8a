package mirror

import (
	"net/netip"
	"testing"

	"gswitch/wire"
	wt "gswitch/wire/wiretest"
)

// What distinguishes a packet is the same at every hop: whatever hops change is left out.
func TestIdentityIsTheSameAtEveryHop(t *testing.T) {
	none := wt.IPv4With(func(f *wire.IPv4Fields) { f.ID, f.FlagsOffset = 0, wire.IPv4DontFragment })
	later := wt.IPv4With(func(f *wire.IPv4Fields) { f.ID, f.FlagsOffset, f.TTL, f.TOS = 0, wire.IPv4DontFragment, 60, 0x2f })
	data := wt.Payload([]byte("0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef and more"))
	stack := func(port uint16, hops int) wt.Layer { // INT-MD of two words a hop
		b := []byte{wire.INTTypeMD<<4 | wire.INTNextPort<<2, byte(3 + 2*hops), byte(port >> 8), byte(port), wire.INTMDVersion << 4, 0, 2, 8, 0xc0, 0, 0, 0, 0, 0, 0, 0}
		for i := range 8 * hops {
			b = append(b, byte(i*37+hops))
		}
		return wt.Payload(b)
	}
	of := func(sum, padded bool, layers ...wt.Layer) uint16 {
		b := wt.Frame(append([]wt.Layer{eth}, layers...)...)
		if !sum {
			copy(b[14+20+6:], []byte{0, 0})
		}
		if padded {
			b = append(b, 1, 2, 3, 4)
		}
		return identity(wire.IPv4(b[14:]), b, 34)
	}
	short := wt.Payload([]byte{1, 2, 3})
	bth := wt.BTH(wire.RCSendMiddle, 7, 0x1234)
	for what, p := range map[string]struct {
		sum       bool
		port      uint16
		body      []wt.Layer
		telemetry bool
	}{
		"UDP":                          {true, 2000, []wt.Layer{data}, true},
		"UDP without a checksum":       {false, 2000, []wt.Layer{data}, true},
		"short UDP without a checksum": {false, 2000, []wt.Layer{short}, false},
		"RoCEv2":                       {true, wire.RoCEv2Port, []wt.Layer{bth, data}, true},
		"RoCEv2 without a checksum":    {false, wire.RoCEv2Port, []wt.Layer{bth, data}, true},
	} {
		first := of(p.sum, false, append([]wt.Layer{wt.IPv4("10.0.0.1", "10.0.0.2", none), wt.UDP(1000, p.port)}, p.body...)...)
		if first == 0 {
			t.Errorf("%s: nothing distinguishes it", what)
		}
		if got := of(p.sum, true, append([]wt.Layer{wt.IPv4("10.0.0.1", "10.0.0.2", later), wt.UDP(1000, p.port)}, p.body...)...); got != first {
			t.Errorf("%s: %#x with another time to live, %#x before", what, got, first)
		}
		for hops := 1; hops < 4 && p.telemetry; hops++ {
			l := append([]wt.Layer{wt.IPv4("10.0.0.1", "10.0.0.2", later), wt.UDP(1000, wire.INTPort), stack(p.port, hops)}, p.body...)
			if got := of(p.sum, false, l...); got != first {
				t.Errorf("%s: %#x with telemetry of %d hops, %#x before", what, got, hops, first)
			}
			// A copy reaches behind the telemetry, as docs/algorithms/everflow.md says.
			s := Session{ID: 1, Snap: max(LeastSnap, 102+16+8*hops), Src: netip.MustParseAddr("10.10.0.1"), Dst: netip.MustParseAddr("10.255.0.1")}
			copied := make([]byte, 512)
			b := wt.Frame(append([]wt.Layer{eth}, l...)...)
			n, _ := s.Copy(copied, b, uint32(len(b)), Info{})
			if k, _, ok := Parse(copied[:n]); !ok || k.DstPort != p.port || p.sum && k.ID != first {
				t.Errorf("%s: with telemetry of %d hops the trace is of port %d and %#x, want %d and %#x", what, hops, k.DstPort, k.ID, p.port, first)
			}
			// One that ends within it has the port, but not always which packet it is of; it says so.
			s.Snap = LeastSnap
			numbered := append([]wt.Layer{wt.IPv4("10.0.0.1", "10.0.0.2", id(7)), wt.UDP(1000, wire.INTPort), stack(p.port, 30)}, p.body...)
			for want, l := range map[uint16][]wt.Layer{7: numbered, 0: append([]wt.Layer{wt.IPv4("10.0.0.1", "10.0.0.2", later)}, numbered[1:]...)} {
				b := wt.Frame(append([]wt.Layer{eth}, l...)...)
				n, _ := s.Copy(copied, b, uint32(len(b)), Info{})
				if k, h, ok := Parse(copied[:n]); !ok || k.DstPort != p.port || k.ID != want || h.Cut != (want == 0) {
					t.Errorf("%s: a copy within telemetry is of port %d and %#x, cut %t; want %d and %#x", what, k.DstPort, k.ID, h.Cut, p.port, want)
				}
			}
		}
	}
}
