package endpoint

import (
	"encoding/binary"
	"fmt"
	"math"
	"net/netip"

	"gswitch/command"
	"gswitch/frame"
	"gswitch/hostnic"
)

// The calls of programs to the connections of a host (hostnic.Call). As in DETER, a record
// has of them what they ask for and how many bytes, and not the bytes.

// Dial begins a connection to a port of another host. Refused is hostnic.ErrUnresolved
// while the next hop is asked for its address: then it is called again.
type Dial struct {
	To      netip.AddrPort
	Number  uint64 // when it is done, like what follows in all calls
	Refused error
}

// Listen lets others connect to a port, or no more.
type Listen struct {
	Port    uint16
	On      bool
	Refused error
}

// Write writes bytes, as many as there is room for: N of them.
type Write struct {
	Number  uint64
	Data    []byte
	N       int // before: how many, where Data is not known
	Refused error
}

// Read reads bytes, as many as there are.
type Read struct {
	Number  uint64
	To      []byte
	N       int // before: how many at most, where To is not wanted
	Refused error
}

// Close ends the direction to the peer; with All the program has gone.
type Close struct {
	Number     uint64
	All, Reset bool
	Refused    error
}

// Do implements hostnic.Call.
func (c *Dial) Do(now frame.Time, state any) {
	e := state.(*Endpoint)
	mac, ok, err := e.nic.Resolve(now, c.To.Addr())
	switch {
	case err != nil:
		c.Refused = err
	case !ok:
		c.Refused = hostnic.ErrUnresolved
	default:
		c.Number, c.Refused = e.DialStream(now, c.To, mac)
		e.Kick(now)
	}
}

// Do implements hostnic.Call.
func (c *Listen) Do(_ frame.Time, state any) {
	c.Refused = state.(*Endpoint).ListenOn(c.Port, c.On)
}

// Do implements hostnic.Call.
func (c *Write) Do(now frame.Time, state any) {
	e := state.(*Endpoint)
	c.N, c.Refused = e.WriteStream(now, c.Number, c.Data, c.N)
	e.Kick(now)
}

// Do implements hostnic.Call.
func (c *Read) Do(now frame.Time, state any) {
	e := state.(*Endpoint)
	c.N, c.Refused = e.ReadStream(now, c.Number, c.To, c.N)
	e.Kick(now)
}

// Do implements hostnic.Call.
func (c *Close) Do(now frame.Time, state any) {
	e := state.(*Endpoint)
	c.Refused = e.CloseStream(now, c.Number, c.All, c.Reset)
	e.Kick(now)
}

// The first byte of an encoded call.
const (
	dialKind   = 1
	listenKind = 2
	writeKind  = 3
	readKind   = 4
	closeKind  = 5
)

// mostBytes bounds what one call writes or reads: no buffer is larger.
const mostBytes = 1 << 30

// Encode implements hostnic.Call.
func (c *Dial) Encode(b []byte) []byte {
	return binary.BigEndian.AppendUint16(command.AppendAddr(append(b, dialKind), c.To.Addr()), c.To.Port())
}

// Encode implements hostnic.Call.
func (c *Listen) Encode(b []byte) []byte {
	return append(binary.BigEndian.AppendUint16(append(b, listenKind), c.Port), flag(c.On, 1))
}

// Encode implements hostnic.Call.
func (c *Write) Encode(b []byte) []byte {
	return counted(append(b, writeKind), c.Number, max(len(c.Data), c.N))
}

// Encode implements hostnic.Call.
func (c *Read) Encode(b []byte) []byte {
	return counted(append(b, readKind), c.Number, max(len(c.To), c.N))
}

// Encode implements hostnic.Call.
func (c *Close) Encode(b []byte) []byte {
	return append(binary.AppendUvarint(append(b, closeKind), c.Number), flag(c.All, 1)|flag(c.Reset, 2))
}

func counted(b []byte, number uint64, n int) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(b, number), uint64(n))
}

func flag(on bool, bit byte) byte {
	if on {
		return bit
	}
	return 0
}

// decode is the inverse of Encode. The bytes of Write and Read are not there.
func decode(b []byte) (hostnic.Call, error) {
	if len(b) == 0 {
		return nil, fmt.Errorf("a call without a kind")
	}
	d := command.Decoder{B: b[1:]}
	port := func() uint16 { high := uint16(d.Byte(math.MaxUint8)); return high<<8 | uint16(d.Byte(math.MaxUint8)) }
	var c hostnic.Call
	switch b[0] {
	case dialKind:
		to := d.Addr()
		c = &Dial{To: netip.AddrPortFrom(to, port())}
	case listenKind:
		at := port()
		c = &Listen{Port: at, On: d.Byte(1) != 0}
	case writeKind:
		n := d.Uvarint(math.MaxUint64)
		c = &Write{Number: n, N: int(d.Uvarint(mostBytes))}
	case readKind:
		n := d.Uvarint(math.MaxUint64)
		c = &Read{Number: n, N: int(d.Uvarint(mostBytes))}
	case closeKind:
		n := d.Uvarint(math.MaxUint64)
		flags := d.Byte(3)
		c = &Close{Number: n, All: flags&1 != 0, Reset: flags&2 != 0}
	default:
		return nil, fmt.Errorf("a call of the unknown kind %d", b[0])
	}
	return c, d.Err(fmt.Sprintf("a call of kind %d", b[0]))
}
