// Package traffic makes, drops, reflects and times the frames of the
// benchmarks: a generator that runs a BPF program over live frames, a sink
// that counts in the kernel, and a pinger that spins on a packet socket.
package traffic

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
)

// Frame describes the UDP frame that is sent.
type Frame struct {
	Size     int // bytes as testers count them, with the FCS that a veth does not carry: 64 is 60 on the device
	Dst, Src net.HardwareAddr
	DstIP    netip.Addr
	SrcIP    netip.Addr
}

// Offsets in the frame.
const (
	ethLen    = 14
	ipLen     = 20
	udpLen    = 8
	headerLen = ethLen + ipLen + udpLen
	fcs       = 4
	payload   = headerLen // first byte after the UDP header

	firstPort   = 1024 // source port of the first flow
	discardPort = 9    // RFC 863
)

// Bytes returns the frame, from the destination address to the last byte before the FCS.
func (f Frame) Bytes() ([]byte, error) {
	n := f.Size - fcs
	if n < headerLen+8 || n > 9000 {
		return nil, fmt.Errorf("frame size %d: want from %d to 9004 bytes with FCS", f.Size, headerLen+8+fcs)
	}
	if !f.DstIP.Is4() || !f.SrcIP.Is4() || len(f.Dst) != 6 || len(f.Src) != 6 {
		return nil, fmt.Errorf("frame from %v %v to %v %v: want two MAC and two IPv4 addresses", f.Src, f.SrcIP, f.Dst, f.DstIP)
	}
	b := make([]byte, n)
	copy(b, f.Dst)
	copy(b[6:], f.Src)
	binary.BigEndian.PutUint16(b[12:], 0x0800)
	ip := b[ethLen:]
	ip[0] = 0x45
	binary.BigEndian.PutUint16(ip[2:], uint16(n-ethLen))
	ip[6], ip[8], ip[9] = 0x40, 64, 17 // nobody may fragment it: it needs no identification (RFC 6864)
	copy(ip[12:], f.SrcIP.AsSlice())
	copy(ip[16:], f.DstIP.AsSlice())
	binary.BigEndian.PutUint16(ip[10:], checksum(ip[:ipLen]))
	udp := ip[ipLen:]
	binary.BigEndian.PutUint16(udp, firstPort)
	binary.BigEndian.PutUint16(udp[2:], discardPort)
	binary.BigEndian.PutUint16(udp[4:], uint16(n-ethLen-ipLen))
	binary.BigEndian.PutUint16(udp[6:], udpChecksum(ip))
	return b, nil
}

// udpChecksum is the checksum of the UDP packet in ip (RFC 768), as hosts send it: telemetry
// that tells packets apart by it finds it there.
func udpChecksum(ip []byte) uint16 {
	pseudo := append(append([]byte{}, ip[12:20]...), 0, ip[9], ip[ipLen+4], ip[ipLen+5])
	if c := checksum(append(pseudo, ip[ipLen:]...)); c != 0 {
		return c
	}
	return 0xffff
}

// checksum is the Internet checksum (RFC 1071) of b.
func checksum(b []byte) uint16 {
	var s uint32
	for ; len(b) > 1; b = b[2:] {
		s += uint32(binary.BigEndian.Uint16(b))
	}
	for s > 0xffff {
		s = s&0xffff + s>>16
	}
	return ^uint16(s)
}
