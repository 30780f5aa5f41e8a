package policy

import (
	"slices"

	"gswitch/frame"
	"gswitch/scheduler"
)

// group is what the ports of a policy share that one worker serves: its program, and
// buffers with queues of several ports. Each port has an engine of its own, and one more
// while packets wait that came before its policy was changed.
type group struct {
	program *Program
	buffers []*buffer // by span, from 1
	owing   []*Engine // that had to drop a packet for another port
}

// groupOf returns the group that a port of a policy joins.
func groupOf(env *scheduler.Env, o Order) *group {
	made := func() any {
		p, err := load("", o.Text, false)
		if err != nil {
			panic("policy: " + err.Error()) // Compile took it
		}
		return &group{program: p}
	}
	if env.Shared == nil {
		return made().(*group)
	}
	return env.Shared.Get(env.Queue, o.Shares(), made).(*group)
}

// join makes a discipline that of a port of the group.
func (d *Discipline) join(g *group, port int) *spanning {
	e := &d.Engine
	e.group, e.port = g, port
	for i := range e.queues {
		if q := &e.queues[i]; q.buffer != nil && q.buffer.prog.span > 0 {
			q.buffer = g.buffer(q.buffer.prog)
		}
	}
	s := &spanning{paced{Discipline: d}}
	if d.Program.rate != 0 || d.share < 1 {
		s.clock.SetRate(d.bits)
	}
	return s
}

// buffer returns the one that several ports share.
func (g *group) buffer(prog *bufferProgram) *buffer {
	for len(g.buffers) < prog.span {
		g.buffers = append(g.buffers, &buffer{spans: true})
	}
	b := g.buffers[prog.span-1]
	if b.prog == nil {
		b.prog = prog
	}
	return b
}

// come takes note of a queue that holds a packet from now on, in the order of ports
// and of their queues.
func (b *buffer) come(q *queue) {
	b.full = append(b.full, q)
	for i := len(b.full) - 1; i > 0 && b.full[i-1].behind(q); i-- {
		b.full[i-1], b.full[i] = q, b.full[i-1]
	}
}

func (q *queue) behind(o *queue) bool {
	return q.e.port > o.e.port || q.e.port == o.e.port && q.id > o.id
}

// part takes note of a queue that holds none any more.
func (b *buffer) part(q *queue) {
	i := slices.Index(b.full, q)
	b.full = slices.Delete(b.full, i, i+1)
}

// poorestOfPorts is Engine.poorest among queues of several ports.
func (b *buffer) poorestOfPorts(grew *queue) *queue {
	worst := b.full[0]
	x := env{e: grew.e}
	for _, q := range b.full[1:] {
		if b.later(&x, q, worst, grew) {
			worst = q
		}
	}
	return worst
}

// drop drops a packet that waits at another port than the one that came, or under
// an earlier version of the policy of its port.
func (g *group) drop(q *queue, i uint32) {
	q.e.drop(q, i, false)
	g.owing = append(g.owing, q.e)
}

// spanning is a policy that shares a buffer with other ports.
type spanning struct{ paced }

// PushedElsewhere implements scheduler.Spanner.
func (s *spanning) PushedElsewhere() frame.Ref {
	g := s.group
	for n := len(g.owing); n > 0; n = len(g.owing) {
		if e := g.owing[n-1]; e.given < len(e.victims) {
			return e.victims[e.given].Ref
		}
		g.owing = g.owing[:n-1]
	}
	return frame.Nil
}
