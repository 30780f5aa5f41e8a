package verbs

import (
	"errors"
	"math/bits"
	"slices"
	"sync/atomic"

	"gswitch/frame"
	"gswitch/hostnic"
	"gswitch/hostnic/agent"
	_ "gswitch/systems" // what congestion control listens to
)

// node is the host as its worker steps it: the agent, and what crosses between
// programs and the worker. Only the worker calls its methods, or who reads by
// Host.look. What programs change are commands (command.go).
type node struct {
	*agent.Agent
	bells    [(maxQueuePairs + 63) / 64]atomic.Uint64 // one bit for each queue pair with new posts
	pairs    [maxQueuePairs]*QueuePair                // by tag - 1
	listener *Listener
	offers   []offered // connections that wait to be accepted
	numbered uint64    // how many were offered
	posted   posted    // what Posted returned
	command  frame.Command
}

// offered is a connection that waits to be accepted, by its number.
type offered struct {
	number uint64
	conn   *agent.Conn
	by     *Listener
}

func newNode(a *agent.Agent) *node {
	n := &node{Agent: a}
	n.command = bound{&n.posted, n}
	return n
}

// ring says that the queue pair of a tag has new posts. Any goroutine calls it.
// It reports whether that is new.
func (n *node) ring(tag uint64) bool {
	word, bit := &n.bells[(tag-1)/64], uint64(1)<<((tag-1)%64)
	if word.Load()&bit != 0 {
		return false
	}
	return word.Or(bit)&bit == 0
}

// Receive implements frame.Node.
func (n *node) Receive(now frame.Time, port uint16, v []frame.Ref) {
	n.Agent.Receive(now, port, v)
	n.report()
}

// Advance implements frame.Node.
func (n *node) Advance(now frame.Time) {
	n.Agent.Advance(now)
	n.report()
}

// Posted implements dataplane.Posted: what was posted on one queue pair.
func (n *node) Posted() frame.Command {
	for i := range n.bells {
		for n.bells[i].Load() != 0 {
			bit := bits.TrailingZeros64(n.bells[i].Load())
			n.bells[i].And(^(uint64(1) << bit)) // before its tail is read
			if q := n.pairs[i*64+bit]; q != nil {
				n.posted = posted{tag: uint64(i*64+bit) + 1, pair: q, tail: q.tail.Load()}
				return n.command
			}
		}
	}
	return nil
}

// Wake implements frame.Node.
func (n *node) Wake(now frame.Time) frame.Time {
	for i := range n.bells {
		if n.bells[i].Load() != 0 {
			return now
		}
	}
	return n.Agent.Wake(now)
}

// drain gives the NIC what was posted on a queue pair, up to a tail of its ring.
func (n *node) drain(now frame.Time, q *QueuePair, tail uint64) {
	head := q.head.Load()
	for ; head != tail; head++ {
		p := &q.posts[head&uint64(len(q.posts)-1)]
		n.post(now, q, p)
		p.wr.Local = nil
	}
	q.head.Store(head)
}

// post gives the NIC one request. What it does not take, since the connection
// has ended, is flushed.
func (n *node) post(now frame.Time, q *QueuePair, p *post) {
	err := errEnded
	switch {
	case q.isDown:
	case p.recv:
		err = n.NIC().PostRecv(now, q.conn.Local, hostnic.RecvRequest{ID: p.wr.ID, Local: p.wr.Local, Bytes: p.wr.Bytes})
	default:
		err = n.NIC().Post(now, q.conn.Local, &p.wr)
	}
	if err == nil {
		return
	}
	e := Completion{WRID: p.wr.ID, QP: q, Opcode: OpRecv, Status: WRFlushError}
	if !p.recv {
		e.Opcode = verbOpcodes[p.wr.Verb]
	}
	q.cq.push(&e)
}

var errEnded = errors.New("the connection has ended")

var verbOpcodes = [...]Opcode{hostnic.Send: OpSend, hostnic.SendImmediate: OpSend, hostnic.Write: OpWrite, hostnic.WriteImmediate: OpWrite,
	hostnic.Read: OpRead, hostnic.FetchAdd: OpAtomic, hostnic.CompareSwap: OpAtomic}

// report gives programs what is new of their connections.
func (n *node) report() {
	for c := n.News(); c != nil; c = n.News() {
		if c.Tag == 0 {
			if n.listener != nil && c.State == agent.Running {
				n.numbered++
				o := offered{n.numbered, c, n.listener}
				n.offers = append(n.offers, o)
				n.listener.offer(o)
			}
			continue
		}
		q := n.pairs[c.Tag-1]
		if q == nil || q.conn != c {
			continue
		}
		n.complete(q)
		switch c.State {
		case agent.Running:
			q.opened()
		case agent.Ended:
			q.ended()
		}
	}
}

// complete puts completions on the queue of the program.
func (n *node) complete(q *QueuePair) {
	done := q.conn.Completions()
	for i := range done {
		d := &done[i]
		e := Completion{WRID: d.ID, QP: q, Opcode: opcodes[d.Op], Status: statuses[d.Status], HasImm: d.HasImm, Imm: d.Imm, Bytes: d.Bytes, Took: (d.End - d.Start).Duration()}
		if d.Write {
			e.Opcode = OpRecvWithImm
		}
		q.cq.push(&e)
	}
}

// accept returns a connection that was offered, and makes room for another one in the
// backlog; nil if there is none of that number.
func (n *node) accept(number uint64) *agent.Conn {
	i := slices.IndexFunc(n.offers, func(o offered) bool { return o.number == number })
	if i < 0 {
		return nil
	}
	o := n.offers[i]
	n.offers = slices.Delete(n.offers, i, i+1)
	n.Take(&o.by.l)
	return o.conn
}
