package hostnic

import (
	"gswitch/frame"
	"gswitch/transport"
	"gswitch/wire"
)

// readAck is the opcode of the acknowledgement of a read response, ACK or NAK
// by its AETH: one of those that the reliable connection service leaves
// unused (IRN section 5.2 asks for one).
const readAck = wire.RCReadAcknowledge

// family is what an opcode belongs to.
type family uint8

const (
	noFamily family = iota
	sendFamily
	writeFamily
	readFamily
	atomicFamily
	readResponse
	atomicResponse
)

// operation says what an opcode says of its packet.
type operation struct {
	family      family
	first, last bool
	imm         bool
}

var operations = [32]operation{
	wire.RCSendFirst:          {family: sendFamily, first: true},
	wire.RCSendMiddle:         {family: sendFamily},
	wire.RCSendLast:           {family: sendFamily, last: true},
	wire.RCSendLastImmediate:  {family: sendFamily, last: true, imm: true},
	wire.RCSendOnly:           {family: sendFamily, first: true, last: true},
	wire.RCSendOnlyImmediate:  {family: sendFamily, first: true, last: true, imm: true},
	wire.RCWriteFirst:         {family: writeFamily, first: true},
	wire.RCWriteMiddle:        {family: writeFamily},
	wire.RCWriteLast:          {family: writeFamily, last: true},
	wire.RCWriteLastImmediate: {family: writeFamily, last: true, imm: true},
	wire.RCWriteOnly:          {family: writeFamily, first: true, last: true},
	wire.RCWriteOnlyImmediate: {family: writeFamily, first: true, last: true, imm: true},
	wire.RCReadRequest:        {family: readFamily, first: true, last: true},
	wire.RCReadResponseFirst:  {family: readResponse, first: true},
	wire.RCReadResponseMiddle: {family: readResponse},
	wire.RCReadResponseLast:   {family: readResponse, last: true},
	wire.RCReadResponseOnly:   {family: readResponse, first: true, last: true},
	wire.RCAtomicAcknowledge:  {family: atomicResponse, first: true, last: true},
	wire.RCCompareSwap:        {family: atomicFamily, first: true, last: true},
	wire.RCFetchAdd:           {family: atomicFamily, first: true, last: true},
}

// operationOf returns what op says; family 0 if it is no operation of ours.
func operationOf(op uint8) operation {
	if int(op) >= len(operations) {
		return operation{}
	}
	return operations[op]
}

// kind returns what the packet is to the message sequence number: reads and
// atomics bump it too (IBTA 9.7.7.1).
func (o operation) kind() transport.PacketKind {
	switch {
	case !o.last:
		return transport.Middle
	case o.family == sendFamily, o.imm:
		return transport.LastCQE
	}
	return transport.Last
}

// opcodeOf returns the opcode of a packet of a message.
func opcodeOf(f family, first, last, imm bool) uint8 {
	base := wire.RCSendFirst
	switch f {
	case writeFamily:
		base = wire.RCWriteFirst
	case readResponse:
		switch {
		case first && last:
			return wire.RCReadResponseOnly
		case first:
			return wire.RCReadResponseFirst
		case last:
			return wire.RCReadResponseLast
		}
		return wire.RCReadResponseMiddle
	}
	// First, middle, last, last with immediate, only, only with immediate.
	op := base + 1
	switch {
	case first && last:
		op = base + 4
	case first:
		op = base
	case last:
		op = base + 2
	}
	if last && imm {
		op++
	}
	return op
}

// packet is one of an RDMA operation, decoded.
type packet struct {
	op      uint8
	seq     uint64
	offset  uint64 // of its payload in the message
	size    uint32 // of its payload
	payload []byte // nil: virtual
	reth    wire.RETHFields
	operand uint64 // of atomics: what is added or swapped in; of their response: what was there
	compare uint64
	imm     uint32
	sn      uint32 // number of the receive or read request that it uses, 24 bits
}

// orderLen is the header that requests of selective transports carry last, so
// that each packet can be placed when it arrives (IRN section 5.3): 8 bits
// reserved, the 24-bit number of the receive work request (Send, and the last
// packet of Write with immediate) or of the read request (Read, atomics); 8
// bits reserved, the 24-bit number of the packet in its message. Their Write
// packets all carry the RETH of the first.
const orderLen = 8

// maxExtension is the most that headersLen returns beside a payload, and
// maxExtensionAlone without one.
const (
	maxExtension      = wire.RETHLen + wire.ImmDtLen + orderLen
	maxExtensionAlone = wire.AtomicETHLen + orderLen
)

// headersLen returns the bytes between the BTH and the payload. In order is
// for transports whose receiver takes packets only in order.
func headersLen(op uint8, inOrder bool) int {
	o := operationOf(op)
	n := wire.RoCEHeaderLen(op) - wire.BTHLen
	if inOrder || o.family == readResponse || o.family == atomicResponse {
		return n
	}
	if o.family == writeFamily && !o.first {
		n += wire.RETHLen
	}
	return n + orderLen
}

// encode writes the headers of p behind a BTH and returns their length. msn
// goes into the AETH of responses.
func (p *packet) encode(b []byte, inOrder bool, mtu uint64, msn uint32) int {
	o := operationOf(p.op)
	n := 0
	switch {
	case o.family == readFamily, o.family == writeFamily && (o.first || !inOrder):
		n = p.reth.Encode(b)
	case o.family == atomicFamily:
		a := wire.AtomicETHFields{VA: p.reth.VA, RKey: p.reth.RKey, SwapOrAdd: p.operand, Compare: p.compare}
		n = a.Encode(b)
	case o.family == readResponse && (o.first || o.last), o.family == atomicResponse:
		a := wire.AETHFields{Syndrome: wire.AETHAck | noCredits, MSN: msn}
		n = a.Encode(b)
	}
	if o.family == atomicResponse {
		a := wire.AtomicAckETHFields{Original: p.operand}
		n += a.Encode(b[n:])
	}
	if o.imm {
		i := wire.ImmDtFields{Data: p.imm}
		n += i.Encode(b[n:])
	}
	if !inOrder && o.family != readResponse && o.family != atomicResponse {
		be.PutUint32(b[n:], p.sn&0xffffff)
		be.PutUint32(b[n+4:], uint32(p.offset/mtu)&0xffffff)
		n += orderLen
	}
	return n
}

// decode reads the headers of a packet behind its BTH. Sequence number, size
// and payload are the caller's to fill in.
func (p *packet) decode(b []byte, op uint8, inOrder bool, mtu uint64) (int, frame.Reason) {
	o := operationOf(op)
	if o.family == noFamily {
		return 0, frame.QPOpcode
	}
	n := headersLen(op, inOrder)
	if len(b) < n {
		return 0, frame.ParseShortRoCE
	}
	*p = packet{op: op}
	k := 0
	switch {
	case o.family == readFamily, o.family == writeFamily && (o.first || !inOrder):
		k, _ = p.reth.Decode(b)
	case o.family == atomicFamily:
		var a wire.AtomicETHFields
		k, _ = a.Decode(b)
		p.reth = wire.RETHFields{VA: a.VA, RKey: a.RKey, Length: atomicSize}
		p.operand, p.compare = a.SwapOrAdd, a.Compare
	case o.family == atomicResponse:
		p.operand = be.Uint64(b[wire.AETHLen:])
	}
	if o.imm {
		p.imm = be.Uint32(b[k:])
		k += wire.ImmDtLen
	}
	if !inOrder && o.family != readResponse && o.family != atomicResponse {
		p.sn = be.Uint32(b[k:]) & 0xffffff
		p.offset = uint64(be.Uint32(b[k+4:])&0xffffff) * mtu
	}
	return n, frame.Keep
}

// atomicSize is the operand of atomics, in bytes.
const atomicSize = 8

// noCredits is the credit count of a responder that counts none (IBTA
// 9.7.7.2.5).
const noCredits = 31
