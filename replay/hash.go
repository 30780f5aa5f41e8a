package replay

import (
	"encoding/binary"
	"math/bits"

	"gswitch/frame"
	"gswitch/wire"
)

// hashEvery is after how many frames that left the hash of them is recorded.
const hashEvery = 1024

// hashed is how many bytes of a frame are hashed at most.
const hashed = 192

// sent is the rolling hash of the frames that a node sent.
type sent struct {
	h      uint64
	frames uint64
	like   like
	b      [hashed + 16]byte
}

var le = binary.LittleEndian

const prime = 0x9e3779b97f4a7c15

func (s *sent) mix(v uint64) {
	h := (s.h ^ v) * prime
	s.h = h ^ h>>29
}

// Keys of the hash of one frame: digits of pi.
const (
	key0 = 0x243f6a8885a308d3
	key1 = 0x13198a2e03707344
)

// product multiplies two words into one (the step of wyhash, Wang Yi). Those of one frame do
// not wait for each other.
func product(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a^key0, b^key1)
	return hi ^ lo
}

// vector takes in frames that left together.
func (s *sent) vector(a *frame.Arena, v []frame.Ref, port uint16) {
	s.frames += uint64(len(v))
	for len(v) > 0 {
		if n := s.alike(a, v, port); n > 0 {
			v = v[n:]
			continue
		}
		m, b := a.Meta(v[0]), a.Bytes(v[0])
		n, sum := plainHeaders(b)
		if cap(b) < mostPlain || !s.like.from(b, n, sum) {
			s.mix(departure(m, port) + s.words(b))
			v = v[1:]
		}
	}
}

// add takes in a frame.
func (s *sent) add(a *frame.Arena, r frame.Ref, port uint16) { s.vector(a, []frame.Ref{r}, port) }

// departure is when and where a frame left, and its length.
func departure(m *frame.Meta, port uint16) uint64 {
	return product(uint64(m.Depart), uint64(port)<<48^uint64(m.Len)<<32^uint64(m.Wire))
}

// like are the headers of a frame for which plainHeaders found some: of frames that have the
// same where it looks it would find the same.
type like struct {
	n             int // what it found; 0: nothing yet
	least         int // the shortest such frame
	proto         uint64
	port, mask4   uint64 // of UDP
	behind, mask5 uint64 // length of TCP's header, opcode of RoCEv2
	sum5, sum6    uint64 // bits of the checksum in the words in which that of UDP and of TCP is
	keep5         uint64 // bits of the former that are kept
	keepX, keepY  uint64 // bits of the last two words that are kept, where there are more than 6
}

// Where plainHeaders looks in the second and the third word of 8 bytes of a frame: at the EtherType
// and the length of the IP header, at fragments and the protocol.
const (
	plain1    = 0x00ffffff << 32
	ipv4Plain = 0x00450008 << 32
	plain2    = 0xff00ff3f << 32
)

// from takes the headers of a frame, of which plainHeaders found n bytes and a checksum. It
// returns false if it found none, or others may have more where this one ends.
func (l *like) from(b []byte, n, sum int) bool {
	if n == 0 || n == len(b) && sum < 48 {
		return false
	}
	*l = like{n: n, least: max(n, wire.EthernetLen+wire.IPv4Len+wire.TCPLen), proto: le.Uint64(b[16:]) & plain2}
	l.keep5 = lowBytes(n - 40)
	l.keepX, l.keepY = lowBytes((n-1)%16+1), lowBytes((n-1)%16-7)
	if sum < 48 {
		l.sum5, l.mask4 = 0xffff, 0xffff<<32
		if be.Uint16(b[36:]) == wire.RoCEv2Port {
			l.mask5 = 0xff << 16
		}
	} else {
		l.sum6, l.mask5 = 0xffff<<16, 0xf0<<48
	}
	l.port, l.behind = le.Uint64(b[32:])&l.mask4, le.Uint64(b[40:])&l.mask5
	return true
}

// lowBytes are the first n bytes of a word.
func lowBytes(n int) uint64 {
	switch {
	case n <= 0:
		return 0
	case n >= 8:
		return ^uint64(0)
	}
	return 1<<(8*n) - 1
}

// alike takes in the frames at the front of v that are like the last plain one, and returns
// how many these are: as words would, without looking for headers.
func (s *sent) alike(a *frame.Arena, v []frame.Ref, port uint16) (n int) {
	l, h := &s.like, s.h
	if l.n == 0 { // nothing was found yet, and what it has is as of a frame of protocol 0
		return 0
	}
	room := a.ChunkSize() - mostPlain
	for _, r := range v {
		m := a.Meta(r)
		if int(m.Len) < l.least || int(m.Head) > room {
			break
		}
		p := (*[mostPlain]byte)(a.First(r, m, mostPlain)) // what is behind the frame is masked
		w1, w2, w4, w5 := le.Uint64(p[8:]), le.Uint64(p[16:]), le.Uint64(p[32:]), le.Uint64(p[40:])
		if (w1&plain1^ipv4Plain)|(w2&plain2^l.proto)|(w4&l.mask4^l.port)|(w5&l.mask5^l.behind) != 0 {
			break
		}
		w5 |= (w5&0xffff + 0xffff) >> 16 * 0xffff & l.sum5 // whether there is one, see mask
		t := departure(m, port) + product(le.Uint64(p[0:]), w1) + product(w2+16*prime&(1<<64-1), le.Uint64(p[24:])) +
			product(w4+32*prime&(1<<64-1), w5&l.keep5)
		if l.n > 48 {
			x, y := le.Uint64(p[48:])|l.sum6, le.Uint64(p[56:])
			i := 48
			for ; i+16 < min(l.n, mostPlain); i += 16 {
				t += product(x+uint64(i)*prime, y)
				x, y = le.Uint64(p[i+16:]), le.Uint64(p[i+24:])
			}
			t += product(x&l.keepX+uint64(i)*prime, y&l.keepY)
		}
		h = (h ^ t) * prime
		h ^= h >> 29
		n++
	}
	s.h = h
	return n
}

// mostPlain is how many bytes plainHeaders finds at most, in words of 16.
const mostPlain = 96

// plainHeaders is scan for TCP and UDP in IPv4 without tags, and RoCEv2 without telemetry: how
// many bytes are kept of a frame, and where the checksum is. Of all others it returns 0.
func plainHeaders(b []byte) (keep, sum int) {
	const udp = wire.EthernetLen + wire.IPv4Len
	if len(b) < udp+wire.TCPLen || be.Uint32(b[12:])>>8 != uint32(wire.EtherTypeIPv4)<<8|0x45 || be.Uint16(b[20:])&0x3fff != 0 {
		return 0, 0
	}
	if b[23] == wire.ProtoTCP {
		if n := int(b[udp+12]>>4) * 4; n >= wire.TCPLen && udp+n <= len(b) {
			return udp + n, udp + 16
		}
		return 0, 0
	}
	if b[23] != wire.ProtoUDP {
		return 0, 0
	}
	switch be.Uint16(b[udp+2:]) {
	case wire.RoCEv2Port:
		switch op := b[udp+wire.UDPLen]; op {
		case wire.RCAcknowledge, wire.RCAtomicAcknowledge, wire.RCReadAcknowledge:
			return 0, 0
		default:
			return min(udp+wire.UDPLen+wire.RoCEHeaderLen(op), len(b)), udp + 6
		}
	case wire.ConnectionManagerPort, wire.HPCCPort, wire.HPCCGrowPort, wire.INTPort:
		return 0, 0
	}
	return udp + wire.UDPLen, udp + 6
}

// words takes in what is kept of a frame.
func (s *sent) words(b []byte) (t uint64) {
	h := scan(b)
	n := min(h.keep, hashed)
	if h.icmp && len(b) > h.l4 && quotes(b[h.l4], b[h.l3]>>4) {
		n = min(n, h.l4+2) // then comes what was not recorded, and a checksum over it
	}
	if h.gre && len(b) >= h.l4+wire.GRELen {
		n = min(n, h.l4+wire.GRE(b[h.l4:]).HeaderLen()+wire.ERSPAN3Len) // then comes a copy of a frame
	}
	copy(s.b[:], b[:n])
	clear(s.b[n : n+16])
	if h.sum != 0 && h.sum+2 <= n {
		h.mask(s.b[:n])
	}
	for i := 0; i < n; i += 16 {
		t += product(le.Uint64(s.b[i:])+uint64(i)*prime, le.Uint64(s.b[i+8:]))
	}
	return t
}

// quotes reports whether an ICMP message of a type holds the front of another
// frame.
func quotes(typ, version uint8) bool {
	if version == 6 {
		return typ < wire.ICMPv6Echo || typ > wire.ICMPv6NeighborAdvertisement
	}
	return typ != wire.ICMPEcho && typ != wire.ICMPEchoReply
}

// sum is what is recorded of the hash.
func (s *sent) sum() uint32 { return uint32(s.h>>32) ^ uint32(s.h) }
