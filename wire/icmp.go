package wire

import "gswitch/frame"

// ICMPLen is the length of an ICMP header with its second word, in bytes.
const ICMPLen = 8

// ICMP types and codes (RFC 792, RFC 1191).
const (
	ICMPEchoReply       uint8 = 0
	ICMPDstUnreachable  uint8 = 3
	ICMPRedirect        uint8 = 5
	ICMPEcho            uint8 = 8
	ICMPTimeExceeded    uint8 = 11
	ICMPCodeNetUnreach  uint8 = 0
	ICMPCodeHostUnreach uint8 = 1
	ICMPCodePortUnreach uint8 = 3
	ICMPCodeFragNeeded  uint8 = 4
	ICMPCodeProhibited  uint8 = 13

	ICMPCodeRedirectHost uint8 = 1
)

// ICMP is a view of an ICMP header; its layout up to the second word is
// ICMPv6's too.
type ICMP []byte

func (h ICMP) Type() uint8          { return h[0] }
func (h ICMP) Code() uint8          { return h[1] }
func (h ICMP) Checksum() uint16     { return be.Uint16(h[2:4]) }
func (h ICMP) Rest() uint32         { return be.Uint32(h[4:8]) } // meaning depends on Type
func (h ICMP) EchoID() uint16       { return be.Uint16(h[4:6]) }
func (h ICMP) EchoSeq() uint16      { return be.Uint16(h[6:8]) }
func (h ICMP) NextMTU() uint16      { return be.Uint16(h[6:8]) } // fragmentation needed (RFC 1191)
func (h ICMP) SetType(v uint8)      { h[0] = v }
func (h ICMP) SetCode(v uint8)      { h[1] = v }
func (h ICMP) SetChecksum(v uint16) { be.PutUint16(h[2:4], v) }
func (h ICMP) SetRest(v uint32)     { be.PutUint32(h[4:8], v) }

// ICMPFields is an ICMP header: type, code, checksum and the word after them.
type ICMPFields struct {
	Type, Code uint8
	Checksum   uint16
	Rest       uint32
}

func (f *ICMPFields) Encode(b []byte) int {
	if len(b) < ICMPLen {
		return 0
	}
	h := ICMP(b)
	h.SetType(f.Type)
	h.SetCode(f.Code)
	h.SetChecksum(f.Checksum)
	h.SetRest(f.Rest)
	return ICMPLen
}

func (f *ICMPFields) Decode(b []byte) (int, frame.Reason) {
	if len(b) < ICMPLen {
		return 0, frame.ParseShortICMP
	}
	h := ICMP(b)
	*f = ICMPFields{h.Type(), h.Code(), h.Checksum(), h.Rest()}
	return ICMPLen, frame.Keep
}

// AnswerEcho makes the answer to an ICMP echo request, whose message is msg, of the packet
// itself (RFC 792; RFC 1122, 3.2.2.6), and reports whether it did. What is no request is
// left alone, and one that is damaged: an answer would make it look whole.
func AnswerEcho(ip IPv4, msg []byte) bool {
	if ICMP(msg).Type() != ICMPEcho || Checksum(msg) != 0 {
		return false
	}
	src, dst := ip.Src(), ip.Dst()
	ip.SetSrc(dst)
	ip.SetDst(src)
	ip.SetTTL(64)
	ip.UpdateChecksum()
	msg[0] = ICMPEchoReply
	UpdateICMPChecksum(0, msg)
	return true
}
