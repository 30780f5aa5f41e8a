package wire

import "gswitch/frame"

// RoCEv2Port is the UDP destination port of RoCEv2 (IBTA annex A17).
const RoCEv2Port uint16 = 4791

// ConnectionManagerPort is the UDP destination port of the datagrams by which hosts
// open queue pairs. Tools of RDMA use its TCP namesake for the same purpose.
const ConnectionManagerPort uint16 = 18515

// Lengths of the InfiniBand transport headers, in bytes (IBTA volume 1,
// chapter 9), and of the invariant CRC that ends a packet.
const (
	BTHLen          = 12
	RETHLen         = 16
	AETHLen         = 4
	ImmDtLen        = 4
	AtomicETHLen    = 28
	AtomicAckETHLen = 8
	IETHLen         = 4
	ICRCLen         = 4
)

// Opcodes of the reliable connection service (IBTA volume 1, table 38), and
// RoCEv2's congestion notification packet (annex A17).
const (
	RCSendFirst          uint8 = 0x00
	RCSendMiddle         uint8 = 0x01
	RCSendLast           uint8 = 0x02
	RCSendLastImmediate  uint8 = 0x03
	RCSendOnly           uint8 = 0x04
	RCSendOnlyImmediate  uint8 = 0x05
	RCWriteFirst         uint8 = 0x06
	RCWriteMiddle        uint8 = 0x07
	RCWriteLast          uint8 = 0x08
	RCWriteLastImmediate uint8 = 0x09
	RCWriteOnly          uint8 = 0x0a
	RCWriteOnlyImmediate uint8 = 0x0b
	RCReadRequest        uint8 = 0x0c
	RCReadResponseFirst  uint8 = 0x0d
	RCReadResponseMiddle uint8 = 0x0e
	RCReadResponseLast   uint8 = 0x0f
	RCReadResponseOnly   uint8 = 0x10
	RCAcknowledge        uint8 = 0x11
	RCAtomicAcknowledge  uint8 = 0x12
	RCCompareSwap        uint8 = 0x13
	RCFetchAdd           uint8 = 0x14
	RCSendLastInvalidate uint8 = 0x16
	RCSendOnlyInvalidate uint8 = 0x17
	RCReadAcknowledge    uint8 = 0x18 // of a read response, of selective transports (IRN section 5.3): reserved by IBTA
	RoCECongestionNotify uint8 = 0x81
)

// rcExtLen holds the bytes of extended headers that follow the BTH of an RC
// opcode.
var rcExtLen = [256]uint8{
	RCSendLastImmediate:  ImmDtLen,
	RCSendOnlyImmediate:  ImmDtLen,
	RCWriteFirst:         RETHLen,
	RCWriteLastImmediate: ImmDtLen,
	RCWriteOnly:          RETHLen,
	RCWriteOnlyImmediate: RETHLen + ImmDtLen,
	RCReadRequest:        RETHLen,
	RCReadResponseFirst:  AETHLen,
	RCReadResponseLast:   AETHLen,
	RCReadResponseOnly:   AETHLen,
	RCAcknowledge:        AETHLen,
	RCAtomicAcknowledge:  AETHLen + AtomicAckETHLen,
	RCCompareSwap:        AtomicETHLen,
	RCFetchAdd:           AtomicETHLen,
	RCSendLastInvalidate: IETHLen,
	RCSendOnlyInvalidate: IETHLen,
}

// RoCEHeaderLen returns the length of BTH and extended headers for an RC
// opcode; for opcodes of other services that of the BTH alone.
func RoCEHeaderLen(opcode uint8) int { return BTHLen + int(rcExtLen[opcode]) }

// RoCEPad is how many bytes follow a payload, up to whole words (IBTA 9.2.2).
func RoCEPad(payload uint32) uint32 { return -payload & 3 }

// BTH is a view of a base transport header (IBTA 9.2).
type BTH []byte

func (h BTH) Opcode() uint8     { return h[0] }
func (h BTH) Solicited() bool   { return h[1]&0x80 != 0 }
func (h BTH) PadCount() uint8   { return h[1] >> 4 & 3 }
func (h BTH) PKey() uint16      { return be.Uint16(h[2:4]) }
func (h BTH) FECN() bool        { return h[4]&0x80 != 0 }
func (h BTH) BECN() bool        { return h[4]&0x40 != 0 }
func (h BTH) DestQP() uint32    { return be.Uint32(h[4:8]) & 0xffffff }
func (h BTH) AckReq() bool      { return h[8]&0x80 != 0 }
func (h BTH) PSN() uint32       { return be.Uint32(h[8:12]) & 0xffffff }
func (h BTH) SetPSN(v uint32)   { be.PutUint32(h[8:12], uint32(h[8])<<24|v&0xffffff) }
func (h BTH) SetOpcode(v uint8) { h[0] = v }

// BTHFields is a base transport header.
type BTHFields struct {
	Opcode uint8
	Flags  uint8 // solicited 1 bit, migration 1, pad count 2, version 4
	PKey   uint16
	Resv8a uint8  // FECN 1 bit, BECN 1, reserved 6
	DestQP uint32 // 24 bits
	AckReq bool
	Resv7  uint8  // 7 bits after AckReq
	PSN    uint32 // 24 bits
}

func (f *BTHFields) Encode(b []byte) int {
	if len(b) < BTHLen {
		return 0
	}
	b[0], b[1] = f.Opcode, f.Flags
	be.PutUint16(b[2:4], f.PKey)
	be.PutUint32(b[4:8], uint32(f.Resv8a)<<24|f.DestQP&0xffffff)
	w := uint32(f.Resv7&0x7f)<<24 | f.PSN&0xffffff
	if f.AckReq {
		w |= 1 << 31
	}
	be.PutUint32(b[8:12], w)
	return BTHLen
}

func (f *BTHFields) Decode(b []byte) (int, frame.Reason) {
	if len(b) < BTHLen {
		return 0, frame.ParseShortRoCE
	}
	h := BTH(b)
	*f = BTHFields{h.Opcode(), h[1], h.PKey(), h[4], h.DestQP(), h.AckReq(), h[8] & 0x7f, h.PSN()}
	return BTHLen, frame.Keep
}

// RETHFields is an RDMA extended transport header (IBTA 9.3.3).
type RETHFields struct {
	VA     uint64
	RKey   uint32
	Length uint32 // bytes of the whole DMA operation
}

func (f *RETHFields) Encode(b []byte) int {
	if len(b) < RETHLen {
		return 0
	}
	be.PutUint64(b[0:8], f.VA)
	be.PutUint32(b[8:12], f.RKey)
	be.PutUint32(b[12:16], f.Length)
	return RETHLen
}

func (f *RETHFields) Decode(b []byte) (int, frame.Reason) {
	if len(b) < RETHLen {
		return 0, frame.ParseShortRoCE
	}
	*f = RETHFields{be.Uint64(b[0:8]), be.Uint32(b[8:12]), be.Uint32(b[12:16])}
	return RETHLen, frame.Keep
}

// Kinds of AETH syndrome, its bits 6 and 5 (IBTA table 46).
const (
	AETHAck    uint8 = 0x00 // low 5 bits: credit count
	AETHRNRNak uint8 = 0x20 // low 5 bits: timer
	AETHNak    uint8 = 0x60 // low 5 bits: code, 0 = PSN sequence error
)

// AETH is a view of an ACK extended transport header (IBTA 9.3.5).
type AETH []byte

func (h AETH) Syndrome() uint8 { return h[0] }
func (h AETH) MSN() uint32     { return be.Uint32(h[0:4]) & 0xffffff }

// AETHFields is an ACK extended transport header.
type AETHFields struct {
	Syndrome uint8
	MSN      uint32 // 24 bits
}

func (f *AETHFields) Encode(b []byte) int {
	if len(b) < AETHLen {
		return 0
	}
	be.PutUint32(b, uint32(f.Syndrome)<<24|f.MSN&0xffffff)
	return AETHLen
}

func (f *AETHFields) Decode(b []byte) (int, frame.Reason) {
	if len(b) < AETHLen {
		return 0, frame.ParseShortRoCE
	}
	*f = AETHFields{AETH(b).Syndrome(), AETH(b).MSN()}
	return AETHLen, frame.Keep
}

// ImmDtFields is an immediate data header (IBTA 9.3.6).
type ImmDtFields struct{ Data uint32 }

func (f *ImmDtFields) Encode(b []byte) int {
	if len(b) < ImmDtLen {
		return 0
	}
	be.PutUint32(b, f.Data)
	return ImmDtLen
}

func (f *ImmDtFields) Decode(b []byte) (int, frame.Reason) {
	if len(b) < ImmDtLen {
		return 0, frame.ParseShortRoCE
	}
	f.Data = be.Uint32(b)
	return ImmDtLen, frame.Keep
}

// AtomicETHFields is an atomic extended transport header (IBTA 9.3.4).
type AtomicETHFields struct {
	VA        uint64
	RKey      uint32
	SwapOrAdd uint64
	Compare   uint64
}

func (f *AtomicETHFields) Encode(b []byte) int {
	if len(b) < AtomicETHLen {
		return 0
	}
	be.PutUint64(b[0:8], f.VA)
	be.PutUint32(b[8:12], f.RKey)
	be.PutUint64(b[12:20], f.SwapOrAdd)
	be.PutUint64(b[20:28], f.Compare)
	return AtomicETHLen
}

func (f *AtomicETHFields) Decode(b []byte) (int, frame.Reason) {
	if len(b) < AtomicETHLen {
		return 0, frame.ParseShortRoCE
	}
	*f = AtomicETHFields{be.Uint64(b[0:8]), be.Uint32(b[8:12]), be.Uint64(b[12:20]), be.Uint64(b[20:28])}
	return AtomicETHLen, frame.Keep
}

// AtomicAckETHFields is an atomic ACK extended transport header (IBTA 9.3.5).
type AtomicAckETHFields struct{ Original uint64 }

func (f *AtomicAckETHFields) Encode(b []byte) int {
	if len(b) < AtomicAckETHLen {
		return 0
	}
	be.PutUint64(b, f.Original)
	return AtomicAckETHLen
}

func (f *AtomicAckETHFields) Decode(b []byte) (int, frame.Reason) {
	if len(b) < AtomicAckETHLen {
		return 0, frame.ParseShortRoCE
	}
	f.Original = be.Uint64(b)
	return AtomicAckETHLen, frame.Keep
}

// IsRoCEData reports whether an RC opcode carries payload of a message (IBTA
// volume 1, table 38).
func IsRoCEData(op uint8) bool {
	switch {
	case op <= RCWriteOnlyImmediate:
		return true
	case op >= RCReadResponseFirst && op <= RCReadResponseOnly:
		return true
	}
	return op == RCSendLastInvalidate || op == RCSendOnlyInvalidate
}
