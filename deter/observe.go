package deter

import (
	"net/netip"

	"gswitch/frame"
	"gswitch/tcp"
)

// Observed is what can be known of a connection from captured packets. It is
// an analysis, not a replay: what its ends knew when they sent is not in packets.
type Observed struct {
	Ends     [2]netip.AddrPort // the first is the one whose packet was seen first
	From, To frame.Time
	By       [2]Direction // what each end sent
}

// Direction is what an end of a connection sent.
type Direction struct {
	Packets       uint64
	Bytes         uint64 // of payload, with what was sent again
	Retransmitted uint64 // packets with data that had passed before
	Late          uint64 // packets with data that was missing here: sent again, or reordered, before this point
	Duplicates    uint64 // acknowledgements equal to the last one, with data under way
	ZeroWindows   uint64 // acknowledgements that closed the window
	Timeouts      uint64 // retransmissions after a time without packets, as a timer makes them

	seen  bool
	point uint32 // where its packets are looked at: where the first one was
	next  uint32 // number behind the highest byte that was sent
	holes []span // below next, that were not seen
	ack   uint32
	last  frame.Time // packet
	zero  bool
	win   uint16
}

// span is a range of sequence numbers, without its end.
type span struct{ from, to uint32 }

// mostHoles bounds what is kept of missing data.
const mostHoles = 4096

// Observer analyses captured packets.
type Observer struct {
	// MinRTO is from when on a retransmission is taken for one of a timer: 200 ms, the
	// least that Linux waits, if 0.
	MinRTO frame.Time

	conns map[[2]netip.AddrPort]*Observed
	list  []*Observed
}

// Packet takes a segment that passed a point at an instant. Where a direction is seen at
// several points, the one at which it was seen first counts, which is the one nearest to
// the sender.
func (o *Observer) Packet(at frame.Time, point uint32, from, to netip.AddrPort, s *tcp.Segment) {
	if o.conns == nil {
		o.conns = map[[2]netip.AddrPort]*Observed{}
	}
	end := 0
	c := o.conns[[2]netip.AddrPort{from, to}]
	if c == nil {
		if c = o.conns[[2]netip.AddrPort{to, from}]; c != nil {
			end = 1
		}
	}
	if fresh := s.Flags&(tcp.SYN|tcp.ACK) == tcp.SYN; c == nil || fresh && c.By[end].seen && c.By[end].point == point && at-c.To > frame.Second {
		if c != nil { // the ports are used again
			delete(o.conns, c.Ends)
		}
		c, end = &Observed{Ends: [2]netip.AddrPort{from, to}, From: at}, 0
		o.conns[c.Ends] = c
		o.list = append(o.list, c)
	}
	d, peer := &c.By[end], &c.By[1-end]
	if d.seen && d.point != point {
		return
	}
	c.To = max(c.To, at)
	minRTO := o.MinRTO
	if minRTO == 0 {
		minRTO = 200 * frame.Millisecond
	}
	d.take(at, point, s, peer, minRTO)
}

// Connections returns what was seen of each, in the order in which they began.
func (o *Observer) Connections() []*Observed { return o.list }

// take counts a packet of an end.
func (d *Direction) take(at frame.Time, point uint32, s *tcp.Segment, peer *Direction, minRTO frame.Time) {
	size := uint32(s.Len)
	if s.Flags&tcp.SYN != 0 {
		size++
	}
	if s.Flags&tcp.FIN != 0 {
		size++
	}
	idle := d.seen && at-d.last >= minRTO
	if !d.seen {
		d.seen, d.point, d.next, d.ack, d.win = true, point, s.Seq, s.Ack, s.Window
	} else if s.Flags&tcp.ACK != 0 && s.Flags&(tcp.SYN|tcp.RST) == 0 {
		d.acknowledges(s, size, peer)
	}
	d.Packets++
	d.Bytes += uint64(s.Len)
	d.last = at
	switch end := s.Seq + size; {
	case size == 0 || s.Flags&tcp.RST != 0:
	case int32(s.Seq-d.next) >= 0:
		if s.Seq != d.next && len(d.holes) < mostHoles {
			d.holes = append(d.holes, span{d.next, s.Seq})
		}
		d.next = end
	case d.fill(s.Seq, end):
		d.Late++
	default:
		d.Retransmitted++
		if idle {
			d.Timeouts++
		}
		if int32(end-d.next) > 0 {
			d.next = end
		}
	}
}

// acknowledges takes what a packet acknowledges of what the peer sent.
func (d *Direction) acknowledges(s *tcp.Segment, size uint32, peer *Direction) {
	switch {
	case s.Ack != d.ack:
		if int32(s.Ack-d.ack) > 0 {
			d.ack = s.Ack
		}
	case size == 0 && s.Window == d.win && peer.seen && int32(peer.next-s.Ack) > 0:
		d.Duplicates++
	}
	if zero := s.Window == 0; zero != d.zero {
		if d.zero = zero; zero {
			d.ZeroWindows++
		}
	}
	d.win = s.Window
}

// fill takes a range out of what was not seen, and reports whether any of it was there.
func (d *Direction) fill(from, to uint32) (was bool) {
	left := d.holes[:0:0]
	for i, h := range d.holes {
		if int32(to-h.from) <= 0 || int32(h.to-from) <= 0 {
			continue
		}
		if !was {
			left = append(left, d.holes[:i]...)
		}
		was = true
		if int32(from-h.from) > 0 {
			left = append(left, span{h.from, from})
		}
		if int32(h.to-to) > 0 {
			left = append(left, span{to, h.to})
		}
		// A range may reach over several.
		for _, rest := range d.holes[i+1:] {
			if int32(to-rest.from) <= 0 || int32(rest.to-from) <= 0 {
				left = append(left, rest)
			} else if int32(rest.to-to) > 0 {
				left = append(left, span{to, rest.to})
			}
		}
		break
	}
	if was {
		d.holes = left
	}
	return was
}
