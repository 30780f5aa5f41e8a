package replay

import (
	"gswitch/frame"
	"gswitch/wire"
)

// InputKind is what a node was given.
type InputKind uint8

// Kinds of inputs.
const (
	FrameInput   InputKind = iota // a frame
	MarkInput                     // its congestion mark (ECN CE); without it, it is ECT(0)
	LinkInput                     // a change of a link
	CommandInput                  // a command
	MissInput                     // allocations that fail in a call
	CheckInput                    // checks of payload that fail in a call
	InputKinds
)

// Input is something that a node was given.
type Input struct {
	Kind    InputKind
	Number  uint64 // among those of its kind, from 0 on: the same in each replay of a record
	At      frame.Time
	Port    uint16    // FrameInput, MarkInput, LinkInput
	Up      bool      // LinkInput
	Count   uint64    // MissInput, CheckInput: how many
	Frame   frame.Ref // FrameInput, MarkInput: until Keep returns
	Command []byte    // CommandInput
}

// given asks whether the node gets an input.
func (p *Player) given(in Input) bool {
	if p.Keep == nil {
		return true
	}
	in.At, in.Number = p.now, p.inputs[in.Kind]
	p.inputs[in.Kind]++
	return p.Keep(&in)
}

// givenFrame asks whether the node gets a frame, and with its mark.
func (p *Player) givenFrame(r frame.Ref, port uint16) bool {
	if p.Keep == nil {
		return true
	}
	at := marked(p.Arena.Bytes(r))
	kept := p.given(Input{Kind: FrameInput, Port: port, Frame: r})
	if at >= 0 && !p.given(Input{Kind: MarkInput, Port: port, Frame: r}) {
		unmark(p.Arena.Bytes(r), at)
	}
	return kept
}

// marked returns where the IP header of a frame begins that has a congestion mark, -1 if
// it has none.
func marked(b []byte) int {
	h := scan(b)
	if h.l4 == 0 {
		return -1
	}
	ecn := b[h.l3+1] // IPv4: DSCP and ECN
	if b[h.l3]>>4 == 6 {
		ecn >>= 4
	}
	if ecn&3 != wire.CE {
		return -1
	}
	return h.l3
}

// unmark makes CE ECT(0): a bit less in the first 16 bits of an IPv4 header, or two bytes
// of an IPv6 one.
func unmark(b []byte, l3 int) {
	if b[l3]>>4 == 6 {
		b[l3+1] &^= 1 << 4
		return
	}
	b[l3+1] &^= 1
	// RFC 1624, equation 3, of a word that becomes less by one.
	sum := uint32(be.Uint16(b[l3+10:])) + 1
	be.PutUint16(b[l3+10:], uint16(sum+sum>>16))
}
