package buffer

import "gswitch/frame"

// Frames of one flow come and go in trains. What they are charged to is then
// worked out once for all of them, with the result that one by one would have.

// AdmitAll is Admit for frames that agree in InPort, Class, OutPort, Queue and
// the flag IsClone. Where it is not sure that there is room for all of them it
// charges none and reports false: then they are to be admitted one by one.
func (b *Buffer) AdmitAll(a *frame.Arena, v []frame.Ref) bool {
	var cost, chunks uint64
	for _, r := range v {
		c := b.costOf(a.Meta(r))
		cost += c
		chunks += b.chunksOf(c)
	}
	m := a.Meta(v[0])
	row, class, out, clone := b.row(m.InPort), int(m.Class&7), b.row(m.OutPort), m.Flags&frame.IsClone != 0
	g, q := &b.groups[row][class], &b.queues[out][m.Queue&7]
	switch {
	case b.held+cost > b.size, q.reserve != 0, g.span != 0, b.want[row]>>class&1 != 0:
		return false
	case chunks != 0 && !b.haveChunks(g, q, out, chunks, clone), !b.chargeAll(g, q, cost, clone):
		return false
	}
	if chunks != 0 {
		b.takeChunks(g, q, out, chunks, false)
	}
	pool := PoolGroup | uint16(m.Queue&7)<<poolQueueAt
	if row == 0 {
		pool |= poolLocalIn
	}
	if out == 0 {
		pool |= poolLocalOut
	}
	lossless := uint32(0)
	if g.lossless {
		if !clone {
			lossless = frame.Lossless
		}
		b.judge(row, class)
	}
	for _, r := range v {
		m := a.Meta(r)
		m.Cost, m.Pool = uint32(b.costOf(m)), pool
		m.Flags |= lossless
	}
	b.held += cost
	b.total.AdmittedBytes += cost
	b.total.AdmittedFrames += uint64(len(v))
	g.peak = max(g.peak, g.reserved+g.shared+g.headroom)
	q.peak = max(q.peak, q.reserved+q.beyond)
	return true
}

// haveChunks reports whether frames surely find k chunks that are not those of
// headroom, whichever of them comes first.
func (b *Buffer) haveChunks(g *group, q *queue, out int, k uint64, clone bool) bool {
	free, held := b.freeChunks(), b.waiting[out]
	need := b.beyondOwn(held+k) - b.beyondOwn(held)
	switch {
	case need > free:
		return false
	case g.lossless && !clone:
		return g.chunks+g.spare+k < b.chunkThreshold(g, free-need)
	}
	return need == 0 || q.limit.alpha == 0 || q.chunks+k <= (free-need)*q.limit.alpha>>alphaShift
}

// chargeAll takes cost from the group's reserve and the shared pool, if the
// thresholds as they are after it leave room for it.
func (b *Buffer) chargeAll(g *group, q *queue, cost uint64, clone bool) bool {
	var own uint64
	if g.reserved < g.reserve {
		own = min(cost, g.reserve-g.reserved)
	}
	rest, free := cost-own, b.free()
	switch {
	case rest > free:
		return false
	case g.lossless && g.shared+rest >= g.limit.at(free-rest): // some of them want pause
		return false
	case rest != 0 && g.shared+rest > g.limit.at(free-rest):
		return false
	case rest != 0 && !(g.lossless && !clone) && q.beyond+cost > q.limit.at(free-rest):
		return false
	}
	g.reserved += own
	g.shared += rest
	b.used += rest
	q.beyond += cost
	return true
}

// ReleaseAll is Release for frames that leave by one port, and returns how many
// of them were charged.
func (b *Buffer) ReleaseAll(a *frame.Arena, v []frame.Ref) (charged int) {
	for i := 0; i < len(v); {
		m := a.Meta(v[i])
		if m.Pool&poolKind == PoolNone {
			i++
			continue
		}
		of, class, pool, out := m.InPort, m.Class, m.Pool, m.OutPort
		// A lossless group may want another pause after each; the last frame, as of a node in
		// virtual time the only one, has nobody to be summed up with.
		if i == len(v)-1 || b.groups[b.row(of)][class&7].lossless {
			b.Release(m)
			charged++
			i++
			continue
		}
		var cost, chunks, n uint64
		for ; i < len(v); i++ {
			if m = a.Meta(v[i]); m.InPort != of || m.Class != class || m.Pool != pool || m.OutPort != out {
				break
			}
			c := uint64(m.Cost)
			cost += c
			chunks += b.chunksOf(c)
			n++
			m.Cost, m.Pool = 0, PoolNone
		}
		b.credit(b.row(of), b.row(out), int(class&7), pool, cost, chunks)
		b.total.ReleasedFrames += n
		charged += int(n)
	}
	return charged
}
