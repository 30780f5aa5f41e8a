package wire

import "gswitch/frame"

// Lengths of the ERSPAN headers, in bytes (draft-foschiano-erspan-03).
const (
	ERSPAN2Len         = 8
	ERSPAN3Len         = 12
	ERSPAN3PlatformLen = 8 // follows where the O bit is set
)

// Values of the version field.
const (
	ERSPANVersion2 uint8 = 1
	ERSPANVersion3 uint8 = 2
)

// ERSPAN is a view of the first words of an ERSPAN header, which types II and
// III share.
type ERSPAN []byte

func (h ERSPAN) Version() uint8    { return h[0] >> 4 }
func (h ERSPAN) VLAN() uint16      { return be.Uint16(h[0:2]) & 0xfff }
func (h ERSPAN) COS() uint8        { return h[2] >> 5 }
func (h ERSPAN) Truncated() bool   { return h[2]&4 != 0 }
func (h ERSPAN) SessionID() uint16 { return be.Uint16(h[2:4]) & 0x3ff }

// ERSPAN2Fields is an ERSPAN type II header.
type ERSPAN2Fields struct {
	VLAN      uint16 // 12 bits
	COS       uint8  // 3 bits
	Encap     uint8  // 2 bits: how the original was tagged
	Truncated bool
	SessionID uint16 // 10 bits
	Reserved  uint16 // 12 bits
	Index     uint32 // 20 bits: port and direction
}

func (f *ERSPAN2Fields) Encode(b []byte) int {
	if len(b) < ERSPAN2Len {
		return 0
	}
	be.PutUint16(b[0:2], uint16(ERSPANVersion2)<<12|f.VLAN&0xfff)
	be.PutUint16(b[2:4], erspanWord(f.COS, f.Encap, f.Truncated, f.SessionID))
	be.PutUint32(b[4:8], uint32(f.Reserved)<<20|f.Index&0xfffff)
	return ERSPAN2Len
}

func (f *ERSPAN2Fields) Decode(b []byte) (int, frame.Reason) {
	if len(b) < ERSPAN2Len {
		return 0, frame.ParseShortERSPAN
	}
	h := ERSPAN(b)
	if h.Version() != ERSPANVersion2 {
		return 0, frame.ParseERSPANVersion
	}
	w := be.Uint32(b[4:8])
	*f = ERSPAN2Fields{h.VLAN(), h.COS(), h[2] >> 3 & 3, h.Truncated(), h.SessionID(), uint16(w >> 20), w & 0xfffff}
	return ERSPAN2Len, frame.Keep
}

// ERSPAN3Fields is an ERSPAN type III header. Platform is the subheader, on the
// wire if HasPlatform.
type ERSPAN3Fields struct {
	VLAN        uint16 // 12 bits
	COS         uint8  // 3 bits
	BSO         uint8  // 2 bits: bad, short or oversized original
	Truncated   bool
	SessionID   uint16 // 10 bits
	Timestamp   uint32 // in units given by Granularity
	SGT         uint16
	ProtocolDU  bool  // P bit: the original is an Ethernet frame
	FrameType   uint8 // 5 bits
	HardwareID  uint8 // 6 bits
	Egress      bool  // D bit
	Granularity uint8 // 2 bits: 0 = 100 us, 1 = 100 ns, 2 = IEEE 1588
	HasPlatform bool
	Platform    uint64
}

func (f *ERSPAN3Fields) Encode(b []byte) int {
	n := ERSPAN3Len
	if f.HasPlatform {
		n += ERSPAN3PlatformLen
	}
	if len(b) < n {
		return 0
	}
	be.PutUint16(b[0:2], uint16(ERSPANVersion3)<<12|f.VLAN&0xfff)
	be.PutUint16(b[2:4], erspanWord(f.COS, f.BSO, f.Truncated, f.SessionID))
	be.PutUint32(b[4:8], f.Timestamp)
	be.PutUint16(b[8:10], f.SGT)
	w := uint16(f.FrameType&0x1f)<<10 | uint16(f.HardwareID&0x3f)<<4 | uint16(f.Granularity&3)<<1
	w |= bit(f.ProtocolDU)<<15 | bit(f.Egress)<<3 | bit(f.HasPlatform)
	be.PutUint16(b[10:12], w)
	if f.HasPlatform {
		be.PutUint64(b[12:20], f.Platform)
	}
	return n
}

func (f *ERSPAN3Fields) Decode(b []byte) (int, frame.Reason) {
	if len(b) < ERSPAN3Len {
		return 0, frame.ParseShortERSPAN
	}
	h := ERSPAN(b)
	if h.Version() != ERSPANVersion3 {
		return 0, frame.ParseERSPANVersion
	}
	n := erspan3Len(b)
	if len(b) < n {
		return 0, frame.ParseShortERSPAN
	}
	w := be.Uint16(b[10:12])
	*f = ERSPAN3Fields{
		VLAN: h.VLAN(), COS: h.COS(), BSO: h[2] >> 3 & 3, Truncated: h.Truncated(), SessionID: h.SessionID(),
		Timestamp: be.Uint32(b[4:8]), SGT: be.Uint16(b[8:10]),
		ProtocolDU: w>>15 != 0, FrameType: uint8(w >> 10 & 0x1f), HardwareID: uint8(w >> 4 & 0x3f),
		Egress: w>>3&1 != 0, Granularity: uint8(w >> 1 & 3), HasPlatform: w&1 != 0,
	}
	if f.HasPlatform {
		f.Platform = be.Uint64(b[12:20])
	}
	return n, frame.Keep
}

// erspan3Len needs the first ERSPAN3Len bytes.
func erspan3Len(b []byte) int { return ERSPAN3Len + ERSPAN3PlatformLen*int(b[11]&1) }

func erspanWord(cos, two uint8, truncated bool, session uint16) uint16 {
	return uint16(cos&7)<<13 | uint16(two&3)<<11 | bit(truncated)<<10 | session&0x3ff
}

func bit(b bool) uint16 {
	if b {
		return 1
	}
	return 0
}
