package wire

import "gswitch/frame"

// MACControlAddr is the group address of MAC control frames (IEEE 802.3
// annex 31B, IEEE 802.1Q 36.1).
var MACControlAddr = MAC{0x01, 0x80, 0xc2, 0x00, 0x00, 0x01}

// MAC control opcodes.
const (
	OpPause   uint16 = 0x0001 // IEEE 802.3 annex 31B
	OpPFC     uint16 = 0x0101 // IEEE 802.3 annex 31D, 802.1Q clause 36
	OpToken   uint16 = 0x0102 // project-local: permission for one frame of a flow to leave a paused queue
	OpRequest uint16 = 0x0103 // project-local: a request for such tokens
)

// QuantumBits is the length of one pause quantum in bit times (IEEE 802.3
// 31B.2).
const QuantumBits = 512

// KnownMACControl returns the bytes of parameters that the opcode needs, and
// whether the switch knows the opcode.
func KnownMACControl(op uint16) (params int, ok bool) {
	switch op {
	case OpPause:
		return 2, true
	case OpPFC:
		return 18, true
	case OpToken:
		return 15, true
	case OpRequest:
		return 16, true
	}
	return 0, false
}

// MACControl is a view of a whole MAC control frame, from its Ethernet header
// on.
type MACControl []byte

func (m MACControl) Opcode() uint16      { return be.Uint16(m[14:16]) }
func (m MACControl) PauseQuanta() uint16 { return be.Uint16(m[16:18]) }       // OpPause
func (m MACControl) Enabled() uint8      { return m[17] }                     // OpPFC: one bit per class
func (m MACControl) Quanta(c int) uint16 { return be.Uint16(m[18+2*(c&7):]) } // OpPFC
func (m MACControl) Params() []byte      { return m[16:] }

// PFCFields is a priority flow control frame: for each class whose bit is set
// in Enable, Quanta is how long to pause, 0 to go on.
type PFCFields struct {
	Src    MAC
	Enable uint8
	Quanta [8]uint16
}

// Encode writes a whole frame of MinFrame bytes without FCS. Quanta of classes
// that are not enabled are written as they stand.
func (f *PFCFields) Encode(b []byte) int {
	if !macControlHead(b, f.Src, OpPFC) {
		return 0
	}
	b[17] = f.Enable
	for c, q := range f.Quanta {
		be.PutUint16(b[18+2*c:], q)
	}
	return MinFrame
}

// Decode reads a whole frame. It wants the EtherType and the opcode to be
// right; padding may be missing and is ignored.
func (f *PFCFields) Decode(b []byte) (int, frame.Reason) {
	if why := checkMACControl(b, OpPFC); why != frame.Keep {
		return 0, why
	}
	m := MACControl(b)
	f.Src, f.Enable = Ethernet(b).Src(), m.Enabled()
	for c := range f.Quanta {
		f.Quanta[c] = m.Quanta(c)
	}
	return EthernetLen + 2 + 18, frame.Keep
}

// PauseFields is an 802.3x pause frame: the whole link stops for Quanta, 0 to
// go on.
type PauseFields struct {
	Src    MAC
	Quanta uint16
}

// Encode writes a whole frame of MinFrame bytes without FCS.
func (f *PauseFields) Encode(b []byte) int {
	if !macControlHead(b, f.Src, OpPause) {
		return 0
	}
	be.PutUint16(b[16:18], f.Quanta)
	return MinFrame
}

// Decode reads a whole frame, as PFCFields.Decode does.
func (f *PauseFields) Decode(b []byte) (int, frame.Reason) {
	if why := checkMACControl(b, OpPause); why != frame.Keep {
		return 0, why
	}
	f.Src, f.Quanta = Ethernet(b).Src(), MACControl(b).PauseQuanta()
	return EthernetLen + 2 + 2, frame.Keep
}

func macControlHead(b []byte, src MAC, op uint16) bool {
	if len(b) < MinFrame {
		return false
	}
	clear(b[:MinFrame])
	e := EthernetFields{MACControlAddr, src, EtherTypeMACControl}
	e.Encode(b)
	be.PutUint16(b[14:16], op)
	return true
}

func checkMACControl(b []byte, want uint16) frame.Reason {
	if len(b) < EthernetLen+2 {
		return frame.ParseShortMACControl
	}
	params, _ := KnownMACControl(want)
	switch {
	case Ethernet(b).EtherType() != EtherTypeMACControl || MACControl(b).Opcode() != want:
		return frame.ParseMACControlOp
	case len(b) < EthernetLen+2+params:
		return frame.ParseShortMACControl
	}
	return frame.Keep
}
