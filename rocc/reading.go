package rocc

import (
	"encoding/binary"
	"math"

	"gswitch/frame"
)

// Codes of notices: what a congestion point sends.
const (
	CodeRate    = 0 // Notice: the fair rate
	CodeReading = 1 // Reading: what it follows from
)

// ReadingLen is the length of a reading without what it quotes, from the ICMP
// header on.
const ReadingLen = 8 + 56

// Reading is what a congestion point says that leaves the arithmetic to hosts
// (section 3.3.6 of the dissertation, the variant that sends all parameters).
// On the wire it is an ICMP message of code 1:
//
//	version, stretch of the period (4 bits each); class; port
//	switch
//	queue in bytes, now
//	queue in bytes, one period ago
//	number of the update
//	unit of the queue in bytes
//	unit of rates in bit/s
//	least rate, largest rate, in units
//	reference, growth, maximum of the queue in bytes
//	gains, 16 bits behind the point
//	first cut, regions, 0, 0
//	the packet from its IP header on, as in a Notice
//
// all big-endian. The period is sent only as a Notice has it: the receiver runs
// the controller when one arrives.
type Reading struct {
	Stretch  uint8 // of the period, see StretchOf
	Class    uint8
	Port     uint16
	Switch   uint32
	Queue    uint32
	Before   uint32
	Sequence uint32
	Params   Params // without Period; gains are multiples of 2^-16
}

// Point numbers the congestion point.
func (r *Reading) Point() uint64 {
	return uint64(r.Switch)<<32 | uint64(r.Port)<<8 | uint64(r.Class)
}

// Encode writes an ICMP message of the given type without its checksum to b
// and returns its length. b has room for ReadingLen and the quote.
func (r *Reading) Encode(b []byte, icmp uint8, quote []byte) int {
	be, p := binary.BigEndian, &r.Params
	b[0], b[1], b[2], b[3] = icmp, CodeReading, 0, 0
	b[4], b[5] = version<<4|r.Stretch&maxStretch, r.Class
	be.PutUint16(b[6:], r.Port)
	for i, v := range [...]uint32{r.Switch, r.Queue, r.Before, r.Sequence, p.QueueUnit, uint32(min(p.RateUnit, math.MaxUint32)), p.FMin, p.FMax, p.QRef, p.QMid, p.QMax,
		uint32(math.Round(p.Alpha * (1 << fraction))), uint32(math.Round(p.Beta * (1 << fraction)))} {
		be.PutUint32(b[8+4*i:], v)
	}
	b[60], b[61], b[62], b[63] = uint8(p.First), uint8(p.Regions), 0, 0
	return ReadingLen + copy(b[ReadingLen:], quote)
}

// Decode reads an ICMP message whose checksum is right, and returns what it
// quotes. Parameters that no controller can run with are ErrForeign.
func (r *Reading) Decode(b []byte, icmp uint8) (quote []byte, err error) {
	if len(b) < 8 {
		return nil, ErrShort
	}
	if b[0] != icmp || b[1] != CodeReading || b[4]>>4 != version || b[5] > 7 {
		return nil, ErrForeign
	}
	if len(b) < ReadingLen {
		return nil, ErrShort
	}
	var v [13]uint32
	for i := range v {
		v[i] = binary.BigEndian.Uint32(b[8+4*i:])
	}
	*r = Reading{Stretch: b[4] & maxStretch, Class: b[5], Port: binary.BigEndian.Uint16(b[6:]), Switch: v[0], Queue: v[1], Before: v[2], Sequence: v[3],
		Params: Params{QueueUnit: v[4], RateUnit: uint64(v[5]), Period: 1, FMin: v[6], FMax: v[7], QRef: v[8], QMid: v[9], QMax: v[10],
			Alpha: float64(v[11]) / (1 << fraction), Beta: float64(v[12]) / (1 << fraction), First: FirstCut(b[60]), Regions: int(b[61])}}
	if b[62]|b[63] != 0 || r.Params.Validate() != nil {
		return nil, ErrForeign
	}
	r.Params.Period = 0
	return b[ReadingLen:], nil
}

// Follower is the controller of a congestion point at a node that is
// sent its readings.
type Follower struct {
	c     Controller
	point uint64
	last  uint32
	on    bool
}

// forgetful bounds how many updates that were missed are made up for: after a
// longer time without readings nothing is left of what the controller knew.
const forgetful = 32

// Take takes in a reading and returns the fair rate in bit/s. Readings that
// were taken already, or are older, change nothing. For each that was missed
// the controller runs with the length that was asked to be one period old; what
// the queue did before that is not known, and so two that miss different
// readings drift apart.
func (f *Follower) Take(r *Reading) float64 {
	if !f.on || f.point != r.Point() || f.c.p != r.Params {
		f.c.init(&r.Params)
		f.c.old = int64(r.Before/r.Params.QueueUnit) << fraction
		f.on, f.point, f.last = true, r.Point(), r.Sequence-1
	}
	news := int32(r.Sequence - f.last)
	if news <= 0 && news > -forgetful {
		return float64(f.c.Rate())
	}
	for range min(max(news, 1)-1, forgetful) {
		f.c.Update(uint64(r.Before))
	}
	f.last = r.Sequence
	f.c.Update(uint64(r.Queue))
	return float64(f.c.Rate())
}

// Followers are the controllers that a host runs for the congestion points
// that send it readings: the last ones, in fixed memory.
type Followers struct {
	f    [64]Follower
	used [64]frame.Time
}

// Take is that of the follower of the point. Where there are too many points,
// the one among eight without a reading for longest is removed.
func (fs *Followers) Take(now frame.Time, r *Reading) float64 {
	base := (r.Point() * 0x9e3779b97f4a7c15) >> 61 << 3
	best := base
	for i := base; i < base+8; i++ {
		if fs.f[i].on && fs.f[i].point == r.Point() {
			best = i
			break
		}
		if !fs.f[best].on {
			continue
		}
		if !fs.f[i].on || fs.used[i] < fs.used[best] {
			best = i
		}
	}
	fs.used[best] = now
	return fs.f[best].Take(r)
}
