package crossbar

import (
	"fmt"
	"math"
	"math/bits"
)

// Frames lie in chunks of memory, and the smallest frame takes a whole one: the
// bytes of an ingress queue of 128 KiB are those of 87 large frames, or of 2184
// small ones. So chunks are counted beside bytes. At an ingress port a frame takes
// those that the port has for itself, then of those that all ingress ports share:
// dynamically, at most as many as are left free after it. A lossless class whose
// chunks, with those of the classes above it, reach a part of that wants pause, and
// what comes after has headroom. At an egress port, where nothing is lost for want
// of room, a frame counts for so many bytes at least that the bytes of the queue
// bound its chunks.

// Chunks divides the memory that frames lie in. The zero value does not count it.
type Chunks struct {
	Bytes    uint32 // of a frame that fit into a chunk; cannot change. 0 = chunks are not counted
	Own      uint32 // chunks that each ingress port has for itself
	Shared   uint32 // that all ingress ports share besides
	Headroom uint32 // that lossless classes of each ingress port have besides, for what comes after a pause
	Egress   uint32 // that frames may take which crossed to an egress port
}

// Divide shares out chunks among ingress ports and those egress ports that are here.
// Lossless classes of an ingress port want so much headroom, and get it as long as that
// is not more than half of all.
func Divide(bytes uint32, all, ingress, egress int, headroom uint32) Chunks {
	ingress, egress = max(ingress, 1), max(egress, 1)
	headroom = min(headroom, uint32(all/2/ingress))
	half := (all - int(headroom)*ingress) / 2
	own := half / 4 / ingress
	return Chunks{Bytes: bytes, Own: uint32(own), Shared: uint32(half - own*ingress), Headroom: headroom, Egress: uint32(max(half/egress, leastEgress))}
}

// leastEgress chunks are enough for a transfer while a frame leaves.
const leastEgress = 4

func (c *Chunks) validate() error {
	if c.Bytes != 0 && c.Egress < leastEgress {
		return fmt.Errorf("%d chunks of an egress queue: at least %d", c.Egress, leastEgress)
	}
	return nil
}

// memory is the account of chunks.
type memory struct {
	cfg  Chunks
	used uint32 // of those that are shared
	part uint32 // of what an ingress port may still take, in 65536ths, at which a class of it wants pause
	mark uint32 // chunks at which that is, as of now; none where the largest value
	// Least bytes that a chunk counts for at an egress port, and most that a frame
	// does: all that fits, which an empty queue takes.
	weight, most uint32
	whole        uint32 // bytes that a frame of one chunk has at most: all, where they are not counted
	// A port with fewer chunks and no headroom in use may have another one, and is below
	// the mark with it.
	easy uint32
}

// configureChunks counts anew how much of the shared memory is used.
func (x *Crossbar) configureChunks() {
	c := &x.cfg
	x.memory = memory{cfg: c.Chunks, mark: math.MaxUint32, whole: math.MaxUint32}
	if c.Chunks.Bytes == 0 {
		return
	}
	x.memory.whole = c.Chunks.Bytes
	if classes := bits.OnesCount8(c.Lossless); classes > 0 {
		x.memory.part = 1 << 16 / (2 * uint32(classes))
	}
	room := c.Egress
	if !c.TotalCap {
		room += c.Reserve
	}
	x.memory.weight, x.memory.most = (room+c.Chunks.Egress-1)/c.Chunks.Egress, min(room, maxBytes)
	for i := range x.in {
		x.memory.used += x.memory.beyond(x.in[i].chunks)
	}
	x.memory.setMark()
}

// chunksOf returns how many chunks a frame takes.
func (b *memory) chunksOf(bytes uint32) uint32 {
	if bytes <= b.cfg.Bytes {
		return 1
	}
	return (bytes + b.cfg.Bytes - 1) / b.cfg.Bytes
}

// beyond returns how many of n chunks at an ingress port are not its own.
func (b *memory) beyond(n uint32) uint32 { return n - min(n, b.cfg.Own) }

func (b *memory) free() uint32 { return b.cfg.Shared - min(b.cfg.Shared, b.used) }

// setMark follows the use of the shared memory.
func (b *memory) setMark() {
	if b.part != 0 {
		b.mark = max(1, uint32(uint64(b.cfg.Own+b.free())*uint64(b.part)>>16))
	}
	b.easy = min(b.cfg.Own, b.mark-1)
}

// outCost returns what a frame counts for at an egress port.
func (x *Crossbar) outCost(bytes uint32) uint32 {
	if bytes <= x.memory.whole {
		return max(bytes, x.memory.weight)
	}
	return max(bytes, uint32(min(uint64(x.memory.chunksOf(bytes))*uint64(x.memory.weight), uint64(x.memory.most))))
}

// takeChunks finds chunks for a frame that comes by an ingress port, and reports false
// if there are none.
func (x *Crossbar) takeChunks(in *input, class uint8, bytes uint32, lossy bool) bool {
	b := &x.memory
	k := b.chunksOf(bytes)
	more := b.beyond(in.chunks + k)
	need, free := more-b.beyond(in.chunks), b.free()
	switch {
	case need == 0 && lossy:
	case !lossy && need <= free && !in.crowded(class, b.mark):
	case !lossy && in.spare+k <= b.cfg.Headroom:
		in.spare += k
		in.pressed |= 1 << (class & 7)
		in.look = true
		in.cells[class&7] += k
		return true
	case more > free: // of those that are shared it may have as many as it leaves
		return false
	}
	in.chunks += k
	in.cells[class&7] += k
	if need != 0 {
		b.used += need
		b.setMark()
	}
	if in.chunks >= b.mark {
		in.look = true
	}
	return true
}

// giveChunks gives back what a frame took, headroom first. It reports whether there
// is none in use any more.
func (x *Crossbar) giveChunks(in *input, class uint8, bytes uint32) (relieved bool) {
	b := &x.memory
	k := b.chunksOf(bytes)
	in.cells[class&7] -= k
	if in.spare != 0 {
		n := min(k, in.spare)
		in.spare -= n
		k -= n
		if relieved = in.spare == 0; relieved {
			in.pressed = 0
		}
	}
	before := b.beyond(in.chunks)
	in.chunks -= k
	if after := b.beyond(in.chunks); after != before {
		b.used -= before - after
		b.setMark()
	}
	return relieved
}

// crowded reports whether the chunks of a class and of those above it reach a mark.
func (in *input) crowded(class uint8, mark uint32) bool {
	if in.chunks+in.spare < mark {
		return false
	}
	sum := uint32(0)
	for _, n := range in.cells[class&7:] {
		sum += n
	}
	return sum >= mark
}
