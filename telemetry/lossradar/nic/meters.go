package nic

import (
	"gswitch/frame"
	"gswitch/hostnic"
	"gswitch/telemetry"
	"gswitch/telemetry/lossradar"
	"gswitch/wire"
)

// Meters are the two of a host: frames that it sends are counted as they start on the
// link, those that it gets as they come off it. The host's queues lie before the one,
// and what the host drops behind the other.
type Meters struct {
	nic    *hostnic.NIC
	arena  *frame.Arena
	config lossradar.Config
	up     *lossradar.Upstream
	down   *lossradar.Downstream
	desk   telemetry.Desk[lossradar.Report]
	now    frame.Time
	count  lossradar.Counts
	// tags are those of the vector that arrives.
	tags   [vector]wire.LinkTag
	tagged uint64 // bitmap of the frames that had one
	sigs   [vector]lossradar.Signature
}

// vector is how many frames arrive together at most.
const vector = 64

func newMeters(n *hostnic.NIC) hostnic.Instance {
	m := &Meters{nic: n, arena: n.Arena()}
	return hostnic.Instance{State: m, Adopt: m.adopt, Unwrap: m.unwrap, Arrives: m.arrives, Leaves: m.leaves, Advance: m.advance, Read: m.read}
}

// Reports is where the exporter finds reports; there is no outbox without meters.
func (m *Meters) Reports() *telemetry.Desk[lossradar.Report] { return &m.desk }

// TakeReport appends the wire form of the oldest report that is ready.
func (m *Meters) TakeReport(b []byte) ([]byte, bool) { return telemetry.AppendOldest(&m.desk, b) }

// Config returns what the meters are made of.
func (m *Meters) Config() lossradar.Config { return m.config }

// adopt makes the meters, or makes them anew where the configuration has changed: what
// was counted in the batches that were open is lost to the collector then, which gets
// the new ones under other numbers.
func (m *Meters) adopt(options any) hostnic.Stages {
	c, on := options.(lossradar.Config)
	if !on {
		m.up, m.down, m.config = nil, nil, lossradar.Config{}
		m.desk.Put(nil)
		return 0
	}
	if m.up == nil || c != m.config {
		m.config = c
		out := telemetry.NewOutbox(lossradar.NewReports(1, c.Shape)...)
		m.desk.Put(out)
		m.up = lossradar.NewUpstream(lossradar.Meter{}, c.Timing, out, m.now)
		m.down = lossradar.NewDownstream(lossradar.Meter{}, c.Timing, out)
	}
	return hostnic.AtUnwrap | hostnic.AtArrives | hostnic.AtLeaves
}

// unwrap takes the tags off frames as they came in.
func (m *Meters) unwrap(_ frame.Time, v []frame.Ref) {
	m.tagged = 0
	for i, r := range v {
		if t, ok := wire.PopLinkTag(m.arena, r); ok {
			m.tags[i&(vector-1)] = t
			m.tagged |= 1 << (i & (vector - 1))
		}
	}
}

// arrives counts frames for the batches that they name, batch by batch. The header of
// one that the parser found wrong was changed on the way: it counts as lost.
func (m *Meters) arrives(now frame.Time, v []frame.Ref) {
	m.now = max(m.now, now)
	n, batch := 0, uint8(0)
	for i, r := range v {
		if m.tagged>>(i&(vector-1))&1 == 0 {
			continue
		}
		s, ok := lossradar.OfFrame(m.arena.Bytes(r), m.arena.Meta(r))
		if !ok {
			if !wire.HasLinkTag(m.arena.Bytes(r)) { // which a switch put before its own
				m.count.Wild++
			}
			continue
		}
		t := &m.tags[i&(vector-1)]
		if n > 0 && t.Batch != batch {
			m.arrived(now, batch, n)
			n = 0
		}
		batch = t.Batch
		m.sigs[n] = s.At(t.Stamp)
		n++
	}
	if n > 0 {
		m.arrived(now, batch, n)
	}
}

func (m *Meters) arrived(now frame.Time, batch uint8, n int) {
	m.count.Arrived += uint64(n)
	m.down.Insert(now, batch, m.sigs[:n]...)
	m.nic.Arm(m.down.Due()) // of a batch that began
}

// leaves counts a frame at the entrance of the link and tags it for the other end. The time of a link
// that makes up for a late caller may be before one that was given.
func (m *Meters) leaves(t frame.Time, r frame.Ref) {
	s, ok := lossradar.OfFrame(m.arena.Bytes(r), m.arena.Meta(r))
	if !ok {
		return
	}
	m.now = max(m.now, t)
	m.up.Advance(m.now)
	tag := m.up.Tag(m.now)
	if !wire.PushLinkTag(m.arena, r, wire.LinkTag{Batch: tag.Batch, Meter: tag.Meter, Stamp: tag.Stamp}) {
		m.count.Roomless++
		return
	}
	m.count.Sent++
	m.up.Insert(s.At(tag.Stamp))
}

// advance ends the batches whose time is over.
func (m *Meters) advance(now frame.Time) frame.Time {
	if m.up == nil {
		return frame.Never
	}
	m.now = max(m.now, now)
	m.up.Advance(m.now)
	m.down.Advance(m.now)
	return min(m.up.Due(), m.down.Due())
}
