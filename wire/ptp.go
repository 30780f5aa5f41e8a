package wire

// PTP over Ethernet (IEEE 1588-2019 annex E): peer-to-peer messages go to a group
// address that bridges do not forward.
const EtherTypePTP uint16 = 0x88f7

// PTPPeerAddr is where peer-delay and, here, all messages go (IEEE 1588-2019 E.3).
var PTPPeerAddr = MAC{0x01, 0x80, 0xc2, 0x00, 0x00, 0x0e}

// PTPType is a message type (IEEE 1588-2019 table 36).
type PTPType uint8

const (
	PTPSync               PTPType = 0x0
	PTPPdelayReq          PTPType = 0x2
	PTPPdelayResp         PTPType = 0x3
	PTPFollowUp           PTPType = 0x8
	PTPPdelayRespFollowUp PTPType = 0xa
	PTPAnnounce           PTPType = 0xb
)

// Lengths from the PTP header on.
const (
	ptpHeaderLen   = 34
	ptpSyncLen     = 44
	ptpPdelayLen   = 54 // request and response
	ptpAnnounceLen = 64
	ptpTLVHeader   = 4
)

// MaxPTP is the longest frame that Encode makes; EncodeWith adds a TLV.
const MaxPTP = EthernetLen + ptpAnnounceLen

// PTPFlags (IEEE 1588-2019 table 37), as one word.
const PTPTwoStep uint16 = 0x0200

// PTPTime is a time stamp of PTP: seconds of the epoch, 48 bits, and nanoseconds.
type PTPTime struct {
	Seconds     uint64
	Nanoseconds uint32
}

// PTPFields is a PTP message of version 2.1 (IEEE 1588-2019 clause 13).
type PTPFields struct {
	Src         MAC
	Type        PTPType
	Domain      uint8
	Flags       uint16
	Correction  int64  // nanoseconds times 2^16
	Clock       uint64 // identity of the sending clock
	Port        uint16
	Sequence    uint16
	LogInterval int8

	Time PTPTime // origin of Sync and Announce, receipt of a request in its response

	// Of a response: who asked.
	RequestClock uint64
	RequestPort  uint16

	// Of Announce.
	Grandmaster uint64
	Steps       uint16
	Class       uint8 // of the grandmaster's clock (table 4)
	Accuracy    uint8 // table 5
	Variance    uint16
	Priority1   uint8
	Priority2   uint8
	UTCOffset   int16
	Source      uint8 // table 6
}

// PTPOrganisation is what an organisation adds to messages: a TLV (IEEE 1588-2019 14.3) of
// type 0x8000, which others do not pass on.
type PTPOrganisation struct {
	ID  [6]byte // of the organisation, and its subtype
	Len int     // of the data in bytes, an even number
}

const ptpOrganisation uint16 = 0x8000

// PTPOrganisationHead is how many bytes stand before the data.
const PTPOrganisationHead = ptpTLVHeader + 6

// size is the length of the TLV in bytes.
func (o *PTPOrganisation) size() int {
	if o == nil {
		return 0
	}
	return PTPOrganisationHead + o.Len
}

func (t PTPType) length() int {
	switch t {
	case PTPSync, PTPFollowUp:
		return ptpSyncLen
	case PTPPdelayReq, PTPPdelayResp, PTPPdelayRespFollowUp:
		return ptpPdelayLen
	case PTPAnnounce:
		return ptpAnnounceLen
	}
	return 0
}

// Encode writes a whole frame without FCS and returns its length, 0 if b is too
// small or the type is not known.
func (f *PTPFields) Encode(b []byte) int {
	n, _ := f.EncodeWith(b, nil)
	return n
}

// EncodeWith is Encode with the TLV of an organisation behind the message: its data, which
// are zero, are the o.Len bytes of b from at on.
func (f *PTPFields) EncodeWith(b []byte, o *PTPOrganisation) (n, at int) {
	body := f.Type.length()
	n = EthernetLen + body + o.size()
	if body == 0 || len(b) < max(n, MinFrame) {
		return 0, 0
	}
	clear(b[:max(n, MinFrame)])
	copy(b, PTPPeerAddr[:])
	copy(b[6:], f.Src[:])
	be.PutUint16(b[12:], EtherTypePTP)
	p := b[EthernetLen:]
	p[0], p[1] = uint8(f.Type)&0xf, 0x12 // majorSdoId 0; minor version 1, version 2
	be.PutUint16(p[2:], uint16(n-EthernetLen))
	p[4] = f.Domain
	be.PutUint16(p[6:], f.Flags)
	be.PutUint64(p[20:], f.Clock)
	be.PutUint16(p[28:], f.Port)
	be.PutUint16(p[30:], f.Sequence)
	p[32], p[33] = f.control(), uint8(f.LogInterval)
	be.PutUint16(p[34:], uint16(f.Time.Seconds>>32))
	be.PutUint32(p[36:], uint32(f.Time.Seconds))
	be.PutUint32(p[40:], f.Time.Nanoseconds)
	switch f.Type {
	case PTPPdelayResp, PTPPdelayRespFollowUp:
		be.PutUint64(p[44:], f.RequestClock)
		be.PutUint16(p[52:], f.RequestPort)
	case PTPAnnounce:
		be.PutUint16(p[44:], uint16(f.UTCOffset))
		p[47], p[48], p[49] = f.Priority1, f.Class, f.Accuracy
		be.PutUint16(p[50:], f.Variance)
		p[52] = f.Priority2
		be.PutUint64(p[53:], f.Grandmaster)
		be.PutUint16(p[61:], f.Steps)
		p[63] = f.Source
	}
	if o != nil {
		t := p[body:]
		be.PutUint16(t, ptpOrganisation)
		be.PutUint16(t[2:], uint16(o.size()-ptpTLVHeader))
		copy(t[ptpTLVHeader:], o.ID[:])
		at = n - o.Len
	}
	SetPTPCorrection(b, f.Correction)
	return max(n, MinFrame), at
}

// control is the field that version 1 had in the type's place (table 42).
func (f *PTPFields) control() uint8 {
	switch f.Type {
	case PTPSync:
		return 0
	case PTPFollowUp:
		return 2
	}
	return 5
}

// SetPTPCorrection writes the correction of a PTP frame, in ns times 2^16.
func SetPTPCorrection(b []byte, correction int64) {
	be.PutUint64(b[EthernetLen+8:], uint64(correction))
}

// PTPSequence reads the sequence number of a PTP frame.
func PTPSequence(b []byte) uint16 { return be.Uint16(b[EthernetLen+30:]) }

// Decode reads a whole PTP frame. What it does not know of, other types and TLVs,
// is no error of the frame: Type says which it is. ok is false where lengths, version or
// time are wrong.
func (f *PTPFields) Decode(b []byte) (n int, ok bool) {
	n, _, ok = f.DecodeWith(b, nil)
	return n, ok
}

// DecodeWith is Decode of a frame with the TLV of an organisation: its data are the o.Len
// bytes of b from at on; 0: there is none. ok is false, too, where there are two.
func (f *PTPFields) DecodeWith(b []byte, o *PTPOrganisation) (n, at int, ok bool) {
	if len(b) < EthernetLen+ptpHeaderLen || be.Uint16(b[12:]) != EtherTypePTP {
		return 0, 0, false
	}
	p := b[EthernetLen:]
	n = int(be.Uint16(p[2:]))
	body := PTPType(p[0] & 0xf).length()
	if p[1]&0xf != 2 || n < max(ptpHeaderLen, body) || n > len(p) {
		return 0, 0, false
	}
	*f = PTPFields{
		Src: Ethernet(b).Src(), Type: PTPType(p[0] & 0xf), Domain: p[4], Flags: be.Uint16(p[6:]), Correction: int64(be.Uint64(p[8:])),
		Clock: be.Uint64(p[20:]), Port: be.Uint16(p[28:]), Sequence: be.Uint16(p[30:]), LogInterval: int8(p[33]),
	}
	if body == 0 {
		return EthernetLen + n, 0, true
	}
	f.Time = PTPTime{uint64(be.Uint16(p[34:]))<<32 | uint64(be.Uint32(p[36:])), be.Uint32(p[40:])}
	if f.Time.Nanoseconds >= 1e9 {
		return 0, 0, false
	}
	switch f.Type {
	case PTPPdelayResp, PTPPdelayRespFollowUp:
		f.RequestClock, f.RequestPort = be.Uint64(p[44:]), be.Uint16(p[52:])
	case PTPAnnounce:
		f.UTCOffset, f.Priority1, f.Class, f.Accuracy = int16(be.Uint16(p[44:])), p[47], p[48], p[49]
		f.Variance, f.Priority2, f.Grandmaster, f.Steps, f.Source = be.Uint16(p[50:]), p[52], be.Uint64(p[53:]), be.Uint16(p[61:]), p[63]
	}
	for i := body; i+ptpTLVHeader <= n; {
		t := p[i:n]
		length := ptpTLVHeader + int(be.Uint16(t[2:]))
		if length > len(t) {
			return 0, 0, false
		}
		if o != nil && be.Uint16(t) == ptpOrganisation && length == o.size() && [6]byte(t[ptpTLVHeader:PTPOrganisationHead]) == o.ID {
			if at != 0 {
				return 0, 0, false
			}
			at = EthernetLen + i + PTPOrganisationHead
		}
		i += length
	}
	return EthernetLen + n, at, true
}
