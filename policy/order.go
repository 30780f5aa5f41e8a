package policy

import (
	"encoding/binary"

	"gswitch/frame"
	"gswitch/scheduler"
)

// Order is a policy as the order of an egress queue. It is a value: two of one text
// are equal, so that what is applied again disturbs nothing.
type Order struct {
	Text string // which Compile has taken
	Port int    // which of its ports the queue is of, from 0
}

// New implements scheduler.Order.
func (o Order) New(env scheduler.Env) scheduler.Discipline {
	g := groupOf(&env, o)
	parts := g.program.Parts()
	p := parts[min(o.Port, len(parts)-1)]
	d := &Discipline{Engine: *p.NewEngine(env.Seed, env.Rate)}
	d.rehome()
	if p.spans() {
		return d.join(g, o.Port)
	}
	if p.rate != 0 || p.share < 1 {
		q := &paced{Discipline: d}
		q.clock.SetRate(d.bits)
		return q
	}
	return d
}

// Check implements scheduler.Checked.
func (o Order) Check() error {
	_, err := Compile("policy", o.Text)
	return err
}

// Drops implements scheduler.Dropper.
func (o Order) Drops() bool {
	p, err := load("", o.Text, false)
	return err == nil && p.Drops()
}

// Shares implements scheduler.Sharer.
func (o Order) Shares() any { return o.Text }

// String implements scheduler.Order.
func (o Order) String() string {
	p, err := load("", o.Text, false)
	if err != nil {
		return "policy"
	}
	return p.String()
}

// Discipline is a policy over the frames of an egress queue.
type Discipline struct{ Engine }

// rehome points the heaps at the engine where it is now.
func (d *Discipline) rehome() {
	for i := range d.queues {
		d.queues[i].e = &d.Engine
		d.queues[i].proc.heap.e, d.queues[i].adm.heap.e = &d.Engine, &d.Engine
	}
}

// Enqueue implements scheduler.Discipline.
func (d *Discipline) Enqueue(a *frame.Arena, now frame.Time, r frame.Ref) {
	m := a.Meta(r)
	i := d.slot()
	p := &d.slots[i].Packet
	record(p, m)
	p.Arrival, p.Ref = now, r
	if d.bytes {
		look(a, r, m, p)
	}
	if d.offer(i) && m.Flags&frame.IsECT != 0 {
		m.Flags |= frame.MarkCE
	}
}

// Read returns what a policy may read of a frame that was parsed.
func Read(a *frame.Arena, r frame.Ref) (p Packet) {
	record(&p, a.Meta(r))
	look(a, r, a.Meta(r), &p)
	return p
}

// record takes from the metadata of a frame what a policy may read. Of the TOS byte
// it has DSCP, and of ECN whether there is a mark.
func record(p *Packet, m *frame.Meta) {
	p.Size, p.Flow, p.Rank = m.Wire, m.Hash, m.Rank
	p.Sport, p.Dport, p.Inport = m.SrcPort, m.DstPort, m.InPort
	p.DSCP, p.TOS, p.Class, p.TTL, p.Proto = m.DSCP, m.DSCP<<2, m.Class, m.TTL, m.Proto
	p.Marked = m.Flags&frame.MarkCE != 0
	p.Src, p.Dst, p.ID, p.Length = 0, 0, 0, 0
}

// look reads the fields that stand in the bytes of a frame alone.
func look(a *frame.Arena, r frame.Ref, m *frame.Meta, p *Packet) {
	b := a.Bytes(r)
	at := int(m.L3)
	switch {
	case m.Flags&frame.HasIPv4 != 0 && len(b) >= at+20:
		b = b[at:]
		p.TOS, p.Length, p.ID = b[1], binary.BigEndian.Uint16(b[2:]), binary.BigEndian.Uint16(b[4:])
		p.Src, p.Dst = binary.BigEndian.Uint32(b[12:]), binary.BigEndian.Uint32(b[16:])
	case m.Flags&frame.HasIPv6 != 0 && len(b) >= at+40:
		b = b[at:]
		p.TOS = b[0]<<4 | b[1]>>4
	}
}

// PushedOut implements scheduler.PushOuter.
func (d *Discipline) PushedOut() frame.Ref {
	if p := d.Victim(); p != nil {
		return p.Ref
	}
	return frame.Nil
}

// Head implements scheduler.Discipline.
func (d *Discipline) Head() frame.Ref {
	if d.n == 0 {
		return frame.Nil
	}
	return d.First().Ref
}

// Dequeue implements scheduler.Discipline.
func (d *Discipline) Dequeue(*frame.Arena, frame.Time) frame.Ref {
	if d.n == 0 {
		return frame.Nil
	}
	return d.Take().Ref
}

// Evict implements scheduler.Evictor.
func (d *Discipline) Evict(*frame.Arena) frame.Ref {
	if p := d.TakeWorst(); p != nil {
		return p.Ref
	}
	return frame.Nil
}

// Each implements scheduler.Discipline.
func (d *Discipline) Each(_ *frame.Arena, visit func(frame.Ref) bool) {
	d.each(func(p *Packet) bool { return visit(p.Ref) })
}

// paced is a policy whose port has less than the rate of the link, or shares a buffer.
type paced struct {
	*Discipline
	clock scheduler.RateClock
	since frame.Time // from when on there has always been a packet
}

// Enqueue implements scheduler.Discipline.
func (q *paced) Enqueue(a *frame.Arena, now frame.Time, r frame.Ref) {
	if q.n == 0 {
		q.since = now
	}
	q.Discipline.Enqueue(a, now, r)
}

// Dequeue implements scheduler.Discipline.
func (q *paced) Dequeue(a *frame.Arena, depart frame.Time) frame.Ref {
	r := q.Discipline.Dequeue(a, depart)
	if r != frame.Nil {
		q.clock.Idle(depart)
		q.clock.Charge(a.Meta(r).Wire)
	}
	return r
}

// HeadAt implements scheduler.Timed. A packet that comes while others wait does not hold them up: where the
// worker is late, it may be sent as of an instant before it came.
func (q *paced) HeadAt() frame.Time {
	if q.n == 0 {
		return frame.Never
	}
	return max(q.clock.Free(), q.since)
}
