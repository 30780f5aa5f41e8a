package point

import (
	"gswitch/frame"
	"gswitch/telemetry"
	"gswitch/telemetry/flowradar"
	"gswitch/vswitch"
)

// Point counts the flows of a worker.
type Point struct {
	node   *vswitch.Node
	arena  *frame.Arena
	config Config // of the tables that there are; its Slot is 0 where there are none
	desk   telemetry.Desk[flowradar.Report]
	now    *flowradar.Report // that is counted in, nil without options
	ends   frame.Time        // of its slot
	sum    [memory]uint64    // of slots that were reported
	// recent are flows that came a moment ago, each in a place that its five-tuple says, where
	// there is an encoded table.
	recent [1 << recentBits]recent
}

// recent is a flow of this slot: its first packet is in the tables, and by are those
// since then, which go to the tables when the place is needed, or the slot ends.
type recent struct {
	flow flowradar.Key
	by   flowradar.Traffic
}

// recentBits is how many bits of a hash say a flow's place. Tables for a thousand flows
// lie outside of the processor's first cache; these 256 places do not.
const recentBits = 8

func newPoint(n *vswitch.Node) vswitch.Instance {
	p := &Point{node: n, arena: n.Arena(), ends: frame.Never}
	p.flush()
	return vswitch.Instance{State: p, Adopt: p.adopt, Forwards: p.forwards, Dropped: p.dropped, Advance: p.advance, Read: p.read}
}

// Reports is where the exporter finds reports; there is no outbox without options.
func (p *Point) Reports() *telemetry.Desk[flowradar.Report] { return &p.desk }

// TakeReport appends the wire form of the oldest report that is ready.
func (p *Point) TakeReport(b []byte) ([]byte, bool) { return telemetry.AppendOldest(&p.desk, b) }

// Config returns the options of now.
func (p *Point) Config() Config { return p.config }

// adopt makes tables where the options want others. What was counted in the slot of
// then is reported as far as it came.
func (p *Point) adopt(now frame.Time) {
	cfg := p.node.Config()
	c, _ := cfg.Options[Name].(Config)
	if c == p.config {
		return
	}
	if p.now != nil {
		p.flush()
		p.publish(now)
	}
	p.config, p.now, p.ends = c, nil, frame.Never
	if c == (Config{}) {
		p.desk.Put(nil)
		return
	}
	all := make([]*flowradar.Report, tables)
	for i := range all {
		r := &flowradar.Report{Node: cfg.ID, Shard: uint8(p.node.Index())}
		if e := c.Encoded; e.Cells > 0 {
			e.Seed += uint64(p.node.Index())
			r.Encoded = flowradar.New(e)
		}
		if c.Exact > 0 {
			r.Exact = flowradar.NewExact(c.Exact)
		}
		all[i] = r
	}
	out := telemetry.NewOutbox(all...)
	p.desk.Put(out)
	p.begin(out.Empty(), now)
	p.node.Arm(p.ends)
}

// begin counts into a report from now on.
func (p *Point) begin(r *flowradar.Report, now frame.Time) {
	slot := now / p.config.Slot
	r.Slot, r.From, r.Slots = uint64(slot), now, 1
	p.now, p.ends = r, (slot+1)*p.config.Slot
}

// advance ends a slot when its time is over, whether or not anything came: a missing report
// differs from a flow without packets.
func (p *Point) advance(now frame.Time) frame.Time {
	if now < p.ends {
		return p.ends
	}
	p.flush()
	next := p.desk.Outbox().Empty()
	if next == nil {
		// The exporter has all tables: this slot goes on.
		p.now.Slots++
		p.sum[merged]++
		p.ends += p.config.Slot
		return p.ends
	}
	p.publish(p.ends)
	p.begin(next, now)
	if slot := now / p.config.Slot * p.config.Slot; next.From-slot < p.config.Slot/2 {
		next.From = slot // the worker came late, and counted nothing meanwhile
	}
	return p.ends
}

func (p *Point) publish(at frame.Time) {
	r := p.now
	r.To = at
	p.sum[slots]++
	p.sum[packets] += r.Packets
	p.sum[others] += r.Other
	if r.Exact != nil {
		p.sum[overflows] += r.Exact.Overflow
		if r.Encoded == nil {
			p.sum[flows] += uint64(r.Exact.Len())
		}
	}
	if r.Encoded != nil {
		p.sum[flows] += r.Encoded.Flows
	}
	p.desk.Outbox().Publish(r)
}

// forwards counts frames whose way out is known, before they ask for a place in a
// queue: what a link loses is missing at its other end, and so is what the queue
// before it drops. Copies of a flood, and what the switch sends of its own, are no
// packets of a flow.
func (p *Point) forwards(_ frame.Time, v []frame.Ref) {
	if p.now == nil {
		return
	}
	for _, r := range v {
		m := p.arena.Meta(r)
		if m.Flags&(frame.IsClone|frame.Own) != 0 {
			continue
		}
		out := m.OutPort
		if m.Flags&frame.ToLocal != 0 {
			out = flowradar.Local
		}
		p.count(r, m, out)
	}
	if p.now.Encoded == nil {
		p.now.Exact.Flush()
	}
}

// dropped counts frames that the tables drop: they came here, and go nowhere.
func (p *Point) dropped(v []frame.Ref) {
	if p.now == nil {
		return
	}
	for _, r := range v {
		if m := p.arena.Meta(r); inTables[m.Reason] && m.Flags&(frame.IsClone|frame.Own) == 0 {
			p.count(r, m, flowradar.NoPort)
		}
	}
	if p.now.Encoded == nil {
		p.now.Exact.Flush()
	}
}

// inTables are the reasons for which a switch drops what forwards has not seen.
var inTables = [frame.NumReasons]bool{
	frame.MartianSource: true, frame.VLANIngress: true, frame.ACLDrop: true, frame.Policed: true, frame.StormControl: true,
	frame.SamePort: true, frame.Isolated: true, frame.NoVLANMember: true, frame.NoRoute: true, frame.Blackhole: true, frame.Unreachable: true, frame.Prohibited: true, frame.TTLExpired: true,
	frame.NeighborQueue: true, frame.NeighborFailed: true, frame.MTUExceeded: true, frame.ForeignMAC: true, frame.MulticastRouted: true,
	frame.EgressPortDown: true, frame.VLANEgress: true,
}

// count counts a frame of its flow.
func (p *Point) count(r frame.Ref, m *frame.Meta, out uint16) {
	flow, ok := telemetry.FlowOf(p.arena.Bytes(r), m)
	if !ok {
		p.now.Other++
		return
	}
	if p.now.Encoded == nil { // an exact table finds a flow as fast
		p.now.Packets++
		p.now.Bytes += uint64(m.Wire)
		p.now.Exact.Put(flow, m.InPort, out, m.Wire)
		return
	}
	q := &p.recent[(flow.Addrs^flow.Rest)*0x9e3779b97f4a7c15>>(64-recentBits)]
	if q.flow != flow || q.by.In != m.InPort || q.by.Out != out {
		p.enter(q, flow, m, out)
		return
	}
	q.by.Packets++
	q.by.Bytes += uint64(m.Wire)
}

// enter counts the first packet of a flow that was not among the recent ones. It is in
// the tables at once: so flows are there in the order in which they came.
func (p *Point) enter(q *recent, flow flowradar.Key, m *frame.Meta, out uint16) {
	if q.by.Packets > 0 {
		p.update(q)
	}
	q.flow, q.by = flow, flowradar.Traffic{Packets: 1, Bytes: uint64(m.Wire), In: m.InPort, Out: out}
	p.update(q)
}

// update has the tables count what is not in them of a flow.
func (p *Point) update(q *recent) {
	p.now.Packets += uint64(q.by.Packets)
	p.now.Bytes += q.by.Bytes
	p.now.Encoded.Update(q.flow, q.by)
	if p.now.Exact != nil {
		p.now.Exact.Update(q.flow, q.by)
	}
	q.by.Packets, q.by.Bytes = 0, 0
}

// flush has the tables count all that is not in them, and clears the recent flows: none
// is in the tables of the next slot.
func (p *Point) flush() {
	for i := range p.recent {
		q := &p.recent[i]
		if q.by.Packets > 0 {
			p.update(q)
		}
		*q = recent{by: flowradar.Traffic{In: flowradar.NoPort}}
	}
}

// read says what was counted, the slot of now included where it can be known.
func (p *Point) read(emit func(counter int, port uint16, value float64, labels ...string)) {
	sum := p.sum
	if r := p.now; r != nil {
		p.flush()
		sum[packets] += r.Packets
		sum[others] += r.Other
		if r.Exact != nil {
			sum[overflows] += r.Exact.Overflow
		}
	}
	for k, v := range sum {
		emit(k, 0, float64(v))
	}
	emit(memory, 0, float64(p.config.Bytes()))
}
