package buffer

import (
	"math/bits"

	"gswitch/frame"
)

// Link describes the link of an ingress port as far as headroom depends on it.
type Link struct {
	Rate     uint64     // bit/s at which frames can arrive
	Delay    frame.Time // one way: propagation, 5 ns per metre of cable, plus transceivers
	MaxFrame uint32     // largest frame, in bytes as in Meta.Wire
	Overhead uint32     // bytes on the link beyond Meta.Wire
	Response frame.Time // from the XOFF decision here to its effect at the neighbour, beyond the other terms: our loop and the neighbour's reaction
}

// pfcFrame is the size of a PFC frame on a link in bytes: 60 bytes, FCS 4, preamble 8,
// gap 12 (IEEE 802.3).
const pfcFrame = 84

// Budget is what can still arrive after a group requested a pause, in bytes, by cause.
// The terms are those of IEEE Std 802.1Q annex N (delay value of priority-based flow
// control, first in 802.1Qbb annex O).
type Budget struct {
	Own      uint64 // a frame of ours has just started, and the pause frame waits for it
	Control  uint64 // the pause frame itself on the link
	Cable    uint64 // frames on the cable, both ways
	Response uint64 // reaction of both ends
	Peer     uint64 // a frame of the neighbour has just started when the pause takes effect
	Trigger  uint64 // the frame that caused the pause, if it found the shared pool full
	Rounding uint64 // loss by rounding to cells
}

// Skid returns what the link delivers after the decision to pause, in bytes.
func (b Budget) Skid() uint64 { return b.Own + b.Control + b.Cable + b.Response + b.Peer }

// Total returns the headroom that a lossless group needs, in bytes.
func (b Budget) Total() uint64 { return b.Skid() + b.Trigger + b.Rounding }

// Headroom returns the headroom that a lossless group of the link needs if memory is
// charged in cells of the given size (0 or 1: in bytes).
func Headroom(l Link, cell uint32) Budget {
	full := uint64(l.MaxFrame) + uint64(l.Overhead)
	b := Budget{
		Own:      full,
		Control:  pfcFrame,
		Cable:    inFlight(l.Rate, 2*min(l.Delay, frame.Never/2)),
		Response: inFlight(l.Rate, l.Response),
		Peer:     full,
		Trigger:  roundUp(uint64(l.MaxFrame), uint64(cell)),
	}
	// Frames just above a whole number of cells have the highest cost per time on the
	// link.
	if cell > 1 {
		skid := b.Skid()
		worst := skid
		for w := uint64(minFrame); w <= uint64(l.MaxFrame); w++ {
			cost, span := roundUp(w, uint64(cell)), w+uint64(l.Overhead)
			worst = max(worst, (skid*cost+span-1)/span)
		}
		b.Rounding = worst - skid + uint64(cell)
	}
	return b
}

// minFrame is the shortest frame that a virtual link delivers, in bytes: it does not pad
// frames.
const minFrame = 14

// maxInFlight exceeds any buffer, but is small enough that sums of terms, rounded up to
// cells, stay within 64 bits.
const maxInFlight = 1 << 40

// inFlight returns the bytes that a link carries in d, rounded up, but at most
// maxInFlight.
func inFlight(rate uint64, d frame.Time) uint64 {
	if d <= 0 {
		return 0
	}
	hi, lo := bits.Mul64(rate, uint64(d))
	const nsBitsPerByte = 8e9
	if hi >= nsBitsPerByte {
		return maxInFlight
	}
	q, r := bits.Div64(hi, lo, nsBitsPerByte)
	if q >= maxInFlight {
		return maxInFlight
	}
	if r != 0 {
		q++
	}
	return q
}

func roundUp(n, cell uint64) uint64 {
	if cell > 1 {
		n = (n + cell - 1) / cell * cell
	}
	return n
}
