package vswitch_test

import (
	"bytes"
	"encoding/binary"

	"gswitch/frame"
	"gswitch/pfc"
	"gswitch/wire"
	wt "gswitch/wire/wiretest"
)

const (
	roceUDP    = wire.RoCEv2Port
	roceMiddle = wire.RCSendMiddle
)

// flow is what frames have in common that must not overtake each other.
type flow struct {
	from, to int
	n        uint8
	class    uint8
	dport    uint16
	group    bool
}

var magic = []byte{0xfe, 0xed, 0xfa, 0xce, 0xca, 0xfe}

// label is a payload by which a frame is known again.
func label(id uint32) []byte { return binary.BigEndian.AppendUint32(bytes.Clone(magic), id) }

// labelOf finds it, wherever headers were put in or taken out.
func labelOf(b []byte) (id uint32, ok bool) {
	i := bytes.Index(b, magic)
	if i < 0 || i+len(magic)+4 > len(b) {
		return 0, false
	}
	return binary.BigEndian.Uint32(b[i+len(magic):]), true
}

// parcel is a frame that a neighbour has, or has on the link.
type parcel struct {
	at   frame.Time // when it has arrived
	id   uint32     // 0: of flow control
	f    flow
	data []byte
}

// neighbour is what stands at the other end of a port: it sends what it has as
// fast as the link takes it, honours pauses and stages, answers tokens, and pauses
// the switch when it likes.
type neighbour struct {
	w       *world
	port    int
	waiting [8][]parcel
	turn    int
	free    frame.Time // when its end of the link is
	paused  [8]frame.Time
	stage   [8]uint8
	last    [8]struct{ at, span frame.Time } // its last frame of each class: a slowed one leaves a gap behind it
	to, fro []parcel                         // under way to the switch and from it
}

func (n *neighbour) has() bool {
	for c := range n.waiting {
		if len(n.waiting[c]) > 0 {
			return true
		}
	}
	return false
}

// span is how long a frame occupies the link.
func span(bytes int) frame.Time { return frame.Time((max(bytes, 60)+24)*8*1e9/worldRate) + 1 }

// step acts on what has come, and sends until now.
func (n *neighbour) step(before, now frame.Time) {
	for len(n.fro) > 0 && n.fro[0].at <= now {
		n.applyPauses(n.fro[0].at, n.fro[0].data)
		n.fro = n.fro[1:]
	}
	for n.free <= now {
		c, at := n.next(max(before, n.free))
		if c < 0 || at > now {
			return
		}
		n.send(at, c, 0, 0)
	}
}

// next is the class whose turn it is and the instant at which it may send.
func (n *neighbour) next(now frame.Time) (class int, at frame.Time) {
	class, at = -1, frame.Never
	for i := range 8 {
		c := (n.turn + i) & 7
		if len(n.waiting[c]) == 0 {
			continue
		}
		if t := max(now, n.paused[c], n.last[c].at+n.last[c].span<<n.stage[c]); t < at {
			class, at = c, t
		}
	}
	return class, at
}

// send puts the i-th frame of a class on the link, with the mark of an escaped
// frame if a token is for so many hops.
func (n *neighbour) send(at frame.Time, class, i int, hops uint16) {
	p := n.waiting[class][i]
	n.waiting[class] = append(n.waiting[class][:i:i], n.waiting[class][i+1:]...)
	if hops != 0 {
		p.data = append(append(bytes.Clone(p.data[:12]), byte(wire.EtherTypeTokenMark>>8), byte(wire.EtherTypeTokenMark&0xff), byte(hops), byte(class)), p.data[12:]...)
	}
	s := span(len(p.data))
	n.last[class].at, n.last[class].span = at, s
	n.turn = class + 1
	n.put(at, s, p)
}

func (n *neighbour) put(at, s frame.Time, p parcel) {
	n.free = max(at, n.free) + s
	p.at = n.free + cable
	n.to = append(n.to, p)
}

// control sends a frame of flow control after the one that is being sent.
func (n *neighbour) control(now frame.Time, b []byte) { n.put(now, span(len(b)), parcel{data: b}) }

func marked(b []byte) bool { return binary.BigEndian.Uint16(b[12:]) == wire.EtherTypeTokenMark }

// applyPauses acts on what came from the switch.
func (n *neighbour) applyPauses(at frame.Time, b []byte) {
	if binary.BigEndian.Uint16(b[12:]) != wire.EtherTypeMACControl {
		return
	}
	c := wire.MACControl(b)
	switch c.Opcode() {
	case wire.OpPFC:
		for k := range 8 {
			q := c.Quanta(k)
			if c.Enabled()>>k&1 != 0 && q != 0 {
				n.w.pauses++
			}
			switch {
			case c.Enabled()>>k&1 == 0:
			case n.w.has(featGentle):
				n.stage[k] = uint8(min(q, pfc.MaxStages))
			default:
				n.paused[k] = at + pfc.Span(q, worldRate)
			}
		}
	case wire.OpToken:
		var t wire.TokenFields
		if _, why := t.Decode(b); why != frame.Keep {
			n.w.fail("the switch sent a token that cannot be read: % x", b)
		}
		n.answer(at, &t)
	}
}

// answer sends the first frame of the token's flow, if it waits for a pause.
func (n *neighbour) answer(at frame.Time, t *wire.TokenFields) {
	for class := range n.waiting {
		if n.paused[class] <= at {
			continue
		}
		for i, p := range n.waiting[class] {
			if flowID(p.data) == t.Flow {
				n.send(at, class, i, t.Hops)
				return
			}
		}
	}
}

// flowID is the five-tuple of a frame.
func flowID(b []byte) wire.FlowID {
	o := 14
	if binary.BigEndian.Uint16(b[12:]) == wire.EtherTypeVLAN {
		o = 18
	}
	return wire.FlowID{Addrs: binary.BigEndian.Uint64(b[o+12:]), Ports: binary.BigEndian.Uint32(b[o+20:]), Proto: b[o+9]}
}

// token permits the switch to send a frame of a flow past a pause.
func token(f wire.FlowID, hops uint16) []byte {
	b := make([]byte, wire.MinFrame)
	(&wire.TokenFields{Src: host(99), Flow: f, Hops: hops}).Encode(b)
	return b
}

// storm pauses the switch for so many quanta; 0 ends it. In a network of gentle
// flow control it is a stage.
func (n *neighbour) storm(now frame.Time, classes uint8, quanta uint16) {
	if n.w.has(featGentle) {
		quanta = min(quanta, 5)
	}
	n.control(now, wt.PFC(host(n.port+1), classes, quanta))
}

// unplug forgets what is under way, and who was paused.
func (n *neighbour) unplug() {
	for _, p := range n.to {
		if p.id != 0 {
			delete(n.w.known, p.id)
		}
	}
	n.to, n.fro, n.paused, n.stage = nil, nil, [8]frame.Time{}, [8]uint8{}
}
