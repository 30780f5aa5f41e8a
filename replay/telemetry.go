package replay

import (
	"gswitch/wire"
)

// What switches write into a frame (instants, bytes sent, lengths of queues) is new in
// each, and of a network under load most of what a record holds. It is kept apart from
// the rest of the frames: the recorder copies it, who writes the file predicts it and
// writes the differences, each byte of them with those of its kind, since what is alike
// compresses best together.

// telemetry says where records of in-band telemetry lie in a frame.
type telemetry struct {
	at    uint8 // offset of the first
	kind  uint8 // 0: there are none
	hops  uint8
	whole uint8 // bytes of each
}

const (
	noTelemetry = iota
	hpccTelemetry
	mdTelemetry
)

// mdHop and mdHead are the lengths of a hop's metadata and of what is before it (package
// inband).
const (
	mdHop  = 24
	mdHead = wire.INTShimLen + wire.INTMDLen
)

// fieldKinds are those of a record: an instant, bytes sent, a queue.
const fieldKinds = 3

// fieldBits are the widths of fields by the kind of the telemetry.
var fieldBits = [...][fieldKinds]uint8{hpccTelemetry: {24, 20, 16}, mdTelemetry: {32, 32, 24}}

// rowBytes is what the fields of a hop take, rowHead what is before those of a frame: the
// slot of its flow, the kind, hops.
const (
	rowBytes = 4 + 4 + 3
	rowHead  = 4
	mostHops = 15
	mostRows = rowHead + mostHops*rowBytes
)

// telemetryOf finds the telemetry of a frame: in data on their way, and in what an
// acknowledgement echoes. What is taken for telemetry and is not costs more bytes in the
// file, and nothing else.
func telemetryOf(b []byte, h *headers) telemetry {
	if h.l4 == 0 || h.sum != h.l4+6 || h.keep > flowBytes { // not UDP
		return telemetry{}
	}
	at, port := h.l4+wire.UDPLen, be.Uint16(b[h.l4+2:])
	b = b[:h.keep]
	switch port {
	case wire.RoCEv2Port:
		if at >= len(b) || b[at] != wire.RCAcknowledge {
			return telemetry{}
		}
		at += wire.BTHLen + wire.AETHLen
	case wire.HPCCPort, wire.HPCCGrowPort, wire.INTPort:
	default:
		return telemetry{}
	}
	if at+wire.HPCCBase > len(b) {
		return telemetry{}
	}
	t := telemetry{kind: hpccTelemetry, at: uint8(at + wire.HPCCBase), hops: b[at] >> 4, whole: wire.HPCCRecord}
	if n := wire.INTShimLen + wire.INTWord*int(b[at+1]); port == wire.INTPort || n >= mdHead && at+n == len(b) && b[at] == wire.INTTypeMD<<4|wire.INTNextPort<<2 {
		t = telemetry{kind: mdTelemetry, at: uint8(at + mdHead), hops: uint8(min(mostHops, max(0, n-mdHead)/mdHop)), whole: mdHop}
	}
	if t.hops = uint8(min(int(t.hops), (len(b)-int(t.at))/int(t.whole))); len(b) < int(t.at) || t.hops == 0 {
		return telemetry{}
	}
	return t
}

// known reports whether t is what telemetryOf may find in keep bytes.
func (t telemetry) known(keep int) bool {
	if t.kind == noTelemetry {
		return t == telemetry{}
	}
	return t.kind <= mdTelemetry && t.whole == [...]uint8{0, wire.HPCCRecord, mdHop}[t.kind] && t.hops <= mostHops && int(t.at)+int(t.hops)*int(t.whole) <= keep
}

// out takes the fields of a record out of a frame, which has zeros there then.
func (t telemetry) out(b []byte) (v [fieldKinds]uint32) {
	if t.kind == hpccTelemetry {
		w := be.Uint64(b)
		be.PutUint64(b, w&(0xf<<60))
		return [...]uint32{uint32(w >> 36 & 0xffffff), uint32(w >> 16 & 0xfffff), uint32(w & 0xffff)}
	}
	v = [...]uint32{be.Uint32(b[16:]), be.Uint32(b[20:]), be.Uint32(b[8:]) & 0xffffff}
	clear(b[9:12])
	clear(b[16:24])
	return v
}

// in puts them back.
func (t telemetry) in(b []byte, v [fieldKinds]uint32) {
	if t.kind == hpccTelemetry {
		be.PutUint64(b, be.Uint64(b)|uint64(v[0]&0xffffff)<<36|uint64(v[1]&0xfffff)<<16|uint64(v[2]&0xffff))
		return
	}
	be.PutUint32(b[8:], be.Uint32(b[8:])|v[2]&0xffffff)
	be.PutUint32(b[16:], v[0])
	be.PutUint32(b[20:], v[1])
}

// rows appends the fields of a frame as they are, with room for its slot before them.
func (t telemetry) rows(out, b []byte) []byte {
	out = append(out, 0, 0, t.kind, t.hops)
	for i := range int(t.hops) {
		v := t.out(b[int(t.at)+i*int(t.whole):])
		out = be.AppendUint32(be.AppendUint32(out, v[0]), v[1])
		out = append(out, byte(v[2]>>16), byte(v[2]>>8), byte(v[2]))
	}
	return out
}

// predictor expects fields of the flow of each slot.
type predictor struct {
	slots map[uint16]*[mostHops][fieldKinds]field
}

func (p *predictor) of(slot uint16) *[mostHops][fieldKinds]field {
	f := p.slots[slot]
	if f == nil {
		if p.slots == nil {
			p.slots = map[uint16]*[mostHops][fieldKinds]field{}
		}
		f = &[mostHops][fieldKinds]field{}
		p.slots[slot] = f
	}
	return f
}

// field is what is known of a field: the filters that follow it, of which the one expects
// the next value that was wrong by the least lately.
type field [len(gains)]filter

// filter follows a value and its step, in 1/256.
type filter struct{ level, step, wrong int64 }

// gains are how much of an error goes into the level and into the step, as shifts: the
// value is as it was; the step is the last one; the step is the mean of some; both are.
var gains = [...]struct{ level, step uint8 }{{0, 63}, {0, 0}, {0, 4}, {3, 7}}

// next returns the value of so many bits that is expected.
func (f *field) next(width uint8) uint32 {
	best := 0
	for i := range f {
		if f[i].wrong < f[best].wrong {
			best = i
		}
	}
	return uint32((f[best].level+f[best].step+128)>>8) & (1<<width - 1)
}

// learn updates the field with what came.
func (f *field) learn(v uint32, width uint8) {
	for i := range f {
		x := &f[i]
		x.level += x.step
		e := int64(v)<<8 - x.level // modulo 2^width
		e = e << (56 - width) >> (56 - width)
		x.wrong += (min(max(e, -e), 1<<32) - x.wrong) / 16
		x.level += e >> gains[i].level
		x.step += e >> gains[i].step
		if gains[i].step == 63 {
			x.step = 0
		}
	}
}

// fold makes small numbers of small differences, up and down, of width bits.
func fold(d uint32, width uint8) uint32 {
	s := int32(d << (32 - width))
	return uint32(s<<1^s>>31) >> (32 - width) & (1<<width - 1)
}

func unfold(z uint32, width uint8) uint32 {
	return (z>>1 ^ -(z & 1)) & (1<<width - 1)
}

// planes are the bytes of differences: which byte of which field, those first that differ
// from row to row.
var planes = [rowBytes]struct{ kind, shift uint8 }{{0, 0}, {1, 0}, {2, 0}, {0, 8}, {1, 8}, {2, 8}, {0, 16}, {1, 16}, {2, 16}, {0, 24}, {1, 24}}

// alone is how many planes are compressed each for itself; the others are mostly zeros.
const alone = 5

// spread writes what a recorder copied as differences, plane by plane, and how many hops
// these are.
func (p *predictor) spread(out, rows []byte) ([]byte, int) {
	n := 0
	for at := 0; at < len(rows); at += rowHead + rowBytes*int(rows[at+3]) {
		n += int(rows[at+3])
	}
	first := len(out)
	out = append(out, make([]byte, n*rowBytes)...)
	for k := first; len(rows) > 0; {
		slot, kind, hops := be.Uint16(rows), rows[2], int(rows[3])
		rows = rows[rowHead:]
		f := p.of(slot)
		for hop := range hops {
			v := [...]uint32{be.Uint32(rows), be.Uint32(rows[4:]), uint32(rows[8])<<16 | uint32(be.Uint16(rows[9:]))}
			rows = rows[rowBytes:]
			var z [fieldKinds]uint32
			for i := range z {
				x, width := &f[hop][i], fieldBits[kind][i]
				z[i] = fold(v[i]-x.next(width), width)
				x.learn(v[i], width)
			}
			for i, plane := range planes {
				out[k+i*n] = byte(z[plane.kind] >> plane.shift)
			}
			k++
		}
	}
	return out, n
}

// spreadRows are the planes of a segment that is read.
type spreadRows struct {
	b []byte
	n int // rows
	k int // that were taken
}

// take puts the fields of the next rows into a frame.
func (p *predictor) take(from *spreadRows, slot uint16, t telemetry, b []byte) bool {
	if from == nil || from.n-from.k < int(t.hops) {
		return false
	}
	f := p.of(slot)
	for hop := range int(t.hops) {
		var v [fieldKinds]uint32
		for i, plane := range planes {
			v[plane.kind] |= uint32(from.b[from.k+i*from.n]) << plane.shift
		}
		from.k++
		for i := range v {
			x, width := &f[hop][i], fieldBits[t.kind][i]
			v[i] = (unfold(v[i], width) + x.next(width)) & (1<<width - 1)
			x.learn(v[i], width)
		}
		t.in(b[int(t.at)+hop*int(t.whole):], v)
	}
	return true
}
