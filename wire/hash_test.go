package wire_test

import (
	"math"
	"math/bits"
	"testing"

	"gswitch/frame"
	"gswitch/wire"
	wt "gswitch/wire/wiretest"
)

// flow returns the i-th of a set of flows as they occur: few hosts, adjacent
// addresses, counting ports.
func flow(i int) (addrs uint64, ports uint32) {
	src, dst := 0x0a000000+uint32(i%64), 0x0a000100+uint32(i/64%16)
	return uint64(src)<<32 | uint64(dst), uint32(32768+i/1024)<<16 | 4791
}

// chiSquare returns how far counts are from uniform, in standard deviations of
// the chi-square distribution.
func chiSquare(counts []int) float64 {
	n := 0
	for _, c := range counts {
		n += c
	}
	e := float64(n) / float64(len(counts))
	x := 0.0
	for _, c := range counts {
		x += (float64(c) - e) * (float64(c) - e) / e
	}
	df := float64(len(counts) - 1)
	return (x - df) / math.Sqrt(2*df)
}

func TestHashIsUniform(t *testing.T) {
	const flows = 1 << 17
	for seed := range uint64(8) {
		h := wire.NewHasher(seed, seed&1 != 0)
		for _, ways := range []int{2, 3, 8, 16, 64, 1000} {
			low, high := make([]int, ways), make([]int, ways)
			for i := range flows {
				v := h.IPv4(flowTuple(i))
				low[int(v)%ways]++
				high[int(uint64(v)*uint64(ways)>>32)]++
			}
			if x, y := chiSquare(low), chiSquare(high); x > 5 || y > 5 {
				t.Errorf("seed %d, %d ways: %.1f and %.1f standard deviations from uniform", seed, ways, x, y)
			}
		}
	}
}

func flowTuple(i int) (uint64, uint32, uint8) {
	a, p := flow(i)
	return a, p, wire.ProtoUDP
}

// Polarisation: the flows that hop 1 sends one way must be spread evenly by
// hop 2, and every pair of bits of the two hashes must be uncorrelated.
func TestHashDoesNotPolarise(t *testing.T) {
	const flows, ways = 1 << 17, 8
	for seed := range uint64(8) {
		h1, h2 := wire.NewHasher(seed, false), wire.NewHasher(seed+1, false)
		joint := make([]int, ways*ways)
		var agree [32][32]int
		for i := range flows {
			a, b := h1.IPv4(flowTuple(i)), h2.IPv4(flowTuple(i))
			joint[int(a%ways)*ways+int(b%ways)]++
			if i < 1<<14 {
				for k := range 32 {
					x := a ^ bits.RotateLeft32(b, k)
					for j := range 32 {
						agree[k][j] += int(x >> j & 1)
					}
				}
			}
		}
		if x := chiSquare(joint); x > 5 {
			t.Errorf("seeds %d and %d: joint distribution is %.1f standard deviations from uniform", seed, seed+1, x)
		}
		for k := range agree {
			for j, n := range agree[k] {
				if d := math.Abs(float64(n)-1<<13) / 64; d > 6 { // sqrt(2^14)/2 = 64
					t.Errorf("seed %d: bit %d and its partner at distance %d agree too often or too seldom: %.1f standard deviations", seed, j, k, d)
				}
			}
		}
	}
	// The same seed twice is what polarises.
	h := wire.NewHasher(1, false)
	joint := make([]int, ways*ways)
	for i := range flows {
		a := h.IPv4(flowTuple(i))
		joint[int(a%ways)*ways+int(a%ways)]++
	}
	if chiSquare(joint) < 100 {
		t.Error("the test does not see polarisation where it is")
	}
}

// Each input bit flips each output bit half of the time.
func TestHashAvalanche(t *testing.T) {
	h := wire.NewHasher(11, false)
	const flows = 4096
	for b := range 96 {
		var flips [32]int
		for i := range flows {
			a, p := flow(i)
			x := h.IPv4(a, p, 17)
			if b < 64 {
				a ^= 1 << b
			} else {
				p ^= 1 << (b - 64)
			}
			x ^= h.IPv4(a, p, 17)
			for k := range flips {
				flips[k] += int(x >> k & 1)
			}
		}
		for k, n := range flips {
			if f := float64(n) / flows; f < 0.42 || f > 0.58 {
				t.Errorf("input bit %d flips output bit %d in %.2f of the flows", b, k, f)
			}
		}
	}
}

func TestHashSymmetric(t *testing.T) {
	there := [][]byte{
		wt.UDP4(macB, macA, "10.0.0.1", "10.0.0.2", 5, 6, nil),
		wt.UDP4(macB, macA, "10.0.0.1", "10.0.0.1", 5, 6, nil),
		wt.UDP6(macB, macA, "fd00::1", "fd00::2", 5, 6, nil),
		wt.UDP6(macB, macA, "fd00::1", "fd00::1", 5, 6, nil),
		wt.Frame(wt.EthType(macB, macA, 0x88b5)),
	}
	back := [][]byte{
		wt.UDP4(macA, macB, "10.0.0.2", "10.0.0.1", 6, 5, nil),
		wt.UDP4(macA, macB, "10.0.0.1", "10.0.0.1", 6, 5, nil),
		wt.UDP6(macA, macB, "fd00::2", "fd00::1", 6, 5, nil),
		wt.UDP6(macA, macB, "fd00::1", "fd00::1", 6, 5, nil),
		wt.Frame(wt.EthType(macA, macB, 0x88b5)),
	}
	hash := func(symmetric bool, b []byte) uint32 {
		a := frame.MustArena(1, 256, 0)
		a.SetBytes(0, b)
		wire.NewParser(wire.NewHasher(1, symmetric)).Parse(a, []frame.Ref{0})
		return a.Meta(0).Hash
	}
	for i := range there {
		if hash(true, there[i]) != hash(true, back[i]) {
			t.Errorf("%d: symmetric hash differs by direction", i)
		}
		if hash(false, there[i]) == hash(false, back[i]) {
			t.Errorf("%d: plain hash does not differ by direction", i)
		}
	}
}

// The hash is the innermost five-tuple's and nothing else's.
func TestHashCoversInnermostTuple(t *testing.T) {
	hash := func(l ...wt.Layer) uint32 {
		m, why := wt.Parse(wt.Frame(l...))
		if why != frame.Keep {
			t.Fatal(why)
		}
		return m.Hash
	}
	other := wt.IPv4("172.16.0.1", "172.16.0.2")
	want := hash(eth, ip4, udp, data)
	for i, got := range []uint32{
		hash(wt.Eth(macA, macB), wt.VLAN(9, 1), wt.IPv4("10.0.0.1", "10.0.0.2", wt.TTL(3), wt.TOS(77)), udp),
		hash(eth, other, ip4, udp),
		hash(eth, other, wt.GRE(wire.GREKey, 3, 0), ip4, udp),
		hash(eth, other, wt.GRE(0, 0, 1), wt.ERSPAN2(wire.ERSPAN2Fields{}), eth, ip4, udp),
		hash(eth, ip6, ip4, udp),
	} {
		if got != want {
			t.Errorf("%d: %08x, want %08x", i, got, want)
		}
	}
	// First and later fragments of a packet share a hash, over three fields.
	frag := func(word uint16, l wt.Layer) uint32 {
		return hash(eth, wt.IPv4("10.0.0.1", "10.0.0.2", wt.IPv4With(func(f *wire.IPv4Fields) { f.FlagsOffset, f.Proto = word, wire.ProtoUDP })), l, data)
	}
	if a, b := frag(wire.IPv4MoreFragments, udp), frag(3, data); a != b || a == want {
		t.Errorf("fragments: %08x %08x, whole %08x", a, b, want)
	}
	if hash(eth, ip4, wt.UDP(1000, 2001)) == want || hash(eth, ip4, tcp) == want {
		t.Error("port or protocol does not count")
	}
}

func BenchmarkHash(b *testing.B) {
	h := wire.NewHasher(1, false)
	var x uint64
	for b.Loop() {
		x += uint64(h.IPv4(x, 77, 17))
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N), "ns/frame")
}
