package flowradar

import (
	"encoding/binary"
	"errors"
	"fmt"

	"gswitch/frame"
	"gswitch/telemetry"
)

// Report is what one worker of a switch counted in a slot. Slots are numbered from
// the beginning of the switch's time. An empty slot has a report, too: that no packets
// came differs from a report that is missing.
type Report struct {
	Node     uint16 // ID of the switch
	Shard    uint8  // worker
	Slot     uint64
	From, To frame.Time
	Slots    uint32 // that it covers: more than 1 where reports were not taken in time
	Packets  uint64 // of flows
	Bytes    uint64
	Other    uint64   // frames that are of no flow: not IP
	Encoded  *Flowset // of a node
	Image    *Image   // of a collector, in its place
	Exact    *Exact   // either may be nil
}

// Reset empties a report that its node gets back.
func (r *Report) Reset() {
	r.Slots, r.Packets, r.Bytes, r.Other = 0, 0, 0, 0
	if r.Encoded != nil {
		r.Encoded.Reset()
	}
	if r.Exact != nil {
		r.Exact.Reset()
	}
}

// The wire form of a report: a header of headerBytes, then the encoded table, then
// the exact one, as the flags say; the most significant byte first. Words of the
// filter, and cells, stand in runs: how many are zero, how many follow, these. Counts
// of runs and of traffic are varints.
const (
	wireMagic   = 0x4652 // "FR"
	wireVersion = 1
	headerBytes = 64
	hasEncoded  = 1 << 0
	hasExact    = 1 << 1
)

// What Parse takes at most: larger tables no switch has.
const (
	maxWireCells  = 1 << 21
	maxWireFilter = 1 << 27
)

// Append appends the wire form of a report to b.
func (r *Report) Append(b []byte) []byte {
	be := binary.BigEndian
	var flags uint8
	if r.Encoded != nil {
		flags |= hasEncoded
	}
	if r.Exact != nil {
		flags |= hasExact
	}
	b = be.AppendUint16(b, wireMagic)
	b = append(b, wireVersion, flags)
	b = be.AppendUint16(b, r.Node)
	b = append(b, r.Shard, 0)
	for _, v := range [...]uint64{r.Slot, uint64(r.From), uint64(r.To), uint64(r.Slots), r.Packets, r.Bytes, r.Other} {
		b = be.AppendUint64(b, v)
	}
	if f := r.Encoded; f != nil {
		b = f.append(b)
	}
	if t := r.Exact; t != nil {
		b = binary.AppendUvarint(b, t.Overflow)
		b = binary.AppendUvarint(b, uint64(len(t.entries)))
		for i := range t.entries {
			e := &t.entries[i]
			b = be.AppendUint64(be.AppendUint64(b, e.addrs), e.rest)
			b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(e.packets)), e.bytes)
		}
	}
	return b
}

func (f *Flowset) append(b []byte) []byte {
	be := binary.BigEndian
	b = be.AppendUint32(b, f.FilterBits)
	b = be.AppendUint32(b, f.Params.Cells)
	var blocked uint8
	if f.Blocked {
		blocked = 1
	}
	b = append(b, f.FilterHashes, f.CellHashes, blocked, 0)
	for _, v := range [...]uint64{f.Seed, f.Packets, f.Flows} {
		b = be.AppendUint64(b, v)
	}
	b = appendRuns(b, f.filter, func(b []byte, w *uint64) []byte { return be.AppendUint64(b, *w) })
	return appendRuns(b, f.cells, func(b []byte, c *cell) []byte {
		b = be.AppendUint64(be.AppendUint64(b, c.addrs), c.rest)
		b = be.AppendUint32(be.AppendUint32(b, c.packets), uint32(c.flows))
		return be.AppendUint64(b, c.bytes)
	})
}

func appendRuns[T comparable](b []byte, v []T, one func([]byte, *T) []byte) []byte {
	var zero T
	for i := 0; i < len(v); {
		z := i
		for z < len(v) && v[z] == zero {
			z++
		}
		n := z
		for n < len(v) && v[n] != zero {
			n++
		}
		b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(z-i)), uint64(n-z))
		for ; z < n; z++ {
			b = one(b, &v[z])
		}
		i = n
	}
	return b
}

// ErrReport is wrapped by what Parse returns for bytes that are no report.
var ErrReport = errors.New("not a report of FlowRadar")

// ParseHeader reads a report without its tables.
func ParseHeader(b []byte) (*Report, error) {
	be := binary.BigEndian
	if len(b) < headerBytes || be.Uint16(b) != wireMagic {
		return nil, fmt.Errorf("%w: %d bytes without its header", ErrReport, len(b))
	}
	if b[2] != wireVersion {
		return nil, fmt.Errorf("%w: version %d, this program reads %d", ErrReport, b[2], wireVersion)
	}
	r := &Report{Node: be.Uint16(b[4:]), Shard: b[6], Slot: be.Uint64(b[8:]), From: frame.Time(be.Uint64(b[16:])), To: frame.Time(be.Uint64(b[24:])),
		Slots: uint32(be.Uint64(b[32:])), Packets: be.Uint64(b[40:]), Bytes: be.Uint64(b[48:]), Other: be.Uint64(b[56:])}
	return r, nil
}

// Parse reads the wire form of a report.
func Parse(b []byte) (*Report, error) {
	r, err := ParseHeader(b)
	if err != nil {
		return nil, err
	}
	in := reader{b: b[headerBytes:]}
	if b[3]&hasEncoded != 0 {
		if err := in.encoded(r); err != nil {
			return nil, err
		}
	}
	if b[3]&hasExact != 0 {
		in.exact(r)
	}
	if in.bad || len(in.b) != 0 {
		return nil, fmt.Errorf("%w: its tables do not have the length that they say", ErrReport)
	}
	return r, nil
}

// reader takes fields off bytes; bad is set once there are too few.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) take(n int) []byte {
	if r.bad = r.bad || len(r.b) < n; r.bad {
		return make([]byte, n)
	}
	v := r.b[:n]
	r.b = r.b[n:]
	return v
}

func (r *reader) u64() uint64 { return binary.BigEndian.Uint64(r.take(8)) }
func (r *reader) u32() uint32 { return binary.BigEndian.Uint32(r.take(4)) }

func (r *reader) uvarint() uint64 {
	v, n := binary.Uvarint(r.b)
	if r.bad = r.bad || n <= 0; r.bad {
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) encoded(out *Report) error {
	p := Params{FilterBits: r.u32(), Cells: r.u32()}
	v := r.take(4)
	p.FilterHashes, p.CellHashes, p.Blocked, p.Seed = v[0], v[1], v[2] != 0, r.u64()
	if err := p.Validate(); err != nil {
		return fmt.Errorf("%w: %w", ErrReport, err)
	}
	if p.Cells > maxWireCells || p.FilterBits > maxWireFilter {
		return fmt.Errorf("%w: %d cells and a filter of %d bits, at most %d and %d are taken", ErrReport, p.Cells, p.FilterBits, maxWireCells, maxWireFilter)
	}
	m := newImage(p, len(r.b))
	m.Packets, m.Flows = r.u64(), r.u64()
	r.runs((p.FilterBits+63)/64, func(i uint32) { m.set(i, r.u64()) })
	r.runs(p.Cells, func(i uint32) {
		m.cells.v[m.cells.entry(i)] = cell{addrs: r.u64(), rest: r.u64(), packets: r.u32(), flows: int32(r.u32()), bytes: r.u64()}
	})
	out.Image = m
	return nil
}

// runs has those of size entries read that are not zero.
func (r *reader) runs(size uint32, one func(i uint32)) {
	for i := uint64(0); i < uint64(size) && !r.bad; {
		zeros, n := r.uvarint(), r.uvarint()
		left := uint64(size) - i
		if zeros > left || n > left-zeros || zeros+n == 0 {
			r.bad = true
			return
		}
		for i += zeros; n > 0 && !r.bad; n-- {
			one(uint32(i))
			i++
		}
	}
}

// entryLeast is the least that an entry of an exact table takes.
const entryLeast = 18

func (r *reader) exact(out *Report) {
	t := &Exact{keys: telemetry.NewKeys(1), Overflow: r.uvarint()}
	n := r.uvarint()
	if r.bad = r.bad || n > uint64(len(r.b)/entryLeast); r.bad {
		return
	}
	t.entries = make([]entry, n)
	for i := range t.entries {
		e := &t.entries[i]
		e.addrs, e.rest = r.u64(), r.u64()
		packets := r.uvarint()
		e.bytes = r.uvarint()
		e.packets = uint32(packets)
		r.bad = r.bad || uint64(e.packets) != packets || e.rest>>63 != 0
	}
	out.Exact = t
}
