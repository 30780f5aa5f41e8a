package wire

import (
	"encoding/binary"
	"hash/crc32"
)

// The invariant CRC of RoCEv2 (IBTA volume 1, annex A17.3.3, and 7.8.1) ends a
// packet: the CRC-32 of Ethernet over eight bytes of ones in place of the
// InfiniBand local header, then the packet from its IP header to the pad bytes,
// where what routers may change counts as ones: TOS, TTL and checksum of IPv4,
// traffic class, flow label and hop limit of IPv6, the UDP checksum and the
// byte with FECN and BECN in the BTH. The four bytes go out least significant
// first.
//
// A telemetry header between UDP and BTH comes, grows and changes on the way.
// The CRC is therefore that of the packet without it: the header itself is left
// out, the IP and UDP lengths count without it, and the UDP destination port is
// RoCEv2's. A switch that stamps, inserts or strips telemetry leaves the CRC
// alone, and it is what a NIC without telemetry computes.

// icrcTables are the tables of slicing by eight: icrcTables[k][x] is what byte
// x, followed by k zero bytes, adds. crc32.Update would do for the headers too,
// but what it is given would be on the heap.
var icrcTables = func() *[8][256]uint32 {
	t := new([8][256]uint32)
	t[0] = *crc32.IEEETable
	for x := range 256 {
		for k := 1; k < 8; k++ {
			t[k][x] = t[0][byte(t[k-1][x])] ^ t[k-1][x]>>8
		}
	}
	return t
}()

// icrcSeed is the state of the CRC after the eight bytes of ones.
var icrcSeed = icrcHead(^uint32(0), []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff})

// icrcHead feeds a header in which masked bytes were replaced.
func icrcHead(c uint32, h []byte) uint32 {
	t := icrcTables
	for ; len(h) >= 8; h = h[8:] {
		w := binary.LittleEndian.Uint64(h) ^ uint64(c)
		c = t[7][byte(w)] ^ t[6][byte(w>>8)] ^ t[5][byte(w>>16)] ^ t[4][byte(w>>24)] ^
			t[3][byte(w>>32)] ^ t[2][byte(w>>40)] ^ t[1][byte(w>>48)] ^ t[0][byte(w>>56)]
	}
	for _, x := range h {
		c = t[0][byte(c)^x] ^ c>>8
	}
	return c
}

// ICRC returns the invariant CRC of the RoCEv2 packet whose IP header is at l3
// and whose BTH is at bth, as BTHOffset says. b ends with the packet: with the
// four bytes of the CRC, which are not read, and without what pads an Ethernet
// frame. The result is 0 where b is too short for the headers or where IPv6
// extension headers stand before UDP.
func ICRC(b []byte, l3, bth int) uint32 {
	c, ok := icrc(b, l3, bth)
	if !ok {
		return 0
	}
	return c
}

// PutICRC writes the CRC to the last four bytes of b.
func PutICRC(b []byte, l3, bth int) {
	if c, ok := icrc(b, l3, bth); ok {
		binary.LittleEndian.PutUint32(b[len(b)-ICRCLen:], c)
	}
}

// CheckICRC reports whether the last four bytes of b are the CRC.
func CheckICRC(b []byte, l3, bth int) bool {
	c, ok := icrc(b, l3, bth)
	return ok && binary.LittleEndian.Uint32(b[len(b)-ICRCLen:]) == c
}

func icrc(b []byte, l3, bth int) (uint32, bool) {
	if l3 < 0 || l3+IPv4Len > len(b) || bth+BTHLen+ICRCLen > len(b) {
		return 0, false
	}
	var head [IPv6Len + UDPLen + 5]byte // as it goes into the CRC: IP, UDP, five bytes of BTH
	n := 0                              // of which these are IP
	l4 := 0
	switch b[l3] >> 4 {
	case 4:
		n = IPv4(b[l3:]).HeaderLen()
		if n < IPv4Len || n > IPv6Len { // options up to 20 bytes
			return 0, false
		}
		l4 = l3 + n
	case 6:
		n, l4 = IPv6Len, l3+IPv6Len
	}
	extra := bth - l4 - UDPLen // telemetry
	if n == 0 || extra < 0 {
		return 0, false
	}
	copy(head[:], b[l3:l4+UDPLen])
	udp := head[n : n+UDPLen]
	if n == IPv6Len && b[l3]>>4 == 6 {
		head[0] |= 0x0f
		head[1], head[2], head[3], head[7] = 0xff, 0xff, 0xff, 0xff
		shorten(head[4:6], extra)
	} else {
		head[1], head[8], head[10], head[11] = 0xff, 0xff, 0xff, 0xff
		shorten(head[2:4], extra)
	}
	if extra > 0 {
		be.PutUint16(udp[2:4], RoCEv2Port)
		shorten(udp[4:6], extra)
	}
	udp[6], udp[7] = 0xff, 0xff
	copy(head[n+UDPLen:], b[bth:bth+4])
	head[n+UDPLen+4] = 0xff // FECN, BECN, reserved

	c := icrcHead(icrcSeed, head[:n+UDPLen+5])
	return crc32.Update(^c, crc32.IEEETable, b[bth+5:len(b)-ICRCLen]), true
}

// shorten subtracts n from a length field.
func shorten(field []byte, n int) { be.PutUint16(field, be.Uint16(field)-uint16(n)) }
