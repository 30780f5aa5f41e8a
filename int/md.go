package inband

import (
	"gswitch/frame"
	"gswitch/wire"
)

// INT-MD 2.1 (P4.org, In-band Network Telemetry dataplane specification 2.1):
//
//	shim    type 4 bits, NPT 2, reserved 2, length 8 (words after the shim), original port 16   section 5.6.2
//	header  version 4, D, E, M, reserved 12, hop length 5 (words), hops left 8                  section 5.7
//	        instructions 16, domain 16, domain instructions 16, domain flags 16
//	stack   the metadata of each hop, newest first
//
// Of the instructions we ask for what congestion control needs: node (bit 0),
// level 1 ports (1), queue and its occupancy (3), egress timestamp (5) and
// egress utilisation (7). The last is the implementation's to define; under
// our domain it is the bytes that the port had sent, modulo 2^32. Occupancy is
// in bytes.
const (
	mdInstructions uint16 = 0x8000 | 0x4000 | 0x1000 | 0x0400 | 0x0100
	mdDomain       uint16 = 0x4753
	mdHopWords            = 1 + 1 + 1 + 2 + 1
	mdHopLen              = mdHopWords * wire.INTWord

	mdExceeded = 0x04 // E, in byte 4 of the shim and header: no hops left
	mdMTU      = 0x02 // M: a hop did not fit into the MTU

	mdMaxQ = 1<<24 - 1
)

// Offsets in shim and header.
const (
	mdLenAt    = 1 // of the shim: words after it
	mdPortAt   = 2
	mdFlagsAt  = 4
	mdHopLenAt = 6
	mdLeftAt   = 7
	mdInstrAt  = 8
	mdDomainAt = 10
	mdStackAt  = wire.INTShimLen + wire.INTMDLen
)

func initMD(b []byte, port uint16) {
	h := b[:mdStackAt]
	clear(h)
	h[0] = wire.INTTypeMD<<4 | wire.INTNextPort<<2
	h[mdLenAt] = wire.INTMDLen / wire.INTWord
	be.PutUint16(h[mdPortAt:], port)
	h[mdFlagsAt] = wire.INTMDVersion << 4
	h[mdHopLenAt] = mdHopWords
	h[mdLeftAt] = MaxHops
	be.PutUint16(h[mdInstrAt:], mdInstructions)
	be.PutUint16(h[mdDomainAt:], mdDomain)
}

// isOurMD reports whether the metadata header after the shim at h asks for
// what we write: a switch leaves any other alone, and a host cannot use it.
func isOurMD(h []byte) bool {
	return h[mdHopLenAt]&0x1f == mdHopWords && be.Uint32(h[mdInstrAt:]) == uint32(mdInstructions)<<16|uint32(mdDomain)
}

func (c *Codec) decodeMD(b []byte, p *Path) (int, frame.Reason) {
	p.ID, p.N = 0, 0
	n, _, why := wire.TelemetryLen(b, 0, len(b), wire.INTPort)
	if why != frame.Keep {
		return 0, why
	}
	if n == 0 || !isOurMD(b) {
		return 0, frame.ParseINTVersion
	}
	hops := (n - mdStackAt) / mdHopLen
	if hops > MaxHops {
		return 0, frame.ParseINTHops
	}
	p.N = hops
	for i := range hops {
		at := n - mdHopLen*(i+1)
		w, h := b[at:at+mdHopLen:at+mdHopLen], &p.Hops[i]
		h.Node, h.Port = be.Uint32(w), be.Uint16(w[6:])
		h.Q = uint64(be.Uint32(w[8:]) & mdMaxQ)
		h.TS = be.Uint64(w[12:]) & (1<<63 - 1)
		h.Tx = uint64(be.Uint32(w[20:]))
		h.Rate = c.rates.Rate(h.Node, h.Port)
		p.ID ^= mixHop(h.Node, h.Port)
	}
	return n, frame.Keep
}

// mixHop folds what names a hop into 12 bits: the exclusive or of it over the
// hops stands for the path, as the switches' identifiers do in HPCC's block.
// The factors (odd, of random bits) keep node and port from cancelling out.
func mixHop(node uint32, port uint16) uint16 {
	x := node*0x9e3779b1 ^ uint32(port)*0x85ebca6b
	return uint16((x ^ x>>15) >> 8 & 0xfff)
}
