package clocksync

import (
	"encoding/binary"
	"hash/crc32"

	"gswitch/wire"
)

// Packet is a PTP message with what Sundial adds to it.
type Packet struct {
	wire.PTPFields
	Sundial    Fields // behind Sync, Announce and answers to requests
	HasSundial bool
	// Unsealed leaves the CRC out: of a frame that is written anew when it departs.
	Unsealed bool
}

// Fields is what Sundial adds to a message, in the TLV of an organisation.
type Fields struct {
	Epoch       uint32 // of the plan
	Uncertainty uint32 // of the sender's clock in ns; all ones: without bound
	Depth       uint8  // hops from the root
	Flags       uint8
	Root        uint64 // clock identity
	Late        uint32 // by how many ns the time may be wrong beyond what its hops are allowed; all ones: more
}

// Lengths of the data of the TLV.
const (
	fieldsLen = 22
	crcLen    = 4
)

// tlv is where the fields stand. It has a locally administered identifier (IEEE 802c), since the project has none of its
// own.
var tlv = wire.PTPOrganisation{ID: [6]byte{0x02, 0x67, 0x73, 0x00, 0x00, 0x01}, Len: fieldsLen + crcLen}

// MaxPacket is the longest frame that Encode makes.
const MaxPacket = wire.MaxPTP + wire.PTPOrganisationHead + fieldsLen + crcLen

var be = binary.BigEndian

// Encode writes a whole frame without FCS and returns its length, 0 if b is too small or
// the type is not known. A message with Sundial's fields ends with a CRC over all from the
// PTP header on, with a correction of zero: veth has no FCS, and the correction changes
// where a stamp is taken late.
func (f *Packet) Encode(b []byte) int {
	if !f.HasSundial {
		return f.PTPFields.Encode(b)
	}
	correction := f.Correction
	f.Correction = 0 // of which the CRC is
	n, at := f.EncodeWith(b, &tlv)
	if f.Correction = correction; n == 0 {
		return 0
	}
	s, t := &f.Sundial, b[at:at+fieldsLen+crcLen]
	be.PutUint32(t, s.Epoch)
	be.PutUint32(t[4:], s.Uncertainty)
	t[8], t[9] = s.Depth, s.Flags
	be.PutUint64(t[10:], s.Root)
	be.PutUint32(t[18:], s.Late)
	if !f.Unsealed {
		be.PutUint32(t[fieldsLen:], crc32.ChecksumIEEE(b[wire.EthernetLen:at+fieldsLen]))
	}
	wire.SetPTPCorrection(b, correction)
	return n
}

// Decode reads a whole PTP frame. What it does not know of, other types and TLVs, is no
// error of the frame: Type says which it is, and HasSundial stays false. ok is false where
// lengths, version, time or check are wrong, or Sundial's fields are there twice: each time
// would cost a check of all before it. b is the caller's own: while the check is made its
// correction is zero.
func (f *Packet) Decode(b []byte) (n int, ok bool) {
	f.Sundial, f.HasSundial, f.Unsealed = Fields{}, false, false
	n, at, ok := f.DecodeWith(b, &tlv)
	if !ok || at == 0 {
		return n, ok
	}
	t := b[at : at+fieldsLen+crcLen]
	wire.SetPTPCorrection(b, 0)
	sum := crc32.ChecksumIEEE(b[wire.EthernetLen : at+fieldsLen])
	if wire.SetPTPCorrection(b, f.Correction); be.Uint32(t[fieldsLen:]) != sum {
		return 0, false
	}
	f.HasSundial = true
	f.Sundial = Fields{Epoch: be.Uint32(t), Uncertainty: be.Uint32(t[4:]), Depth: t[8], Flags: t[9], Root: be.Uint64(t[10:]), Late: be.Uint32(t[18:])}
	return n, true
}
