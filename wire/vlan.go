package wire

import "gswitch/frame"

// VLANLen is the length of an 802.1Q or 802.1ad tag, in bytes.
const VLANLen = 4

// TCI puts a VLAN tag's control information together: PCP 3 bits, DEI 1 bit,
// VID 12 bits (IEEE 802.1Q 9.6).
func TCI(pcp uint8, dei bool, vid uint16) uint16 {
	t := uint16(pcp&7)<<13 | vid&0xfff
	if dei {
		t |= 1 << 12
	}
	return t
}

// TCIPCP, TCIDEI and TCIVID take control information apart.
func TCIPCP(tci uint16) uint8  { return uint8(tci >> 13) }
func TCIDEI(tci uint16) bool   { return tci>>12&1 != 0 }
func TCIVID(tci uint16) uint16 { return tci & 0xfff }

// IsTPID reports whether t announces a VLAN tag.
func IsTPID(t uint16) bool { return t == EtherTypeVLAN || t == EtherTypeQinQ }

// VLAN is a view of a tag from its TCI on: the TPID before it is the EtherType
// of what precedes.
type VLAN []byte

func (v VLAN) TCI() uint16           { return be.Uint16(v[0:2]) }
func (v VLAN) EtherType() uint16     { return be.Uint16(v[2:4]) }
func (v VLAN) SetTCI(t uint16)       { be.PutUint16(v[0:2], t) }
func (v VLAN) SetEtherType(t uint16) { be.PutUint16(v[2:4], t) }

// VLANFields is a tag from its TCI on. EtherType is that of what follows.
type VLANFields struct {
	PCP       uint8
	DEI       bool
	VID       uint16
	EtherType uint16
}

func (f *VLANFields) Encode(b []byte) int {
	if len(b) < VLANLen {
		return 0
	}
	v := VLAN(b)
	v.SetTCI(TCI(f.PCP, f.DEI, f.VID))
	v.SetEtherType(f.EtherType)
	return VLANLen
}

func (f *VLANFields) Decode(b []byte) (int, frame.Reason) {
	if len(b) < VLANLen {
		return 0, frame.ParseShortVLAN
	}
	v := VLAN(b)
	t := v.TCI()
	*f = VLANFields{TCIPCP(t), TCIDEI(t), TCIVID(t), v.EtherType()}
	return VLANLen, frame.Keep
}
