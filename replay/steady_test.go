package replay

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"gswitch/frame"
	"gswitch/wire"
	wt "gswitch/wire/wiretest"
)

// variedFrame makes a frame that looks much like others: n is how manieth it is.
func variedFrame(r *rand.Rand, n int) []byte {
	id := wt.IPv4With(func(f *wire.IPv4Fields) { f.ID = uint16(n) })
	ports := []uint16{9, wire.RoCEv2Port, wire.HPCCPort, wire.HPCCGrowPort, wire.INTPort, wire.ConnectionManagerPort}
	body := make([]byte, []int{0, 12, 18, 60, 300}[r.IntN(5)])
	eth := wt.Eth(wt.MAC(2), wt.MAC(1))
	var b []byte
	switch r.IntN(6) {
	case 0:
		b = wt.Frame(eth, wt.IPv4("10.0.0.1", "10.0.0.2", id), wt.TCP(wire.TCPFields{SrcPort: 5000, DstPort: 80, Seq: uint32(n) * 1448}), wt.Payload(body))
	case 1:
		b = wt.Frame(eth, wt.VLAN(7, 0), wt.IPv4("10.0.0.1", "10.0.0.2", id), wt.TCP(wire.TCPFields{SrcPort: 5000, DstPort: 80, Seq: uint32(n) * 1448}), wt.Payload(body))
	case 2:
		b = wt.Frame(eth, wt.IPv6("fd00::1", "fd00::2"), wt.UDP(1, ports[r.IntN(len(ports))]), wt.Payload(body))
	case 3:
		b = wt.Frame(eth, wt.IPv4("10.0.0.1", "10.0.0.2", id), wt.ICMP(wire.ICMPEcho, 0, uint32(n)), wt.Payload(body))
	case 4:
		b = wt.Frame(eth, wt.IPv4("10.0.0.1", "10.0.0.2", id), wt.UDP(50000, wire.RoCEv2Port), wt.BTH([]uint8{wire.RCWriteMiddle, wire.RCSendOnlyImmediate, wire.RCAcknowledge, wire.RCWriteOnlyImmediate}[r.IntN(4)], 9, uint32(n)), wt.Payload(body))
	default:
		b = wt.Frame(eth, wt.IPv4("10.0.0.1", "10.0.0.2", id), wt.UDP(uint16(r.IntN(2)), ports[r.IntN(len(ports))]), wt.Payload(body))
	}
	return b
}

// damage changes a byte in a place where headers are.
func damage(r *rand.Rand, b []byte) {
	if n := min(len(b), 120); n > 0 {
		b[r.IntN(n)] = byte(r.Uint32()) >> r.IntN(8)
	}
}

// The quick way to hash plain frames gives what the other one gives, whatever stands in
// them.
func TestPlainFramesAreHashedAlike(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	a := frame.MustArena(1, 2048, frame.DefaultHeadroom)
	plain := 0
	var quick, other sent
	for n := range 100_000 {
		b := variedFrame(r, n)
		for range r.IntN(3) {
			damage(r, b)
		}
		if r.IntN(8) == 0 {
			b = b[:r.IntN(len(b)+1)]
		}
		a.SetBytes(0, b)
		b = a.Bytes(0)
		for i := range b[len(b):cap(b)] {
			b[:cap(b)][len(b)+i] = byte(r.Uint32()) // of the frame that was there before
		}
		keep, sum := plainHeaders(b)
		if h := scan(b); keep != 0 && (h.keep != keep || h.sum != sum) {
			t.Fatalf("%d bytes and the checksum at %d, and it is %d and %d of\n%x", keep, sum, h.keep, h.sum, b)
		}
		if keep != 0 {
			plain++
		}
		m := a.Meta(0)
		m.Depart = frame.Time(n)
		quick.add(a, 0, 3)
		other.mix(product(uint64(n), 3<<48^uint64(m.Len)<<32^uint64(m.Wire)) + other.words(b))
		if quick.h != other.h {
			t.Fatalf("the hash is %x, and it is %x, of\n%x", quick.h, other.h, b)
		}
	}
	if plain < 30_000 {
		t.Errorf("%d frames were plain", plain)
	}
}

// Before there was a plain frame, no frame is like one: not that of protocol 0 either, of which
// nothing behind its end is hashed, and all that it has.
func TestFirstFramesAreHashedAlike(t *testing.T) {
	a := frame.MustArena(1, 2048, frame.DefaultHeadroom)
	for _, n := range []int{34, 200} {
		b := make([]byte, n)
		b[12], b[13], b[14] = 8, 0, 0x45
		b[n-1] = 7
		a.SetBytes(0, b)
		b = a.Bytes(0)
		for i := n; i < cap(b); i++ {
			b[:cap(b)][i] = 0xee // of the frame that was there before
		}
		var quick, other sent
		quick.add(a, 0, 3)
		m := a.Meta(0)
		other.mix(departure(m, 3) + other.words(b))
		if quick.h != other.h {
			t.Errorf("the hash of %d bytes is %x, want %x", n, quick.h, other.h)
		}
	}
}

// Frames of steady flows are written as they are without looking for steady ones, and come
// back as they were.
func TestSteadyFlowsAreWrittenAlike(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	pool := frame.NewPool(frame.MustArena(256, 2048, frame.DefaultHeadroom))
	var quick, other encoder
	var d decoder
	quickly, all := 0, 0
	for n := 0; n < 20_000; {
		// A train of a flow, in which sometimes something changes.
		first := variedFrame(r, n)
		for range r.IntN(3) {
			damage(r, first)
		}
		grows := [2]int{r.IntN(120), r.IntN(120)}
		h := headers{}
		if r.IntN(4) == 0 {
			h = scan(first)
		}
		var v []frame.Ref
		for k := range 1 + r.IntN(60) {
			b := bytes.Clone(first)
			for _, at := range grows {
				if at+1 < len(b) && n%3 != 0 {
					be.PutUint16(b[at&^1:], be.Uint16(b[at&^1:])+uint16(k))
				}
			}
			if k == 0 && h.sum != 0 { // without a checksum, and those behind it may have one
				be.PutUint16(b[h.sum:], 0)
			}
			if r.IntN(30) == 0 {
				damage(r, b)
			}
			f := pool.New(b)
			v = append(v, f)
			n++
		}
		out := quick.vector(nil, pool.Arena, v)
		quick.rows = quick.rows[:0]
		var want []byte
		for _, f := range v {
			want = other.frame(want, pool.Arena, f)
		}
		want = other.endRun(want)
		rows, hops := new(predictor).spread(nil, other.rows)
		if !bytes.Equal(out, want) {
			t.Fatalf("%d frames are written as\n%x\nand are\n%x", len(v), out, want)
		}
		// What is read has the predictor of the writer.
		d.predict, d.rows, other.rows = predictor{}, &spreadRows{b: rows, n: hops}, other.rows[:0]
		in := reader{b: out}
		for i, f := range v {
			got, err := d.frame(&in, pool)
			if err != nil {
				t.Fatal(err)
			}
			b, g := bytes.Clone(pool.Bytes(f)), pool.Bytes(got)
			h := scan(b)
			if h.mask(b); len(b) != len(g) || !bytes.Equal(b[:h.keep], g[:h.keep]) {
				t.Fatalf("frame %d comes back as\n%x\nand was\n%x", i, g[:h.keep], b[:h.keep])
			}
			all++
			if s := &quick.slots[quick.at].steady; s.has != 0 {
				quickly++
			}
			pool.Free(got)
			pool.Free(f)
		}
	}
	if quickly < all/10 {
		t.Errorf("of %d frames %d belong to trains of steady flows", all, quickly)
	}
}
