package lossradar

import "math"

// Cells returns how many cells a digest of three hash functions needs so that a
// batch with that many losses decodes completely in at least 99 of 100 cases.
// The points were found by simulation (TestCells repeats it); between them the
// cells for each loss are interpolated over the logarithm of the losses. From
// about 1,000 losses on it is 1.3 cells for each, the paper's rule.
func Cells(losses int) uint32 {
	if losses <= sizes[0].losses {
		return sizes[0].cells
	}
	for i := 1; i < len(sizes); i++ {
		a, b := sizes[i-1], sizes[i]
		if losses > b.losses {
			continue
		}
		share := math.Log(float64(losses)/float64(a.losses)) / math.Log(float64(b.losses)/float64(a.losses))
		perA, perB := float64(a.cells)/float64(a.losses), float64(b.cells)/float64(b.losses)
		return uint32(math.Ceil(float64(losses) * (perA + share*(perB-perA))))
	}
	return uint32(math.Ceil(1.3 * float64(losses)))
}

// sizes are cells for 99 % complete decoding with three hash functions that give
// different cells.
var sizes = [...]struct {
	losses int
	cells  uint32
}{{5, 22}, {10, 36}, {20, 51}, {64, 120}, {100, 162}, {200, 285}, {400, 534}, {1000, 1290}, {2000, 2535}}

// Load describes the traffic of a port for which digests are sized.
type Load struct {
	Rate   float64 // bits/s
	Packet float64 // mean packet in bytes, without the 20 bytes that Ethernet adds on the wire
	Loss   float64 // the largest share of packets lost for which all are to be found
	Batch  float64 // seconds
}

// Losses is how many packets of a batch are lost at most.
func (l Load) Losses() float64 { return l.Rate / ((l.Packet + 20) * 8) * l.Batch * l.Loss }

// DigestRate is what the reports of both meters of a port take, in bits/s
// (figure 5.6).
func (l Load) DigestRate() float64 {
	return 2 * float64(Cells(int(math.Round(l.Losses())))) * CellBytes * 8 / l.Batch
}

// MirrorRate is what a copy of ten bytes of every packet takes in bits/s, the
// best that NetSight's compression does (figure 5.6's other curve).
func (l Load) MirrorRate() float64 { return l.Rate / ((l.Packet + 20) * 8) * 80 }

// SwitchMemory is what a switch with meters at every port keeps, in bytes: two
// batches of upstream and downstream digests for each port (section 5.7.3).
func SwitchMemory(ports int, digest float64) float64 { return digest * 2 * 2 * float64(ports) }

// EdgeMemory is what an edge switch of a region without meters keeps in bytes:
// its ports into the region have an upstream meter each, and a downstream digest
// for every upstream meter of the region (section 5.5.2 and 5.7.3). Each meter
// keeps two batches.
func EdgeMemory(upstream, downstream int, digest float64) float64 {
	return digest * 2 * float64(upstream+downstream)
}
