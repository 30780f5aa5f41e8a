package buffer

import "gswitch/frame"

// Frames of one flow come and go in trains. What they are charged to is then
// worked out once for all of them, with the result that one by one would have.

// AdmitAll is Admit for frames that agree in InPort, Class, OutPort, Queue and
// the flag IsClone. Where it is not sure that there is room for all of them it
// charges none and reports false: then they are to be admitted one by one.
func (b *Buffer) AdmitAll(a *frame.Arena, v []frame.Ref) bool {
	m := a.Meta(v[0])
	row, class, out, clone := b.row(m.InPort), int(m.Class&7), b.row(m.OutPort), m.Flags&frame.IsClone != 0
	g, q := &b.groups[row][class], &b.queues[out][m.Queue&7]
	if g.staged || b.want[row]>>class&1 != 0 {
		return false
	}
	where := uint16(m.Queue&7) << poolQueueAt
	if row == 0 {
		where |= poolLocalIn
	}
	if out == 0 {
		where |= poolLocalOut
	}
	lossless := uint32(0)
	if g.lossless && !clone {
		lossless = frame.Lossless
	}
	kept, beyond, chunks := b.divide(a, v, q, where, lossless)
	switch {
	case b.held+kept+beyond > b.size,
		chunks != 0 && !b.haveChunks(g, q, out, chunks, clone),
		beyond != 0 && !b.chargeAll(g, q, beyond, clone):
		undivide(a, v, lossless)
		return false
	}
	q.reserved += kept
	if chunks != 0 {
		b.takeChunks(g, q, out, chunks, false)
	}
	if beyond != 0 && g.lossless {
		b.judge(g, row, class)
	}
	b.held += kept + beyond
	b.total.AdmittedBytes += kept + beyond
	b.total.AdmittedFrames += uint64(len(v))
	g.peak = max(g.peak, g.reserved+g.shared+g.headroom)
	q.peak = max(q.peak, q.reserved+q.beyond)
	return true
}

// divide writes into frames what each is charged and to what: the reserve of its
// queue while that has room, else the group, which identifies lossless ones. It
// returns the bytes of both and the chunks of all.
func (b *Buffer) divide(a *frame.Arena, v []frame.Ref, q *queue, where uint16, lossless uint32) (kept, beyond, chunks uint64) {
	room := q.reserve - min(q.reserve, q.reserved)
	for _, r := range v {
		m := a.Meta(r)
		c := b.costOf(m)
		chunks += b.chunksOf(c)
		m.Cost = uint32(c)
		if kept+c <= room {
			kept += c
			m.Pool = PoolQueue | where
			continue
		}
		beyond += c
		m.Pool = PoolGroup | where
		m.Flags |= lossless
	}
	return kept, beyond, chunks
}

// undivide takes back what divide wrote.
func undivide(a *frame.Arena, v []frame.Ref, lossless uint32) {
	for _, r := range v {
		m := a.Meta(r)
		m.Cost, m.Pool = 0, PoolNone
		m.Flags &^= lossless
	}
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
		first, of, class, pool, out := m, m.InPort, m.Class, m.Pool, m.OutPort
		// The last frame, as of a node in virtual time the only one, has no others to be summed up with.
		if i == len(v)-1 || !b.content(of, class, pool) {
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
		first.Pool = pool
		b.credit(first, cost, chunks, n)
		charged += int(n)
	}
	return charged
}

// content reports whether a group wants no pause, and will want none after any
// of its frames that are released: each leaves it further below its thresholds.
func (b *Buffer) content(port uint16, class uint8, pool uint16) bool {
	row := b.row(port)
	if pool&poolLocalIn != 0 {
		row = 0
	}
	g := &b.groups[row][class&7]
	if !g.lossless {
		return true
	}
	return !g.staged && b.want[row]>>(class&7)&1 == 0 && g.headroom == 0 && (g.shared == 0 || g.shared < g.limit.at(b.free())) && !b.crowded(g, false)
}
