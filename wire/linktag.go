package wire

import "gswitch/frame"

// EtherTypeLinkTag is that of link tags: local experimental EtherType 2 (IEEE 802,
// 9.2.3).
const EtherTypeLinkTag uint16 = 0x88b6

// LinkTagLen is the length of a link tag in bytes.
const LinkTagLen = 8

// linkTagVersion is in the two highest bits of the third byte; the six below are 0.
const linkTagVersion = 1 << 6

// LinkTag is what one end of a link reports to the other about a frame: the batch that
// the frame was counted in there, by which meter and when. It stands before all
// other tags, for that link alone.
//
//	0x88B6 | version 2 bits, 0 | batch 8 bits | meter 16 bits | stamp 16 bits
type LinkTag struct {
	Batch uint8
	Meter uint16
	Stamp uint16 // within the batch, in units that both ends know
}

// PushLinkTag puts a tag before all others. It returns false and changes nothing if
// the headroom is too small.
func PushLinkTag(a *frame.Arena, r frame.Ref, t LinkTag) bool {
	m := a.Meta(r)
	if m.Head < LinkTagLen {
		return false
	}
	// What Arena.Push does, without a call.
	m.Head, m.Len, m.Wire = m.Head-LinkTagLen, m.Len+LinkTagLen, m.Wire+LinkTagLen
	h := (*[EthernetLen + LinkTagLen]byte)(a.Bytes(r))
	macs, rest := be.Uint64(h[8:16]), be.Uint32(h[16:20])
	be.PutUint64(h[0:8], macs)
	be.PutUint32(h[8:12], rest)
	be.PutUint64(h[12:20], uint64(EtherTypeLinkTag)<<48|linkTagVersion<<40|uint64(t.Batch)<<32|uint64(t.Meter)<<16|uint64(t.Stamp))
	shiftOffsets(m, LinkTagLen)
	return true
}

// HasLinkTag reports whether a frame begins with a tag that PopLinkTag takes off.
func HasLinkTag(b []byte) bool {
	return len(b) >= EthernetLen+LinkTagLen && be.Uint16(b[12:14]) == EtherTypeLinkTag && b[14] == linkTagVersion
}

// PopLinkTag takes the tag off a frame as it came in, before it is parsed. It
// reports whether there was one of a version that it knows; any other stays.
func PopLinkTag(a *frame.Arena, r frame.Ref) (t LinkTag, ok bool) {
	b := a.Bytes(r)
	if len(b) < EthernetLen+LinkTagLen {
		return t, false
	}
	h := (*[EthernetLen + LinkTagLen]byte)(b)
	w := be.Uint64(h[12:20])
	if w>>40 != uint64(EtherTypeLinkTag)<<8|linkTagVersion {
		return t, false
	}
	macs, rest := be.Uint64(h[0:8]), be.Uint32(h[8:12])
	be.PutUint64(h[8:16], macs)
	be.PutUint32(h[16:20], rest)
	m := a.Meta(r)
	m.Head, m.Len, m.Wire = m.Head+LinkTagLen, m.Len-LinkTagLen, m.Wire-LinkTagLen
	return LinkTag{Batch: uint8(w >> 32), Meter: uint16(w >> 16), Stamp: uint16(w)}, true
}
