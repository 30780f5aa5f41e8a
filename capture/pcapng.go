package capture

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
)

// Block types and options of pcapng (draft-ietf-opsawg-pcapng-03, sections 4
// and 3.5).
const (
	blockSection    = 0x0a0d0d0a
	blockInterface  = 1
	blockPacket     = 2 // obsolete, still found in old files
	blockSimple     = 3
	blockStatistics = 5
	blockEnhanced   = 6

	byteOrderMagic = 0x1a2b3c4d

	optEnd          = 0
	optComment      = 1
	optUserAppl     = 4 // shb_userappl
	optIfName       = 2
	optIfDesc       = 3
	optIfTSResol    = 9
	optIfTSOffset   = 14
	optEPBFlags     = 2
	optISBReceived  = 4 // isb_ifrecv
	optISBDropped   = 5 // isb_ifdrop
	optISBOSDropped = 7 // isb_osdrop
)

// Writer writes one pcapng section in little-endian order with nanosecond
// times. Section comes first, then Interface for each interface, then
// packets. It is not safe for concurrent use.
type Writer struct {
	w      *bufio.Writer
	block  []byte // the block under construction
	ifaces uint32
}

// NewWriter returns a writer to w. Flush hands over what is buffered.
func NewWriter(w io.Writer) *Writer {
	return &Writer{w: bufio.NewWriterSize(w, 64<<10), block: make([]byte, 0, 2048)}
}

// Section writes the section header. comment may be empty.
func (w *Writer) Section(comment string) error {
	w.begin(blockSection)
	w.u32(byteOrderMagic)
	w.u32(1)          // version 1.0: major in the low half
	w.u32(0xffffffff) // section length not given
	w.u32(0xffffffff)
	w.option(optUserAppl, "gswitch")
	w.option(optComment, comment)
	return w.end(true)
}

// Interface describes the next interface, of Ethernet frames, and returns its
// index.
func (w *Writer) Interface(name, description string, snapLen int) (uint32, error) {
	w.begin(blockInterface)
	w.u32(LinkEthernet)
	w.u32(uint32(snapLen))
	w.option(optIfName, name)
	w.option(optIfDesc, description)
	w.option(optIfTSResol, "\x09") // 10^-9 s
	id := w.ifaces
	w.ifaces++
	return id, w.end(true)
}

// Packet writes one frame. The direction goes into epb_flags (draft section
// 4.3: 1 inbound, 2 outbound); a dropped frame is inbound with a comment that
// names the reason.
func (w *Writer) Packet(rec Record, data []byte) error {
	if rec.Iface >= w.ifaces {
		return fmt.Errorf("pcapng: packet of interface %d, but %d interfaces are described", rec.Iface, w.ifaces)
	}
	w.begin(blockEnhanced)
	w.u32(rec.Iface)
	w.u32(uint32(uint64(rec.Time) >> 32))
	w.u32(uint32(rec.Time))
	w.u32(uint32(len(data)))
	w.u32(rec.Wire)
	w.block = append(w.block, data...)
	w.pad()
	switch rec.Dir {
	case DirIn:
		w.flags(1)
	case DirOut:
		w.flags(2)
	case DirDrop:
		w.flags(1)
		w.optionHead(optComment, len(dropComment)+len(rec.Reason.String()))
		w.block = append(w.block, dropComment...)
		w.block = append(w.block, rec.Reason.String()...)
		w.pad()
	}
	return w.end(rec.Dir != DirNone)
}

// dropComment stands before the reason of a dropped frame.
const dropComment = "drop: "

// Statistics writes an interface statistics block: how many frames the tap
// selected and how many of them the capture lost. now is in Unix nanoseconds.
func (w *Writer) Statistics(iface uint32, now int64, received, dropped uint64) error {
	if iface >= w.ifaces {
		return nil
	}
	w.begin(blockStatistics)
	w.u32(iface)
	w.u32(uint32(uint64(now) >> 32))
	w.u32(uint32(now))
	w.optionHead(optISBReceived, 8)
	w.block = binary.LittleEndian.AppendUint64(w.block, received)
	w.optionHead(optISBDropped, 8)
	w.block = binary.LittleEndian.AppendUint64(w.block, dropped)
	return w.end(true)
}

// Flush hands what is buffered to the underlying writer.
func (w *Writer) Flush() error { return w.w.Flush() }

func (w *Writer) begin(kind uint32) {
	w.block = w.block[:0]
	w.u32(kind)
	w.u32(0) // total length, known at the end
}

func (w *Writer) end(options bool) error {
	if options {
		w.u32(optEnd)
	}
	total := uint32(len(w.block) + 4)
	binary.LittleEndian.PutUint32(w.block[4:], total)
	w.u32(total)
	_, err := w.w.Write(w.block)
	return err
}

func (w *Writer) u32(v uint32) { w.block = binary.LittleEndian.AppendUint32(w.block, v) }

func (w *Writer) pad() {
	for len(w.block)&3 != 0 {
		w.block = append(w.block, 0)
	}
}

func (w *Writer) optionHead(code, n int) {
	w.block = binary.LittleEndian.AppendUint16(w.block, uint16(code))
	w.block = binary.LittleEndian.AppendUint16(w.block, uint16(n))
}

func (w *Writer) flags(v uint32) {
	w.optionHead(optEPBFlags, 4)
	w.u32(v)
}

// option appends a text option, if there is text.
func (w *Writer) option(code int, s string) {
	if s == "" {
		return
	}
	s = s[:min(len(s), 1<<16-1)]
	w.optionHead(code, len(s))
	w.block = append(w.block, s...)
	w.pad()
}
