package buffer

import (
	"math/bits"

	"gswitch/frame"
)

// Meta.Pool while a frame is held: what it is charged to (one of the first three), the
// egress queue whose account it is in, and which of its two ports are accounted in row 0,
// since they were not configured when it was admitted. They may be when it is released.
const (
	PoolNone  uint16 = 0 // not charged
	PoolGroup uint16 = 1 // charged to its group: reserve, shared pool or headroom
	PoolQueue uint16 = 2 // charged to the reserve of its egress queue
	// PoolInputs is of frames that are charged to queues in place of the buffer, which
	// does not know them.
	PoolInputs uint16 = 3

	poolKind     uint16 = 3
	poolQueueAt         = 4 // bits 4 to 6
	poolLocalIn  uint16 = 1 << 8
	poolLocalOut uint16 = 1 << 9
	poolSpare    uint16 = 1 << 10 // it takes chunks of the headroom
)

// Buffer keeps the accounts.
type Buffer struct {
	size   uint64
	cell   uint64
	held   uint64 // all bytes charged
	shared uint64 // size of the shared pool
	used   uint64 // bytes of it in use
	chunk  uint64 // bytes of a chunk, 0 = chunks are not counted
	common uint64 // chunks that all share
	own    uint64 // chunks that each port may always hold
	chunks uint64 // in use of those that all share
	spare  uint64 // in use of those that are headroom of lossless groups

	// Row 0 is for frames of the switch itself and ports that are not
	// configured, row p+1 for port p.
	groups [][8]group
	queues [][8]queue

	waiting []uint64 // by row of the egress port: chunks that are not headroom

	want  []uint8  // by row: classes that want pause
	stage []uint32 // by row: stages that they want, four bits each
	dirty []uint64 // rows whose want changed since NextDirty
	stale bool     // there may be some

	dynamic []int32   // row*8+class of the lossless groups whose threshold follows the use of the pool
	swept   [2]uint64 // used and chunks, when Sweep looked last

	total Totals
	cfg   Config
}

// group is the account of one class of an ingress port: two cache lines, of which
// most frames need the first.
type group struct {
	reserved, shared, headroom uint64 // in use
	reserve                    uint64 // size of the reserve
	limit                      limit
	peak                       uint64
	lossless                   bool
	staged                     bool  // span is not 0
	last                       uint8 // stage

	room          uint64 // size of the headroom
	span          uint64 // bytes of headroom that stages divide, 0 = pause
	offset        uint64
	chunks, spare uint64 // in use
	roomPeak      uint64
	xoffs, drops  uint64
}

// queue is the account of one egress queue.
type queue struct {
	reserved, beyond uint64 // in use: of the reserve, and besides
	reserve          uint64
	limit            limit
	chunks           uint64
	peak, drops      uint64
}

// Totals are running sums in bytes and frames. Admitted = Released + held.
type Totals struct {
	AdmittedBytes, ReleasedBytes   uint64
	AdmittedFrames, ReleasedFrames uint64
	RefusedBytes, RefusedFrames    uint64
}

// New returns an empty buffer. An impossible or unsafe division is refused
// with the value that would be safe.
func New(cfg Config) (*Buffer, error) {
	b := &Buffer{}
	if err := b.Reconfigure(cfg); err != nil {
		return nil, err
	}
	return b, nil
}

// Config returns the configuration in force.
func (b *Buffer) Config() Config { return b.cfg }

// Reconfigure changes the division of the buffer; on error nothing changes.
// Frames that are held stay charged. Where a new bound is below what is held,
// nothing more is admitted under it until it has drained, and until then a
// lossless frame may find no room.
func (b *Buffer) Reconfigure(cfg Config) error {
	l, err := plan(&cfg)
	if err != nil {
		return err
	}
	if b.groups != nil && cfg.Chunks.Bytes != b.cfg.Chunks.Bytes {
		return whole(0, "buffer: chunks of %d B cannot become chunks of %d B", b.cfg.Chunks.Bytes, cfg.Chunks.Bytes)
	}
	cfg.Ports = append([]PortConfig(nil), cfg.Ports...)
	b.cfg, b.size, b.cell, b.shared = cfg, cfg.Size, uint64(max(cfg.Cell, 1)), l.shared
	b.chunk = uint64(cfg.Chunks.Bytes)
	for len(b.groups) < len(cfg.Ports)+1 {
		b.groups = append(b.groups, [8]group{})
		b.queues = append(b.queues, [8]queue{})
		b.want = append(b.want, 0)
		b.stage = append(b.stage, 0)
	}
	for len(b.dirty)*64 < len(b.groups) {
		b.dirty = append(b.dirty, 0)
	}
	b.divideChunks()
	b.dynamic = b.dynamic[:0]
	none := newLimit(Threshold{})
	for row := range b.groups {
		for i := range b.groups[row] {
			g, q := &b.groups[row][i], &b.queues[row][i]
			g.reserve, g.room, g.limit, g.offset, g.lossless, g.staged, g.span, g.last = 0, 0, none, 0, false, false, 0, 0
			q.reserve, q.limit = 0, none
			if row == 0 || row > len(cfg.Ports) {
				continue
			}
			gc, qc := &cfg.Ports[row-1].Groups[i], &cfg.Ports[row-1].Queues[i]
			g.reserve, g.room, g.limit = gc.Reserve, l.headroom[row-1][i], newLimit(gc.Limit)
			g.offset, g.lossless = gc.XONOffset, gc.Lossless
			g.span, g.last = l.span[row-1][i], gc.Stages
			g.staged = g.span != 0
			q.reserve, q.limit = qc.Reserve, newLimit(qc.Limit)
			if g.lossless && (g.limit.alpha != 0 || b.chunk != 0) {
				b.dynamic = append(b.dynamic, int32(row*8+i))
			}
		}
		for i := range b.groups[row] {
			b.judge(&b.groups[row][i], row, i)
			b.grade(row, i)
		}
	}
	return nil
}

// row returns the row of a port. NoPort + 1 is 0.
func (b *Buffer) row(port uint16) int {
	row := int(port + 1)
	if row >= len(b.groups) {
		return 0
	}
	return row
}

func (b *Buffer) free() uint64 {
	if b.used >= b.shared {
		return 0
	}
	return b.shared - b.used
}

// Admit charges a frame that is about to be queued, by InPort, Class, OutPort,
// Queue and Wire, and sets Cost and Pool, and the flag frame.Lossless where
// it is charged to a lossless group and is no copy. It returns Keep, or why there is no room. Of these
// fields only Wire and Queue may change before Release: a frame that moves to
// another queue of its port stays charged to the first.
func (b *Buffer) Admit(m *frame.Meta) frame.Reason {
	why := b.Try(m)
	if why != frame.Keep {
		b.refuse(m)
	}
	return why
}

// Try is Admit for a frame that has another queue to go to if there is no room
// in this one: what it refuses is not counted.
func (b *Buffer) Try(m *frame.Meta) frame.Reason {
	m.Cost, m.Pool = 0, PoolNone
	cost := b.costOf(m)
	row, class, out := b.row(m.InPort), int(m.Class&7), b.row(m.OutPort)
	g := &b.groups[row][class]
	q := &b.queues[out][m.Queue&7]
	k := b.chunksOf(cost)
	spare := false                                          // it takes chunks of the headroom
	if k != 0 && (g.lossless || b.waiting[out]+k > b.own) { // otherwise the port uses its own
		var why frame.Reason
		if spare, why = b.findChunks(g, q, out, k, m.Flags); why != frame.Keep {
			return why
		}
	}
	pool := PoolQueue
	switch {
	case b.held+cost > b.size:
		return frame.BufferFull
	case q.reserved+cost <= q.reserve:
		q.reserved += cost
	default:
		if why := b.charge(g, q, cost, m.Flags); why != frame.Keep {
			return why
		}
		q.beyond += cost
		pool = PoolGroup
	}
	if k != 0 {
		b.takeChunks(g, q, out, k, spare)
	}
	if g.lossless && pool == PoolGroup {
		if m.Flags&frame.IsClone == 0 {
			m.Flags |= frame.Lossless
		}
		b.judge(g, row, class)
	}
	m.Pool = pool | uint16(m.Queue&7)<<poolQueueAt
	if spare {
		m.Pool |= poolSpare
	}
	if row == 0 {
		m.Pool |= poolLocalIn
	}
	if out == 0 {
		m.Pool |= poolLocalOut
	}
	m.Cost = uint32(cost)
	b.held += cost
	b.total.AdmittedBytes += cost
	b.total.AdmittedFrames++
	if n := g.reserved + g.shared + g.headroom; n > g.peak {
		g.peak = n
	}
	if n := q.reserved + q.beyond; n > q.peak {
		q.peak = n
	}
	return frame.Keep
}

// costOf returns what a frame is charged.
func (b *Buffer) costOf(m *frame.Meta) uint64 {
	cost := uint64(m.Wire)
	if b.cell > 1 {
		cost = (cost + b.cell - 1) / b.cell * b.cell
	}
	return cost
}

// charge takes cost from the group: reserve, shared pool, headroom.
func (b *Buffer) charge(g *group, q *queue, cost uint64, flags uint32) frame.Reason {
	var own uint64 // what the group's reserve takes
	if g.reserved < g.reserve {
		own = min(cost, g.reserve-g.reserved)
	}
	rest, free := cost-own, b.free()
	switch {
	case rest == 0:
	case g.lossless && flags&frame.IsClone == 0:
		if rest <= free && g.shared < g.limit.at(free) {
			g.shared += rest
			b.used += rest
			break
		}
		if g.headroom+rest > g.room {
			return frame.HeadroomFull
		}
		g.headroom += rest
		if g.headroom > g.roomPeak {
			g.roomPeak = g.headroom
		}
	case rest > free:
		return frame.BufferFull
	case g.shared+rest > g.limit.at(free):
		return frame.IngressLimit
	case q.beyond+cost > q.limit.at(free):
		return frame.QueueTail
	default:
		g.shared += rest
		b.used += rest
	}
	g.reserved += own
	return frame.Keep
}

// refuse counts a frame for which there was no room.
func (b *Buffer) refuse(m *frame.Meta) {
	b.groups[b.row(m.InPort)][m.Class&7].drops++
	b.queues[b.row(m.OutPort)][m.Queue&7].drops++
	b.total.RefusedFrames++
	b.total.RefusedBytes += uint64(m.Wire)
}

// Release gives back what Admit charged. A frame that is not charged is left
// alone.
func (b *Buffer) Release(m *frame.Meta) {
	if m.Pool&poolKind != PoolNone {
		b.credit(m, uint64(m.Cost), b.chunksOf(uint64(m.Cost)), 1)
	}
}

// credit takes cost and k chunks of n frames out of the accounts of one of them, which
// is charged to none then.
func (b *Buffer) credit(m *frame.Meta, cost, k, n uint64) {
	pool, in, out, class := m.Pool, b.row(m.InPort), b.row(m.OutPort), int(m.Class&7)
	m.Cost, m.Pool = 0, PoolNone
	b.held -= cost
	b.total.ReleasedBytes += cost
	b.total.ReleasedFrames += n
	if pool&poolLocalIn != 0 {
		in = 0
	}
	if pool&poolLocalOut != 0 {
		out = 0
	}
	q := &b.queues[out][pool>>poolQueueAt&7]
	g := &b.groups[in][class]
	if k != 0 {
		b.giveChunks(g, q, out, k, pool&poolSpare != 0)
	}
	if pool&poolKind == PoolQueue {
		q.reserved -= cost
		if k == 0 {
			return
		}
	} else {
		q.beyond -= cost
		b.refund(g, cost)
	}
	if g.lossless {
		b.judge(g, in, class)
	}
}

// refund gives a group back what charge took: headroom, shared pool, reserve.
func (b *Buffer) refund(g *group, cost uint64) {
	rest := cost
	n := min(rest, g.headroom)
	g.headroom -= n
	rest -= n
	n = min(rest, g.shared)
	g.shared -= n
	b.used -= n
	g.reserved -= rest - n
}

// judge decides whether g, the group of a class and row, wants pause.
func (b *Buffer) judge(g *group, row, class int) {
	bit := uint8(1) << class
	if g.staged {
		b.grade(row, class)
	}
	wants := b.want[row]&bit != 0
	switch {
	case !g.lossless:
		if !wants {
			return
		}
	case wants:
		t := g.limit.at(b.free())
		if g.headroom != 0 || g.shared > t-min(t, g.offset) || b.crowded(g, true) {
			return
		}
	default:
		if g.headroom == 0 && (g.shared == 0 || g.shared < g.limit.at(b.free())) && !b.crowded(g, false) {
			return
		}
		g.xoffs++
	}
	b.want[row] ^= bit
	b.note(row)
}

// note has NextDirty return a row.
func (b *Buffer) note(row int) {
	b.dirty[row>>6] |= 1 << (row & 63)
	b.stale = true
}

// Want returns the classes for which the neighbour at a port should pause.
func (b *Buffer) Want(port uint16) uint8 { return b.want[b.row(port)] }

// Held returns the bytes of a class that came by a port.
func (b *Buffer) Held(port uint16, class uint8) uint64 {
	g := &b.groups[b.row(port)][class&7]
	return g.reserved + g.shared + g.headroom
}

// NextDirty returns a port whose Want changed since it was last returned
// here, in ascending order, and false if there is none.
func (b *Buffer) NextDirty() (port uint16, ok bool) {
	for i, w := range b.dirty {
		if w != 0 {
			b.dirty[i] = w & (w - 1)
			return uint16(i*64 + bits.TrailingZeros64(w) - 1), true
		}
	}
	b.stale = false
	return frame.NoPort, false
}

// Stale reports whether NextDirty may return a port.
func (b *Buffer) Stale() bool { return b.stale }

// Unswept reports whether Sweep would look at something.
func (b *Buffer) Unswept() bool {
	return b.swept != [2]uint64{b.used, b.chunks} && len(b.dynamic) > 0 && !b.cfg.OwnFrames
}

// Sweep judges the lossless groups with dynamic thresholds again, if the use
// of the shared pool has changed since the last time: others' frames moved
// their threshold. Call it every few microseconds of traffic.
func (b *Buffer) Sweep() {
	now := [2]uint64{b.used, b.chunks}
	if now == b.swept {
		return
	}
	b.swept = now
	for _, i := range b.dynamic {
		b.judge(&b.groups[i>>3][i&7], int(i>>3), int(i&7))
	}
}
