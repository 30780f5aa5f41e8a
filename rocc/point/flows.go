package point

import (
	"encoding/binary"

	"gswitch/frame"
	"gswitch/rocc"
	"gswitch/vswitch"
)

// queued shows congestion points the frames that joined their queues.
func (ps *points) queued(v []vswitch.Queued) {
	for i := range v {
		q := &v[i]
		m := ps.arena.Meta(q.Ref)
		if int(m.OutPort) >= len(ps.ports) || ps.ports[m.OutPort] == nil {
			continue
		}
		if p := ps.ports[m.OutPort][m.Queue&7]; p != nil && q.Ahead+uint64(m.Wire) > p.watch {
			ps.track(p, q, m)
		}
	}
}

// unanswerable are the flags of frames whose sender gets no notice.
const unanswerable = frame.IsMulticast | frame.IsBroadcast | frame.IsClone

// track shows a congestion point a frame that has made its queue longer than
// point.watch.
func (ps *points) track(p *point, q *vswitch.Queued, m *frame.Meta) {
	if f := p.quick; f != nil && m.Flags&(frame.HasIPv4|unanswerable) == frame.HasIPv4 && m.InPort != m.OutPort && f.Renew(m.Hash, ps.key4(q.Ref, m), q.Place) {
		return
	}
	if !vswitch.Answerable(m) || p.dormant && !ps.wake(p, q, m) {
		return
	}
	if p.table != nil {
		ps.note(p, q.Ref, m)
		return
	}
	ps.enter(p, q.Ref, m, q.Place)
}

// wake lets a dormant congestion point run again if a frame makes the queue longer than
// point.steady, and returns true then: all that came before it and still wait enter the
// table. A shorter queue only gets its next update.
func (ps *points) wake(p *point, q *vswitch.Queued, m *frame.Meta) bool {
	if p.due == frame.Never {
		ps.arm(ps.node.Now(), p)
		p.watch = p.steady
		if q.Ahead+uint64(m.Wire) <= p.watch {
			return false
		}
	}
	p.dormant, p.watch = false, 0
	p.chooseLookup()
	if p.table != nil {
		return true // it takes frames as they arrive, not those that wait
	}
	sched := ps.node.Scheduler(p.port)
	ps.entry.point, ps.entry.place, ps.entry.until = p, sched.Left(int(p.queue)), q.Ref
	sched.Each(int(p.queue), ps.entry.next)
	return true
}

// entry is where wake is: the point, the place of the last frame that entered,
// the frame that woke it, and enterWaiting, made once.
type entry struct {
	point *point
	place uint64
	until frame.Ref
	next  func(frame.Ref) bool
}

// enterWaiting enters a frame that waits in the queue of the point that wakes,
// up to the one that wakes it: that one and those behind it enter on their own.
func (ps *points) enterWaiting(r frame.Ref) bool {
	e := &ps.entry
	if r == e.until {
		return !e.point.ordered
	}
	e.place++
	if m := ps.arena.Meta(r); vswitch.Answerable(m) {
		ps.enter(e.point, r, m, e.place)
	}
	return true
}

// enter notes that a frame waits at a place in the queue of a congestion point.
// Where frames overtake, the place does not say when it leaves, and left must.
func (ps *points) enter(p *point, r frame.Ref, m *frame.Meta, place uint64) {
	if !p.ordered {
		if ps.flow[r] != 0 {
			return
		}
		place = 0
	}
	i, flow, ok := p.flows.Enter(m.Hash, ps.key(r, m), place)
	if !ok {
		return
	}
	if !p.ordered {
		p.flows.Hold(i)
		ps.flow[r] = i + 1
	}
	if flow != nil {
		vswitch.NoteSender(&flow.Sender, ps.arena.Bytes(r), m)
	}
}

// left notes that frames wait in their queues no longer.
func (ps *points) left(v []frame.Ref) {
	if ps.flow == nil {
		return
	}
	for _, r := range v {
		i := ps.flow[r]
		if i == 0 {
			continue
		}
		ps.flow[r] = 0
		m := ps.arena.Meta(r)
		ps.ports[m.OutPort][m.Queue&7].flows.Leave(i - 1)
	}
}

// note shows a frame to a table that does not see frames leave.
func (ps *points) note(p *point, r frame.Ref, m *frame.Meta) {
	if p.table.Skips() {
		return
	}
	if flow := p.table.Note(m.Hash, ps.key(r, m)); flow != nil {
		vswitch.NoteSender(&flow.Sender, ps.arena.Bytes(r), m)
	}
}

func (ps *points) key(r frame.Ref, m *frame.Meta) rocc.Key {
	if m.Flags&frame.HasIPv4 != 0 {
		return ps.key4(r, m)
	}
	return ps.key6(r, m)
}

// key4 distinguishes flows of IPv4: addresses, ports and protocol.
func (ps *points) key4(r frame.Ref, m *frame.Meta) rocc.Key {
	return rocc.Key{Addresses: ps.arena.Word(r, m, m.L3+12), Ports: portsOf(m)}
}

// key6 is that of IPv6, folded: two flows of one hash that fold alike are notified
// as one.
func (ps *points) key6(r frame.Ref, m *frame.Meta) rocc.Key {
	var src, dst uint64
	if m.Reason == frame.Keep { // else the addresses may be cut off
		b := ps.arena.Bytes(r)[m.L3+8 : m.L3+40]
		src = binary.BigEndian.Uint64(b) ^ binary.BigEndian.Uint64(b[8:])
		dst = binary.BigEndian.Uint64(b[16:]) ^ binary.BigEndian.Uint64(b[24:])
	}
	return rocc.Key{Addresses: src ^ uint64(m.Hash)<<16, Ports: portsOf(m)<<16 ^ dst}
}

func portsOf(m *frame.Meta) uint64 {
	return uint64(m.SrcPort)<<24 | uint64(m.DstPort)<<8 | uint64(m.ProtoIn)
}
