package wire_test

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"gswitch/wire"
)

// reference is RFC 1071's definition, 16 bits at a time.
func reference(b []byte) uint16 {
	var s uint32
	for i := 0; i < len(b); i += 2 {
		w := uint32(b[i]) << 8
		if i+1 < len(b) {
			w |= uint32(b[i+1])
		}
		s += w
		s = s>>16 + s&0xffff
	}
	return ^uint16(s)
}

func TestChecksum(t *testing.T) {
	// RFC 1071 section 3.
	if c := wire.Checksum([]byte{0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7}); c != ^uint16(0xddf2) {
		t.Errorf("%04x", c)
	}
	h := unhex(t, "4500 0054 0000 4000 402f 2568 0a0a000a 0aff0001")
	if !wire.IPv4(h).ChecksumOK() {
		t.Error("a right header checksum is called wrong")
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	b := make([]byte, 300)
	for n := range 3000 {
		for i := range b {
			b[i] = byte(rnd.Uint32())
			if n%5 == 0 {
				b[i] = 0xff // carries all the way
			}
		}
		x := b[n%7 : 7+n%len(b[7:])]
		if got, want := wire.Checksum(x), reference(x); got != want {
			t.Fatalf("%d bytes: %04x, want %04x", len(x), got, want)
		}
	}
}

func TestPseudoHeaders(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		seg := make([]byte, 8+rnd.IntN(100))
		var s, d [16]byte
		for i := range s {
			s[i], d[i] = byte(rnd.Uint32()), byte(rnd.Uint32())
		}
		for i := range seg {
			seg[i] = byte(rnd.Uint32())
		}
		p4 := append(append(append([]byte{}, s[:4]...), d[:4]...), 0, 17)
		p4 = binary.BigEndian.AppendUint16(p4, uint16(len(seg)))
		if got, want := wire.SegmentChecksum(wire.PseudoSum4([4]byte(s[:4]), [4]byte(d[:4]), 17, len(seg)), seg), reference(append(p4, seg...)); got != want {
			t.Fatalf("IPv4: %04x, want %04x", got, want)
		}
		p6 := binary.BigEndian.AppendUint32(append(append([]byte{}, s[:]...), d[:]...), uint32(len(seg)))
		p6 = append(p6, 0, 0, 0, 58)
		if got, want := wire.SegmentChecksum(wire.PseudoSum6(s, d, 58, len(seg)), seg), reference(append(p6, seg...)); got != want {
			t.Fatalf("IPv6: %04x, want %04x", got, want)
		}
	}
}

func TestUDPChecksumIsNeverZero(t *testing.T) {
	b := make([]byte, wire.UDPLen)
	for p := range 1 << 16 {
		binary.BigEndian.PutUint16(b, uint16(p))
		wire.UpdateUDPChecksum(0xffff, b)
		if wire.UDP(b).Checksum() == 0 {
			t.Fatalf("port %d", p)
		}
	}
}

func TestPatchChecksum(t *testing.T) {
	// RFC 1624 section 4: HC = 0xdd2f, m = 0x5555, m' = 0x3285 gives 0x0000.
	if c := wire.PatchChecksum(0xdd2f, 0x5555, 0x3285); c != 0 {
		t.Errorf("%04x", c)
	}
	rnd := rand.New(rand.NewPCG(5, 6))
	b := make([]byte, 20)
	for range 100_000 {
		for i := range b {
			b[i] = byte(rnd.Uint32())
		}
		c := wire.Checksum(b)
		old, neu := binary.BigEndian.Uint32(b[4:]), rnd.Uint32()
		binary.BigEndian.PutUint32(b[4:], neu)
		if got, want := wire.PatchChecksum32(c, old, neu), wire.Checksum(b); got != want {
			t.Fatalf("%04x, want %04x", got, want)
		}
	}
}

func BenchmarkChecksum(b *testing.B) {
	for _, n := range []int{20, 64, 1500} {
		b.Run(map[int]string{20: "20", 64: "64", 1500: "1500"}[n], func(b *testing.B) {
			x := make([]byte, n)
			b.SetBytes(int64(n))
			for b.Loop() {
				wire.Checksum(x)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N), "ns/frame")
		})
	}
}
