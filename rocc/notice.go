package rocc

import (
	"encoding/binary"
	"errors"
)

// version of the layout below.
const version = 1

// NoticeLen is the length of a notice without what it quotes, from the ICMP
// header on.
const NoticeLen = 8 + 24

// Notice is what a congestion point sends to the sender of a flow. On the wire it
// is an ICMP message whose header's last word and body are
//
//	version, stretch of the period (4 bits each); class; port
//	switch
//	fair rate in units
//	unit in bit/s
//	queue in bytes, now
//	queue in bytes, one period ago
//	number of the update
//	the packet from its IP header on: that header, ports, transport header
//
// all big-endian.
type Notice struct {
	Stretch  uint8 // of the period, see StretchOf
	Class    uint8
	Port     uint16
	Switch   uint32
	Fair     uint32 // in Unit
	Unit     uint32 // bit/s
	Queue    uint32
	Before   uint32
	Sequence uint32
}

// Rate returns the fair rate in bit/s.
func (n *Notice) Rate() float64 { return float64(n.Fair) * float64(n.Unit) }

// Point numbers the congestion point.
func (n *Notice) Point() uint64 {
	return uint64(n.Switch)<<32 | uint64(n.Port)<<8 | uint64(n.Class)
}

// Encode writes an ICMP message of the given type without its checksum to b
// and returns its length. b has room for NoticeLen and the quote.
func (n *Notice) Encode(b []byte, icmp uint8, quote []byte) int {
	be := binary.BigEndian
	b[0], b[1], b[2], b[3] = icmp, CodeRate, 0, 0
	b[4], b[5] = version<<4|n.Stretch&maxStretch, n.Class
	be.PutUint16(b[6:], n.Port)
	be.PutUint32(b[8:], n.Switch)
	be.PutUint32(b[12:], n.Fair)
	be.PutUint32(b[16:], n.Unit)
	be.PutUint32(b[20:], n.Queue)
	be.PutUint32(b[24:], n.Before)
	be.PutUint32(b[28:], n.Sequence)
	return NoticeLen + copy(b[NoticeLen:], quote)
}

// Errors of Decode.
var (
	ErrShort   = errors.New("rocc: the notice is cut off")
	ErrForeign = errors.New("rocc: an ICMP message of this type, but no notice")
)

// Decode reads an ICMP message whose checksum is right, and returns what it
// quotes. Other experiments use the type as well.
func (n *Notice) Decode(b []byte, icmp uint8) (quote []byte, err error) {
	if len(b) < 8 {
		return nil, ErrShort
	}
	if b[0] != icmp || b[1] != CodeRate || b[4]>>4 != version {
		return nil, ErrForeign
	}
	if len(b) < NoticeLen {
		return nil, ErrShort
	}
	be := binary.BigEndian
	*n = Notice{Stretch: b[4] & maxStretch, Class: b[5], Port: be.Uint16(b[6:]), Switch: be.Uint32(b[8:]), Fair: be.Uint32(b[12:]), Unit: be.Uint32(b[16:]),
		Queue: be.Uint32(b[20:]), Before: be.Uint32(b[24:]), Sequence: be.Uint32(b[28:])}
	if n.Class > 7 || n.Fair == 0 || n.Unit == 0 {
		return nil, ErrForeign
	}
	return b[NoticeLen:], nil
}
