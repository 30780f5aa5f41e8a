package lossradar

import (
	"fmt"
	"math/bits"

	"gswitch/telemetry"
)

// MaxHashes bounds the cells that a packet is folded into, MaxCells those of a
// digest.
const (
	MaxHashes = 8
	MaxCells  = 1 << 20
)

// Shape is what two digests must share to be added or subtracted.
type Shape struct {
	Cells  uint32 // at least Hashes
	Hashes uint8  // cells for each packet, 2 to MaxHashes; the paper uses 3
	Seed   uint64 // both meters of a segment use the same
}

// DefaultShape is the paper's digest of 7.6 kB: 400 cells of 19 bytes, three
// hash functions (figure 5.8).
func DefaultShape() Shape { return Shape{Cells: 400, Hashes: 3} }

// Bytes is what a digest takes in memory.
func (s Shape) Bytes() int { return int(s.Cells) * cellBytes }

// Validate reports what is wrong with a shape.
func (s Shape) Validate() error {
	switch {
	case s.Hashes < 2 || s.Hashes > MaxHashes:
		return fmt.Errorf("%d hash functions: 2 to %d are possible", s.Hashes, MaxHashes)
	case s.Cells < 2*uint32(s.Hashes):
		return fmt.Errorf("%d cells are too few for %d hash functions: at least %d are needed", s.Cells, s.Hashes, 2*s.Hashes)
	case s.Cells > MaxCells:
		return fmt.Errorf("%d cells: at most %d are possible", s.Cells, MaxCells)
	}
	return nil
}

// CellBytes is what a cell of the paper takes: 17 bytes of signature and 16 bits
// of count. Ours have 16 bits of a sequence number more, see wire.go.
const CellBytes = 19

// cell is the exclusive or of the signatures that were folded into it, and how
// many these are: less than none where a digest was subtracted.
type cell struct {
	addrs, rest uint64
	tail        uint64 // the count, 32 bits in two's complement, above Extra: a packet changes one word in place of two
}

func (c *cell) count() int32 { return int32(c.tail >> 32) }

// put sets the count, and what is below it.
func (c *cell) put(count int32, extra uint32) { c.tail = uint64(uint32(count))<<32 | uint64(extra) }

// cellBytes is what a cell takes.
const cellBytes = 24

func (c *cell) fold(s Signature, n int32) {
	c.addrs ^= s.Addrs
	c.rest ^= s.Rest
	c.tail = (c.tail ^ uint64(s.Extra)) + uint64(int64(n))<<32
}

func (c *cell) signature() Signature { return Signature{c.addrs, c.rest, uint32(c.tail)} }

// Digest is an invertible Bloom filter over the packets of one batch. It is
// linear: the sum of two digests is the digest of both sets of packets.
type Digest struct {
	Shape
	keys    telemetry.Keys
	cells   []cell
	packets int64 // inserted less removed
}

// NewDigest returns an empty digest. It panics if the shape is not valid.
func NewDigest(s Shape) *Digest {
	if err := s.Validate(); err != nil {
		panic("lossradar: " + err.Error())
	}
	return &Digest{Shape: s, keys: telemetry.NewKeys(s.Seed), cells: make([]cell, s.Cells)}
}

// Packets is how many packets were inserted, exact also where the digest cannot
// be decoded: of a difference, how many are lost.
func (d *Digest) Packets() int64 { return d.packets }

// places writes the cells of a packet, all different, to out.
//
// The cells are the digits, to the base of how many there are, of a hash of 64
// bits: as independent as its bits, for one multiplication each. A packet of more
// than three cells has another hash for the next three. Double hashing (h1 + i*h2)
// would give n^2 sets of cells in place of n^3/6: in a digest of a few hundred cells
// two losses would then share all their cells, which nothing can take apart, far
// more often.
func (d *Digest) places(s Signature, out *[MaxHashes]uint32) []uint32 {
	first := hash(&d.keys, s)
	h := first
	v := out[:d.Hashes]
	for j := range v {
		if j > 0 && j%digits == 0 {
			h = telemetry.Fold(first, telemetry.Multipliers[j])
		}
		v[j], h = digit(h, d.Cells)
	}
	apart(v, d.Cells)
	return v
}

// digits is how many a hash has: even with MaxCells they take no more than 60 bits.
const digits = 3

// digit returns the first digit of h, a fraction of 2^64, to the base n, and what
// is behind it.
func digit(h uint64, n uint32) (uint32, uint64) {
	hi, lo := bits.Mul64(h, uint64(n))
	return uint32(hi), lo
}

// apart replaces cells, of n in a circle, that another stands before by the next
// free one.
func apart(v []uint32, n uint32) {
	for j := range v {
		for taken(v[:j], v[j]) {
			if v[j]++; v[j] == n {
				v[j] = 0
			}
		}
	}
}

func taken(v []uint32, c uint32) bool {
	for _, x := range v {
		if x == c {
			return true
		}
	}
	return false
}

// Insert folds packets into the digest.
func (d *Digest) Insert(v ...Signature) {
	d.packets += int64(len(v))
	if d.Hashes != digits {
		for _, s := range v {
			d.fold(s, 1)
		}
		return
	}
	// The paper's number, and the hot path: what places does, without a slice.
	cells, n, keys := d.cells, d.Cells, d.keys
	for i := range v {
		s := v[i]
		a, h := digit(hash(&keys, s), n)
		b, h := digit(h, n)
		c, _ := digit(h, n)
		if a == b || b == c || c == a {
			at := [digits]uint32{a, b, c}
			apart(at[:], n)
			a, b, c = at[0], at[1], at[2]
		}
		cells[a].fold(s, 1)
		cells[b].fold(s, 1)
		cells[c].fold(s, 1)
	}
}

// fold folds a packet n times into its cells.
func (d *Digest) fold(s Signature, n int32) {
	var at [MaxHashes]uint32
	for _, c := range d.places(s, &at) {
		d.cells[c].fold(s, n)
	}
}

// Add adds the packets of o, for example those that another worker counted. The
// shapes must be equal.
func (d *Digest) Add(o *Digest) error { return d.combine(o, 1) }

// Subtract takes away the packets of o. The shapes must be equal.
func (d *Digest) Subtract(o *Digest) error { return d.combine(o, -1) }

func (d *Digest) combine(o *Digest, sign int32) error {
	if d.Shape != o.Shape {
		return fmt.Errorf("digests of different shapes: %+v and %+v", d.Shape, o.Shape)
	}
	for i := range d.cells {
		c, x := &d.cells[i], &o.cells[i]
		c.addrs ^= x.addrs
		c.rest ^= x.rest
		c.put(c.count()+sign*x.count(), uint32(c.tail^x.tail))
	}
	d.packets += int64(sign) * o.packets
	return nil
}

// Reset empties the digest.
func (d *Digest) Reset() {
	clear(d.cells)
	d.packets = 0
}

// Clone returns a copy.
func (d *Digest) Clone() *Digest {
	c := *d
	c.cells = append([]cell(nil), d.cells...)
	return &c
}

// Decoded is what a difference of two digests contains.
type Decoded struct {
	Lost []Signature
	// Extra are packets that only the downstream meter saw: their header was
	// changed on the way, or the network made a second copy.
	Extra []Signature
	// Residual counts cells that stayed closed. 0: every loss is known.
	Residual int
	// Net is lost less extra, exact also where Residual is not 0.
	Net int64
}

// Complete reports whether every loss was decoded.
func (d *Decoded) Complete() bool { return d.Residual == 0 }

// Unnamed is how many losses at least were not decoded.
func (d *Decoded) Unnamed() int64 {
	if d.Complete() {
		return 0
	}
	return max(0, d.Net+int64(len(d.Extra)-len(d.Lost)))
}

// Decode peels a difference (section 5.3.1). The digest is used up. A cell
// counts as pure only if its signature is one that falls into that very cell:
// without that test, one lost and one extra packet in a cell of three would
// be taken for a third that does not exist, and what is peeled with it is wrong, too. In
// a digest of n cells the test is wrong about one such cell in n/3. A packet that
// does not exist then comes out of the other cells with the opposite sign: it is put back, and
// not peeled again.
func (d *Digest) Decode() Decoded {
	for i := range d.cells {
		c := &d.cells[i]
		c.put(int32(int16(c.count())), uint32(c.tail)) // see wire.go
	}
	var work []uint32
	for i := range d.cells {
		if d.pure(uint32(i)) {
			work = append(work, uint32(i))
		}
	}
	const refused = 0
	signs := map[Signature]int32{} // of what was peeled
	var order []Signature
	var at [MaxHashes]uint32
	// A signature is peeled once, and put back once: damaged digests end, too.
	for len(work) > 0 {
		i := work[len(work)-1]
		work = work[:len(work)-1]
		if !d.pure(i) {
			continue
		}
		s, n := d.cells[i].signature(), d.cells[i].count()
		switch before, again := signs[s]; {
		case !again && uint32(len(order)) == d.Cells:
			continue // more than that many do not decode: this digest was damaged
		case !again:
			signs[s] = n
			order = append(order, s)
		case before == -n:
			signs[s] = refused
		default:
			continue
		}
		for _, c := range d.places(s, &at) {
			d.cells[c].fold(s, -n)
			if d.pure(c) {
				work = append(work, c)
			}
		}
	}
	out := Decoded{Net: d.packets}
	for _, s := range order {
		switch n := signs[s]; {
		case n > 0:
			out.Lost = append(out.Lost, s)
		case n < 0:
			out.Extra = append(out.Extra, s)
		}
	}
	for i := range d.cells {
		if d.cells[i] != (cell{}) {
			out.Residual++
		}
	}
	return out
}

// pure reports whether exactly one packet is left in a cell.
func (d *Digest) pure(i uint32) bool {
	c := &d.cells[i]
	if n := c.count(); n != 1 && n != -1 {
		return false
	}
	s := c.signature()
	var at [MaxHashes]uint32
	return s.plausible() && taken(d.places(s, &at), i)
}
