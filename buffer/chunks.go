package buffer

import "gswitch/frame"

// Memory is made of chunks, and a frame takes whole ones: sixty bytes cost as
// much of it as fifteen hundred, though they count for little beside the
// thresholds in bytes. Chips avoid this with small cells; where a cell is a chunk
// the number of chunks is a second resource, with dynamic thresholds of its
// own: beyond what each port may always hold a queue has at most alpha times the chunks that are free, and a
// lossless group that has reached its alpha times the free chunks wants pause.

// Chunks describes the memory below a buffer. The zero value is a buffer of
// bytes alone, as papers have it.
type Chunks struct {
	Bytes uint32 // of a frame that fit into one
	All   int    // how many may hold frames that wait
	Lossy int    // how many of them any frames may take; the rest is headroom of lossless groups
}

// chunkAlpha is the alpha of lossless groups whose threshold in bytes is static.
const chunkAlpha = 1 << alphaShift / 8

// chunksOf returns how many chunks a frame of that cost takes, 0 where they are
// not counted.
func (b *Buffer) chunksOf(cost uint64) uint64 {
	switch {
	case b.chunk == 0:
		return 0
	case cost <= b.chunk:
		return 1
	}
	return (cost + b.chunk - 1) / b.chunk
}

// divideChunks lets each port always hold its part of a quarter of the chunks, so
// that there is something left for those who need little when others have filled
// many queues, each to its threshold. The rest they share.
func (b *Buffer) divideChunks() {
	lossy, rows := uint64(b.cfg.Chunks.Lossy), uint64(len(b.groups))
	b.own = lossy / 4 / rows
	b.common = lossy - b.own*rows
	b.chunks = 0
	for len(b.waiting) < len(b.groups) {
		b.waiting = append(b.waiting, 0)
	}
	for _, n := range b.waiting {
		b.chunks += b.beyondOwn(n)
	}
}

// Own returns how many frames of a length each port may always hold, whatever wait at
// others: of its part of a quarter of the chunks, and of the bytes.
func (b *Buffer) Own(length uint64) uint64 {
	n := b.size / 4 / uint64(len(b.groups)) / length
	if k := b.chunksOf(length); k != 0 {
		n = min(n, b.own/k)
	}
	return n
}

// freeChunks returns what is left of the chunks that all share.
func (b *Buffer) freeChunks() uint64 { return b.common - min(b.common, b.chunks) }

// beyondOwn returns how many of n chunks that wait at a port are not of those
// that it may always hold.
func (b *Buffer) beyondOwn(n uint64) uint64 { return n - min(n, b.own) }

// findChunks says whether k chunks for a frame are those of headroom, or why
// there are none. A lossless group that has reached its threshold goes on with
// as much headroom as it leaves to others, so that one whose neighbour does not
// stop costs the rest no more than half of it.
func (b *Buffer) findChunks(g *group, q *queue, out int, k uint64, flags uint32) (spare bool, why frame.Reason) {
	free, held := b.freeChunks(), b.waiting[out]
	need := b.beyondOwn(held+k) - b.beyondOwn(held)
	switch {
	case g.lossless && flags&frame.IsClone == 0:
		if need <= free && !b.crowded(g, false) {
			return false, frame.Keep
		}
		if room := uint64(b.cfg.Chunks.All - b.cfg.Chunks.Lossy); g.spare+k > room-min(room, b.spare) {
			return true, frame.HeadroomFull
		}
		return true, frame.Keep
	case need == 0:
		return false, frame.Keep
	case need > free:
		return false, frame.ArenaExhausted
	case q.limit.alpha != 0 && q.chunks+k > max(1, free*q.limit.alpha>>alphaShift):
		return false, frame.QueueTail
	}
	return false, frame.Keep
}

// takeChunks counts k chunks for the port of row out.
func (b *Buffer) takeChunks(g *group, q *queue, out int, k uint64, spare bool) {
	q.chunks += k
	if spare {
		g.spare += k
		b.spare += k
		return
	}
	g.chunks += k
	held := b.waiting[out] + k
	b.waiting[out] = held
	if held > b.own {
		b.chunks += min(k, held-b.own)
	}
}

// giveChunks gives k chunks back.
func (b *Buffer) giveChunks(g *group, q *queue, out int, k uint64, spare bool) {
	q.chunks -= k
	if spare {
		g.spare -= k
		b.spare -= k
		return
	}
	g.chunks -= k
	held := b.waiting[out]
	b.waiting[out] = held - k
	if held > b.own {
		b.chunks -= min(k, held-b.own)
	}
}

// crowded reports whether a lossless group has reached its threshold in
// chunks; one that is paused already stays so until it is an eighth below.
func (b *Buffer) crowded(g *group, paused bool) bool {
	if b.chunk == 0 || g.chunks+g.spare == 0 {
		return false
	}
	threshold := b.chunkThreshold(g, b.freeChunks())
	if paused {
		threshold -= threshold / 8
	}
	return g.chunks+g.spare >= threshold
}

// chunkThreshold returns at how many chunks a lossless group wants pause while
// others are free.
func (b *Buffer) chunkThreshold(g *group, free uint64) uint64 {
	alpha := g.limit.alpha
	if alpha == 0 {
		alpha = chunkAlpha
	}
	return max(free*alpha>>alphaShift, b.own/2)
}
