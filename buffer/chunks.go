package buffer

import "gswitch/frame"

// Memory consists of chunks, and a frame takes whole ones: sixty bytes cost as much
// memory as fifteen hundred, although they count little against thresholds in bytes.
// Switch chips avoid this with small cells. With large chunks, the number of chunks is a
// second resource with dynamic thresholds of its own: beyond what each port may always
// hold, a queue has at most alpha times the free chunks, and a lossless group that has
// reached its alpha times the free chunks wants pause.

// Chunks describes the memory below a buffer. The zero value is a buffer that counts
// bytes only, as papers assume.
type Chunks struct {
	Bytes uint32 // bytes of a frame that fit into one
	All   int    // number that may hold waiting frames
	Lossy int    // number of them that any frame may take; the rest is headroom of lossless groups
}

// chunkAlpha is the alpha, for chunks, of lossless groups whose threshold in bytes is
// static: 1/8.
const chunkAlpha = 1 << alphaShift / 8

// chunksOf returns the number of chunks of a frame with that cost, 0 if they are not
// counted.
func (b *Buffer) chunksOf(cost uint64) uint64 {
	switch {
	case b.chunk == 0:
		return 0
	case cost <= b.chunk:
		return 1
	}
	return (cost + b.chunk - 1) / b.chunk
}

// divideChunks gives each port an equal part of a quarter of the chunks that it may
// always hold, so that something is left for ports that need little when others have
// filled many queues, each to its threshold. The ports share the rest.
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

// Own returns how many frames of a length each port may always hold, whatever waits at
// other ports: from its part of a quarter of the chunks, and of the bytes.
func (b *Buffer) Own(length uint64) uint64 {
	n := b.size / 4 / uint64(len(b.groups)) / length
	if k := b.chunksOf(length); k != 0 {
		n = min(n, b.own/k)
	}
	return n
}

// freeChunks returns the number of free shared chunks.
func (b *Buffer) freeChunks() uint64 { return b.common - min(b.common, b.chunks) }

// beyondOwn returns how many of the n chunks that wait at a port exceed those that it may
// always hold.
func (b *Buffer) beyondOwn(n uint64) uint64 { return n - min(n, b.own) }

// findChunks decides whether k chunks for a frame come from the headroom, or why there
// are none. A lossless group that has reached its threshold may take as much headroom as
// it leaves to others, so that a neighbour that does not stop takes at most half of it.
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

// takeChunks charges k chunks to the port of row out.
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

// crowded reports whether a lossless group has reached its threshold in chunks. One that
// is already paused stays so until it is an eighth below.
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

// chunkThreshold returns the number of chunks at which a lossless group wants pause if
// free chunks are free.
func (b *Buffer) chunkThreshold(g *group, free uint64) uint64 {
	alpha := g.limit.alpha
	if alpha == 0 {
		alpha = chunkAlpha
	}
	return max(free*alpha>>alphaShift, b.own/2)
}
