package inband

import (
	"math/bits"
	"slices"
)

// Profile fixes the units of HPCC's record, which the paper leaves to the
// network (section 2.3.2): one profile serves a whole network, hosts and
// switches alike. INT-MD has units of its own and needs none.
type Profile struct {
	// Name is shown, nothing else.
	Name    string
	TSShift uint8  // the 24-bit timestamp counts 2^TSShift ns
	TxShift uint8  // the 20-bit byte counter counts 2^TxShift bytes
	QUnit   uint32 // the queue length counts QUnit bytes
	// WideQ lays the record out as the HPCC authors' simulator does: 3 bits of
	// rate, 24 of time, 20 of bytes and 17 of queue. Otherwise it is the
	// paper's 4, 24, 20, 16.
	WideQ bool
	// Rates is the table of rate codes, bit/s by code. 0 is no rate: code 0
	// stands for what the table does not have.
	Rates [16]uint64
}

// Widths of a record's fields, in bits.
const (
	tsBits = 24
	txBits = 20
)

// Units of the paper (section 2.3.2): 128 bytes sent, 80 bytes queued.
const (
	paperTxShift = 7
	paperQUnit   = 80
)

const (
	mega = 1_000_000
	giga = 1_000_000_000
)

// StandardRates are the link speeds that have a code of their own by default:
// those of Ethernet, and round ones of emulated links below.
var StandardRates = [16]uint64{0,
	10 * giga, 25 * giga, 40 * giga, 50 * giga, 100 * giga, 200 * giga, 400 * giga, 800 * giga,
	10 * mega, 50 * mega, 100 * mega, 250 * mega, 500 * mega, 1 * giga, 2_500 * mega}

// DefaultProfile is the paper's: 1 ns, 128 bytes, 80 bytes, standard rates.
func DefaultProfile() Profile {
	return Profile{Name: "default", TxShift: paperTxShift, QUnit: paperQUnit, Rates: StandardRates}
}

// ScaledProfile is DefaultProfile with the units of bytes multiplied by
// rate / 25 Gb/s, rounded down to a power of two: the counters then wrap in
// the same time at every speed (42.9 ms at 25, 50, 100 ... Gb/s).
func ScaledProfile(rate uint64) Profile {
	p := DefaultProfile()
	p.Name = "scaled"
	p.scale(rate / (25 * giga))
	return p
}

// NS3Profile is what the HPCC authors' simulator writes for hosts of the given
// NIC rate: bytes scaled as in ScaledProfile, the queue of 17 bits, and the
// five rates that it knows.
func NS3Profile(nic uint64) Profile {
	p := ScaledProfile(nic)
	p.Name, p.WideQ = "ns3", true
	// Its codes count from 0 and call every other speed 25 Gb/s; ours call it
	// unknown.
	p.Rates = [16]uint64{0, 25 * giga, 50 * giga, 100 * giga, 200 * giga, 400 * giga}
	return p
}

func (p *Profile) scale(by uint64) {
	if by > 1 {
		k := bits.Len64(by) - 1
		p.TxShift += uint8(k)
		p.QUnit <<= k
	}
}

// Below these speeds of the slowest link the clock ticks in coarser steps, so
// that 2^24 ticks span many packets: 64 ns (1.07 s in all), then 4 us (69 s).
// At 1 Mb/s a packet of 1500 bytes takes 12 ms.
const (
	slowRate     = 2_500 * mega
	verySlowRate = 50 * mega
)

// ProfileFor returns the profile for a network whose links have these rates in
// bit/s, such as its slowest and its fastest: the slowest sets the clock's
// unit, the fastest the units of bytes (the paper's up to 100 Gb/s; then as
// coarse as keeps the byte counter's wrap at or above 10.7 ms). If a rate is
// not standard, the table holds just the rates given, up to 15 of them; what
// does not fit is stamped as unknown.
func ProfileFor(rates ...uint64) Profile {
	p := DefaultProfile()
	known := slices.DeleteFunc(slices.Clone(rates), func(r uint64) bool { return r == 0 })
	if len(known) == 0 {
		return p
	}
	slices.Sort(known)
	known = slices.Compact(known)
	slowest, fastest := known[0], known[len(known)-1]
	switch {
	case slowest <= verySlowRate:
		p.Name, p.TSShift = "very-slow", 12
	case slowest <= slowRate:
		p.Name, p.TSShift = "slow", 6
	}
	if fastest > 100*giga {
		p.Name = "fast"
		p.scale(ceilPow2((fastest + 100*giga - 1) / (100 * giga)))
	}
	for _, r := range known {
		if p.Code(r) == 0 {
			p.Rates = [16]uint64{}
			copy(p.Rates[1:], known)
			break
		}
	}
	return p
}

// Code returns the code of a rate in bit/s, 0 if it has none.
func (p *Profile) Code(rate uint64) uint8 {
	if rate == 0 {
		return 0
	}
	return uint8(max(0, slices.Index(p.Rates[:p.codes()], rate)))
}

// codes is how many codes fit into the record.
func (p *Profile) codes() int {
	if p.WideQ {
		return 8
	}
	return 16
}

// Range says where the record's counters wrap.
func (p *Profile) Range() Range {
	return Range{TS: 1 << (tsBits + p.TSShift), Tx: 1 << (txBits + p.TxShift)}
}

// MaxQ is the longest queue, in bytes, that a record can hold; longer ones are
// stamped as this.
func (p *Profile) MaxQ() uint64 { return uint64(p.qMask()) * uint64(p.QUnit) }

func (p *Profile) qMask() uint32 {
	if p.WideQ {
		return 1<<17 - 1
	}
	return 1<<16 - 1
}

// record packs a hop: code of the rate, ns, bytes sent, bytes queued.
func (p *Profile) record(code uint8, ts, tx, q uint64) uint64 {
	units := min(q/uint64(p.QUnit), uint64(p.qMask()))
	t := ts >> p.TSShift & (1<<tsBits - 1)
	s := tx >> p.TxShift & (1<<txBits - 1)
	if p.WideQ {
		return uint64(code)<<61 | t<<37 | s<<17 | units
	}
	return uint64(code)<<60 | t<<36 | s<<16 | units
}

// read unpacks a record.
func (p *Profile) read(w uint64, h *Hop) {
	h.Node, h.Port = 0, 0
	if p.WideQ {
		h.Rate = p.Rates[w>>61]
		h.Q = w & (1<<17 - 1) * uint64(p.QUnit)
		w >>= 1
	} else {
		h.Rate = p.Rates[w>>60]
		h.Q = w & 0xffff * uint64(p.QUnit)
	}
	h.TS = w >> 36 & (1<<tsBits - 1) << (p.TSShift & 63)
	h.Tx = w >> 16 & (1<<txBits - 1) << (p.TxShift & 63)
}

// ceilPow2 is the least power of two that is not below x, for x of 1 or more.
func ceilPow2(x uint64) uint64 { return 1 << bits.Len64(x-1) }
