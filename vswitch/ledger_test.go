package vswitch_test

import (
	"fmt"

	"gswitch/frame"
	"gswitch/vswitch"
)

// ledger is a feature that looks at all that joins queues, no longer waits and leaves the
// switch, and keeps books of its own.
type ledger struct {
	arena  *frame.Arena
	state  []uint8  // of each frame
	bytes  []uint64 // that it had when it joined
	queues [worldPorts][8]struct{ bytes, joined, released uint64 }
	wrong  string // the first mistake
}

const ledgered = "test-ledger"

// What is known of a frame.
const (
	unseen uint8 = iota
	waiting
	between // it left a queue, and has not left the switch
)

func init() {
	vswitch.Register(vswitch.Feature{Name: ledgered, New: func(n *vswitch.Node) vswitch.Instance {
		l := &ledger{arena: n.Arena(), state: make([]uint8, n.Arena().Chunks()), bytes: make([]uint64, n.Arena().Chunks())}
		return vswitch.Instance{State: l, Queued: l.queued, Left: l.left, Released: l.released,
			Port: func(frame.Time, uint16, *vswitch.PortConfig) vswitch.Stages {
				return vswitch.AtQueued | vswitch.AtLeft | vswitch.AtReleased
			}}
	}})
}

// onlooker is a feature that looks at what joins queues alone: it is not shown when frames
// have left in the vector in which they came.
type onlooker struct {
	arena *frame.Arena
	wrong int
}

const onlooking = "test-onlooker"

func init() {
	vswitch.Register(vswitch.Feature{Name: onlooking, New: func(n *vswitch.Node) vswitch.Instance {
		o := &onlooker{arena: n.Arena()}
		return vswitch.Instance{State: o, Queued: o.queued,
			Port: func(frame.Time, uint16, *vswitch.PortConfig) vswitch.Stages { return vswitch.AtQueued }}
	}})
}

func (o *onlooker) queued(v []vswitch.Queued) {
	for i := range v {
		if m := o.arena.Meta(v[i].Ref); m.Cost == 0 || m.Reason != frame.Keep {
			o.wrong++ // it is charged to nobody, or dropped
		}
	}
}

func (l *ledger) fail(r frame.Ref, format string, args ...any) {
	if m := l.arena.Meta(r); l.wrong == "" {
		l.wrong = fmt.Sprintf("ledger: a frame of %d bytes in queue %d of port %d: %s", m.Wire, m.Queue, m.OutPort, fmt.Sprintf(format, args...))
	}
}

func (l *ledger) queued(v []vswitch.Queued) {
	for i := range v {
		m := l.arena.Meta(v[i].Ref)
		q := &l.queues[m.OutPort][m.Queue&7]
		if l.state[v[i].Ref] == waiting {
			l.fail(v[i].Ref, "it joins twice")
		}
		if q.joined++; v[i].Place != q.joined || v[i].Ahead != q.bytes {
			l.fail(v[i].Ref, "it is the frame %d behind %d bytes, where %d behind %d is right", v[i].Place, v[i].Ahead, q.joined, q.bytes)
		}
		l.state[v[i].Ref], l.bytes[v[i].Ref] = waiting, uint64(m.Wire)
		q.bytes += uint64(m.Wire)
	}
}

func (l *ledger) left(v []frame.Ref) {
	for _, r := range v {
		m := l.arena.Meta(r)
		switch {
		case l.state[r] == waiting:
			l.state[r] = between
			l.queues[m.OutPort][m.Queue&7].bytes -= l.bytes[r]
		case m.Cost != 0 || l.state[r] == between: // what no queue holds, such as pauses, is charged to nobody
			l.fail(r, "it leaves a queue that it did not join")
		}
	}
}

func (l *ledger) released(port uint16, v []frame.Ref) {
	for _, r := range v {
		m := l.arena.Meta(r)
		switch {
		case m.OutPort != port:
			l.fail(r, "it leaves by port %d", port)
		case l.state[r] == between:
			l.queues[port][m.Queue&7].released++
		case m.Cost != 0 || l.state[r] == waiting:
			l.fail(r, "it leaves the switch and waits")
		}
		l.state[r] = unseen
	}
}

// ledgers holds the books of all workers to their queues, and to a switch at rest.
func (w *world) ledgers(rest bool) {
	for i, n := range w.sw.Nodes {
		if o, ok := n.Feature(onlooking).(*onlooker); ok && o.wrong > 0 {
			w.fail("%d frames were shown as joining a queue when they did not wait any more", o.wrong)
		}
		l, ok := n.Feature(ledgered).(*ledger)
		if !ok {
			continue
		}
		if l.wrong != "" {
			w.fail("%s", l.wrong)
		}
		for p := range worldPorts {
			if !n.Owns(uint16(p)) {
				continue
			}
			for q := range 8 {
				frames, bytes := n.Scheduler(uint16(p)).QueueLen(q)
				if b := &l.queues[p][q]; b.bytes != uint64(bytes) || rest && frames != 0 {
					w.fail("worker %d: %d bytes wait in queue %d of port %d, and by its ledger %d", i, bytes, q, p, b.bytes)
				}
			}
		}
		for r, s := range l.state {
			if rest && s != unseen {
				w.fail("worker %d: frame %d is still in state %d", i, r, s)
			}
		}
	}
}
