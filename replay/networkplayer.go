package replay

import (
	"fmt"
	"io"

	"gswitch/frame"
)

// NetworkPlayer gives the nodes of a network what was recorded of it.
type NetworkPlayer struct {
	// Agenda does the first entry of the agenda, and reports whether one was due.
	Agenda func(now frame.Time) bool

	// Seen, Left and Dropped, if set before the first Run, are called with the frames that
	// reach a node, before it gets them, with those that it sends, and with those that it
	// drops. Nodes are numbered as they were added. The function keeps no frame.
	Seen, Left func(now frame.Time, node int, port uint16, v []frame.Ref)
	Dropped    func(now frame.Time, node int, v []frame.Ref)
	// Stepped, if set, is called behind each call of a node. Its error ends Run.
	Stepped func(now frame.Time, node int) error

	p     Player
	nodes []playedNode
	at    int // node of the entries
	ended bool
}

// playedNode is a node of a network that is replayed.
type playedNode struct {
	frame.Stepper
	after   func(now frame.Time)
	tap     dropTap // nil: what it drops is not listed
	in, out []*cable
}

// cable is one way of a link, with the frames that were sent last.
type cable struct {
	frames [window][]byte
	sent   uint64
	expect uint64
	head   uint16
}

// NewNetworkPlayer returns a player of a record. The nodes come next: as many, in the same
// order and joined as they were.
func NewNetworkPlayer(in *Reader) (*NetworkPlayer, error) {
	pool, err := in.Header.pool()
	if err != nil {
		return nil, err
	}
	return &NetworkPlayer{p: Player{Header: &in.Header, Arena: pool.Arena, in: in, pool: pool}, at: -1}, nil
}

// Header is that of the record.
func (n *NetworkPlayer) Header() *Header { return n.p.Header }

// Pool is what the nodes allocate from.
func (n *NetworkPlayer) Pool() *frame.Pool { return n.p.pool }

// Add adds a node. after is called behind each call of Receive and Advance, and may be nil.
func (n *NetworkPlayer) Add(s frame.Stepper, after func(now frame.Time)) int {
	n.nodes = append(n.nodes, playedNode{Stepper: s, after: after})
	return len(n.nodes) - 1
}

// Connect joins two ports.
func (n *NetworkPlayer) Connect(a int, pa uint16, b int, pb uint16) {
	forth, back := &cable{}, &cable{}
	n.nodes[a].out, n.nodes[b].in = place(n.nodes[a].out, pa, forth), place(n.nodes[b].in, pb, forth)
	n.nodes[b].out, n.nodes[a].in = place(n.nodes[b].out, pb, back), place(n.nodes[a].in, pa, back)
}

// Record has a node recorded while the network is replayed, as a node of its own whose
// record a Player replays. It is called before the first Run; who calls it takes the
// segments of the feed, and ends the recording.
func (n *NetworkPlayer) Record(node int, feed *Feed) (*Recorder, error) {
	x := &n.nodes[node]
	r, err := NewRecorder(0, x.Stepper, n.p.pool, feed)
	if err == nil {
		x.Stepper = byItself{x.Stepper, r}
	}
	return r, err
}

// byItself is a node of a network that is recorded as a node of its own.
type byItself struct {
	frame.Stepper
	r *Recorder
}

// Receive implements frame.Node.
func (x byItself) Receive(now frame.Time, port uint16, v []frame.Ref) { x.r.Receive(now, port, v) }

// Transmit implements frame.Node.
func (x byItself) Transmit(now frame.Time, port uint16, out []frame.Ref) int {
	return x.r.Transmit(now, port, out)
}

// Advance implements frame.Node.
func (x byItself) Advance(now frame.Time) { x.r.Advance(now) }

// SetLink implements frame.Node.
func (x byItself) SetLink(now frame.Time, port uint16, up bool) { x.r.SetLink(now, port, up) }

// Now returns the instant of the last call.
func (n *NetworkPlayer) Now() frame.Time { return n.p.now }

// Steps returns how many calls were replayed.
func (n *NetworkPlayer) Steps() uint64 { return n.p.step }

// Sent returns how many frames the nodes sent, and how many hashes of them were compared.
func (n *NetworkPlayer) Sent() (frames, sums uint64) { return n.p.Sent() }

// Ended reports whether the record was replayed to its end.
func (n *NetworkPlayer) Ended() bool { return n.ended }

// Run replays the calls up to an instant. At the end of a record that was ended it returns
// io.EOF, and an error of type *Diverged says that the replay is another run.
func (n *NetworkPlayer) Run(until frame.Time) error {
	for {
		next, err := n.p.Peek()
		if err != nil {
			return err
		}
		if next > until {
			return nil
		}
		if err := n.step(); err != nil {
			return err
		}
	}
}

func (n *NetworkPlayer) step() error {
	p := &n.p
	if n.Dropped != nil && p.step == 0 {
		n.listDrops()
	}
	if err := p.ahead(); err != nil {
		return err
	}
	p.now = p.next
	tag := p.seg.byte()
	small := uint64(tag >> 4)
	if tag&15 == endTag {
		n.ended = true
		return io.EOF
	}
	if small == escape {
		small = p.seg.uvarint(1 << 16)
	}
	if tag&15 == nodeTag {
		n.at = int(small)
		return nil
	}
	p.step++
	err := n.call(tag&15, small)
	if err == nil && p.seg.bad {
		err = p.damaged()
	}
	if err == nil && tag&15 != agendaTag {
		err = n.behind()
	}
	return err
}

// listDrops has the nodes list what they drop.
func (n *NetworkPlayer) listDrops() {
	for i := range n.nodes {
		if tap, ok := n.nodes[i].Stepper.(dropTap); ok {
			tap.TapDrops(make([]frame.Ref, 0, mostDrops))
			n.nodes[i].tap = tap
		}
	}
}

// behind reports what a call of a node did.
func (n *NetworkPlayer) behind() error {
	if x := n.node(); x.tap != nil {
		v := x.tap.TakeDrops()
		if len(v) > 0 {
			n.Dropped(n.p.now, n.at, v)
		}
		for _, r := range v {
			n.p.pool.Free(r)
		}
	}
	if n.Stepped == nil {
		return nil
	}
	return n.Stepped(n.p.now, n.at)
}

// node is the one whose calls come, nil if the record names none.
func (n *NetworkPlayer) node() *playedNode {
	if n.at < 0 || n.at >= len(n.nodes) {
		return nil
	}
	return &n.nodes[n.at]
}

func (n *NetworkPlayer) call(tag byte, small uint64) error {
	p, x := &n.p, n.node()
	if tag == agendaTag {
		return n.agenda()
	}
	if x == nil {
		return p.damaged()
	}
	after := func() {
		if x.after != nil {
			x.after(p.now)
		}
	}
	switch tag {
	case advanceTag:
		return p.failing(func() { x.Advance(p.now); after() })
	case pastTag:
		at := p.now - frame.Time(p.seg.uvarint(1<<62))
		x.Advance(at)
		return nil
	case linkTag:
		port := uint16(p.seg.uvarint(maxPort))
		return p.failing(func() { x.SetLink(p.now, port, small == 1) })
	case receiveTag:
		if int(small) >= len(x.in) || x.in[small] == nil {
			return p.damaged()
		}
		v, err := n.arrivals(x.in[small])
		if err != nil {
			return err
		}
		if n.Seen != nil {
			n.Seen(p.now, n.at, uint16(small), v)
		}
		return p.failing(func() { x.Receive(p.now, uint16(small), v); after() })
	case sendTag:
		if int(small) >= len(x.out) || x.out[small] == nil {
			return p.damaged()
		}
		return n.send(x, uint16(small))
	}
	return p.damaged()
}

// agenda does the first entry that is due.
func (n *NetworkPlayer) agenda() error {
	p := &n.p
	due := false
	if err := p.failing(func() { due = n.Agenda(p.now) }); err != nil {
		return err
	}
	if !due {
		return p.diverged("nothing was due, where something was done")
	}
	return nil
}

// arrivals makes the frames that arrive by a link.
func (n *NetworkPlayer) arrivals(c *cable) ([]frame.Ref, error) {
	p := &n.p
	want := int(p.seg.uvarint(1 << 16))
	p.v = p.v[:0]
	for len(p.v) < want && !p.seg.bad {
		run := 1
		number := c.expect
		switch code := p.seg.byte(); {
		case code >= runCode:
			run = int(code-runCode) + 1
		case code == jumpCode:
			number = c.expect + uint64(p.seg.varint())
		case code == headCode:
			c.head = uint16(p.seg.uvarint(1 << 15))
			continue
		case code == newCode:
			if err := n.arrive(c, p.seg.take(int(p.seg.uvarint(1<<15)))); err != nil {
				return nil, err
			}
			continue
		default:
			return nil, p.damaged()
		}
		for ; run > 0; run-- {
			if number >= c.sent || c.sent-number > window {
				return nil, p.diverged(fmt.Sprintf("frame %d of a link arrives, of which %d were sent", number, c.sent))
			}
			if err := n.arrive(c, c.frames[number%window]); err != nil {
				return nil, err
			}
			number++
			c.expect = max(c.expect, number)
		}
	}
	if p.seg.bad || len(p.v) != want {
		return nil, p.damaged()
	}
	return p.v, nil
}

// arrive adds a frame to those that arrive.
func (n *NetworkPlayer) arrive(c *cable, b []byte) error {
	p := &n.p
	if p.seg.bad || int(c.head)+len(b) > p.pool.ChunkSize() {
		return p.damaged()
	}
	r := p.pool.Alloc()
	if r == frame.Nil {
		return errMemory
	}
	m := p.pool.Reset(r)
	m.Head, m.Len, m.Wire = c.head, uint16(len(b)), uint32(len(b))
	copy(p.pool.Bytes(r), b)
	p.v = append(p.v, r)
	return nil
}

func (n *NetworkPlayer) send(x *playedNode, port uint16) error {
	p, c := &n.p, x.out[port]
	room, want := int(p.seg.uvarint(1<<16)), int(p.seg.uvarint(1<<16))
	for len(p.v) < room {
		p.v = append(p.v, frame.Nil)
	}
	k := 0
	err := p.failing(func() { k = x.Transmit(p.now, port, p.v[:room]) })
	if n.Left != nil && k > 0 {
		n.Left(p.now, n.at, port, p.v[:k])
	}
	for _, r := range p.v[:k] {
		p.sent.add(p.Arena, r, portOf(n.at, port))
		at := &c.frames[c.sent%window]
		*at = append((*at)[:0], p.Arena.Bytes(r)...)
		c.sent++
		p.pool.Free(r)
	}
	if err == nil && k != want {
		err = p.diverged(fmt.Sprintf("port %d of node %d sent %d frames, it was %d", port, n.at, k, want))
	}
	return err
}
