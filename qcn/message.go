package qcn

import (
	"encoding/binary"
	"errors"
)

// version distinguishes this message from others of the same experimental ICMP type.
const version = 2

// MessageLen is the length of a message without what it quotes, from the ICMP
// header on.
const MessageLen = 8 + 24

// Message is a congestion notification message. On the wire it is an ICMP
// message whose header's last word is the version in the upper four bits of
// the first byte, and whose body is the data unit of IEEE 802.1Qau, clause
// 33.4:
//
//	version 0 (4 bits), 0 (6 bits), quantized feedback (6 bits)
//	congestion point (8 bytes)
//	offset, growth of the queue, in 64 bytes (2 bytes each, signed)
//	priority of the sampled frame (3 bits), 0 (13 bits)
//	its destination MAC address (6 bytes): not filled in here
//	length of what follows (2 bytes)
//	the packet from its network header on
//
// all big-endian.
type Message struct {
	Feedback uint8
	Point    uint64
	Offset   int16 // of 64 bytes, saturated
	Delta    int16
	Priority uint8
}

// units returns a length in 64 bytes, saturated.
func units(bytes int64) int16 { return int16(min(max(bytes/64, -1<<15), 1<<15-1)) }

// Set fills in what a sample found.
func (m *Message) Set(s Sample) {
	m.Feedback, m.Offset, m.Delta = s.Feedback, units(s.Offset), units(s.Delta)
}

// Encode writes an ICMP message of the given type without its checksum to b
// and returns its length. b has room for MessageLen and the quote.
func (m *Message) Encode(b []byte, icmp uint8, quote []byte) int {
	be := binary.BigEndian
	clear(b[:MessageLen])
	b[0], b[4] = icmp, version<<4
	be.PutUint16(b[8:], uint16(m.Feedback&MaxFeedback))
	be.PutUint64(b[10:], m.Point)
	be.PutUint16(b[18:], uint16(m.Offset))
	be.PutUint16(b[20:], uint16(m.Delta))
	b[22] = m.Priority << 5
	be.PutUint16(b[30:], uint16(len(quote)))
	return MessageLen + copy(b[MessageLen:], quote)
}

// Errors of Decode.
var (
	ErrShort   = errors.New("qcn: the message is cut off")
	ErrForeign = errors.New("qcn: an ICMP message of this type, but no congestion notification")
)

// Decode reads an ICMP message whose checksum is right, and returns what it
// quotes. Other experiments use the type as well.
func (m *Message) Decode(b []byte, icmp uint8) (quote []byte, err error) {
	if len(b) < 8 {
		return nil, ErrShort
	}
	if b[0] != icmp || b[1] != 0 || b[4] != version<<4 || b[5]|b[6]|b[7] != 0 {
		return nil, ErrForeign
	}
	if len(b) < MessageLen {
		return nil, ErrShort
	}
	be := binary.BigEndian
	head, size := be.Uint16(b[8:]), int(be.Uint16(b[30:]))
	if head == 0 || head > MaxFeedback || b[22]&0x1f != 0 || b[23] != 0 {
		return nil, ErrForeign
	}
	if MessageLen+size > len(b) {
		return nil, ErrShort
	}
	*m = Message{Feedback: uint8(head), Point: be.Uint64(b[10:]), Offset: int16(be.Uint16(b[18:])), Delta: int16(be.Uint16(b[20:])), Priority: b[22] >> 5}
	return b[MessageLen : MessageLen+size], nil
}
