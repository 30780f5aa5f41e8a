package lossradar

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
)

func random(r *rand.Rand) Signature {
	return Fields{Src: r.Uint32(), Dst: r.Uint32(), SrcPort: uint16(r.Uint32()), DstPort: uint16(r.Uint32()), ID: uint16(r.Uint32()), Proto: 6,
		SYN: r.Uint32()&1 == 0, Stamp: uint16(r.Uint32() & stampMask), Sequence: uint16(r.Uint32())}.Pack()
}

func generator(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }

func sorted(v []Signature) []Signature {
	slices.SortFunc(v, func(a, b Signature) int {
		switch {
		case a == b:
			return 0
		case a.Addrs < b.Addrs || a.Addrs == b.Addrs && (a.Rest < b.Rest || a.Rest == b.Rest && a.Extra < b.Extra):
			return -1
		}
		return 1
	})
	return v
}

func TestSignatureKeepsItsFields(t *testing.T) {
	r := generator(1)
	for range 1000 {
		s := random(r)
		if got := s.Fields().Pack(); got != s || !s.plausible() {
			t.Fatalf("%+v becomes %+v", s, got)
		}
	}
}

// The time to live: both ends of a segment see the same bit, and a packet that
// will be dropped in the next switch has it at the meter before.
func TestExpires(t *testing.T) {
	for ttl := range 256 {
		up, down := ExpiresAt(uint8(ttl), 0), ExpiresAt(uint8(max(ttl-1, 0)), 1)
		if ttl > 0 && up != down || up != (ttl <= 1) {
			t.Errorf("a time to live of %d: %t before the hop, %t behind it", ttl, up, down)
		}
	}
}

// The paper's example (figure 5.3): six cells, three hashes, packets a to d, of
// which only b arrives. The seed is one that gives the cells of the example.
func TestPaperExample(t *testing.T) {
	names := []Signature{{Addrs: 0x11}, {Addrs: 0x22}, {Addrs: 0x33}, {Addrs: 0x44}}
	cells := [][]uint32{{3, 4, 5}, {0, 2, 4}, {0, 1, 3}, {1, 4, 5}}
	var d *Digest
seeds:
	for seed := uint64(0); ; seed++ {
		d = NewDigest(Shape{Cells: 6, Hashes: 3, Seed: seed})
		for i, s := range names {
			var at [MaxHashes]uint32
			if got := slices.Sorted(slices.Values(d.places(s, &at))); !slices.Equal(got, cells[i]) {
				continue seeds
			}
		}
		break
	}
	down := d.Clone()
	for _, s := range names {
		d.Insert(s)
	}
	down.Insert(names[1])
	pairs := func(d *Digest) (out [][2]int64) {
		for _, c := range d.cells {
			out = append(out, [2]int64{int64(c.addrs), int64(c.count())})
		}
		return out
	}
	if want := [][2]int64{{0x11, 2}, {0x77, 2}, {0x22, 1}, {0x22, 2}, {0x77, 3}, {0x55, 2}}; !reflect.DeepEqual(pairs(d), want) {
		t.Errorf("upstream %x, want %x", pairs(d), want)
	}
	if err := d.Subtract(down); err != nil {
		t.Fatal(err)
	}
	if want := [][2]int64{{0x33, 1}, {0x77, 2}, {0, 0}, {0x22, 2}, {0x55, 2}, {0x55, 2}}; !reflect.DeepEqual(pairs(d), want) {
		t.Errorf("difference %x, want %x", pairs(d), want)
	}
	got := d.Decode()
	if got.Net != 3 || got.Residual != 0 || !slices.Equal(sorted(got.Lost), []Signature{names[0], names[2], names[3]}) {
		t.Errorf("decoded %+v", got)
	}
}

// Digests are linear: shards add up to the digest of all packets, in any order.
func TestLinear(t *testing.T) {
	r := generator(2)
	for trial := range 1000 {
		shape := Shape{Cells: 30 + uint32(r.Uint32N(100)), Hashes: 2 + uint8(r.Uint32N(4)), Seed: r.Uint64()}
		a, b, all := NewDigest(shape), NewDigest(shape), NewDigest(shape)
		var v []Signature
		for range r.IntN(200) {
			v = append(v, random(r))
		}
		for i, s := range v {
			if i%3 == 0 {
				a.Insert(s)
			} else {
				b.Insert(s)
			}
		}
		r.Shuffle(len(v), func(i, j int) { v[i], v[j] = v[j], v[i] })
		for _, s := range v {
			all.Insert(s)
		}
		if err := a.Add(b); err != nil || !reflect.DeepEqual(a, all) {
			t.Fatalf("trial %d: shards of %+v do not add up (%v)", trial, shape, err)
		}
		if err := all.Subtract(a); err != nil || all.Decode().Residual != 0 || all.Packets() != 0 {
			t.Fatalf("trial %d: a digest less itself is not empty", trial)
		}
	}
	if err := NewDigest(DefaultShape()).Add(NewDigest(Shape{Cells: 10, Hashes: 3})); err == nil {
		t.Error("digests of different shapes were added")
	}
}

// decodes returns how many of `trials` digests with n losses decode completely.
func decodes(t *testing.T, n int, cells uint32, trials int) int {
	r, good := generator(uint64(n)<<32|uint64(cells)), 0
	for range trials {
		d := NewDigest(Shape{Cells: cells, Hashes: 3, Seed: r.Uint64()})
		for range n {
			d.Insert(random(r))
		}
		out := d.Decode()
		if out.Complete() {
			good++
			if len(out.Lost) != n || len(out.Extra) != 0 {
				t.Fatalf("%d of %d losses, %d extra", len(out.Lost), n, len(out.Extra))
			}
		}
	}
	return good
}

// Cells gives 99 % complete decoding, and a tenth fewer do not.
func TestCells(t *testing.T) {
	for _, n := range []int{10, 20, 64, 100, 200, 290, 400, 1000} {
		trials := 600
		cells := Cells(n)
		if good := decodes(t, n, cells, trials); good < trials*982/1000 {
			t.Errorf("%d losses in %d cells: %d of %d decode, want 99 %%", n, cells, good, trials)
		}
		if good := decodes(t, n, cells*85/100, trials); good > trials*99/100 && n >= 64 {
			t.Errorf("%d losses in %d cells: %d of %d decode, so Cells gives too many", n, cells*85/100, good, trials)
		}
	}
	// The cliff of the paper's digest of 400 cells.
	for _, c := range []struct{ n, least, most int }{{200, 590, 600}, {290, 580, 600}, {320, 180, 480}, {360, 0, 20}} {
		if good := decodes(t, c.n, 400, 600); good < c.least || good > c.most {
			t.Errorf("%d losses in 400 cells: %d of 600 decode, want %d to %d", c.n, good, c.least, c.most)
		}
	}
}

// What a vector is folded into are the cells that decoding looks for, all different,
// also where most digits collide.
func TestPlaces(t *testing.T) {
	r := generator(8)
	for hashes := uint8(2); hashes <= MaxHashes; hashes++ {
		for range 300 {
			d := NewDigest(Shape{Cells: 2*uint32(hashes) + r.Uint32N(3), Hashes: hashes, Seed: r.Uint64()})
			s := random(r)
			var at [MaxHashes]uint32
			want := slices.Sorted(slices.Values(d.places(s, &at)))
			d.Insert(s)
			var got []uint32
			for i := range d.cells {
				if d.cells[i].signature() == s && d.cells[i].count() == 1 {
					got = append(got, uint32(i))
				}
			}
			if len(got) != int(hashes) || !slices.Equal(got, want) {
				t.Fatalf("%d hash functions, %d cells: folded into %v, looked for in %v", hashes, d.Cells, got, want)
			}
		}
	}
}

// The cells of a packet are independent of each other: pairs of them are as even as
// chance makes them, for packets that differ in one consecutive field, too. And for
// these, digests decode as well as for random ones.
func TestCellsAreIndependent(t *testing.T) {
	fields := map[string]func(i int) Fields{
		"identifications": func(i int) Fields {
			return Fields{Src: 0x0a000001, Dst: 0x0a000002, SrcPort: 1000, DstPort: 2000, Proto: 17, ID: uint16(i), Stamp: 77}
		},
		"instants": func(i int) Fields {
			return Fields{Src: 0x0a000001, Dst: 0x0a000002, SrcPort: 1000, DstPort: 2000, Proto: 17, ID: uint16(i >> 14), Stamp: uint16(i)}
		},
		"addresses": func(i int) Fields {
			return Fields{Src: 0x0a000000 + uint32(i), Dst: 0x0a000002, SrcPort: 1000, DstPort: 2000, Proto: 6, SYN: true}
		},
		"ports and sequence": func(i int) Fields {
			return Fields{Src: 0x0a000001, Dst: 0x0a000002, SrcPort: uint16(i), DstPort: 4791, Proto: 17, Sequence: uint16(i), Stamp: uint16(i >> 2)}
		},
	}
	const side, packets = 16, 60_000
	for name, f := range fields {
		for hashes := uint8(3); hashes <= 4; hashes++ {
			d := NewDigest(Shape{Cells: side, Hashes: hashes, Seed: uint64(hashes)})
			pairs := map[[2]uint32]float64{}
			var at [MaxHashes]uint32
			for i := range packets {
				v := d.places(f(i).Pack(), &at)
				slices.Sort(v)
				for k := range v {
					for j := range k {
						pairs[[2]uint32{v[j], v[k]}]++
					}
				}
			}
			// Chi squared of one row for each pair that is no neighbour: a digit that is
			// taken gives the cell behind it.
			n, sum, chi := 0.0, 0.0, 0.0
			apart := func(p [2]uint32) bool { x := p[1] - p[0]; return x > 2 && x < side-2 }
			for p, c := range pairs {
				if apart(p) {
					n, sum = n+1, sum+c
				}
			}
			for p, c := range pairs {
				if apart(p) {
					chi += (c - sum/n) * (c - sum/n) / (sum / n)
				}
			}
			if want := float64(side*(side-5)) / 2; n != want || chi > n+6*math.Sqrt(2*n) {
				t.Errorf("%s, %d cells for each: %v pairs, want %v; chi squared %.0f", name, hashes, n, want, chi)
			}
		}
		for _, c := range []struct {
			n     int
			cells uint32
		}{{64, Cells(64)}, {290, 400}} {
			good := 0
			for trial := range 600 {
				d := NewDigest(Shape{Cells: c.cells, Hashes: 3, Seed: uint64(trial)})
				for i := range c.n {
					d.Insert(f(trial*c.n + i).Pack())
				}
				if out := d.Decode(); out.Complete() {
					good++
				}
			}
			if good < 580 {
				t.Errorf("%s: of digests with %d losses in %d cells %d of 600 decode", name, c.n, c.cells, good)
			}
		}
	}
}

// Twice as many losses as cells: their number is exact, few decode, and no packet
// is named that was not lost.
func TestOverload(t *testing.T) {
	r := generator(5)
	for range 1000 {
		d := NewDigest(Shape{Cells: 60, Hashes: 3, Seed: r.Uint64()})
		lost := map[Signature]bool{}
		for range 120 {
			s := random(r)
			lost[s] = true
			d.Insert(s)
		}
		out := d.Decode()
		if out.Net != 120 || out.Complete() || len(out.Lost) > 40 {
			t.Fatalf("net %d, %d decoded, residual %d", out.Net, len(out.Lost), out.Residual)
		}
		for _, s := range append(out.Lost, out.Extra...) {
			if !lost[s] {
				t.Fatalf("%+v was not lost", s.Fields())
			}
		}
	}
}

// A header that changes on the way is one loss and one extra packet.
func TestExtra(t *testing.T) {
	r := generator(6)
	for range 200 {
		up := NewDigest(Shape{Cells: 100, Hashes: 3, Seed: r.Uint64()})
		down := up.Clone()
		for range 5000 {
			s := random(r)
			up.Insert(s)
			down.Insert(s)
		}
		was, is := random(r), random(r)
		up.Insert(was)
		down.Insert(is)
		if err := up.Subtract(down); err != nil {
			t.Fatal(err)
		}
		out := up.Decode()
		if out.Net != 0 || !out.Complete() || !slices.Equal(out.Lost, []Signature{was}) || !slices.Equal(out.Extra, []Signature{is}) {
			t.Fatalf("%+v", out)
		}
	}
}

// Two lost packets and an extra one in a cell look like one packet that never was. It
// is not peeled where it does not fall into that cell, and put back where it does, which
// is so in one digest of twenty here.
func TestCellsOfThree(t *testing.T) {
	r := generator(16)
	for tried := 0; tried < 200; {
		d := NewDigest(Shape{Cells: 60, Hashes: 3, Seed: r.Uint64()})
		var v [3]Signature
		cells := map[uint32]int{}
		for i := range v {
			v[i] = random(r)
			var at [MaxHashes]uint32
			for _, c := range d.places(v[i], &at) {
				cells[c]++
			}
		}
		if len(cells) != 7 || !slices.Contains(slices.Collect(maps.Values(cells)), 3) {
			continue // required: one cell of all three, and else cells of their own
		}
		tried++
		extra := d.Clone()
		d.Insert(v[:2]...)
		extra.Insert(v[2])
		if err := d.Subtract(extra); err != nil {
			t.Fatal(err)
		}
		if out := d.Decode(); !out.Complete() || !slices.Equal(sorted(out.Lost), sorted(slices.Clone(v[:2]))) || !slices.Equal(out.Extra, v[2:]) {
			t.Fatalf("%+v of %+v", out, v)
		}
	}
}

// Where many packets are lost and others extra, cells of several that look like one are common.
// They are not peeled, so that most digests of 40 packets in 60 cells decode, and hardly
// anything is named that was neither.
func TestMixedDigests(t *testing.T) {
	r := generator(17)
	complete, named, wrong := 0, 0, 0
	for range 1000 {
		up := NewDigest(Shape{Cells: 60, Hashes: 3, Seed: r.Uint64()})
		down := up.Clone()
		differ := map[Signature]bool{}
		for i := range 40 {
			s := random(r)
			differ[s] = true
			if i%3 == 0 {
				down.Insert(s)
			} else {
				up.Insert(s)
			}
		}
		if err := up.Subtract(down); err != nil {
			t.Fatal(err)
		}
		out := up.Decode()
		if out.Complete() {
			complete++
		}
		for _, s := range append(out.Lost, out.Extra...) {
			if named++; !differ[s] {
				wrong++
			}
		}
	}
	if complete < 600 || wrong*100 > named {
		t.Errorf("%d of 1000 digests decode, and %d of %d packets that are named are none", complete, wrong, named)
	}
}

// Two packets with one signature cancel each other, and say so.
func TestEqualSignatures(t *testing.T) {
	d := NewDigest(DefaultShape())
	s := random(generator(7))
	d.Insert(s)
	d.Insert(s)
	if out := d.Decode(); out.Complete() || out.Net != 2 || len(out.Lost) != 0 {
		t.Errorf("%+v", out)
	}
}

// Figure 5.7: a switch of 64 ports with 352,000 flows in a batch keeps less than
// FlowRadar's 28.8 bytes for each of them, as long as fewer than 5 % are lost at 10
// Gb/s, 10 % at 5 and 20 % at 3; at a loss of 0.1 % (section 5.1) a small part of it.
// The paper has 1.4 % there, with digests in which one batch in twenty does not
// decode; ours is for one in a hundred.
func TestMemoryBesideFlowRadar(t *testing.T) {
	const ports, flowRadar = 64, 352e3 * 28.8
	memory := func(rate, loss float64) float64 {
		l := Load{Rate: rate, Packet: 175, Batch: 10e-3, Loss: loss}
		return 2 * ports * float64(Cells(int(l.Losses()))) * CellBytes
	}
	for _, c := range []struct{ rate, loss float64 }{{10e9, 0.05}, {5e9, 0.10}, {3e9, 0.17}} {
		if m := memory(c.rate, 0.9*c.loss); m > flowRadar {
			t.Errorf("%g bit/s, %.3f lost: %.3g bytes, more than FlowRadar's %.3g", c.rate, 0.9*c.loss, m, flowRadar)
		}
		if m := memory(c.rate, 1.1*c.loss); m < flowRadar {
			t.Errorf("%g bit/s, %.3f lost: %.3g bytes, less than FlowRadar's %.3g", c.rate, 1.1*c.loss, m, flowRadar)
		}
	}
	if share := memory(10e9, 0.001) / flowRadar; share > 0.03 || share < 0.014 {
		t.Errorf("at 0.1 %% loss %.4f of FlowRadar's memory", share)
	}
}

// Figure 5.6 and section 5.7.3.
func TestSizes(t *testing.T) {
	near := func(what string, got, want, share float64) {
		if math.Abs(got/want-1) > share {
			t.Errorf("%s: %.4g, want %.4g", what, got, want)
		}
	}
	l := Load{Rate: 10e9, Packet: 175, Batch: 10e-3}
	near("mirroring at 10 Gb/s", l.MirrorRate(), 513e6, 0.01)
	l.Loss = 0.01
	near("digests at 1 % loss", l.DigestRate(), 25.5e6, 0.03)
	l.Loss = 0.001
	if r := l.DigestRate(); r < 2.9e6 || r > 3.7e6 {
		t.Errorf("digests at 0.1 %% loss: %.3g bit/s", r)
	}
	for _, rate := range []float64{4e9, 40e9, 100e9} {
		l := Load{Rate: rate, Packet: 175, Batch: 10e-3, Loss: 0.01}
		near(fmt.Sprintf("share of mirroring at %g", rate), l.DigestRate()/l.MirrorRate(), 25.5/513, 0.2)
	}
	near("all switches have meters", SwitchMemory(8, 7600), 243.2e3, 1e-9)
	near("top of rack without", EdgeMemory(8, 20, 7600), 425.6e3, 1e-9)
	near("aggregation without", EdgeMemory(8, 32, 7600), 608e3, 1e-9)
}

func BenchmarkInsert(b *testing.B) {
	r := generator(1)
	d := NewDigest(DefaultShape())
	v := make([]Signature, 4096)
	for i := range v {
		v[i] = random(r)
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		d.Insert(v[i&4095])
	}
}

func TestInsertAllocatesNothing(t *testing.T) {
	d, s := NewDigest(DefaultShape()), random(generator(1))
	if n := testing.AllocsPerRun(100, func() { d.Insert(s) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
