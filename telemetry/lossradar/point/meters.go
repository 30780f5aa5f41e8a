package point

import (
	"gswitch/frame"
	"gswitch/telemetry"
	"gswitch/telemetry/lossradar"
	"gswitch/vswitch"
	"gswitch/wire"
)

// Meters are those of a worker.
type Meters struct {
	node  *vswitch.Node
	arena *frame.Arena
	ports []*meters // nil where there are none
	// from is, by frame, what came with it, until it is counted.
	from   []origin
	desk   telemetry.Desk[lossradar.Report]
	config Config // of all ports, but for the queues
	due    frame.Time
	// in and left are of the vector that is being counted.
	in, left run
}

// origin is what the other end of a link reported of a frame.
type origin struct {
	sig   lossradar.Signature
	flags uint32 // Meta.Flags of then
	batch uint8
	state state
}

type state uint8

const (
	bare   state = iota // it came without a tag, or has been counted
	tagged              // it had a tag; its signature has nothing but the stamp
	signed              // its signature is known
)

// meters are the two of a worker at a port, and what they count.
type meters struct {
	up     *lossradar.Upstream
	down   *lossradar.Downstream
	queues uint8
	count  lossradar.Counts
}

func newMeters(n *vswitch.Node) vswitch.Instance {
	m := &Meters{node: n, arena: n.Arena(), from: make([]origin, n.Arena().Chunks()), due: frame.Never}
	return vswitch.Instance{State: m, Wrapped: m.wrapped, Unwrap: m.unwrap, Listens: m.listens, Arrives: m.arrives, Forwards: m.forwards, Copies: m.copies,
		Dropped: m.dropped, Advance: m.advance, Read: m.read}
}

// Reports is where the exporter finds reports; there is no outbox without meters.
func (m *Meters) Reports() *telemetry.Desk[lossradar.Report] { return &m.desk }

// TakeReport appends the wire form of the oldest report that is ready.
func (m *Meters) TakeReport(b []byte) ([]byte, bool) { return telemetry.AppendOldest(&m.desk, b) }

// Config returns what all meters have in common.
func (m *Meters) Config() Config { return m.config }

// listens is wrapped for frames that are parsed.
func (m *Meters) listens(_ uint16, c *vswitch.PortConfig) bool {
	_, on := c.Options[Name].(Config)
	return on
}

// wrapped brings the meters in line with the configuration, of which it is asked
// about one port after the other.
func (m *Meters) wrapped(port uint16, c *vswitch.PortConfig) bool {
	o, on := c.Options[Name].(Config)
	p := m.at(port)
	queues := o.Queues
	o.Queues = 0
	switch {
	case port == 0 && len(m.ports) > len(m.node.Config().Ports), (p != nil) != on, on && o != m.config:
		m.rebuild()
	case on:
		p.queues = queues
	}
	return on
}

func (m *Meters) at(port uint16) *meters {
	if int(port) < len(m.ports) {
		return m.ports[port]
	}
	return nil
}

// rebuild makes all meters anew: which digests there are depends on all ports. What
// was counted in the batches that were open is lost to the collector, which gets
// the new ones under other numbers.
func (m *Meters) rebuild() {
	ports := m.node.Config().Ports
	old := m.ports
	clear(m.from) // of frames that wait, too: their batches are lost
	m.ports, m.due = make([]*meters, len(ports)), frame.Never
	on := 0
	for i := range ports {
		if o, is := ports[i].Options[Name].(Config); is {
			m.ports[i] = &meters{queues: o.Queues}
			if i < len(old) && old[i] != nil {
				m.ports[i].count = old[i].count
			}
			o.Queues = 0
			m.config = o
			on++
		}
	}
	if on == 0 {
		m.desk.Put(nil)
		return
	}
	out := telemetry.NewOutbox(lossradar.NewReports(on, m.config.Shape)...)
	m.desk.Put(out)
	now := m.node.Now()
	for i, p := range m.ports {
		if p == nil {
			continue
		}
		id := lossradar.Meter{Node: m.node.Config().ID, Port: uint16(i), Shard: uint8(m.node.Index())}
		p.up = lossradar.NewUpstream(id, m.config.Timing, out, now)
		p.down = lossradar.NewDownstream(id, m.config.Timing, out)
	}
	m.arm()
}

// unwrap takes the tags off frames as they came in.
func (m *Meters) unwrap(_ frame.Time, _ uint16, v []frame.Ref) {
	// A frame that crossed a wire has left the first caches, and its origin was never there.
	for _, r := range v {
		frame.Prefetch(&m.from[r])
		if b := m.arena.Bytes(r); len(b) >= wire.EthernetLen {
			frame.Prefetch(&b[0])
			frame.Prefetch(&b[wire.EthernetLen-1])
		}
	}
	for _, r := range v {
		t, ok := wire.PopLinkTag(m.arena, r)
		from := &m.from[r]
		from.state = bare
		if ok {
			*from = origin{sig: lossradar.Signature{}.At(t.Stamp), batch: t.Batch, state: tagged}
		}
	}
}

// arrives notes the signatures of frames while they are as they were on the link.
// The header of one that the parser found wrong was changed on the way: it counts
// as lost.
func (m *Meters) arrives(_ frame.Time, port uint16, v []frame.Ref) []frame.Ref {
	for _, r := range v {
		from := &m.from[r]
		if from.state != tagged {
			continue
		}
		f := m.arena.Meta(r)
		s, ok := lossradar.OfFrame(m.arena.Bytes(r), f)
		if !ok {
			if from.state = bare; !wire.HasLinkTag(m.arena.Bytes(r)) { // see cover
				m.ports[port].count.Wild++
			}
			continue
		}
		from.sig, from.flags, from.state = s.At(uint16(from.sig.Extra)), f.Flags, signed
	}
	return v
}

// forwards counts frames for the link by which they came, and those that leave by a
// metered port for that one, in this order: segments overlap, so that nothing is
// between them that no meter sees (section 5.4).
func (m *Meters) forwards(now frame.Time, v []frame.Ref) {
	queue := &m.node.Config().Class.Queue
	in := &m.in
	for _, r := range v {
		f := m.arena.Meta(r)
		// Of a frame that came by a port without meters nothing is known: its origin,
		// which no cache has, is not read.
		var from *origin
		known := false
		if m.at(f.InPort) != nil {
			from = &m.from[r]
			known = from.state == signed
		}
		if known && in.at != nil && in.port == f.InPort && in.tag.Batch == from.batch && in.n < runLen {
			from.state = bare
			in.add(&from.sig) // as those before it: no call
		} else if known {
			m.arrived(now, from, f)
		}
		p := m.at(f.OutPort)
		if p == nil || f.Flags&frame.ToLocal != 0 {
			continue
		}
		if f.Flags&frame.Own != 0 || p.queues>>(queue[f.Class&7]&7)&1 == 0 {
			m.cover(p, r)
			continue
		}
		// With telemetry that begins or ends here, the signature has other parts.
		if known && (from.flags|f.Flags)&frame.HasINT == 0 {
			m.leaves(now, p, r, from.sig.Onward(f))
		} else if s, ok := lossradar.OfFrame(m.arena.Bytes(r), f); ok {
			m.leaves(now, p, r, s)
		} else {
			m.cover(p, r)
		}
	}
	m.countArrived(now)
	m.countLeft()
}

// cover puts a tag before a frame that begins with one already, which came from a node without a
// meter, such as a host: it passes unchanged, and the other end of the link takes it for no
// frame of a batch. Such a frame is counted at neither end.
func (m *Meters) cover(p *meters, r frame.Ref) {
	b := m.arena.Bytes(r)
	if !wire.HasLinkTag(b) {
		return
	}
	if p.count.Foreign++; !wire.PushLinkTag(m.arena, r, wire.LinkTag{}) {
		b[wire.EthernetLen] = 0 // without room it is no tag any more
	}
}

// copies covers what a mirror copies out of such frames. Copies have no tag of their own.
func (m *Meters) copies(v []frame.Ref) {
	for _, r := range v {
		if p := m.at(m.arena.Meta(r).OutPort); p != nil {
			m.cover(p, r)
		}
	}
}

// run is frames that are counted together.
type run struct {
	at   *meters
	port uint16 // that at is of
	tag  lossradar.Tag
	sigs [runLen]lossradar.Signature
	n    int
}

// runLen is a vector.
const runLen = 64

func (q *run) add(s *lossradar.Signature) {
	q.sigs[q.n%runLen] = *s
	q.n++
}

// arrived counts a frame for the batch that it names.
func (m *Meters) arrived(now frame.Time, from *origin, f *frame.Meta) {
	from.state = bare
	p := m.at(f.InPort)
	if p == nil {
		return
	}
	q := &m.in
	if q.at != p || q.tag.Batch != from.batch || q.n == runLen {
		m.countArrived(now)
		q.at, q.port, q.tag.Batch = p, f.InPort, from.batch
	}
	q.add(&from.sig)
}

// countArrived counts what arrived.
func (m *Meters) countArrived(now frame.Time) {
	q := &m.in
	if q.n > 0 {
		q.at.count.Arrived += uint64(q.n)
		q.at.down.Insert(now, q.tag.Batch, q.sigs[:q.n]...)
		if due := q.at.down.Due(); due < m.due { // of a batch that began
			m.due = due
			m.node.Arm(due)
		}
	}
	q.at, q.n = nil, 0
}

// leaves counts a frame at the entrance of its link and tags it for the other end.
func (m *Meters) leaves(now frame.Time, p *meters, r frame.Ref, s lossradar.Signature) {
	q := &m.left
	if q.at != p || q.n == runLen {
		m.countLeft()
		p.up.Advance(now)
		q.at, q.tag = p, p.up.Tag(now)
	}
	if !wire.PushLinkTag(m.arena, r, wire.LinkTag{Batch: q.tag.Batch, Meter: q.tag.Meter, Stamp: q.tag.Stamp}) {
		p.count.Roomless++
		return
	}
	s = s.At(q.tag.Stamp)
	q.add(&s)
}

// countLeft counts what left.
func (m *Meters) countLeft() {
	q := &m.left
	if q.n > 0 {
		q.at.count.Sent += uint64(q.n)
		q.at.up.Insert(q.sigs[:q.n]...)
	}
	q.at, q.n = nil, 0
}

// dropped counts frames that the switch drops because it is meant to: they are no
// losses of the link that brought them (section 5.4.2). All others are missing
// there.
func (m *Meters) dropped(v []frame.Ref) {
	for _, r := range v {
		from := &m.from[r]
		if from.state != signed {
			from.state = bare
			continue
		}
		f := m.arena.Meta(r)
		if !meant(f.Reason) {
			from.state = bare
			continue
		}
		m.arrived(m.node.Now(), from, f)
	}
	m.countArrived(m.node.Now())
}

// meant reports whether a switch drops a frame because it is configured to. Frames of an
// access list are not among them: whether the list is as it was configured is what
// the collector finds out.
func meant(why frame.Reason) bool {
	switch why {
	case frame.Policed, frame.StormControl, frame.NoticeAtEdge, frame.TelemetryAtEdge, frame.Isolated, frame.VLANIngress, frame.VLANEgress:
		return true
	}
	return !why.Loss()
}

// arm finds out when a batch ends next.
func (m *Meters) arm() {
	m.due = frame.Never
	for _, p := range m.ports {
		if p != nil {
			m.due = min(m.due, p.up.Due(), p.down.Due())
		}
	}
	m.node.Arm(m.due)
}

// advance ends the batches whose time is over.
func (m *Meters) advance(now frame.Time) frame.Time {
	if now >= m.due {
		for _, p := range m.ports {
			if p != nil {
				p.up.Advance(now)
				p.down.Advance(now)
			}
		}
		m.arm()
	}
	return m.due
}
