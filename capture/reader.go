package capture

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"strings"

	"gswitch/frame"
)

// LinkEthernet is the link type of Ethernet frames without FCS in pcap and
// pcapng files (LINKTYPE_ETHERNET).
const LinkEthernet = 1

// maxBlock bounds what a damaged length field can make the reader allocate.
const maxBlock = 16 << 20

// Interface is what a file says of an interface.
type Interface struct {
	Name    string
	Link    uint16 // link type, LinkEthernet for what a switch can use
	SnapLen uint32
	Lost    uint64 // frames that who captured could not keep, as far as the file was read

	resol  uint64 // ticks per second
	offset int64  // seconds to add
}

// Reader reads pcapng and classic pcap files of either byte order. It takes
// nothing in the file for granted: what contradicts itself is an error that
// names the byte offset.
type Reader struct {
	r      *bufio.Reader
	order  binary.ByteOrder
	ng     bool
	ifaces []Interface
	block  []byte
	offset int64 // of the block or record being read
	next   int64
}

// NewReader recognises the format of r.
func NewReader(r io.Reader) (*Reader, error) {
	rd := &Reader{r: bufio.NewReaderSize(r, 64<<10)}
	magic, err := rd.r.Peek(4)
	if err != nil {
		return nil, fmt.Errorf("capture file: too short for a header: %w", noEOF(err))
	}
	nano := false
	switch m := binary.LittleEndian.Uint32(magic); m {
	case blockSection:
		rd.ng = true
		return rd, nil
	case 0xa1b2c3d4, 0xa1b23c4d:
		rd.order, nano = binary.LittleEndian, m == 0xa1b23c4d
	case 0xd4c3b2a1, 0x4d3cb2a1:
		rd.order, nano = binary.BigEndian, m == 0x4d3cb2a1
	default:
		return nil, fmt.Errorf("capture file: %#08x is neither the magic number of pcapng nor of pcap", m)
	}
	h, err := rd.take(24)
	if err != nil {
		return nil, fmt.Errorf("pcap: header cut off: %w", err)
	}
	resol := uint64(1e6)
	if nano {
		resol = 1e9
	}
	// The upper half of the link type field carries FCS information.
	rd.ifaces = []Interface{{Link: uint16(rd.order.Uint32(h[20:])), SnapLen: rd.order.Uint32(h[16:]), resol: resol}}
	return rd, nil
}

// Interfaces returns the interfaces described so far, by index.
func (r *Reader) Interfaces() []Interface { return r.ifaces }

// Next returns the next frame, or io.EOF at a clean end. data is valid until
// the next call. Record.Time is Unix nanoseconds.
func (r *Reader) Next() (rec Record, data []byte, err error) {
	if !r.ng {
		return r.nextClassic()
	}
	for {
		kind, body, err := r.nextBlock()
		if err != nil {
			return Record{}, nil, err
		}
		switch kind {
		case blockInterface:
			err = r.describe(body)
		case blockStatistics:
			err = r.statistics(body)
		case blockEnhanced, blockPacket:
			return r.enhanced(body, kind == blockPacket)
		case blockSimple:
			return r.simple(body)
		}
		if err != nil {
			return Record{}, nil, err
		}
	}
}

func (r *Reader) nextClassic() (rec Record, data []byte, err error) {
	h, err := r.take(16)
	if err == io.EOF {
		return rec, nil, io.EOF
	}
	if err != nil {
		return rec, nil, r.fail("pcap: record header cut off")
	}
	n := r.order.Uint32(h[8:])
	rec.Wire = r.order.Uint32(h[12:])
	// Seconds are 32 bits, the fraction at most 2^32 ns: no overflow.
	rec.Time = int64(r.order.Uint32(h))*1e9 + int64(r.order.Uint32(h[4:]))*int64(1e9/r.ifaces[0].resol)
	if n > maxBlock {
		return rec, nil, r.fail("pcap: record of %d bytes", n)
	}
	at := r.offset
	if data, err = r.take(int(n)); err != nil {
		r.offset = at
		return rec, nil, r.fail("pcap: record of %d bytes cut off", n)
	}
	rec.Wire = max(rec.Wire, n)
	return rec, data, nil
}

// nextBlock returns the body of the next block, without its type and lengths.
func (r *Reader) nextBlock() (kind uint32, body []byte, err error) {
	h, err := r.r.Peek(12)
	if len(h) == 0 && err == io.EOF {
		return 0, nil, io.EOF
	}
	r.offset = r.next
	if len(h) < 12 {
		return 0, nil, r.fail("pcapng: block header cut off")
	}
	// The section header's own magic gives its byte order, and that of all
	// blocks up to the next one. Its type reads the same both ways.
	if binary.LittleEndian.Uint32(h) == blockSection {
		switch binary.LittleEndian.Uint32(h[8:]) {
		case byteOrderMagic:
			r.order = binary.LittleEndian
		case bits.ReverseBytes32(byteOrderMagic):
			r.order = binary.BigEndian
		default:
			return 0, nil, r.fail("pcapng: section header has byte-order magic %#x", h[8:12])
		}
		r.ifaces = nil
	} else if r.order == nil {
		return 0, nil, r.fail("pcapng: no section header")
	}
	kind = r.order.Uint32(h)
	total := r.order.Uint32(h[4:])
	if total < 12 || total%4 != 0 || total > maxBlock {
		return 0, nil, r.fail("pcapng: block of %d bytes", total)
	}
	at := r.offset
	b, err := r.take(int(total))
	r.offset = at
	if err != nil {
		return 0, nil, r.fail("pcapng: block of %d bytes cut off", total)
	}
	if tail := r.order.Uint32(b[total-4:]); tail != total {
		return 0, nil, r.fail("pcapng: block begins with length %d and ends with %d", total, tail)
	}
	return kind, b[8 : total-4], nil
}

func (r *Reader) describe(b []byte) error {
	if len(b) < 8 {
		return r.fail("pcapng: interface block of %d bytes", len(b))
	}
	it := Interface{Link: r.order.Uint16(b), SnapLen: r.order.Uint32(b[4:]), resol: 1e6}
	err := r.options(b[8:], func(code uint16, v []byte) {
		switch {
		case code == optIfName:
			it.Name = strings.TrimRight(string(v), "\x00")
		case code == optIfTSResol && len(v) >= 1:
			it.resol = ticks(v[0])
		case code == optIfTSOffset && len(v) >= 8:
			it.offset = int64(r.order.Uint64(v))
		}
	})
	if err != nil {
		return err
	}
	if it.resol == 0 {
		return r.fail("pcapng: interface %d has a time resolution that does not fit 64 bits", len(r.ifaces))
	}
	r.ifaces = append(r.ifaces, it)
	return nil
}

// statistics takes from an interface statistics block how many frames were lost.
func (r *Reader) statistics(b []byte) error {
	if len(b) < 12 {
		return r.fail("pcapng: statistics block of %d bytes", len(b))
	}
	n := r.order.Uint32(b)
	if uint64(n) >= uint64(len(r.ifaces)) {
		return r.fail("pcapng: statistics of interface %d, which was not described", n)
	}
	lost := uint64(0)
	err := r.options(b[12:], func(code uint16, v []byte) {
		if (code == optISBDropped || code == optISBOSDropped) && len(v) >= 8 {
			lost += r.order.Uint64(v)
		}
	})
	r.ifaces[n].Lost = lost
	return err
}

// ticks decodes if_tsresol: 10^-v, or 2^-v if the top bit is set. It returns
// zero where ticks per second do not fit.
func ticks(v byte) uint64 {
	if v&0x80 != 0 {
		if v &= 0x7f; v > 63 {
			return 0
		}
		return 1 << v
	}
	if v > 19 {
		return 0
	}
	t := uint64(1)
	for range v {
		t *= 10
	}
	return t
}

// enhanced decodes an enhanced packet block, or the obsolete packet block,
// which differs in a 16-bit interface index followed by a drop count.
func (r *Reader) enhanced(b []byte, old bool) (rec Record, data []byte, err error) {
	if len(b) < 20 {
		return rec, nil, r.fail("pcapng: packet block of %d bytes", len(b))
	}
	rec.Iface = r.order.Uint32(b)
	if old {
		rec.Iface = uint32(r.order.Uint16(b))
	}
	if int(rec.Iface) >= len(r.ifaces) {
		return rec, nil, r.fail("pcapng: packet of interface %d, but %d are described", rec.Iface, len(r.ifaces))
	}
	it := &r.ifaces[rec.Iface]
	rec.Time = it.nanos(uint64(r.order.Uint32(b[4:]))<<32 | uint64(r.order.Uint32(b[8:])))
	n := r.order.Uint32(b[12:])
	rec.Wire = max(r.order.Uint32(b[16:]), n)
	if uint64(n) > uint64(len(b)-20) {
		return rec, nil, r.fail("pcapng: packet of %d bytes in a block with %d", n, len(b)-20)
	}
	data = b[20 : 20+n]
	err = r.options(b[min(len(b), 20+int(n+3)&^3):], func(code uint16, v []byte) {
		switch {
		case code == optEPBFlags && len(v) >= 4:
			if d := Dir(r.order.Uint32(v) & 3); d <= DirOut && rec.Dir != DirDrop {
				rec.Dir = d
			}
		case code == optComment && strings.HasPrefix(string(v), dropComment):
			if why, ok := reasonNamed(string(v[len(dropComment):])); ok {
				rec.Dir, rec.Reason = DirDrop, why
			}
		}
	})
	return rec, data, err
}

func (r *Reader) simple(b []byte) (rec Record, data []byte, err error) {
	if len(b) < 4 || len(r.ifaces) == 0 {
		return rec, nil, r.fail("pcapng: simple packet block of %d bytes with %d interfaces", len(b), len(r.ifaces))
	}
	rec.Wire = r.order.Uint32(b)
	n := min(rec.Wire, uint32(len(b)-4))
	if s := r.ifaces[0].SnapLen; s > 0 {
		n = min(n, s)
	}
	return rec, b[4 : 4+n], nil
}

// nanos converts a time stamp to Unix nanoseconds, exactly.
func (it *Interface) nanos(t uint64) int64 {
	sec, frac := t/it.resol, t%it.resol
	hi, lo := bits.Mul64(frac, 1e9)
	ns, _ := bits.Div64(hi, lo, it.resol) // frac < resol, so the quotient is below 1e9
	return (int64(sec)+it.offset)*1e9 + int64(ns)
}

// options calls f for each option of b.
func (r *Reader) options(b []byte, f func(code uint16, v []byte)) error {
	for len(b) >= 4 {
		code, n := r.order.Uint16(b), int(r.order.Uint16(b[2:]))
		if code == optEnd {
			return nil
		}
		if b = b[4:]; n > len(b) {
			return r.fail("pcapng: option %d of %d bytes in a block with %d", code, n, len(b))
		}
		f(code, b[:n])
		b = b[min(len(b), (n+3)&^3):]
	}
	return nil
}

// take reads the next n bytes. It returns io.EOF only before the first one.
// The buffer grows with what is really there, not with what a length field
// claims.
func (r *Reader) take(n int) ([]byte, error) {
	r.offset = r.next
	r.block = r.block[:0]
	for len(r.block) < n {
		step := min(n-len(r.block), 64<<10)
		at := len(r.block)
		r.block = append(r.block, make([]byte, step)...)
		if _, err := io.ReadFull(r.r, r.block[at:]); err != nil {
			if at > 0 {
				err = noEOF(err)
			}
			return nil, err
		}
	}
	r.next += int64(n)
	return r.block, nil
}

func (r *Reader) fail(format string, args ...any) error {
	return fmt.Errorf("%s (at byte %d)", fmt.Sprintf(format, args...), r.offset)
}

func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

func reasonNamed(s string) (frame.Reason, bool) {
	for r := frame.Keep + 1; r < frame.NumReasons; r++ {
		if r.String() == s {
			return r, true
		}
	}
	return 0, false
}
