package tcp

import (
	"encoding/binary"
	"errors"

	"gswitch/wire"
)

// Flow is the addresses and ports of a connection, from this end's side.
type Flow struct {
	Src, Dst         [4]byte
	SrcPort, DstPort uint16
}

// Reverse is the flow as the peer sees it.
func (f Flow) Reverse() Flow { return Flow{f.Dst, f.Src, f.DstPort, f.SrcPort} }

// AppendPacket appends a segment as an IPv4 packet with the given identification.
// A payload of which only the length is known is written as zeros.
func (s *Segment) AppendPacket(b []byte, f Flow, id uint16) []byte {
	start := len(b)
	b = s.AppendHeaders(b, f, 0, id)
	if s.Data == nil {
		return append(b, make([]byte, s.Len)...)
	}
	b = append(b, s.Data...)
	Seal(b[start+wire.IPv4Len:], f)
	return b
}

// Seal writes the checksum of a segment as it stands in a packet, from the header of TCP
// to the end of the payload.
func Seal(t []byte, f Flow) {
	t[16], t[17] = 0, 0
	binary.BigEndian.PutUint16(t[16:], wire.SegmentChecksum(wire.PseudoSum4(f.Src, f.Dst, wire.ProtoTCP, len(t)), t))
}

// AppendHeaders appends the headers alone, with the lengths and the checksum of a
// packet whose payload is zeros.
func (s *Segment) AppendHeaders(b []byte, f Flow, dscp uint8, id uint16) []byte {
	be := binary.BigEndian
	start := len(b)
	tos := dscp << 2
	if s.CE {
		tos |= 3
	} else if s.ECT {
		tos |= 2
	}
	b = append(b, 0x45, tos, 0, 0)
	b = be.AppendUint16(b, id)
	b = append(b, 0x40, 0, 64, wire.ProtoTCP, 0, 0)
	b = append(append(b, f.Src[:]...), f.Dst[:]...)
	h := len(b)
	b = be.AppendUint16(be.AppendUint16(b, f.SrcPort), f.DstPort)
	b = be.AppendUint32(be.AppendUint32(b, s.Seq), s.Ack)
	b = append(b, 0, uint8(s.Flags))
	b = be.AppendUint16(b, s.Window)
	b = append(b, 0, 0, 0, 0)
	b = s.Options.Append(b)
	b[h+12] = uint8((len(b)-h)/4) << 4
	be.PutUint16(b[start+2:], uint16(len(b)-start+s.Len))
	be.PutUint16(b[start+10:], wire.Checksum(b[start:h]))
	be.PutUint16(b[h+16:], wire.SegmentChecksum(wire.PseudoSum4(f.Src, f.Dst, wire.ProtoTCP, len(b)-h+s.Len), b[h:]))
	return b
}

// ErrPacket is wrapped by what ParsePacket returns.
var ErrPacket = errors.New("not a TCP packet")

// ParsePacket reads an IPv4 packet with a segment. The payload is not copied. The
// flow is that of the packet: from its sender's side.
func ParsePacket(b []byte) (s Segment, f Flow, err error) {
	if s, f, err = ParseWhole(b); err == nil && !Sealed(b, f) {
		err = ErrPacket
	}
	return s, f, err
}

// ParseWhole is ParsePacket without a look at the checksum of TCP, which is over the
// payload: Sealed says whether it is right.
func ParseWhole(b []byte) (s Segment, f Flow, err error) {
	if s, f, err = ParseHeaders(b); err != nil {
		return s, f, err
	}
	h, total := int(b[0]&0xf)*4, int(binary.BigEndian.Uint16(b[2:]))
	if total > len(b) || wire.Checksum(b[:h]) != 0 {
		return s, f, ErrPacket
	}
	s.Data = b[total-s.Len : total]
	return s, f, nil
}

// Sealed reports whether the checksum of TCP of a packet that ParseWhole has read is right.
func Sealed(b []byte, f Flow) bool {
	t := b[int(b[0]&0xf)*4 : binary.BigEndian.Uint16(b[2:])]
	return wire.SegmentChecksum(wire.PseudoSum4(f.Src, f.Dst, wire.ProtoTCP, len(t)), t) == 0
}

// ParseHeaders reads the headers of an IPv4 packet of which the payload need not be
// there, without a look at checksums. Data stays nil.
func ParseHeaders(b []byte) (s Segment, f Flow, err error) {
	be := binary.BigEndian
	if len(b) < wire.IPv4Len || b[0]>>4 != 4 || b[9] != wire.ProtoTCP {
		return s, f, ErrPacket
	}
	h, total := int(b[0]&0xf)*4, int(be.Uint16(b[2:]))
	if h < wire.IPv4Len || total < h+20 || len(b) < h+20 || be.Uint16(b[6:])&0x3fff != 0 {
		return s, f, ErrPacket
	}
	f = Flow{Src: [4]byte(b[12:16]), Dst: [4]byte(b[16:20])}
	t := b[h:min(total, len(b))]
	n := int(t[12]>>4) * 4
	if n < 20 || n > len(t) {
		return s, f, ErrPacket
	}
	f.SrcPort, f.DstPort = be.Uint16(t), be.Uint16(t[2:])
	o, ok := ParseOptions(t[20:n])
	if !ok {
		return s, f, ErrPacket
	}
	return Segment{Seq: be.Uint32(t[4:]), Ack: be.Uint32(t[8:]), Flags: Flags(t[13]), Window: be.Uint16(t[14:]), Options: o,
		Len: total - h - n, ECT: b[1]&3 != 0, CE: b[1]&3 == 3}, f, nil
}
