package wire

import "gswitch/frame"

// Lengths of a TCP header, in bytes (RFC 9293 section 3.1).
const (
	TCPLen    = 20
	TCPMaxLen = 60
)

// TCP flags, as in TCP.Flags.
const (
	TCPFin uint8 = 1 << iota
	TCPSyn
	TCPRst
	TCPPsh
	TCPAck
	TCPUrg
	TCPEce
	TCPCwr
)

// TCP is a view of a TCP header.
type TCP []byte

func (h TCP) SrcPort() uint16      { return be.Uint16(h[0:2]) }
func (h TCP) DstPort() uint16      { return be.Uint16(h[2:4]) }
func (h TCP) Seq() uint32          { return be.Uint32(h[4:8]) }
func (h TCP) Ack() uint32          { return be.Uint32(h[8:12]) }
func (h TCP) HeaderLen() int       { return int(h[12]>>4) * 4 }
func (h TCP) Flags() uint8         { return h[13] }
func (h TCP) Window() uint16       { return be.Uint16(h[14:16]) }
func (h TCP) Checksum() uint16     { return be.Uint16(h[16:18]) }
func (h TCP) Urgent() uint16       { return be.Uint16(h[18:20]) }
func (h TCP) Options() []byte      { return h[TCPLen:h.HeaderLen()] }
func (h TCP) SetSrcPort(v uint16)  { be.PutUint16(h[0:2], v) }
func (h TCP) SetDstPort(v uint16)  { be.PutUint16(h[2:4], v) }
func (h TCP) SetSeq(v uint32)      { be.PutUint32(h[4:8], v) }
func (h TCP) SetAck(v uint32)      { be.PutUint32(h[8:12], v) }
func (h TCP) SetFlags(v uint8)     { h[13] = v }
func (h TCP) SetWindow(v uint16)   { be.PutUint16(h[14:16], v) }
func (h TCP) SetChecksum(v uint16) { be.PutUint16(h[16:18], v) }

// TCPFields is a TCP header. The length of Options is a multiple of 4, at most
// 40.
type TCPFields struct {
	SrcPort, DstPort uint16
	Seq, Ack         uint32
	Reserved         uint8 // 4 bits after the data offset
	Flags            uint8
	Window           uint16
	Checksum         uint16
	Urgent           uint16
	Options          []byte
}

// Encode writes f; options that are too long or no multiple of 4 give 0.
func (f *TCPFields) Encode(b []byte) int {
	n := TCPLen + len(f.Options)
	if len(b) < n || n > TCPMaxLen || n%4 != 0 {
		return 0
	}
	h := TCP(b)
	h.SetSrcPort(f.SrcPort)
	h.SetDstPort(f.DstPort)
	h.SetSeq(f.Seq)
	h.SetAck(f.Ack)
	h[12] = uint8(n/4)<<4 | f.Reserved&0xf
	h.SetFlags(f.Flags)
	h.SetWindow(f.Window)
	h.SetChecksum(f.Checksum)
	be.PutUint16(h[18:20], f.Urgent)
	copy(h[TCPLen:n], f.Options)
	return n
}

func (f *TCPFields) Decode(b []byte) (int, frame.Reason) {
	if len(b) < TCPLen {
		return 0, frame.ParseShortTCP
	}
	h := TCP(b)
	n := h.HeaderLen()
	if n < TCPLen || n > len(b) {
		return 0, frame.ParseTCPOffset
	}
	*f = TCPFields{h.SrcPort(), h.DstPort(), h.Seq(), h.Ack(), h[12] & 0xf, h.Flags(), h.Window(), h.Checksum(), h.Urgent(), b[TCPLen:n:n]}
	return n, frame.Keep
}
