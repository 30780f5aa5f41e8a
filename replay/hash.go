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
	b      [hashed + 16]byte
}

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
	for _, r := range v {
		s.add(a, r, port)
	}
}

// add takes in a frame: when and where it left, its length and its headers.
func (s *sent) add(a *frame.Arena, r frame.Ref, port uint16) {
	m := a.Meta(r)
	s.frames++
	t := product(uint64(m.Depart), uint64(port)<<48^uint64(m.Len)<<32^uint64(m.Wire))
	b := a.Bytes(r)
	if n, sum := plainHeaders(b); n > 0 && cap(b) >= mostPlain {
		s.mix(t + plainWords(b[:mostPlain], n, sum))
		return
	}
	s.mix(t + s.words(b))
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

// plainWords is words of a frame whose first n bytes are kept, with a checksum in the third
// or the fourth 16 of them; b goes on behind them.
func plainWords(b []byte, n, sum int) (t uint64) {
	w := func(i int) uint64 { return binary.LittleEndian.Uint64(b[i:]) }
	b = b[:mostPlain]
	t = product(w(0), w(8)) + product(w(16)+16*prime&(1<<64-1), w(24))
	i, x, y := 32, w(32), w(40)
	if sum < 48 {
		if y&0xffff != 0 {
			y |= 0xffff
		}
	} else {
		t += product(x+32*prime&(1<<64-1), y)
		i, x, y = 48, w(48)|0xffff<<16, w(56) // see mask
	}
	for ; n-i > 16; x, y = w(i), w(i+8) {
		t += product(x+uint64(i)*prime, y)
		i += 16
	}
	// The last ones may be there in part.
	if rest := uint64(n - i); rest <= 8 {
		x, y = x&(1<<(8*rest&63)-1|-(rest>>3)), 0
	} else {
		y &= 1<<(8*(rest-8)&63) - 1 | -(rest >> 4)
	}
	return t + product(x+uint64(i)*prime, y)
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
		t += product(binary.LittleEndian.Uint64(s.b[i:])+uint64(i)*prime, binary.LittleEndian.Uint64(s.b[i+8:]))
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
