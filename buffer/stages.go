package buffer

import "math/bits"

// Stages of Gentle Flow Control (Qian et al., "Gentle Flow Control: Avoiding
// Deadlock in Lossless Networks", SIGCOMM 2019, section 5): with a buffer Bm
// and a first threshold B1 stage k begins at
//
//	B_k = Bm - (Bm - B1) / 2^(k-1)
//
// and slows the neighbour to C/2^k. If Bm - B1 >= 2*C*tau, where tau is the time from a
// decision to its effect, what arrives in tau at the rate of stage k-1 does not go beyond
// B_(k+1): the buffer is never full, and no rate is ever 0. That holds for fluids. Frames
// are as long as the gaps between high stages; the headroom of pause beyond Bm absorbs
// them.

// Stages returns how much the neighbour at a port should be slowed: four bits per class,
// 0 for not at all.
func (b *Buffer) Stages(port uint16) uint32 { return b.stage[b.row(port)] }

// planStages returns Bm - B1 of a group in bytes, 0 for a group that pauses.
func planStages(c *Config, pc *PortConfig, g *Group, wrong func(Setting, uint64, string, ...any) *Error) (uint64, error) {
	if g.Stages == 0 {
		if g.Span != 0 {
			return 0, wrong(OfHeadroom, 0, "a span is for stages: set stages or take it away")
		}
		return 0, nil
	}
	safe := 2 * Headroom(pc.Link, c.Cell).Skid()
	switch {
	case g.Stages > 15:
		return 0, wrong(OfLimit, 0, "there are at most 15 stages, not %d", g.Stages)
	case g.Limit.Bytes == 0 || g.Limit.Alpha != 0:
		return 0, wrong(OfLimit, 0, "stages begin at a fixed threshold: set xoff, and no alpha")
	case g.Span > c.Size || safe > c.Size:
		return 0, wrong(OfHeadroom, 0, "stages over %d B do not fit into the buffer of %d B", max(g.Span, safe), c.Size)
	case g.Span == 0:
		return safe, nil
	case g.Span < safe && !g.NoHeadroomCheck:
		return 0, wrong(OfHeadroom, safe, "stages over %d B are not safe, twice of what the link can deliver until one takes effect: at least %d B, or none to have it computed", g.Span, safe)
	}
	return g.Span, nil
}

// stageAt returns the stage of a group that holds the given bytes beyond B1.
func (g *group) stageAt(beyond uint64) uint8 {
	if beyond >= g.span {
		return g.last
	}
	return min(g.last, uint8(bits.Len64(g.span/(g.span-beyond))))
}

// beyond returns what a group holds beyond B1, and whether it has reached B1.
func (g *group) beyond(more uint64) (uint64, bool) {
	n := g.headroom + more
	if g.headroom == 0 && g.shared+more < g.limit.bytes {
		return 0, false
	}
	if g.headroom != 0 {
		return n + max(g.shared, g.limit.bytes) - g.limit.bytes, true
	}
	return g.shared + more - g.limit.bytes, true
}

// grade determines the stage to which a group wants its neighbour slowed. A stage ends
// when the group has fallen below its threshold by offset/2^(k-1).
func (b *Buffer) grade(row, class int) {
	g := &b.groups[row][class]
	shift := class * 4
	now := uint8(b.stage[row] >> shift & 15)
	want := uint8(0)
	if g.span != 0 && g.lossless {
		if n, reached := g.beyond(0); reached {
			want = g.stageAt(n)
		}
		if want < now {
			want = 0
			if n, reached := g.beyond(g.offset >> (now - 1)); reached {
				want = min(now, g.stageAt(n))
			}
		}
	}
	if want != now {
		b.stage[row] = b.stage[row]&^(15<<shift) | uint32(want)<<shift
		b.note(row)
	}
}
