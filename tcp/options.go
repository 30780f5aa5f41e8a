package tcp

import "encoding/binary"

// MaxSACK is how many blocks of selective acknowledgement fit beside a time
// stamp (RFC 2018 section 3).
const MaxSACK = 3

// Options are the options of a segment that a connection knows.
type Options struct {
	MSS           uint16 // RFC 9293 3.7.1; 0: absent
	Scale         uint8  // RFC 7323 section 2
	HasScale      bool
	SACKPermitted bool // RFC 2018
	HasStamp      bool // RFC 7323 section 3
	Stamp, Echo   uint32
	SACK          [4][2]uint32 // first byte, byte behind the last
	SACKs         int
}

// Kinds of options (IANA TCP parameters).
const (
	optEnd           = 0
	optNop           = 1
	optMSS           = 2
	optScale         = 3
	optSACKPermitted = 4
	optSACK          = 5
	optStamp         = 8
)

// MaxScale is the largest window scale (RFC 7323 section 2.3).
const MaxScale = 14

// ParseOptions reads the options of a header. ok is false if their lengths are
// wrong; kinds that are not known are passed over.
func ParseOptions(b []byte) (o Options, ok bool) {
	be := binary.BigEndian
	for len(b) > 0 {
		switch b[0] {
		case optEnd:
			return o, true
		case optNop:
			b = b[1:]
			continue
		}
		if len(b) < 2 || int(b[1]) < 2 || int(b[1]) > len(b) {
			return o, false
		}
		kind, v := b[0], b[2:b[1]]
		b = b[b[1]:]
		switch {
		case kind == optMSS && len(v) == 2:
			o.MSS = be.Uint16(v)
		case kind == optScale && len(v) == 1:
			o.Scale, o.HasScale = min(v[0], MaxScale), true
		case kind == optSACKPermitted && len(v) == 0:
			o.SACKPermitted = true
		case kind == optStamp && len(v) == 8:
			o.HasStamp, o.Stamp, o.Echo = true, be.Uint32(v), be.Uint32(v[4:])
		case kind == optSACK && len(v)%8 == 0 && len(v) > 0:
			for o.SACKs = 0; o.SACKs < len(o.SACK) && len(v) > 0; v = v[8:] {
				o.SACK[o.SACKs] = [2]uint32{be.Uint32(v), be.Uint32(v[4:])}
				o.SACKs++
			}
		case kind == optMSS, kind == optScale, kind == optSACKPermitted, kind == optStamp, kind == optSACK:
			return o, false
		}
	}
	return o, true
}

// Append appends the options to b, padded to a multiple of four bytes.
func (o *Options) Append(b []byte) []byte {
	be := binary.BigEndian
	start := len(b)
	if o.MSS != 0 {
		b = be.AppendUint16(append(b, optMSS, 4), o.MSS)
	}
	if o.SACKPermitted && o.HasStamp {
		b = append(b, optSACKPermitted, 2) // in the place of the stamp's padding
	} else if o.SACKPermitted {
		b = append(b, optNop, optNop, optSACKPermitted, 2)
	}
	if o.HasStamp {
		if !o.SACKPermitted {
			b = append(b, optNop, optNop)
		}
		b = append(b, optStamp, 10)
		b = be.AppendUint32(be.AppendUint32(b, o.Stamp), o.Echo)
	}
	if o.HasScale {
		b = append(b, optNop, optScale, 3, o.Scale)
	}
	if o.SACKs > 0 {
		b = append(b, optNop, optNop, optSACK, uint8(2+8*o.SACKs))
		for _, s := range o.SACK[:o.SACKs] {
			b = be.AppendUint32(be.AppendUint32(b, s[0]), s[1])
		}
	}
	for (len(b)-start)%4 != 0 {
		b = append(b, optEnd)
	}
	return b
}

// Len is how many bytes Append appends.
func (o *Options) Len() int {
	n := 0
	if o.MSS != 0 {
		n += 4
	}
	if o.HasStamp {
		n += 12
	} else if o.SACKPermitted {
		n += 4
	}
	if o.HasScale {
		n += 4
	}
	if o.SACKs > 0 {
		n += 4 + 8*o.SACKs
	}
	return n
}
