package verbs

import (
	"encoding/binary"
	"fmt"
	"math"

	"gswitch/command"
	"gswitch/frame"
	"gswitch/hostnic"
	"gswitch/hostnic/agent"
	inband "gswitch/int"
	"gswitch/transport"
)

// change is what a program changes of its host: dial, listen, unlisten, take, refuse,
// hangup, register, grant, deregister, shutdown or posted. Its encoding stays the same from
// version to version. The bytes that requests carry, and those of registered memory,
// are the program's and not in it.
type change interface {
	Encode(b []byte) []byte
	do(now frame.Time, n *node)
}

// bound is a change of a node. It implements frame.Command.
type bound struct {
	change
	n *node
}

// Do implements frame.Command. What the change brought about is reported at once.
func (c bound) Do(now frame.Time) {
	c.do(now, c.n)
	c.n.report()
}

// command has the worker carry out a change, until Close has ended.
func (h *Host) command(c change) error {
	select {
	case <-h.flushed:
		return ErrClosed
	default:
	}
	if h.engine.Command(h.worker.Index(), h.node, bound{c, h.node}) != nil {
		return ErrClosed
	}
	return nil
}

// dial opens a connection for the queue pair of a tag.
type dial struct {
	conn    *agent.Conn // with its Tag
	pair    *QueuePair
	refused error
}

func (c *dial) do(now frame.Time, n *node) {
	if c.refused = n.Dial(now, c.conn); c.refused == nil {
		n.pairs[c.conn.Tag-1] = c.pair
	}
}

// listen takes connections from now on.
type listen struct {
	listener *Listener
	busy     bool // another one listens: nothing was done
}

func (c *listen) do(_ frame.Time, n *node) {
	if c.busy = n.listener != nil; !c.busy {
		n.listener = c.listener
		n.Listen(&c.listener.l)
	}
}

// unlisten takes no more. Those that were offered wait to be refused.
type unlisten struct{}

func (unlisten) do(_ frame.Time, n *node) {
	n.listener = nil
	n.Listen(nil)
}

// take makes a connection that was offered that of the queue pair of a tag.
type take struct {
	offer uint64
	tag   uint64
	pair  *QueuePair // nil if decoded
	ended bool       // the connection has ended meanwhile
}

func (c *take) do(_ frame.Time, n *node) {
	conn := n.accept(c.offer)
	if c.ended = conn == nil || conn.State == agent.Ended; c.ended {
		return
	}
	if c.pair == nil {
		c.pair = unwatched(conn)
	}
	conn.Tag, n.pairs[c.tag-1] = c.tag, c.pair
	c.pair.opened()
}

// refuse ends a connection that was offered.
type refuse struct{ offer uint64 }

func (c refuse) do(now frame.Time, n *node) {
	if conn := n.accept(c.offer); conn != nil {
		n.Hangup(now, conn)
	}
}

// hangup ends the connection of the queue pair of a tag. When it has been carried out
// every post that the worker has taken has its completion.
type hangup struct{ tag uint64 }

func (c hangup) do(now frame.Time, n *node) {
	if q := n.pairs[c.tag-1]; q != nil {
		n.Hangup(now, q.conn)
		n.report() // completions go to the queue pair
		n.pairs[c.tag-1] = nil
	}
}

// register opens memory to other hosts.
type register struct {
	data    []byte
	size    uint64 // of data, or of memory without bytes if decoded
	access  Access
	key     uint32
	refused error
}

func (c *register) do(_ frame.Time, n *node) {
	if m := n.NIC().Memory(); c.data != nil {
		c.key, c.refused = m.Register(0, c.data, c.access)
	} else {
		c.key, c.refused = m.RegisterVirtual(0, c.size, c.access)
	}
}

// grant opens memory to the other end of a queue pair, by a key of its own.
type grant struct {
	memory  uint32 // its key
	qpn     uint32 // number of the queue pair here
	key     uint32
	refused error
}

func (c *grant) do(_ frame.Time, n *node) { c.key, c.refused = n.NIC().Grant(c.memory, c.qpn) }

// deregister ends the registration of memory.
type deregister struct {
	key     uint32
	refused error
}

func (c *deregister) do(_ frame.Time, n *node) { c.refused = n.NIC().Memory().Deregister(c.key) }

// shutdown ends everything.
type shutdown struct{}

func (shutdown) do(now frame.Time, n *node) { n.Shutdown(now) }

// posted gives the NIC what was posted on the queue pair of a tag.
type posted struct {
	tag   uint64
	pair  *QueuePair // its ring up to tail; nil if decoded
	tail  uint64
	posts []post // if decoded
}

func (c *posted) do(now frame.Time, n *node) {
	if c.pair != nil {
		n.drain(now, c.pair, c.tail)
		return
	}
	if q := n.pairs[c.tag-1]; q != nil {
		for i := range c.posts {
			n.post(now, q, &c.posts[i])
		}
	}
}

// The first byte of an encoded change.
const (
	dialKind       = 1
	listenKind     = 2
	unlistenKind   = 3
	takeKind       = 4
	refuseKind     = 5
	hangupKind     = 6
	registerKind   = 7
	grantKind      = 8
	deregisterKind = 9
	shutdownKind   = 10
	postedKind     = 11
)

// receive stands in place of a verb for the buffers of receive queues.
const receive = 255

func appendNumbers(b []byte, v ...uint64) []byte {
	for _, v := range v {
		b = binary.AppendUvarint(b, v)
	}
	return b
}

func appendVerbs(b []byte, v *hostnic.VerbsConfig) []byte {
	return appendNumbers(append(b, v.Retries, v.RNRRetries), uint64(v.MaxReads), uint64(v.RNRTimer))
}

// Encode implements change.
func (c *dial) Encode(b []byte) []byte {
	k, recovery := c.conn, byte(0)
	if k.Recovery != nil {
		recovery = k.Recovery.Code + 1
	}
	b = append(command.AppendAddr(append(b, dialKind), k.To), k.Class, byte(k.INT), recovery)
	return appendVerbs(appendNumbers(command.AppendString(b, k.CC), uint64(k.Cap), k.Tag), &k.Verbs)
}

// Encode implements change.
func (c *listen) Encode(b []byte) []byte {
	l := &c.listener.l
	return appendVerbs(appendNumbers(append(b, listenKind), l.Size(), uint64(l.Key), uint64(l.Backlog)), &l.Verbs)
}

// Encode implements change.
func (unlisten) Encode(b []byte) []byte { return append(b, unlistenKind) }

// Encode implements change.
func (c *take) Encode(b []byte) []byte { return appendNumbers(append(b, takeKind), c.offer, c.tag) }

// Encode implements change.
func (c refuse) Encode(b []byte) []byte { return appendNumbers(append(b, refuseKind), c.offer) }

// Encode implements change.
func (c hangup) Encode(b []byte) []byte { return appendNumbers(append(b, hangupKind), c.tag) }

// Encode implements change.
func (c *register) Encode(b []byte) []byte {
	return appendNumbers(append(b, registerKind, byte(c.access)), c.size)
}

// Encode implements change.
func (c *grant) Encode(b []byte) []byte {
	return appendNumbers(append(b, grantKind), uint64(c.memory), uint64(c.qpn))
}

// Encode implements change.
func (c *deregister) Encode(b []byte) []byte {
	return appendNumbers(append(b, deregisterKind), uint64(c.key))
}

// Encode implements change.
func (shutdown) Encode(b []byte) []byte { return append(b, shutdownKind) }

// Encode implements change.
func (c *posted) Encode(b []byte) []byte {
	b = appendNumbers(append(b, postedKind), c.tag)
	q := c.pair
	if q == nil {
		b = appendNumbers(b, uint64(len(c.posts)))
		for i := range c.posts {
			b = c.posts[i].encode(b)
		}
		return b
	}
	head := q.head.Load()
	b = appendNumbers(b, c.tail-head)
	for ; head != c.tail; head++ {
		b = q.posts[head&uint64(len(q.posts)-1)].encode(b)
	}
	return b
}

func (p *post) encode(b []byte) []byte {
	w := &p.wr
	if p.recv {
		return appendNumbers(append(b, receive), w.ID, w.Size())
	}
	fence := byte(0)
	if w.Fence {
		fence = 1
	}
	return appendNumbers(append(b, byte(w.Verb), fence), w.ID, w.Size(), w.RemoteVA, uint64(w.RKey), uint64(w.Imm), w.Operand, w.Compare)
}

// decode is the inverse of Encode, for a host of a configuration. Requests and
// memory come back without bytes, as those of virtual time.
func decode(b []byte, cfg *Config) (change, error) {
	if len(b) == 0 {
		return nil, fmt.Errorf("verbs: a change of a host without a kind")
	}
	d := &command.Decoder{B: b[1:]}
	var c change
	switch b[0] {
	case dialKind:
		k := &dial{conn: decodeConn(d)}
		if d.Bad() {
			break
		}
		var err error
		if k.conn.New, err = cfg.algorithm(k.conn.CC); err != nil {
			return nil, err
		}
		k.pair = unwatched(k.conn)
		c = k
	case listenKind:
		l := agent.Listener{Bytes: d.Uvarint(mostMemory), Key: number32(d), Backlog: int(d.Uvarint(maxQueuePairs)), Verbs: decodeVerbs(d)}
		c = &listen{listener: &Listener{l: l, arrived: make(chan offered, l.Backlog)}}
	case unlistenKind:
		c = unlisten{}
	case takeKind:
		c = &take{offer: d.Uvarint(math.MaxUint64), tag: decodeTag(d)}
	case refuseKind:
		c = refuse{d.Uvarint(math.MaxUint64)}
	case hangupKind:
		c = hangup{decodeTag(d)}
	case registerKind:
		c = &register{access: Access(d.Byte(byte(RemoteWrite | RemoteRead | RemoteAtomic))), size: d.Uvarint(mostMemory)}
	case grantKind:
		c = &grant{memory: number32(d), qpn: number32(d)}
	case deregisterKind:
		c = &deregister{key: number32(d)}
	case shutdownKind:
		c = shutdown{}
	case postedKind:
		p := &posted{tag: decodeTag(d)}
		for n := d.Uvarint(mostPosts); n > 0 && !d.Bad(); n-- {
			p.posts = append(p.posts, decodePost(d))
		}
		c = p
	default:
		return nil, fmt.Errorf("verbs: a change of a host of the unknown kind %d", b[0])
	}
	return c, d.Err(fmt.Sprintf("verbs: a change of a host of kind %d", b[0]))
}

// Bounds of what is decoded.
const (
	mostMemory = 1 << 34 // bytes
	mostPosts  = 1 << 18
	longestCC  = 255 // letters
)

// unwatched returns the queue pair of a connection whose completions are not polled.
func unwatched(conn *agent.Conn) *QueuePair {
	q := newQueuePair(conn)
	q.cq = &CompletionQueue{ring: make([]Completion, 1)}
	return q
}

func number32(d *command.Decoder) uint32 { return uint32(d.Uvarint(math.MaxUint32)) }

func decodeTag(d *command.Decoder) uint64 {
	tag := d.Uvarint(maxQueuePairs)
	if tag == 0 {
		d.Fail()
	}
	return tag
}

func decodeVerbs(d *command.Decoder) hostnic.VerbsConfig {
	return hostnic.VerbsConfig{Retries: d.Byte(math.MaxUint8), RNRRetries: d.Byte(math.MaxUint8), MaxReads: number32(d), RNRTimer: frame.Time(d.Uvarint(math.MaxInt64))}
}

func decodeConn(d *command.Decoder) *agent.Conn {
	k := &agent.Conn{To: d.Addr(), Class: d.Byte(7), INT: inband.Mode(d.Byte(math.MaxUint8))}
	if code := d.Byte(math.MaxUint8); code > 0 {
		if k.Recovery = transport.ByCode(code - 1); k.Recovery == nil {
			d.Fail()
		}
	}
	k.CC, k.Cap, k.Tag, k.Verbs = d.String(longestCC), number32(d), decodeTag(d), decodeVerbs(d)
	return k
}

func decodePost(d *command.Decoder) post {
	verb := d.Byte(math.MaxUint8)
	if verb == receive {
		return post{recv: true, wr: hostnic.WorkRequest{ID: d.Uvarint(math.MaxUint64), Bytes: d.Uvarint(math.MaxUint64)}}
	}
	if Verb(verb) > CompareSwap {
		d.Fail()
	}
	return post{wr: hostnic.WorkRequest{Verb: Verb(verb), Fence: d.Byte(1) != 0, ID: d.Uvarint(math.MaxUint64), Bytes: d.Uvarint(maxOperation),
		RemoteVA: d.Uvarint(math.MaxUint64), RKey: number32(d), Imm: number32(d), Operand: d.Uvarint(math.MaxUint64), Compare: d.Uvarint(math.MaxUint64)}}
}
