package inband

import (
	"fmt"

	"gswitch/frame"
	"gswitch/wire"
)

// Signal is which bytes of a port a switch writes into the byte counter.
type Signal uint8

const (
	// TxBytes counts what the port had sent before the frame: HPCC's choice.
	TxBytes Signal = iota
	// RxBytes counts what had entered its queues: what was sent and the
	// backlog. HPCC compares it and finds that it oscillates (section 3.4).
	RxBytes
)

// MaxID is the largest switch identifier that HPCC's path field can hold.
const MaxID = 1<<12 - 1

// Stamper writes one switch's records into frames that carry telemetry, of
// whatever format: the frame says. It has no state.
type Stamper struct {
	id      uint32
	profile Profile
}

// NewStamper returns the stamper of the switch with this identifier, which is
// 1 to MaxID, under the network's profile (nil: the paper's).
func NewStamper(id uint32, profile *Profile) (Stamper, error) {
	if id < 1 || id > MaxID {
		return Stamper{}, fmt.Errorf("telemetry: switch identifier %d is not between 1 and %d", id, MaxID)
	}
	s := Stamper{id: id, profile: DefaultProfile()}
	if profile != nil {
		s.profile = *profile
	}
	if s.profile.QUnit == 0 {
		return Stamper{}, fmt.Errorf("telemetry: profile %q counts queues in units of 0 bytes", s.profile.Name)
	}
	return s, nil
}

// Code returns the rate code of an egress port, for Departure.Code.
func (s *Stamper) Code(rate uint64) uint8 { return s.profile.Code(rate) }

// Outcome says what became of a frame that carries telemetry.
type Outcome uint8

const (
	Ready   Outcome = iota // it takes a record at departure
	Full                   // it has as many records as it can hold
	TooLong                // with a record it would exceed the MTU
	NoRoom                 // its chunk has no room for a record
	Foreign                // it asks for other telemetry than this switch has

	NumOutcomes
)

var outcomeNames = [NumOutcomes]string{"stamped", "full", "mtu", "no-room", "foreign"}

// String returns the name under which the outcome is counted.
func (o Outcome) String() string {
	if o < NumOutcomes {
		return outcomeNames[o]
	}
	return "unknown"
}

// Prepare makes room for the record in a frame with frame.HasINT that is about
// to be queued: formats that grow do so now, so that buffer, queue and link
// see the length that leaves. maxFrame is the longest frame of the egress
// port, without VLAN tags. A frame that is Ready gets its record by Stamp.
func (s *Stamper) Prepare(a *frame.Arena, r frame.Ref, maxFrame uint32) Outcome {
	m := a.Meta(r)
	b := a.Bytes(r)
	switch m.DstPort {
	case wire.HPCCPort:
		if b[m.INT]>>4 >= wire.HPCCSlots {
			return Full
		}
		return Ready
	case wire.HPCCGrowPort:
		return s.growHPCC(a, r, m, b, maxFrame)
	case wire.INTPort:
		return s.growMD(a, r, m, b, maxFrame)
	}
	return Foreign
}

// fits reports whether the frame may grow by n bytes. Tags do not count
// against an MTU.
func fits(m *frame.Meta, n int, maxFrame uint32) bool {
	return m.Wire-uint32(m.L3-wire.EthernetLen)+uint32(n) <= maxFrame
}

func (s *Stamper) growHPCC(a *frame.Arena, r frame.Ref, m *frame.Meta, b []byte, maxFrame uint32) Outcome {
	at := int(m.INT)
	switch {
	case b[at]>>4 >= MaxHops:
		return Full
	case !fits(m, wire.HPCCRecord, maxFrame):
		return TooLong
	}
	if b = wire.InsertUDP(a, r, at+wire.HPCCBase, wire.HPCCRecord); b == nil {
		return NoRoom
	}
	s.count(m, b, at)
	return Ready
}

// count adds this switch to the hop count and path identifier of HPCC's block.
func (s *Stamper) count(m *frame.Meta, b []byte, at int) {
	var head [wire.HPCCBase]byte
	be.PutUint16(head[:], be.Uint16(b[at:])+1<<12^uint16(s.id))
	wire.PatchUDP(m, b, at, head[:])
}

func (s *Stamper) growMD(a *frame.Arena, r frame.Ref, m *frame.Meta, b []byte, maxFrame uint32) Outcome {
	at := int(m.INT)
	h := b[at:]
	switch {
	case !isOurMD(h):
		return Foreign
	case h[mdLeftAt] == 0 || int(h[mdLenAt])+mdHopWords > 0xff:
		flagMD(m, b, at, mdExceeded)
		return Full
	case !fits(m, mdHopLen, maxFrame):
		flagMD(m, b, at, mdMTU)
		return TooLong
	}
	if b = wire.InsertUDP(a, r, at+mdStackAt, mdHopLen); b == nil {
		return NoRoom
	}
	h = b[at:]
	wire.PatchUDP(m, b, at, []byte{h[0], h[mdLenAt] + mdHopWords})
	wire.PatchUDP(m, b, at+mdHopLenAt, []byte{h[mdHopLenAt], h[mdLeftAt] - 1})
	return Ready
}

// flagMD sets E or M: a hop is missing, and why (INT 2.1 section 5.7).
func flagMD(m *frame.Meta, b []byte, at int, flag byte) {
	wire.PatchUDP(m, b, at+mdFlagsAt, []byte{b[at+mdFlagsAt] | flag, b[at+mdFlagsAt+1]})
}

// Departure is what a switch knows of a frame that leaves.
type Departure struct {
	Port uint16 // egress port
	Code uint8  // rate code of the port
	TS   uint64 // ns
	Tx   uint64 // bytes, as the Signal says
	Q    uint64 // bytes in the queue, or the port, behind it
}

// Stamp writes the record of a frame that was Ready, whose bytes are b.
func (s *Stamper) Stamp(m *frame.Meta, b []byte, d *Departure) {
	at := int(m.INT)
	switch m.DstPort {
	case wire.HPCCPort:
		hop := int(b[at] >> 4)
		s.count(m, b, at)
		s.putHPCC(m, b, at+wire.HPCCBase+wire.HPCCRecord*hop, d)
	case wire.HPCCGrowPort:
		s.putHPCC(m, b, at+wire.HPCCBase, d)
	case wire.INTPort:
		s.putMD(m, b, at+mdStackAt, d)
	}
}

func (s *Stamper) putHPCC(m *frame.Meta, b []byte, at int, d *Departure) {
	var rec [wire.HPCCRecord]byte
	be.PutUint64(rec[:], s.profile.record(d.Code, d.TS, d.Tx, d.Q))
	wire.PatchUDP(m, b, at, rec[:])
}

// putMD writes a hop of INT-MD. The ingress port is what the engine knows of
// it; the queue's number is the frame's.
func (s *Stamper) putMD(m *frame.Meta, b []byte, at int, d *Departure) {
	var hop [mdHopLen]byte
	be.PutUint32(hop[0:], s.id)
	be.PutUint16(hop[4:], m.InPort)
	be.PutUint16(hop[6:], d.Port)
	be.PutUint32(hop[8:], uint32(m.Queue)<<24|uint32(min(d.Q, mdMaxQ)))
	be.PutUint64(hop[12:], d.TS)
	be.PutUint32(hop[20:], uint32(d.Tx))
	wire.PatchUDP(m, b, at, hop[:])
}
