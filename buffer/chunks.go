package buffer

import "gswitch/frame"

// Memory is made of chunks, and a frame takes whole ones: sixty bytes cost as
// much of it as fifteen hundred, though they count for little beside the
// thresholds in bytes. Chips meet this with small cells; where a cell is a chunk
// the number of chunks is a second resource, with dynamic thresholds of its
// own: a queue holds at most alpha times the chunks that are free, and a
// lossless group that has reached its alpha times the free chunks wants pause.

// Chunks describes the memory below a buffer. The zero value is a buffer of
// bytes alone, as papers have it.
type Chunks struct {
	Bytes uint32 // of a frame that fit into one
	All   int    // how many may hold frames that wait
	Lossy int    // how many of them all share; the rest is headroom of lossless groups
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

// freeChunks returns what is left of the chunks that all share.
func (b *Buffer) freeChunks() uint64 {
	if lossy := uint64(b.cfg.Chunks.Lossy); b.chunks < lossy {
		return lossy - b.chunks
	}
	return 0
}

// findChunks tells whether k chunks for a frame are those of headroom, or why
// there are none. A lossless group that has reached its threshold goes on with
// as much headroom as it leaves to others, so that one whose neighbour does not
// obey costs the rest no more than half of it. What a queue has in reserve is
// free of its threshold.
func (b *Buffer) findChunks(g *group, q *queue, k, cost uint64, flags uint32) (spare bool, why frame.Reason) {
	free := b.freeChunks()
	switch {
	case g.lossless && flags&frame.IsClone == 0:
		if k <= free && !b.crowded(g, false) {
			return false, frame.Keep
		}
		if room := uint64(b.cfg.Chunks.All - b.cfg.Chunks.Lossy); g.spare+k > room-min(room, b.spare) {
			return true, frame.HeadroomFull
		}
		return true, frame.Keep
	case k > free:
		return false, frame.ArenaExhausted
	case q.reserved+cost > q.reserve && q.limit.alpha != 0 && q.chunks+k > max(1, free*q.limit.alpha>>alphaShift):
		return false, frame.QueueTail
	}
	return false, frame.Keep
}

func (b *Buffer) takeChunks(g *group, q *queue, k uint64, spare bool) {
	q.chunks += k
	if spare {
		g.spare += k
		b.spare += k
	} else {
		g.chunks += k
		b.chunks += k
	}
}

// giveChunks gives k chunks back, headroom first.
func (b *Buffer) giveChunks(g *group, q *queue, k uint64) {
	q.chunks -= k
	n := min(k, g.spare)
	g.spare -= n
	b.spare -= n
	g.chunks -= k - n
	b.chunks -= k - n
}

// crowded reports whether a lossless group has reached its threshold in
// chunks; one that is paused already stays so until it is an eighth below.
func (b *Buffer) crowded(g *group, paused bool) bool {
	if b.chunk == 0 || g.chunks == 0 {
		return false
	}
	alpha := g.limit.alpha
	if alpha == 0 {
		alpha = chunkAlpha
	}
	threshold := b.freeChunks() * alpha >> alphaShift
	if paused {
		threshold -= threshold / 8
	}
	return g.spare != 0 || g.chunks >= threshold
}
