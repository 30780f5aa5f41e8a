package inband

import (
	"gswitch/frame"
	"gswitch/wire"
)

// HPCC's block (paper, section 2.3.2):
//
//	byte 0-1   hops 4 bits, path identifier 12
//	byte 2+8i  rate 4, time 24, bytes sent 20, queue 16
//
// big endian. In the reserved form record 0 is the first switch's; in the form
// that grows it is the last one's, since a switch inserts in front.

func (c *Codec) decodeHPCC(b []byte, p *Path) (int, frame.Reason) {
	p.N = 0
	if len(b) < wire.HPCCLen {
		return 0, frame.ParseShortINT
	}
	head := be.Uint16(b)
	n := int(head >> 12)
	if n > wire.HPCCSlots {
		return 0, frame.ParseINTHops
	}
	p.ID, p.N = head&0xfff, n
	for i := range n {
		c.profile.read(be.Uint64(b[wire.HPCCBase+wire.HPCCRecord*i:]), &p.Hops[i])
	}
	return wire.HPCCLen, frame.Keep
}

func (c *Codec) decodeGrow(b []byte, p *Path) (int, frame.Reason) {
	p.N = 0
	if len(b) < wire.HPCCBase {
		return 0, frame.ParseShortINT
	}
	head := be.Uint16(b)
	n := int(head >> 12)
	size := wire.HPCCBase + wire.HPCCRecord*n
	if len(b) < size {
		return 0, frame.ParseShortINT
	}
	p.ID, p.N = head&0xfff, n
	for i := range n {
		c.profile.read(be.Uint64(b[size-wire.HPCCRecord*(i+1):]), &p.Hops[i])
	}
	return size, frame.Keep
}
