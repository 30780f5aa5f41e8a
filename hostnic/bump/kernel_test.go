package bump

import (
	"slices"

	"gswitch/frame"
	"gswitch/wire"
)

// kernel is the stack of a host of which nothing but what loads a network is
// there: streams that keep a fixed window under way, as TCP does whose window
// is not the bottleneck, and a receiver that acknowledges every second segment
// of a stream (RFC 9293 section 3.8.6.3) with packets of its own.
type kernel struct {
	pool  *frame.Pool
	mtu   int // of the packets that it sends
	out   frame.FIFO
	send  []stream
	take  []stream
	drops int
}

// stream is one end of one. The ends know each other by the port.
type stream struct {
	proto  uint8
	from   int // host
	to     int
	port   uint16
	window int        // segments; of UDP 0: one each gap
	gap    frame.Time // of UDP
	next   frame.Time
	sent   uint64 // segments
	acked  uint64
	got    uint64     // segments
	bytes  uint64     // payload that arrived
	due    frame.Time // the acknowledgement that was put off
	owed   int
}

// delayed is how long an acknowledgement may be put off: Linux' least.
const delayed = 40 * frame.Millisecond

// tcpOptions are what a segment has with time stamps (RFC 7323): the rig's
// stand there, the number of segments that arrived.
const tcpOptions = 12

func (k *kernel) Receive(now frame.Time, _ uint16, v []frame.Ref) {
	for _, r := range v {
		k.packet(now, k.pool.Bytes(r))
		k.pool.Free(r)
	}
}

func (k *kernel) packet(now frame.Time, b []byte) {
	if wire.Ethernet(b).EtherType() != wire.EtherTypeIPv4 {
		return
	}
	ip := wire.IPv4(b[wire.EthernetLen:])
	l4 := b[wire.EthernetLen+wire.IPv4Len:]
	src, dst := be.Uint16(l4), be.Uint16(l4[2:])
	body := int(ip.TotalLen()) - wire.IPv4Len
	if ip.Proto() == wire.ProtoUDP {
		if i := slices.IndexFunc(k.take, func(s stream) bool { return s.port == dst }); i >= 0 {
			k.take[i].got++
			k.take[i].bytes += uint64(body - wire.UDPLen)
		}
		return
	}
	body -= wire.TCPLen + tcpOptions
	if body == 0 { // an acknowledgement
		i := slices.IndexFunc(k.send, func(s stream) bool { return s.port == src })
		k.send[i].acked = max(k.send[i].acked, be.Uint64(l4[wire.TCPLen+4:]))
		k.fill(now)
		return
	}
	i := slices.IndexFunc(k.take, func(s stream) bool { return s.port == dst })
	s := &k.take[i]
	s.got++
	s.bytes += uint64(body)
	if s.owed++; s.owed == 1 {
		s.due = now + delayed
	} else {
		k.acknowledge(s)
	}
}

func (k *kernel) acknowledge(s *stream) {
	s.owed, s.due = 0, frame.Never
	options := make([]byte, tcpOptions)
	options[0], options[1], options[2], options[3] = 1, 1, 8, 10
	be.PutUint64(options[4:], s.got)
	k.push(packet{from: s.to, to: s.from, proto: wire.ProtoTCP, sport: s.port, dport: s.port, flags: wire.TCPAck, options: options, fragment: wire.IPv4DontFragment})
}

// fill sends what windows allow.
func (k *kernel) fill(now frame.Time) {
	for i := range k.send {
		s := &k.send[i]
		p := packet{from: s.from, to: s.to, proto: s.proto, sport: s.port, dport: s.port, flags: wire.TCPAck, fragment: wire.IPv4DontFragment}
		if s.proto == wire.ProtoUDP {
			p.body = make([]byte, k.mtu-wire.IPv4Len-wire.UDPLen)
			for ; s.next <= now; s.next += s.gap {
				k.push(p)
			}
			continue
		}
		p.options = make([]byte, tcpOptions)
		p.body = make([]byte, k.mtu-wire.IPv4Len-wire.TCPLen-tcpOptions)
		for ; s.sent < s.acked+uint64(s.window); s.sent++ {
			k.push(p)
		}
	}
}

func (k *kernel) push(p packet) {
	b := p.bytes()
	r := k.pool.New(b)
	if r == frame.Nil {
		k.drops++
		return
	}
	k.pool.Meta(r).Wire = uint32(len(b))
	k.out.Push(k.pool.Arena, r)
}

// Transmit implements frame.Node: the link to the bump takes no time.
func (k *kernel) Transmit(now frame.Time, _ uint16, out []frame.Ref) int {
	n := 0
	for ; n < len(out) && k.out.Len() > 0; n++ {
		out[n] = k.out.Pop(k.pool.Arena)
		m := k.pool.Meta(out[n])
		m.Depart, m.Span = now, 0
	}
	return n
}

func (k *kernel) Advance(now frame.Time) {
	for i := range k.take {
		if s := &k.take[i]; s.owed > 0 && s.due <= now {
			k.acknowledge(s)
		}
	}
	k.fill(now)
}

func (k *kernel) Wake(now frame.Time) frame.Time {
	if k.out.Len() > 0 {
		return now
	}
	at := frame.Never
	for i := range k.take {
		if k.take[i].owed > 0 {
			at = min(at, k.take[i].due)
		}
	}
	for i := range k.send {
		if k.send[i].proto == wire.ProtoUDP {
			at = min(at, k.send[i].next)
		}
	}
	return at
}

func (k *kernel) SetLink(frame.Time, uint16, bool) {}
