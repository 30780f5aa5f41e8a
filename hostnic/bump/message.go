package bump

import (
	"bytes"
	"encoding/binary"
	"errors"
)

// Port is the UDP port of the exchange, that of package agent.
const Port = 18515

type kind uint8

const (
	hello kind = 1 + iota
	welcome
	confirm
	open
	accept
	refuse
	closing
	closed
	busy
	reset
	numKinds
)

// Reasons of a Refuse.
const (
	noRoom uint8 = 1 + iota
	unknownFormat
	passes // a rule of the other end lets these packets pass
)

// message is a datagram between two bumps. Ports and queue pairs are named as
// the sender sees them: its own first.
type message struct {
	kind        kind
	reason      uint8
	proto       uint8
	host        bool // the channel is for all packets between the two addresses
	from, to    uint64
	nonce, echo uint64
	id          uint64
	qpn, peer   uint32
	lport       uint16
	rport       uint16
	port        uint16 // UDP source port of the frames of qpn, 0 unknown
	psn         uint32
	packet      uint32
	cap         uint32
	recovery    uint8
	telemetry   uint8
	class       uint8
	cc          string
}

const (
	messageLen = 112
	ccLen      = 16
	ccAt       = 80
)

var (
	be    = binary.BigEndian
	magic = []byte("gbw1")
)

func (m *message) encode(b *[messageLen]byte) {
	clear(b[:])
	copy(b[:], magic)
	b[4], b[5], b[6] = uint8(m.kind), m.reason, m.proto
	if m.host {
		b[7] = 1
	}
	be.PutUint64(b[8:], m.from)
	be.PutUint64(b[16:], m.to)
	be.PutUint64(b[24:], m.nonce)
	be.PutUint64(b[32:], m.echo)
	be.PutUint64(b[40:], m.id)
	be.PutUint32(b[48:], m.qpn)
	be.PutUint32(b[52:], m.peer)
	be.PutUint16(b[56:], m.lport)
	be.PutUint16(b[58:], m.rport)
	be.PutUint16(b[60:], m.port)
	be.PutUint32(b[64:], m.psn)
	be.PutUint32(b[68:], m.packet)
	be.PutUint32(b[72:], m.cap)
	b[76], b[77], b[78] = m.recovery, m.telemetry, m.class
	copy(b[ccAt:ccAt+ccLen], m.cc)
}

var errNotOurs = errors.New("not a datagram of a bump")

// ours reports whether the payload of a datagram is meant for a bump.
func ours(b []byte) bool { return len(b) >= len(magic) && bytes.Equal(b[:len(magic)], magic) }

func (m *message) decode(b []byte) error {
	if len(b) != messageLen || !ours(b) {
		return errNotOurs
	}
	name, rest, _ := bytes.Cut(b[ccAt:ccAt+ccLen], []byte{0})
	*m = message{
		kind: kind(b[4]), reason: b[5], proto: b[6], host: b[7] == 1, from: be.Uint64(b[8:]), to: be.Uint64(b[16:]), nonce: be.Uint64(b[24:]), echo: be.Uint64(b[32:]),
		id: be.Uint64(b[40:]), qpn: be.Uint32(b[48:]), peer: be.Uint32(b[52:]), lport: be.Uint16(b[56:]), rport: be.Uint16(b[58:]), port: be.Uint16(b[60:]), psn: be.Uint32(b[64:]),
		packet: be.Uint32(b[68:]), cap: be.Uint32(b[72:]), recovery: b[76], telemetry: b[77], class: b[78], cc: string(name),
	}
	switch {
	case m.kind < hello || m.kind >= numKinds || b[7] > 1 || m.class > 7 || m.qpn >= 1<<24 || m.peer >= 1<<24 || m.psn >= 1<<24 || m.from == 0:
		return errNotOurs
	case !zero(rest) || !zero(b[62:64]) || b[79] != 0 || !zero(b[ccAt+ccLen:]):
		return errNotOurs
	}
	return nil
}

func zero(b []byte) bool {
	for _, x := range b {
		if x != 0 {
			return false
		}
	}
	return true
}
