package wire

import "gswitch/frame"

// The formats of tokens (Menikkumbura, "Congestion Management in Data Center
// Networks", Purdue 2022, chapter 4): the token that a switch sends against the
// direction of the data, and the mark on a frame that leaves a paused queue by
// one. The request for tokens, in the direction of the data, is this project's.

// FlowID is the five-tuple of an IPv4 flow.
type FlowID struct {
	Addrs uint64 // source and destination address
	Ports uint32 // source and destination port
	Proto uint8
}

const flowIDLen = 13

// TokenFields is a token: a MAC control frame with opcode OpToken, a FlowID and
// a count of hops, big-endian, padded to MinFrame. It permits the neighbour to
// send one frame of the flow although its class is paused.
type TokenFields struct {
	Src  MAC
	Flow FlowID
	Hops uint16 // from the switch that made it; 1 on the first link
}

// Encode writes a whole frame of MinFrame bytes without FCS.
func (f *TokenFields) Encode(b []byte) int {
	if !macControlHead(b, f.Src, OpToken) {
		return 0
	}
	putFlow(b[16:], f.Flow, f.Hops)
	return MinFrame
}

// Decode reads a whole frame, as PFCFields.Decode does.
func (f *TokenFields) Decode(b []byte) (int, frame.Reason) {
	if why := checkMACControl(b, OpToken); why != frame.Keep {
		return 0, why
	}
	f.Src = Ethernet(b).Src()
	f.Flow, f.Hops = flowAt(b[16:])
	return EthernetLen + 2 + flowIDLen + 2, frame.Keep
}

// RequestFields is a request for tokens: a MAC control frame with opcode
// OpRequest, then as a token, and the traffic class. It notifies the neighbour that
// frames of the flow wait here.
type RequestFields struct {
	Src   MAC
	Flow  FlowID
	Hops  uint16 // from the switch in which the frames wait; 1 on the first link
	Class uint8
}

// Encode writes a whole frame of MinFrame bytes without FCS.
func (f *RequestFields) Encode(b []byte) int {
	if !macControlHead(b, f.Src, OpRequest) {
		return 0
	}
	putFlow(b[16:], f.Flow, f.Hops)
	b[31] = f.Class
	return MinFrame
}

// Decode reads a whole frame, as PFCFields.Decode does.
func (f *RequestFields) Decode(b []byte) (int, frame.Reason) {
	if why := checkMACControl(b, OpRequest); why != frame.Keep {
		return 0, why
	}
	f.Src = Ethernet(b).Src()
	f.Flow, f.Hops = flowAt(b[16:])
	f.Class = b[31]
	return EthernetLen + 2 + flowIDLen + 2 + 1, frame.Keep
}

func putFlow(b []byte, f FlowID, hops uint16) {
	be.PutUint64(b, f.Addrs)
	be.PutUint32(b[8:], f.Ports)
	b[12] = f.Proto
	be.PutUint16(b[13:], hops)
}

func flowAt(b []byte) (f FlowID, hops uint16) {
	return FlowID{be.Uint64(b), be.Uint32(b[8:]), b[12]}, be.Uint16(b[13:])
}

// EtherTypeTokenMark marks a frame that left a paused queue by a token: IEEE
// 802's first EtherType for local experiments. As with a VLAN tag, two bytes
// and the EtherType of before follow. The first is how many switches on the
// frame's way have a place reserved for it, the second its traffic class.
const EtherTypeTokenMark uint16 = 0x88b5

// TokenMarkLen is what the mark adds to a frame.
const TokenMarkLen = 4

// PushTokenMark marks a parsed frame. It returns false and changes nothing if the
// headroom is too small.
func PushTokenMark(a *frame.Arena, r frame.Ref, hops, class uint8) bool {
	b := a.Push(r, TokenMarkLen)
	if b == nil {
		return false
	}
	copy(b[:12], b[TokenMarkLen:TokenMarkLen+12])
	be.PutUint16(b[12:14], EtherTypeTokenMark)
	b[14], b[15] = hops, class
	shiftOffsets(a.Meta(r), TokenMarkLen)
	return true
}

// PopTokenMark takes the mark off a frame that is not parsed yet. It reports
// whether there was one.
func PopTokenMark(a *frame.Arena, r frame.Ref) (hops, class uint8, ok bool) {
	b := a.Bytes(r)
	if len(b) < EthernetLen+TokenMarkLen || be.Uint16(b[12:14]) != EtherTypeTokenMark {
		return 0, 0, false
	}
	hops, class = b[14], b[15]
	copy(b[TokenMarkLen:TokenMarkLen+12], b[:12])
	a.Pull(r, TokenMarkLen)
	return hops, class, true
}
