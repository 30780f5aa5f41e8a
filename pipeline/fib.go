package pipeline

import (
	"iter"
	"math/bits"
	"net/netip"

	"github.com/gaissmai/bart"
)

// fib is the forwarding trie of one address family: 16 bits by index, then
// eight bits a level in compressed blocks. Answers are pushed down to the
// leaves, so a lookup never goes back up.
//
// An entry is 0 (no route), a value + 1, or fibBlock | offset of a block in
// words (at most 2^30). A block stands for 256 entries of which neighbours are often equal.
// It stores a run of equal entries once, in the manner of Poptrie's leaf
// compression (Asai and Ohara, SIGCOMM 2015):
//
//	words 0-7   bit i: entry i differs from entry i-1 (bit 0 is set)
//	words 8-9   for each of the words 0-7, in a byte: bits set in those before
//	words 10-   the entries that differ
//
// In the IPv6 trie, where a route is often alone below 24 bits of address, it
// stands in a single instead of in a chain of blocks: fibBlock | fibSingle |
// offset of
//
//	words 0-1   the rest of its prefix, left-aligned in 64 bits
//	word  2     64 - length of that rest
//	words 3-4   the entries of addresses inside and outside of it
//
// With 500k routes of Internet-like lengths the blocks take some 8 MB and stay
// in the last-level cache, where flat tables of 24 bits take 64 MB.
//
// All snapshots append to one array of words and never change what another one
// can see. tip is its end as of the last change; a snapshot that ends before
// it copies the words before it is changed. Blocks that the newest snapshot
// has dropped are counted and squeezed out when they are the greater half.
type fib struct {
	mid   [256]*[256]uint32
	all   uint32 // entry of the prefix of length 0
	dead  int    // words of blocks no longer in use
	words []uint32
	tip   *int
}

const (
	fibBlock  = 1 << 31
	fibSingle = 1 << 30
	fibHeader = 10
	fibAlone  = 5 // words of a single
)

// fibEmpty is the second level where there are no routes. It is never changed.
var fibEmpty [256]uint32

func newFIB() fib {
	f := fib{tip: new(int)}
	for i := range f.mid {
		f.mid[i] = &fibEmpty
	}
	return f
}

// fibStep returns entry x of the block at e.
func fibStep(words []uint32, e uint32, x uint8) uint32 {
	off := e &^ fibBlock
	g := uint32(x >> 5)
	rank := words[off+8+g>>2]>>(g&3*8)&0xff + uint32(bits.OnesCount32(words[off+g]<<(31-x&31)))
	return words[off+fibHeader-1+rank]
}

// fibMatch returns the entry for an address whose rest, left-aligned, is rest,
// from the single at e.
func fibMatch(words []uint32, e uint32, rest uint64) uint32 {
	w := words[e&^(fibBlock|fibSingle):]
	_ = w[fibAlone-1]
	if (rest^(uint64(w[0])<<32|uint64(w[1])))>>w[2] == 0 {
		return w[3]
	}
	return w[4]
}

// fibRoute is a route in the form in which the trie is built: the address as
// bytes, IPv4 in the first four.
type fibRoute struct {
	addr  [16]byte
	bits  int
	entry uint32
}

func fibRouteOf(p netip.Prefix, value uint32) fibRoute {
	r := fibRoute{bits: p.Bits(), entry: value + 1}
	copy(r.addr[:], p.Addr().AsSlice())
	return r
}

// index returns where a level that ends at bit end has r: 16 bits for the
// first level, eight for the others.
func (r *fibRoute) index(end int) int {
	if end == 16 {
		return int(r.addr[0])<<8 | int(r.addr[1])
	}
	return int(r.addr[end/8-1])
}

// fibEdit is a fib while it is changed.
type fibEdit struct {
	fib
	owned   [256]bool // second-level tables that no other snapshot has
	singles bool      // routes that are alone become singles
}

func (f *fib) edit(singles bool) *fibEdit {
	e := &fibEdit{fib: *f, singles: singles}
	if len(e.words) != *e.tip {
		e.words = append([]uint32(nil), e.words...)
		e.tip = new(int)
	}
	return e
}

func (e *fibEdit) done() fib {
	// Below 64k words (256 KB) squeezing is not worth its time.
	if len(e.words) > 1<<16 && 2*e.dead > len(e.words) {
		e.squeeze()
	}
	*e.tip = len(e.words)
	return e.fib
}

// load fills an empty trie with all routes, sorted.
func (e *fibEdit) load(routes iter.Seq2[netip.Prefix, uint32]) {
	var rs []fibRoute
	for p, v := range routes {
		if p.Bits() == 0 {
			e.all = v + 1
			continue
		}
		rs = append(rs, fibRouteOf(p, v))
	}
	if len(rs) > 0 {
		e.setRoot(0, 1<<16, rs, 0)
	}
}

// change makes the trie agree with rib in all that p covers.
func (e *fibEdit) change(rib *bart.Table[uint32], p netip.Prefix) {
	v, ok := rib.Get(p)
	if p.Bits() == 0 {
		e.all = 0
		if ok {
			e.all = v + 1
		}
		return
	}
	base := uint32(0)
	if parent, v, ok := rib.LookupPrefixLPM(netip.PrefixFrom(p.Addr(), p.Bits()-1).Masked()); ok && parent.Bits() > 0 {
		base = v + 1
	}
	var rs []fibRoute // p, if it is there, and all below it, shorter ones first
	for q, v := range rib.Subnets(p) {
		rs = append(rs, fibRouteOf(q, v))
	}
	at := fibRouteOf(p, 0)
	if at.bits <= 16 {
		e.setRoot(at.index(16), 1<<(16-at.bits), rs, base)
		return
	}
	n := at.index(16)
	e.setMid(n, e.path(e.mid[n>>8][n&0xff], 16, &at, rs, base))
}

// setRoot sets n entries of the first level, from first on, to what the
// routes below them say.
func (e *fibEdit) setRoot(first, n int, rs []fibRoute, base uint32) {
	entries := make([]uint32, n)
	e.fill(entries, first, 16, rs, base)
	for i, v := range entries {
		e.release(e.mid[(first+i)>>8][(first+i)&0xff])
		e.setMid(first+i, v)
	}
}

func (e *fibEdit) setMid(n int, v uint32) {
	m := n >> 8
	if e.mid[m][n&0xff] == v {
		return
	}
	if !e.owned[m] {
		c := *e.mid[m]
		e.mid[m], e.owned[m] = &c, true
	}
	e.mid[m][n&0xff] = v
}

// path returns the entry v, which stands for the first depth bits of at, with
// everything below at replaced by rs over base.
func (e *fibEdit) path(v uint32, depth int, at *fibRoute, rs []fibRoute, base uint32) uint32 {
	var entries [256]uint32
	e.expand(v, &entries)
	end := depth + 8
	i := at.index(end)
	if at.bits > end {
		entries[i] = e.path(entries[i], end, at, rs, base)
	} else {
		part := entries[i : i+1<<(end-at.bits)]
		for _, old := range part {
			e.release(old)
		}
		e.fill(part, i, end, rs, base)
	}
	e.release1(v)
	return e.block(&entries)
}

// fill sets entries, of which the first has the given index in a level that
// ends at bit end, to what rs says over base. rs is sorted by address and then
// by length, so whatever covers a route comes before it.
func (e *fibEdit) fill(entries []uint32, first, end int, rs []fibRoute, base uint32) {
	for i := range entries {
		entries[i] = base
	}
	for len(rs) > 0 {
		r := &rs[0]
		i := r.index(end) - first
		if r.bits <= end {
			for j := range entries[i : i+1<<(end-r.bits)] {
				entries[i+j] = r.entry
			}
			rs = rs[1:]
			continue
		}
		n := 1
		for n < len(rs) && rs[n].index(end)-first == i {
			n++
		}
		if e.singles && n == 1 && r.bits-end <= 64 {
			entries[i] = e.single(r.rest(end), r.bits-end, r.entry, entries[i])
		} else {
			var below [256]uint32
			e.fill(below[:], 0, end+8, rs[:n], entries[i])
			entries[i] = e.block(&below)
		}
		rs = rs[n:]
	}
}

// block stores 256 entries and returns the entry that stands for them.
func (e *fibEdit) block(entries *[256]uint32) uint32 {
	var head [fibHeader]uint32
	off := len(e.words)
	e.words = append(e.words, head[:]...)
	runs := uint32(0)
	for i, v := range entries {
		if i&31 == 0 {
			head[8+i>>7] |= runs << (i >> 5 & 3 * 8)
		}
		if i == 0 || v != entries[i-1] {
			head[i>>5] |= 1 << (i & 31)
			e.words = append(e.words, v)
			runs++
		}
	}
	if runs == 1 && entries[0] < fibBlock {
		e.words = e.words[:off]
		return entries[0]
	}
	copy(e.words[off:], head[:])
	return fibBlock | uint32(off)
}

// rest returns up to 64 bits of the address after the first depth, which is a
// multiple of 8, left-aligned.
func (r *fibRoute) rest(depth int) (v uint64) {
	for i := range 8 {
		if at := depth/8 + i; at < len(r.addr) {
			v |= uint64(r.addr[at]) << (56 - 8*i)
		}
	}
	return v
}

// single stores a route of n more bits that is alone, over base.
func (e *fibEdit) single(rest uint64, n int, entry, base uint32) uint32 {
	off := len(e.words)
	e.words = append(e.words, uint32(rest>>32), uint32(rest), uint32(64-n), entry, base)
	return fibBlock | fibSingle | uint32(off)
}

// expand writes the 256 entries that v stands for.
func (e *fibEdit) expand(v uint32, entries *[256]uint32) {
	if v >= fibBlock|fibSingle {
		w := e.words[v&^(fibBlock|fibSingle):]
		rest, n, entry, base := uint64(w[0])<<32|uint64(w[1]), 64-int(w[2]), w[3], w[4]
		for i := range entries {
			entries[i] = base
		}
		i := int(rest >> 56)
		if n > 8 {
			entries[i] = e.single(rest<<8, n-8, entry, base)
			return
		}
		for j := range entries[i : i+1<<(8-n)] {
			entries[i+j] = entry
		}
		return
	}
	for i := range entries {
		entries[i] = v
		if v >= fibBlock {
			entries[i] = fibStep(e.words, v, uint8(i))
		}
	}
}

// runs returns the entries that the block at v stores.
func (e *fibEdit) runs(v uint32) []uint32 {
	if v >= fibBlock|fibSingle {
		return nil // a single has only routes below it
	}
	b := e.words[v&^fibBlock:]
	n := 0
	for _, w := range b[:8] {
		n += bits.OnesCount32(w)
	}
	return b[fibHeader : fibHeader+n]
}

// release counts the words of v and of all below it as dead.
func (e *fibEdit) release(v uint32) {
	if v >= fibBlock {
		for _, below := range e.runs(v) {
			e.release(below)
		}
		e.release1(v)
	}
}

// release1 counts the words of v alone as dead.
func (e *fibEdit) release1(v uint32) {
	switch {
	case v >= fibBlock|fibSingle:
		e.dead += fibAlone
	case v >= fibBlock:
		e.dead += fibHeader + len(e.runs(v))
	}
}

// squeeze copies the blocks in use to a new array.
func (e *fibEdit) squeeze() {
	old := *e
	e.words = make([]uint32, 0, 2*(len(old.words)-old.dead))
	e.dead, e.tip = 0, new(int)
	for m, mid := range old.mid {
		for i, v := range mid {
			if v >= fibBlock {
				e.setMid(m<<8|i, old.copyTo(e, v))
			}
		}
	}
}

// copyTo copies the block v and all below it to the words of to.
func (e *fibEdit) copyTo(to *fibEdit, v uint32) uint32 {
	if v < fibBlock {
		return v
	}
	off := len(to.words)
	if v >= fibBlock|fibSingle {
		to.words = append(to.words, e.words[v&^(fibBlock|fibSingle):][:fibAlone]...)
		return fibBlock | fibSingle | uint32(off)
	}
	runs := e.runs(v)
	head := e.words[v&^fibBlock:][:fibHeader]
	to.words = append(append(to.words, head...), runs...)
	for i, below := range runs {
		c := e.copyTo(to, below)
		to.words[off+fibHeader+i] = c
	}
	return fibBlock | uint32(off)
}
