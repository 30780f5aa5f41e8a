package run

import (
	"context"
	"fmt"
	"time"

	"gswitch/fabric/vnet"
	"gswitch/fabric/workload"
	"gswitch/frame"
	"gswitch/sim"
)

// director runs a scenario whose nodes are in several processes. It owns the workload,
// sends each process ahead of time what its hosts are to send, and tracks the ends of
// messages. It is the carrier of the traffic.
type director struct {
	n     *vnet.Network // its nodes are not stepped: it numbers connections and queue pairs
	t     *traffic
	group *group
	owner []int // process by host

	conns  map[vnet.Conn]*spread
	serial vnet.Conn
	way    map[uint64]*underWay // by message id
	late   []float64            // for each message: seconds between the time it was due and the time it was posted

	agenda sim.Agenda
	origin time.Time // real time at which the nodes' time starts
	scale  int64
	ahead  frame.Time
	end    frame.Time // latest end of the run
	finite bool       // the run ends when its flows are done
	over   bool       // the flows are done
	err    error
}

// spread is a connection between processes.
type spread struct {
	at       vnet.Conn // identifier in the network
	src, dst int
	open     bool // the receiver has reported that its end is open
	waiting  []order
	messages []uint64 // ids of messages that have not arrived
}

// underWay is an unfinished message.
type underWay struct {
	at     frame.Time // when it is to be posted
	bytes  uint64
	stream bool

	there   bool
	arrived frame.Time
	sent    *event // report of the sender's end, if it came first
}

// ahead is how long before its time, in real time, a message is ordered from a process.
const ahead = 100 * time.Millisecond

// now returns the nodes' time, which is negative before the start.
func (d *director) now() frame.Time { return frame.Time(time.Since(d.origin)) / frame.Time(d.scale) }

// At implements carrier. It calls fn with t, but ahead of time.
func (d *director) At(t frame.Time, fn func(now frame.Time)) { d.agenda.Put(sim.Entry{At: t, Do: fn}) }

// Stop implements carrier.
func (d *director) Stop(err error) {
	if d.err == nil {
		d.err = err
	}
}

// Dial implements carrier. Both ends are ordered at once, so that each process opens and
// closes its queue pairs in the order of the network here.
func (d *director) Dial(now frame.Time, f *vnet.Flow) (vnet.Conn, error) {
	at, err := d.n.Dial(now, f)
	if err != nil {
		return 0, err
	}
	ends, err := d.n.Ends(at)
	if err != nil {
		return 0, err
	}
	d.serial++
	c := &spread{at: at, src: d.owner[f.Src], dst: d.owner[f.Dst]}
	d.conns[d.serial] = c
	d.sendBoth(c, order{Open: &opening{Ends: ends, Serial: d.serial, Group: f.Group, Src: f.Src, Dst: f.Dst, ID: f.ID, NoECN: f.NoECN, Stream: d.t.parts[f.Group].stream}})
	return d.serial, nil
}

func (d *director) sendBoth(c *spread, o order) {
	d.send(c.src, o)
	if c.dst != c.src {
		d.send(c.dst, o)
	}
}

func (d *director) send(process int, o order) {
	if h := d.group.processes[process]; d.err == nil {
		if err := h.pipe.write(&o); err != nil {
			d.Stop(d.group.lost(h, err))
		}
	}
}

// Send implements carrier. Nothing is sent before the receiver's end is open: frames to a
// queue pair that does not exist are lost.
func (d *director) Send(now frame.Time, serial vnet.Conn, bytes, id uint64) error {
	c, m := d.conns[serial], &d.t.messages[id]
	u := &underWay{at: now, bytes: bytes, stream: d.t.parts[m.part].stream}
	d.way[id] = u
	o := order{Post: &posting{Serial: serial, At: now, Bytes: bytes, ID: id}}
	if s, ok := d.t.parts[m.part].source.(*workload.Saturate); ok {
		o.Post.Until = s.Until(&m.flow)
	} else {
		c.messages = append(c.messages, id)
	}
	if !c.open {
		c.waiting = append(c.waiting, o)
		return nil
	}
	d.send(c.src, o)
	return nil
}

// Close implements carrier.
func (d *director) Close(now frame.Time, serial vnet.Conn) error {
	c := d.conns[serial]
	delete(d.conns, serial)
	d.sendBoth(c, order{Close: &closing{serial}})
	return d.n.Close(now, c.at)
}

// handle processes an event of a connection.
func (d *director) handle(h *event) error {
	c := d.conns[h.Serial]
	if c == nil {
		return fmt.Errorf("it reports an event of connection %d, which is not open", h.Serial)
	}
	switch h.What {
	case opened:
		c.open = true
		for _, o := range c.waiting {
			d.send(c.src, o)
		}
		c.waiting = nil
	case arrived:
		if len(c.messages) == 0 {
			return fmt.Errorf("it reports the arrival of a message of connection %d that was not sent", h.Serial)
		}
		id := c.messages[0]
		c.messages = append(c.messages[:0], c.messages[1:]...)
		u := d.way[id]
		u.there, u.arrived = true, h.At
		d.t.arrived(h.At, h.Serial)
		if u.sent != nil {
			d.done(u.sent, u)
		}
	case sent:
		u := d.way[h.ID]
		switch {
		case u == nil:
			return fmt.Errorf("it reports the end of message %d, which is not under way", h.ID)
		case u.there || u.stream:
			d.done(h, u)
		default:
			u.sent = h
		}
	default:
		return fmt.Errorf("it reports an event of connection %d of a kind that does not exist (%d)", h.Serial, h.What)
	}
	return nil
}

// done is called when both ends of a message have reported or, for a stream, the sender.
func (d *director) done(h *event, u *underWay) {
	if u.at >= 0 {
		d.late = append(d.late, max(0, h.Start-u.at).Seconds())
	}
	if u.stream {
		u.at = -1 // the following ones are posted when this one is done
	} else {
		delete(d.way, h.ID)
	}
	d.t.done(h.At, &vnet.Done{Flow: vnet.Flow{ID: h.ID, Bytes: u.bytes}, Conn: h.Serial, Start: h.Start, SenderEnd: h.At, ReceiverEnd: u.arrived, Retransmits: h.Retrans, Timeouts: h.Timeouts})
}

// longestWait is how long to wait for processes that have to report. It is much longer
// than anything takes.
const longestWait = 60 * time.Second

// direct runs the scenario until all processes have sent their summaries.
func (d *director) direct(ctx context.Context, p *progress) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	last := d.origin.Add(time.Duration(d.end*frame.Time(d.scale)) + longestWait)
	for missing := len(d.group.processes); ; {
		for d.err == nil && !d.over && d.agenda.Next() <= min(d.now()+d.ahead, d.end) {
			e := d.agenda.Take()
			e.Do(e.At)
		}
		if d.err != nil {
			return d.err
		}
		if d.finite && !d.over && d.t.idle() {
			d.over = true
			for i := range d.group.processes {
				d.send(i, order{End: true})
			}
			last = time.Now().Add(longestWait)
		}
		if err := d.group.flush(); err != nil {
			return err
		}
		p.set(max(0, min(d.now(), d.end)), 0)
		wait := time.Until(last)
		if wait < 0 {
			return fmt.Errorf("process %s sends no summary of what it measured", d.group.unreported())
		}
		if next := d.agenda.Next(); next <= d.end && !d.over {
			wait = min(wait, time.Duration((next-d.ahead-d.now())*frame.Time(d.scale)))
		}
		timer.Reset(max(0, wait))
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
		case h := <-d.group.inbox:
			if h.err != nil {
				return d.group.lost(h.from, h.err)
			}
			for i := range h.report.Events {
				if err := d.handle(&h.report.Events[i]); err != nil {
					return fmt.Errorf("process %s: %w", h.from.name, err)
				}
			}
			for i := range h.report.Pauses {
				if err := checkPause(d.n.Topology, &h.report.Pauses[i]); err != nil {
					return fmt.Errorf("process %s: %w", h.from.name, err)
				}
			}
			h.from.pauses = append(h.from.pauses, h.report.Pauses...)
			if h.report.Last != nil && h.from.summary == nil {
				h.from.summary = h.report.Last
				if missing--; missing == 0 {
					return d.err
				}
			}
		}
	}
}

var _ carrier = (*director)(nil)
