package agent

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"gswitch/wire"
)

// Port is the UDP port of the connection manager.
const Port = wire.ConnectionManagerPort

type kind uint8

const (
	request kind = 1 + iota
	accept
	reject
	closing
	closed
	challenge
)

// Service is what a queue pair is opened for.
type Service uint8

const (
	Messages Service = iota // RDMA Send of any length, counted and compared with the pattern
	Memory                  // RDMA operations on the region that the passive end serves
	Probe                   // like Messages; every agent answers it
	numServices
)

type reason uint8

const (
	notServing reason = 1 + iota
	otherPayload
	unknownFormat
	noRoom
	smallRegion
	unknownCC
	unknownRecovery
	unknownTelemetry
)

var reasonTexts = map[reason]string{
	notServing:    "it does not serve: run ghost serve there, or ghost run with --serve",
	otherPayload:  "its frames carry another payload: set the same payload at both ends",
	unknownFormat: "it does not know this congestion control, recovery or telemetry", // what earlier versions say
	noRoom:        "it has no queue pair left",
	smallRegion:   "the memory that it serves is smaller than the message: raise --memory there",

	unknownCC:        "it does not know this congestion control: choose another (--cc), or run the same version at both ends",
	unknownRecovery:  "it does not know this loss recovery: choose another (--recovery), or run the same version at both ends",
	unknownTelemetry: "it does not know this telemetry: choose another (--telemetry), or run the same version at both ends",
}

func (r reason) String() string {
	if t := reasonTexts[r]; t != "" {
		return t
	}
	return fmt.Sprintf("reason %d", uint8(r))
}

// message is a datagram of the connection manager.
type message struct {
	kind      kind
	service   Service
	recovery  uint8
	telemetry uint8
	class     uint8
	reason    reason
	port      uint16 // UDP source port of the frames of the queue pair, 0 unknown
	id        uint64
	qpn, psn  uint32
	payload   uint32
	cap       uint32
	rkey      uint32
	size      uint64
	bytes     uint64 // of Request and Challenge: the cookie
	messages  uint64
	corrupt   uint64
	cc        string
}

const (
	messageLen = 88
	ccLen      = 16
)

var (
	be    = binary.BigEndian
	magic = []byte("gcm1")
)

func (m *message) encode(b *[messageLen]byte) {
	clear(b[:])
	copy(b[:], magic)
	b[4], b[5], b[6], b[7] = uint8(m.kind), uint8(m.service), m.recovery, m.telemetry
	be.PutUint64(b[8:], m.id)
	be.PutUint32(b[16:], m.qpn)
	be.PutUint32(b[20:], m.psn)
	be.PutUint32(b[24:], m.payload)
	be.PutUint32(b[28:], m.cap)
	be.PutUint32(b[32:], m.rkey)
	b[36], b[37] = m.class, uint8(m.reason)
	be.PutUint16(b[38:], m.port)
	be.PutUint64(b[40:], m.size)
	be.PutUint64(b[48:], m.bytes)
	be.PutUint64(b[56:], m.messages)
	be.PutUint64(b[64:], m.corrupt)
	copy(b[72:72+ccLen], m.cc)
}

var errNotOurs = errors.New("not a datagram of the connection manager")

func (m *message) decode(b []byte) error {
	if len(b) != messageLen || !bytes.Equal(b[:4], magic) {
		return errNotOurs
	}
	name, rest, _ := bytes.Cut(b[72:72+ccLen], []byte{0})
	for _, c := range rest {
		if c != 0 {
			return errNotOurs
		}
	}
	*m = message{
		kind: kind(b[4]), service: Service(b[5]), recovery: b[6], telemetry: b[7], class: b[36], reason: reason(b[37]), port: be.Uint16(b[38:]),
		id: be.Uint64(b[8:]), qpn: be.Uint32(b[16:]), psn: be.Uint32(b[20:]), payload: be.Uint32(b[24:]), cap: be.Uint32(b[28:]),
		rkey: be.Uint32(b[32:]), size: be.Uint64(b[40:]), bytes: be.Uint64(b[48:]), messages: be.Uint64(b[56:]), corrupt: be.Uint64(b[64:]), cc: string(name),
	}
	if m.kind < request || m.kind > challenge || m.service >= numServices || m.class > 7 || m.qpn >= 1<<24 || m.psn >= 1<<24 {
		return errNotOurs
	}
	return nil
}
