package lossradar

import (
	"encoding/binary"
	"errors"
	"fmt"

	"gswitch/frame"
)

// The wire form of a report: a header of headerBytes, then each cell as 19 bytes
// of signature and the count modulo 2^16, all most significant byte first. The
// count may wrap: only differences are ever read.
const (
	headerBytes = 70
	wireMagic   = 0x4c52 // "LR"
	wireVersion = 1
	flagDown    = 1 << 0
	flagAmends  = 1 << 1
)

// Append appends the wire form of a report to b.
func (r *Report) Append(b []byte) []byte {
	be := binary.BigEndian
	var flags uint8
	if r.Meter.Down {
		flags |= flagDown
	}
	if r.Amends {
		flags |= flagAmends
	}
	b = be.AppendUint16(b, wireMagic)
	b = append(b, wireVersion, flags)
	b = be.AppendUint16(b, r.Meter.Node)
	b = be.AppendUint16(b, r.Meter.Port)
	b = append(b, r.Meter.Class, r.Meter.Shard)
	b = be.AppendUint16(b, r.Meter.Of)
	b = be.AppendUint64(b, r.Batch)
	b = be.AppendUint64(b, uint64(r.From))
	b = be.AppendUint64(b, uint64(r.To))
	b = be.AppendUint32(b, r.Merged)
	b = be.AppendUint64(b, r.Missed)
	b = be.AppendUint64(b, uint64(r.packets))
	b = be.AppendUint32(b, r.Cells)
	b = append(b, r.Hashes, 0)
	b = be.AppendUint64(b, r.Seed)
	for i := range r.cells {
		c := &r.cells[i]
		b = be.AppendUint64(b, c.addrs)
		extra := uint32(c.tail)
		b = be.AppendUint64(b, c.rest&^0xff|uint64(extra>>24)<<2|c.rest&3)
		b = append(b, byte(extra>>16), byte(extra>>8), byte(extra))
		b = be.AppendUint16(b, uint16(c.count()))
	}
	return b
}

// ErrReport is wrapped by what Parse returns for bytes that are no report.
var ErrReport = errors.New("not a report of LossRadar")

// ParseMeter reads whose report it is.
func ParseMeter(b []byte) (Meter, error) {
	be := binary.BigEndian
	if len(b) < headerBytes || be.Uint16(b) != wireMagic || b[2] != wireVersion {
		return Meter{}, fmt.Errorf("%w: %d bytes without its header", ErrReport, len(b))
	}
	return Meter{Node: be.Uint16(b[4:]), Port: be.Uint16(b[6:]), Class: b[8], Shard: b[9], Of: be.Uint16(b[10:]), Down: b[3]&flagDown != 0}, nil
}

// Parse reads a report of at most maxCells cells.
func Parse(b []byte, maxCells uint32) (*Report, error) {
	be := binary.BigEndian
	if len(b) < headerBytes || be.Uint16(b) != wireMagic {
		return nil, fmt.Errorf("%w: %d bytes without its header", ErrReport, len(b))
	}
	if b[2] != wireVersion {
		return nil, fmt.Errorf("%w: version %d, this program reads %d", ErrReport, b[2], wireVersion)
	}
	r := &Report{
		Meter: Meter{Node: be.Uint16(b[4:]), Port: be.Uint16(b[6:]), Class: b[8], Shard: b[9], Of: be.Uint16(b[10:]), Down: b[3]&flagDown != 0},
		Batch: be.Uint64(b[12:]), From: frame.Time(be.Uint64(b[20:])), To: frame.Time(be.Uint64(b[28:])),
		Amends: b[3]&flagAmends != 0, Merged: be.Uint32(b[36:]), Missed: be.Uint64(b[40:]),
	}
	shape := Shape{Cells: be.Uint32(b[56:]), Hashes: b[60], Seed: be.Uint64(b[62:])}
	if err := shape.Validate(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrReport, err)
	}
	if shape.Cells > maxCells {
		return nil, fmt.Errorf("%w: %d cells, at most %d are taken", ErrReport, shape.Cells, maxCells)
	}
	if body := b[headerBytes:]; len(body) != int(shape.Cells)*cellWire {
		return nil, fmt.Errorf("%w: %d bytes of cells, %d cells take %d", ErrReport, len(body), shape.Cells, int(shape.Cells)*cellWire)
	}
	r.Digest = NewDigest(shape)
	r.packets = int64(be.Uint64(b[48:]))
	for i := range r.cells {
		c := b[headerBytes+i*cellWire:]
		rest := be.Uint64(c[8:])
		r.cells[i] = cell{addrs: be.Uint64(c), rest: rest&^0xff | rest&3}
		r.cells[i].put(int32(int16(be.Uint16(c[19:]))), uint32(rest>>2&0x3f)<<24|uint32(c[16])<<16|uint32(c[17])<<8|uint32(c[18]))
	}
	return r, nil
}

// cellWire is a cell with all 30 bits of Extra; the paper's has 14 of them.
const cellWire = 21
