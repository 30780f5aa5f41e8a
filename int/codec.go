package inband

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"gswitch/frame"
	"gswitch/wire"
)

var be = binary.BigEndian

// Mode is a format of in-band telemetry.
type Mode uint8

const (
	None Mode = iota
	// HPCC is the block of the HPCC paper, with room for wire.HPCCSlots
	// records that the sender reserves; it stands between UDP and BTH.
	HPCC
	// HPCCGrow is the same block, which starts empty; each switch inserts its
	// record in front of the others.
	HPCCGrow
	// INTMD is P4.org INT-MD 2.1 over RoCEv2: the shim says that the datagram
	// was for port 4791.
	INTMD
	// INTMDUDP is P4.org INT-MD 2.1 over any UDP datagram; the shim says for
	// which port it was.
	INTMDUDP

	numModes
)

var modeNames = [numModes]string{"none", "hpcc", "hpcc-grow", "int-md", "int-md-udp"}

// ParseMode returns the format of a name.
func ParseMode(name string) (Mode, bool) {
	i := slices.Index(modeNames[:], name)
	return Mode(max(0, i)), i >= 0
}

// Names returns the names of all formats, and RoCENames those of the formats that RoCEv2 has
// a use for.
func Names() []string { return slices.Clone(modeNames[:]) }

func RoCENames() []string {
	return slices.DeleteFunc(Names(), func(name string) bool { return name == INTMDUDP.String() })
}

// RoCEWords lists these names in a sentence.
func RoCEWords() string {
	names := RoCENames()
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

// String returns the name that files use.
func (m Mode) String() string {
	if m < numModes {
		return modeNames[m]
	}
	return "unknown"
}

// HPCCPort is the UDP destination port of frames with HPCC's block (reserved
// records); see wire for the others and Mode.Port.
const HPCCPort = wire.HPCCPort

// Port returns the UDP destination port of data frames in this format: that of
// RoCEv2 without telemetry.
func (m Mode) Port() uint16 {
	switch m {
	case HPCC:
		return wire.HPCCPort
	case HPCCGrow:
		return wire.HPCCGrowPort
	case INTMD, INTMDUDP:
		return wire.INTPort
	}
	return wire.RoCEv2Port
}

// ModeOf returns the format of a frame with telemetry by its UDP destination
// port; INTMD stands for both that have the same.
func ModeOf(port uint16) Mode {
	switch port {
	case wire.HPCCPort:
		return HPCC
	case wire.HPCCGrowPort:
		return HPCCGrow
	case wire.INTPort:
		return INTMD
	}
	return None
}

// Fitting returns the format of HPCC's block for paths of so many switches: the one whose
// sender reserves the records, and the one that grows where these have no room for all.
func Fitting(switches int) Mode {
	if switches > wire.HPCCSlots {
		return HPCCGrow
	}
	return HPCC
}

// Rooms says how many switches the formats have room for, under the names of the formats,
// to those whose frames have format m on paths of so many.
func Rooms(m Mode, switches int) string {
	if switches > MaxHops && m != HPCC {
		return fmt.Sprintf("%s has room for %d switches, the most that a format has, and the longest path has %d", m, MaxHops, switches)
	}
	return fmt.Sprintf("%s has room for %d switches, %s and %s for %d", HPCC, wire.HPCCSlots, HPCCGrow, INTMD, MaxHops)
}

// Codec reads and writes the header of one format. It has no state: any number
// of queue pairs may share one.
type Codec struct {
	mode    Mode
	profile *Profile
	rates   *RateTable
}

// NewCodec returns the codec of a format. profile gives the units of HPCC's
// formats, nil the paper's; INT-MD needs none. The codec keeps the pointer.
func NewCodec(mode Mode, profile *Profile) Codec {
	if profile == nil {
		p := DefaultProfile()
		profile = &p
	}
	return Codec{mode: mode, profile: profile}
}

// WithRates returns the codec with the link rates of the network, which INT-MD
// does not carry. Without it Hop.Rate is 0 there.
func (c Codec) WithRates(t *RateTable) Codec {
	c.rates = t
	return c
}

// Mode returns the format.
func (c *Codec) Mode() Mode { return c.mode }

// HeaderLen is the bytes that the sender reserves and Init fills.
func (c *Codec) HeaderLen() int {
	switch c.mode {
	case HPCC:
		return wire.HPCCLen
	case HPCCGrow:
		return wire.HPCCBase
	case INTMD, INTMDUDP:
		return wire.INTShimLen + wire.INTMDLen
	}
	return 0
}

// FullLen is the length of the header after so many switches, at most MaxHops,
// have added their records.
func (c *Codec) FullLen(switches int) int {
	n := c.HeaderLen()
	switch c.mode {
	case HPCCGrow:
		n += wire.HPCCRecord * min(switches, MaxHops)
	case INTMD, INTMDUDP:
		n += mdHopLen * min(switches, MaxHops)
	}
	return n
}

// Range says where the format's counters wrap; zero without telemetry.
func (c *Codec) Range() Range {
	switch c.mode {
	case HPCC, HPCCGrow:
		return c.profile.Range()
	case INTMD, INTMDUDP:
		return Range{TS: 1 << 63, Tx: 1 << 32}
	}
	return Range{}
}

// Init writes the empty header of a RoCEv2 frame to b, which has HeaderLen
// bytes.
func (c *Codec) Init(b []byte) { c.InitPort(b, wire.RoCEv2Port) }

// InitPort is Init for a datagram whose destination port would be port without
// telemetry. Only INT-MD has room for it.
func (c *Codec) InitPort(b []byte, port uint16) {
	switch c.mode {
	case HPCC:
		clear(b[:wire.HPCCLen])
	case HPCCGrow:
		clear(b[:wire.HPCCBase])
	case INTMD, INTMDUDP:
		initMD(b, port)
	}
}

// Decode reads the header at the front of b into p, hops in the order of the
// path, and returns its length. The reason is frame.Keep, or what is wrong
// with it; p is then without hops. p.Age is the caller's.
func (c *Codec) Decode(b []byte, p *Path) (int, frame.Reason) {
	switch c.mode {
	case HPCC:
		return c.decodeHPCC(b, p)
	case HPCCGrow:
		return c.decodeGrow(b, p)
	case INTMD, INTMDUDP:
		return c.decodeMD(b, p)
	}
	p.ID, p.N = 0, 0
	return 0, frame.Keep
}

// EchoLen returns the length of the header at the front of b, which a receiver
// copies verbatim into its acknowledgement, 0 if it is broken.
func (c *Codec) EchoLen(b []byte) int {
	if c.mode == None {
		return 0
	}
	n, _, _ := wire.TelemetryLen(b, 0, len(b), c.mode.Port())
	return n
}

// DecodeEcho reads what came back in an acknowledgement.
func (c *Codec) DecodeEcho(b []byte, p *Path) (int, frame.Reason) { return c.Decode(b, p) }
