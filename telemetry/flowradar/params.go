package flowradar

import (
	"fmt"
	"math"
)

const (
	maxCellHashes   = 8
	maxFilterHashes = 40
)

// Params describe a flowset.
type Params struct {
	FilterBits   uint32
	FilterHashes uint8  // the paper's filter; with Blocked 8 are enough in software
	Cells        uint32 // a multiple of CellHashes: each hash function has a part of its own, so that a flow never collides with itself
	CellHashes   uint8  // 3 or 4
	Seed         uint64 // another one for each switch and direction
	// Blocked keeps the filter's bits of a flow in one block of 512 bits: one
	// cache line for each packet, at the price of 15 to 20 % more bits.
	Blocked bool
}

// Validate reports what is wrong with p.
func (p Params) Validate() error {
	switch {
	case p.FilterHashes < 1 || p.FilterHashes > maxFilterHashes:
		return fmt.Errorf("%d hash functions of the filter: 1 to %d are possible", p.FilterHashes, maxFilterHashes)
	case p.CellHashes < 2 || p.CellHashes > maxCellHashes:
		return fmt.Errorf("%d cells for each flow: 2 to %d are possible", p.CellHashes, maxCellHashes)
	case p.FilterBits < 64 || p.FilterBits > 1<<31:
		return fmt.Errorf("a filter of %d bits: 64 to %d are possible", p.FilterBits, 1<<31)
	case p.Blocked && p.FilterBits%512 != 0:
		return fmt.Errorf("a filter of %d bits in blocks: it must be a multiple of 512", p.FilterBits)
	case p.Cells < 2*uint32(p.CellHashes) || p.Cells > 1<<26:
		return fmt.Errorf("%d cells: %d to %d are possible", p.Cells, 2*p.CellHashes, 1<<26)
	case p.Cells%uint32(p.CellHashes) != 0:
		return fmt.Errorf("%d cells cannot be divided among %d hash functions", p.Cells, p.CellHashes)
	}
	return nil
}

// CellBytes is what a cell takes in the paper: 13 bytes of key, 16 bits of flows,
// 32 bits of packets.
const CellBytes = 19

// Bytes is what a flowset of the paper takes.
func (p Params) Bytes() float64 {
	return float64(p.FilterBits)/8 + float64(p.Cells)*CellBytes
}

// FilterBits returns the smallest filter, with how many hash functions, in which
// n flows are all distinguished except with the given probability
// (section 4.3.3): the product over i < n of 1 - (1 - e^(-k i/m))^k.
func FilterBits(n int, failure float64) (m float64, k int) {
	// For one k the probability falls with m.
	best, bestK := math.Inf(1), 0
	for k := 4; k <= maxFilterHashes; k++ {
		lo, hi := float64(n), 200*float64(n)
		if filterFailure(n, hi, k) > failure {
			continue
		}
		for range 50 {
			mid := (lo + hi) / 2
			if filterFailure(n, mid, k) > failure {
				lo = mid
			} else {
				hi = mid
			}
		}
		if hi < best {
			best, bestK = hi, k
		}
	}
	return best, bestK
}

// filterFailure is the probability that any of n flows is taken for a known one.
// The sum over i is an integral, taken by Simpson's rule: its summand is smooth.
func filterFailure(n int, m float64, k int) float64 {
	at := func(i float64) float64 {
		if i == 0 {
			return 0
		}
		return math.Log1p(-math.Pow(-math.Expm1(-float64(k)*i/m), float64(k)))
	}
	const steps = 256
	h := float64(n) / steps
	sum := at(0) + at(float64(n))
	for i := 1; i < steps; i++ {
		w := 4.0
		if i%2 == 0 {
			w = 2
		}
		sum += w * at(float64(i)*h)
	}
	return -math.Expm1(sum * h / 3)
}

// Cells for each flow with four hash functions: what a table needs to be decoded
// alone in 99 of 100 cases (simulated, TestSingleDecodes repeats it), and what the
// system of equations needs to have one solution (the threshold of random 4-XORSAT
// is 1.0238).
const networkCells = 1.025

func singleCells(n int) float64 {
	points := []struct{ n, cells float64 }{{1e3, 1.37}, {1e4, 1.313}, {1e5, 1.30}, {1e6, 1.297}}
	x := math.Min(math.Max(float64(n), points[0].n), points[3].n)
	for i := 1; i < len(points); i++ {
		if a, b := points[i-1], points[i]; x <= b.n {
			return a.cells + (b.cells-a.cells)*math.Log(x/a.n)/math.Log(b.n/a.n)
		}
	}
	return points[3].cells
}

// Decoder says how the collector will decode, which decides how large a flowset
// must be.
type Decoder uint8

const (
	Alone  Decoder = iota // each flowset by itself
	Helped                // with the flowsets of other switches, and equations for the counters
)

// Sizing returns the paper's parameters for n flows in a slot: four cells for
// each flow, and a filter that fails a tenth as often as the table (1 %).
func Sizing(n int, d Decoder) Params {
	bits, k := FilterBits(n, 1e-3)
	return Params{FilterBits: uint32(math.Ceil(bits)), FilterHashes: uint8(k), Cells: cellsFor(n, d), CellHashes: sizedHashes}
}

// sizedHashes is how many cells a flow has in tables that are sized for flows.
const sizedHashes = 4

// cellsFor is how many cells n flows need.
func cellsFor(n int, d Decoder) uint32 {
	per := singleCells(n)
	if d == Helped {
		per = networkCells
	}
	return (uint32(math.Ceil(per*float64(n))) + sizedHashes - 1) / sizedHashes * sizedHashes
}

// NetFlowBytes is an ideal NetFlow's memory for n flows, in which nothing ever
// collides: key, packet counter and two times of 4 bytes (section 4.5.1).
func NetFlowBytes(n int) float64 { return 25 * float64(n) }

// Fixed returns parameters for n flows in a slot as a switch in software has them:
// a filter of 64 bits for each flow in blocks of a cache line, which distinguishes all of
// them from each other but for one table of a thousand.
func Fixed(n int, d Decoder, seed uint64) Params {
	return Params{FilterBits: uint32(64*n+511) &^ 511, FilterHashes: 8, Blocked: true, Cells: cellsFor(n, d), CellHashes: sizedHashes, Seed: seed}
}
