package run

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"gswitch/fabric/measure"
	"gswitch/fabric/scenario"
	"gswitch/fabric/vnet"
	"gswitch/fabric/workload"
	"gswitch/frame"
	"gswitch/hostnic"
)

// carrier delivers messages to where they are sent from: the network itself, or the
// processes that have its hosts.
type carrier interface {
	Dial(now frame.Time, f *vnet.Flow) (vnet.Conn, error)
	Send(now frame.Time, c vnet.Conn, bytes, id uint64) error
	Close(now frame.Time, c vnet.Conn) error
	// At and Stop are those of vnet.Engine.
	At(t frame.Time, fn func(now frame.Time))
	Stop(err error)
}

// book records the progress of flows. It is a measure.Recorder, or a ledger of what is
// reported later.
type book interface {
	Start(now frame.Time, group int, event uint32, src, dst string, bytes uint64, ideal frame.Time) int
	Done(now frame.Time, number, group int, event uint32, fct, rtt frame.Time)
	Retrieved(now frame.Time, number, group int, event uint32, fct frame.Time)
	Repaired(now frame.Time, number, group int, retransmissions, timeouts uint32)
	Open(now frame.Time, id uint64, group int, name string)
	Ended(id, bytes uint64)
}

// here is the network in this process, as a carrier.
type here struct{ *vnet.Network }

func (h here) At(t frame.Time, fn func(now frame.Time)) { h.Engine.At(t, fn) }
func (h here) Stop(err error)                           { h.Engine.Stop(err) }

// traffic posts the flows of a workload and tracks their ends.
type traffic struct {
	ctx   context.Context
	n     *vnet.Network // for names and distances
	by    carrier
	rec   book
	parts []part
	acked bool // flows are complete at the last acknowledgement

	// reaction is the delay between an arrival and the start of what waits for it.
	reaction frame.Time
	// ahead says that the sender of a stream's messages posts the following ones itself.
	ahead bool

	messages []message
	free     []uint32
	way      map[vnet.Conn][]uint32 // by connection: messages that have not arrived
	open     int                    // unfinished messages of finite groups
}

// part is an entry of the workload.
type part struct {
	source workload.Source
	entry  *scenario.Entry
	name   string      // of the entry
	flow   []vnet.Flow // by sender: what its flows have in common
	stream bool
	conns  map[connKey]vnet.Conn // those that stay open
	seq    uint64                // of flows, for the entropy of their ports
	asked  map[uint32]retrieval  // requests that have not been answered
	armed  frame.Time            // when the engine will call
}

// retrieval is a request with its answer.
type retrieval struct {
	number int // assigned by the recorder
	start  frame.Time
}

type connKey struct{ src, dst, conn int32 }

// message is an unfinished message. Its index in the list is its id.
type message struct {
	part   int
	flow   workload.Flow
	number int // assigned by the recorder
	conn   vnet.Conn
}

func newTraffic(ctx context.Context, n *vnet.Network, by carrier, rec book, r *scenario.Run, file string) (*traffic, error) {
	t := &traffic{ctx: ctx, n: n, by: by, rec: rec, acked: r.Doc.Measure.FCT == "ack", way: map[vnet.Conn][]uint32{}}
	for i := range r.Doc.Workload {
		e := &r.Doc.Workload[i]
		// Each entry has its own random source, so that adding one does not change the
		// others.
		src, err := e.Source(r.Doc, r.Topology, filepath.Dir(file), r.Seed*1_000_003+uint64(i))
		if err != nil {
			return nil, err
		}
		p := part{source: src, entry: e, name: fmt.Sprintf("workload[%d] (%s)", i, e.Group), stream: e.Kind == "saturate", conns: map[connKey]vnet.Conn{}, asked: map[uint32]retrieval{}, armed: frame.Never}
		if p.flow, err = common(n, r, i); err != nil {
			return nil, err
		}
		t.parts = append(t.parts, p)
	}
	return t, nil
}

// begin schedules the first flows.
func (t *traffic) begin() {
	for i := range t.parts {
		t.arm(i)
	}
}

// listen makes the network of this process report on the flows.
func (t *traffic) listen(rec *measure.Recorder) {
	t.n.OnDone(t.done)
	t.n.OnArrival(t.arrived)
	t.n.OnRTT(func(now frame.Time, c vnet.Conn, rtt frame.Time) { rec.RTT(now, uint64(c), rtt) })
}

// common returns, by sender, what the flows of an entry have in common. The settings of
// the entry take precedence over those of the sender.
func common(n *vnet.Network, r *scenario.Run, entry int) ([]vnet.Flow, error) {
	flows := make([]vnet.Flow, len(n.Hosts))
	set := func(f *vnet.Flow, name string, p scenario.Params, tr *scenario.Transport) error {
		if name != "" {
			a, err := algorithm(name, p)
			if err != nil {
				return err
			}
			f.CC = a
		}
		if tr != nil {
			c, _, err := recovery(tr)
			if err != nil {
				return err
			}
			f.Transport, f.LowClasses = &c, tr.LowClasses(r.Doc.Hosts.Class)
		}
		return nil
	}
	for i := range r.Doc.Hosts.Overrides {
		o := &r.Doc.Hosts.Overrides[i]
		hosts, err := scenario.FindHosts(r.Topology, o.Hosts)
		if err != nil {
			return nil, err
		}
		for _, h := range hosts {
			if err := set(&flows[h], o.CC, o.Params, o.Transport); err != nil {
				return nil, err
			}
		}
	}
	e := &r.Doc.Workload[entry]
	stream := streams(n, &r.Doc.Hosts, e)
	for h := range flows {
		f := &flows[h]
		f.Group = entry
		if e.Class != nil {
			f.Class = vnet.InClass(uint8(*e.Class))
		}
		if err := set(f, e.CC, e.Params, e.Transport); err != nil {
			return nil, err
		}
		f.TCP = stream
	}
	return flows, nil
}

// arm schedules a call when the next flow of a part starts.
func (t *traffic) arm(i int) {
	p := &t.parts[i]
	if at := p.source.Peek(); at < p.armed {
		p.armed = at
		t.by.At(at, func(now frame.Time) { t.start(now, i, at) })
	}
}

// start posts the flows of a part that are due.
func (t *traffic) start(now frame.Time, i int, at frame.Time) {
	p := &t.parts[i]
	if p.armed == at {
		p.armed = frame.Never
	}
	for p.source.Peek() <= now {
		err := t.ctx.Err() // one instant may have a million of them
		if err == nil {
			err = t.post(now, i, p.source.Pop())
		}
		if err != nil {
			t.by.Stop(err)
			return
		}
	}
	t.arm(i)
}

func (t *traffic) post(now frame.Time, i int, f workload.Flow) error {
	if len(t.free) == 0 {
		t.messages = append(t.messages, message{})
		t.free = append(t.free, uint32(len(t.messages)-1))
	}
	id := t.free[len(t.free)-1]
	t.free = t.free[:len(t.free)-1]
	p, m := &t.parts[i], &t.messages[id]
	src, dst := t.n.HostName(int(f.Src)), t.n.HostName(int(f.Dst))
	*m = message{part: i, flow: f}
	if m.number = t.belongs(p, &f); m.number == unknown {
		bytes, ideal := f.Bytes, t.ideal(p, &f)
		if f.Retrieval != 0 {
			bytes = f.Answer
		}
		m.number = t.rec.Start(now, i, f.Event, src, dst, bytes, ideal)
		if f.Retrieval != 0 {
			p.asked[f.Retrieval] = retrieval{m.number, now}
		}
	}
	key := connKey{f.Src, f.Dst, f.Conn}
	var known bool
	if m.conn, known = p.conns[key]; !known {
		v := p.flow[f.Src]
		v.ID, v.Src, v.Dst, v.NoECN = uint64(i)<<24|p.seq, int(f.Src), int(f.Dst), f.Opens()
		p.seq++
		var err error
		if m.conn, err = t.by.Dial(now, &v); errors.Is(err, hostnic.ErrQPs) {
			return fmt.Errorf("%s from %s to %s, after %d flows: %w, as flows start faster than they end: lower the load or the number of flows, leave more time between them, or set persistent",
				p.name, src, dst, p.seq-1, err)
		} else if err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		if f.Conn >= 0 {
			p.conns[key] = m.conn
		}
		t.rec.Open(now, uint64(m.conn), i, src+" to "+dst)
	}
	if !p.stream {
		t.open++
	}
	t.way[m.conn] = append(t.way[m.conn], id)
	return t.by.Send(now, m.conn, f.Bytes, uint64(id))
}

// unknown is the number of what the recorder does not know.
const unknown = -2

// belongs returns the recorder's number of the retrieval that a message is part of;
// unknown for the first part, and for flows that are no part of one.
func (t *traffic) belongs(p *part, f *workload.Flow) int {
	if q, ok := p.asked[f.Retrieval]; ok && f.Retrieval != 0 {
		return q.number
	}
	return unknown
}

// ideal returns how long a flow, or a whole retrieval, takes alone in the network.
func (t *traffic) ideal(p *part, f *workload.Flow) frame.Time {
	src, dst := int(f.Src), int(f.Dst)
	if p.flow[src].TCP != nil {
		return t.idealTCP(p, f)
	}
	switch {
	case f.Retrieval != 0:
		d := t.n.Ideal(src, dst, uint64(p.entry.Size)) + t.n.Ideal(dst, src, f.Answer)
		if p.entry.Handshake {
			d += t.n.Ideal(src, dst, f.Bytes) + t.n.Ideal(dst, src, f.Bytes)
		}
		return d
	case t.acked:
		return t.n.IdealAcked(src, dst, f.Bytes)
	}
	return t.n.Ideal(src, dst, f.Bytes)
}

// arrived is called when a message has reached its receiver, who may now answer.
func (t *traffic) arrived(now frame.Time, c vnet.Conn) {
	way := t.way[c]
	m := t.messages[way[0]]
	if t.way[c] = append(way[:0], way[1:]...); m.flow.Conn < 0 {
		delete(t.way, c)
	}
	if p := &t.parts[m.part]; !p.stream {
		if m.flow.Final {
			q := p.asked[m.flow.Retrieval]
			t.rec.Retrieved(now, q.number, m.part, m.flow.Event, now-q.start)
			delete(p.asked, m.flow.Retrieval)
		}
		p.source.Done(now+t.reaction, &m.flow)
		t.arm(m.part)
	}
}

// done is called at the end of each message.
func (t *traffic) done(now frame.Time, d *vnet.Done) {
	id := uint32(d.Flow.ID)
	m := t.messages[id]
	p := &t.parts[m.part]
	fct := d.FCT()
	if t.acked {
		fct = d.SenderEnd - d.Start
	}
	t.rec.Repaired(now, m.number, m.part, d.Retransmits, d.Timeouts)
	if m.flow.Retrieval == 0 {
		t.rec.Done(now, m.number, m.part, m.flow.Event, fct, d.SenderEnd-d.Start)
	}
	if t.ahead && p.stream {
		return // the message stands for those that follow it
	}
	t.free = append(t.free, id)
	if m.flow.Conn < 0 {
		t.rec.Ended(uint64(m.conn), m.flow.Bytes)
		if err := t.by.Close(now, m.conn); err != nil {
			t.by.Stop(err)
		}
	}
	if !p.stream {
		t.open--
		return
	}
	// A stream is clocked by its acknowledgements.
	p.source.Done(now, &m.flow)
	t.arm(m.part)
}

// idle reports whether every flow is complete and none will follow.
func (t *traffic) idle() bool {
	if t.open > 0 {
		return false
	}
	for i := range t.parts {
		if t.parts[i].source.Peek() != frame.Never {
			return false
		}
	}
	return true
}

// acknowledged returns the number of acknowledged bytes of a connection.
func (t *traffic) acknowledged(conn uint64) uint64 { return t.n.Acked(vnet.Conn(conn)) }
