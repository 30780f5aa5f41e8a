package wire

import "gswitch/frame"

// UDPLen is the length of a UDP header, in bytes (RFC 768).
const UDPLen = 8

// UDP is a view of a UDP header.
type UDP []byte

func (h UDP) SrcPort() uint16      { return be.Uint16(h[0:2]) }
func (h UDP) DstPort() uint16      { return be.Uint16(h[2:4]) }
func (h UDP) Length() uint16       { return be.Uint16(h[4:6]) }
func (h UDP) Checksum() uint16     { return be.Uint16(h[6:8]) }
func (h UDP) SetSrcPort(v uint16)  { be.PutUint16(h[0:2], v) }
func (h UDP) SetDstPort(v uint16)  { be.PutUint16(h[2:4], v) }
func (h UDP) SetLength(v uint16)   { be.PutUint16(h[4:6], v) }
func (h UDP) SetChecksum(v uint16) { be.PutUint16(h[6:8], v) }

// UDPFields is a UDP header. Length counts header and payload.
type UDPFields struct {
	SrcPort, DstPort uint16
	Length           uint16
	Checksum         uint16
}

func (f *UDPFields) Encode(b []byte) int {
	if len(b) < UDPLen {
		return 0
	}
	h := UDP(b)
	h.SetSrcPort(f.SrcPort)
	h.SetDstPort(f.DstPort)
	h.SetLength(f.Length)
	h.SetChecksum(f.Checksum)
	return UDPLen
}

func (f *UDPFields) Decode(b []byte) (int, frame.Reason) {
	if len(b) < UDPLen {
		return 0, frame.ParseShortUDP
	}
	h := UDP(b)
	if h.Length() < UDPLen {
		return 0, frame.ParseUDPLen
	}
	*f = UDPFields{h.SrcPort(), h.DstPort(), h.Length(), h.Checksum()}
	return UDPLen, frame.Keep
}
