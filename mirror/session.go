package mirror

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"gswitch/frame"
	"gswitch/wire"
)

// Format is what a copy is wrapped into behind its outer Ethernet and IPv4 header.
type Format uint8

const (
	ERSPAN3 Format = iota // draft-foschiano-erspan-03 type III: time stamp, switch, port, sequence number
	ERSPAN2               // type II: port, sequence number
	GRE                   // RFC 2784 alone, as Everflow's switches do
	SFlow                 // samples in datagrams of sFlow version 5, gathered by Samples in place of Copy
)

// Overhead is what comes before the original, in bytes: of SFlow that of a datagram
// with one sample.
func (f Format) Overhead() int {
	return wire.EthernetLen + wire.IPv4Len + [...]int{8 + wire.ERSPAN3Len + wire.ERSPAN3PlatformLen, 8 + wire.ERSPAN2Len, wire.GRELen, wire.UDPLen + sflowHeader + sflowSample}[f]
}

// Protocols of GRE for copies. Plain GRE takes that of ERSPAN type I, which has no
// header of its own.
const (
	GREProtoERSPAN3 uint16 = 0x22eb
	GREProtoERSPAN2 uint16 = 0x88be
)

// Protocol returns the GRE protocol of a format other than SFlow.
func (f Format) Protocol() uint16 {
	if f == ERSPAN3 {
		return GREProtoERSPAN3
	}
	return GREProtoERSPAN2
}

// Session is where copies go, and how. One worker owns it.
type Session struct {
	ID     uint16     // 10 bits
	Src    netip.Addr // of the switch: this is how receivers know it
	Dst    netip.Addr
	Format Format
	Snap   int // bytes of the original that are kept; 0: all
	DSCP   uint8
	TTL    uint8  // 0 = 64
	Switch uint16 // 10 bits, for ERSPAN III
	Engine uint8  // 6 bits, for ERSPAN III: the worker, which numbers its copies by itself

	sequence uint32
}

// LeastSnap is how many bytes of an original must be kept: the headers of a packet
// in two tunnels.
const LeastSnap = 128

// Validate reports what is wrong with a session.
func (s *Session) Validate() error {
	switch {
	case s.ID > 1023 || s.Switch > 1023:
		return fmt.Errorf("mirror session %d of switch %d: both have 10 bits", s.ID, s.Switch)
	case !s.Src.Is4() || !s.Dst.Is4():
		return fmt.Errorf("mirror session %d: from %v to %v: IPv4 addresses are needed", s.ID, s.Src, s.Dst)
	case s.Snap != 0 && s.Snap < LeastSnap:
		return fmt.Errorf("mirror session %d: %d bytes of each packet are not enough to see its headers in tunnels: keep %d, or all (0)", s.ID, s.Snap, LeastSnap)
	case s.DSCP > 63 || s.Format > SFlow:
		return fmt.Errorf("mirror session %d: DSCP %d or format %d is not possible", s.ID, s.DSCP, s.Format)
	}
	return nil
}

// Info is what a copy reports of its original besides its bytes.
type Info struct {
	At     frame.Time // arrival, in synchronised time where there is any
	Port   uint16
	Egress bool
	VLAN   uint16
	Class  uint8
	// Reason is why the switch dropped the original, 0 for one that it did not.
	Reason frame.Reason
	// Cut says that the original's bytes in memory are not all that there is of it
	// in memory: what is beyond them cannot be kept.
	Cut bool
}

// Copy writes a copy of an original to b: outer Ethernet header (with empty
// addresses), IPv4, GRE, the format's header, and as much of the original as the
// session keeps and b has room for, of which orig are the bytes in memory. wireLen
// is the original's length on the link: in virtual time there is more of a frame
// there than in memory. It returns the bytes written and the copy's length on the
// link, 0 if there is no room for headers, or a packet would be too long.
//
// The copy may not be fragmented (RFC 791 DF), carries no ECN and identification 0,
// so that Everflow's outer headers are the same at every hop.
func (s *Session) Copy(b, orig []byte, wireLen uint32, i Info) (n int, length uint32) {
	keep := wireLen
	if s.Snap > 0 {
		keep = min(keep, uint32(s.Snap))
	}
	head := s.Format.Overhead()
	if len(b) < head+min(len(orig), LeastSnap) {
		return 0, 0
	}
	if whole := int(wireLen) <= len(orig); whole || i.Cut {
		keep = min(keep, uint32(len(orig)), uint32(len(b)-head))
	}
	orig = orig[:min(len(orig), int(keep), len(b)-head)]
	length = uint32(head) + keep
	if length-wire.EthernetLen > 0xffff {
		return 0, 0
	}
	be := binary.BigEndian
	clear(b[:head])
	s.outer(b, length)
	gre := b[wire.EthernetLen+wire.IPv4Len:]
	be.PutUint16(gre[2:], s.Format.Protocol())
	if s.Format != GRE {
		be.PutUint16(gre, wire.GRESequence)
		be.PutUint32(gre[4:], s.sequence)
		s.sequence++
		s.erspan(gre[8:], i, keep < wireLen)
	}
	return head + copy(b[head:], orig), length
}

// outer writes the Ethernet header, with empty addresses, and the IPv4 header of a
// frame to where there are zeros.
func (s *Session) outer(b []byte, length uint32) {
	be := binary.BigEndian
	be.PutUint16(b[12:], wire.EtherTypeIPv4)
	ip := b[wire.EthernetLen:]
	ip[0], ip[1] = 0x45, s.DSCP<<2
	be.PutUint16(ip[2:], uint16(length-wire.EthernetLen))
	be.PutUint16(ip[6:], wire.IPv4DontFragment)
	ip[8], ip[9] = s.TTL, s.proto()
	if s.TTL == 0 {
		ip[8] = 64
	}
	src, dst := s.Src.As4(), s.Dst.As4()
	copy(ip[12:], src[:])
	copy(ip[16:], dst[:])
	be.PutUint16(ip[10:], wire.Checksum(ip[:wire.IPv4Len]))
}

// proto is the IP protocol of what the session sends.
func (s *Session) proto() uint8 {
	if s.Format == SFlow {
		return wire.ProtoUDP
	}
	return wire.ProtoGRE
}

func (s *Session) erspan(b []byte, i Info, truncated bool) {
	if s.Format == ERSPAN2 {
		f := wire.ERSPAN2Fields{VLAN: i.VLAN, COS: i.Class, Encap: 3, Truncated: truncated, SessionID: s.ID, Index: uint32(i.Port)}
		f.Encode(b)
		return
	}
	f := wire.ERSPAN3Fields{
		VLAN: i.VLAN, COS: i.Class, Truncated: truncated, SessionID: s.ID, Timestamp: uint32(i.At % frame.Second), SGT: uint16(i.Reason), HardwareID: s.Engine,
		ProtocolDU: true, Egress: i.Egress, Granularity: 2, HasPlatform: true,
		// Sub-header 5: switch, port, seconds.
		Platform: 5<<58 | uint64(s.Switch&0x3ff)<<48 | uint64(i.Port)<<32 | uint64(uint32(i.At/frame.Second)),
	}
	f.Encode(b)
}

// Sequence is the number of the next copy, or datagram of sFlow, where the format has numbers: a
// receiver knows by them how many were lost.
func (s *Session) Sequence() uint32 { return s.sequence }

// Continue goes on with the numbers of another session.
func (s *Session) Continue(o *Session) { s.sequence = o.sequence }

// Length is how long the copy of an original is at most, with or without headers.
func (s *Session) Length(wireLen uint32, wrapped bool) int {
	n := int(wireLen)
	if s.Snap > 0 {
		n = min(n, s.Snap)
	}
	if wrapped {
		n += s.Format.Overhead()
	}
	return n
}

// Write is Copy or, of one that is not wrapped, the original as it is, cut as the
// session says.
func (s *Session) Write(b, orig []byte, wireLen uint32, i Info, wrapped bool) (n int, length uint32) {
	if wrapped {
		return s.Copy(b, orig, wireLen, i)
	}
	length = uint32(s.Length(wireLen, false))
	if int(wireLen) <= len(orig) || i.Cut {
		length = min(length, uint32(len(orig)), uint32(len(b)))
	}
	return copy(b, orig[:min(len(orig), int(length))]), length
}

// IsCopy reports whether a frame whose IPv4 header is at l3 is a copy that some
// session made, or a datagram of sFlow.
func IsCopy(b []byte, l3 int) bool {
	if len(b) < l3+wire.IPv4Len {
		return false
	}
	at, proto := l3+wire.IPv4(b[l3:]).HeaderLen(), wire.IPv4(b[l3:]).Proto()
	switch {
	case proto == wire.ProtoGRE && len(b) >= at+wire.GRELen:
		p := wire.GRE(b[at:]).Protocol()
		return p == GREProtoERSPAN3 || p == GREProtoERSPAN2
	case proto == wire.ProtoUDP && len(b) >= at+wire.UDPLen+4:
		return isSFlow(b[at:])
	}
	return false
}

// Made returns of how many originals a frame to an address that the session made
// says, 0 if it did not make it.
func (s *Session) Made(b []byte, to netip.Addr) int {
	at := wire.EthernetLen
	if len(b) >= at+4 && wire.Ethernet(b).EtherType() == wire.EtherTypeVLAN {
		at += 4
	}
	if len(b) < at+wire.IPv4Len || !s.Src.Is4() || !to.Is4() {
		return 0
	}
	ip, src, dst := b[at:], s.Src.As4(), to.As4()
	if ip[9] != s.proto() || [4]byte(ip[12:]) != src || [4]byte(ip[16:]) != dst {
		return 0
	}
	if s.Format == SFlow {
		return sflowSamples(ip[wire.IPv4Len:])
	}
	return 1
}
