package pipeline

import (
	"encoding/binary"
	"net/netip"
)

// pruner says which tuples can hold a rule for an address, before any of
// them is probed (tuple pruning, in the same paper as tuple-space search). The
// longest prefix of the address that any rule names leads to a bitmap of all
// tuples with a rule for that prefix, for a shorter one that covers it, or for
// any address.
type pruner struct {
	lpm *LPM     // prefix -> index of its bitmap
	set []uint64 // bitmaps, all of the same number of words; the first is for addresses that no rule names
}

// pruneFrom is the number of tuples from which two prefix lookups cost less
// than they save.
const pruneFrom = 5

// address is what a rule demands of the source or destination address.
type address struct {
	prefix netip.Prefix // invalid if any address of any family may do
	tuple  int
}

// addressOf returns the prefix that m demands in words word and word+1.
func addressOf(m *Match, word int) netip.Prefix {
	family := m.Value[7] & (keyIPv4 | keyIPv6)
	if m.Mask[7]&(keyIPv4|keyIPv6) != keyIPv4|keyIPv6 || family != keyIPv4 && family != keyIPv6 {
		return netip.Prefix{}
	}
	n, ok := prefixLen(m.Mask[word], m.Mask[word+1])
	if !ok {
		return netip.Prefix{}
	}
	if family == keyIPv6 {
		var a [16]byte
		binary.BigEndian.PutUint64(a[:8], m.Value[word])
		binary.BigEndian.PutUint64(a[8:], m.Value[word+1])
		return netip.PrefixFrom(netip.AddrFrom16(a), n)
	}
	if n > 0 && (n < 96 || m.Value[word] != 0 || m.Value[word+1]>>32 != keyV4Mapped>>32) {
		return netip.Prefix{} // set by hand and not as an IPv4 key is built
	}
	var a [4]byte
	binary.BigEndian.PutUint32(a[:], uint32(m.Value[word+1]))
	return netip.PrefixFrom(netip.AddrFrom4(a), max(n-96, 0))
}

func newPruner(rules []address, tuples int) *pruner {
	words := (tuples + 63) / 64
	p := &pruner{set: make([]uint64, words)}
	index := map[netip.Prefix]int{}
	var routes []Route
	for _, r := range rules {
		if r.prefix.IsValid() && !r.prefix.Addr().Is4In6() {
			i, ok := index[r.prefix]
			if !ok {
				i = len(index) + 1
				index[r.prefix] = i
				routes = append(routes, Route{r.prefix, uint32(i)})
				p.set = append(p.set, make([]uint64, words)...)
			}
			p.set[i*words+r.tuple/64] |= 1 << (r.tuple % 64)
		} else {
			p.set[r.tuple/64] |= 1 << (r.tuple % 64)
		}
	}
	// Prefixes were checked when they became a Match, so there is no error.
	p.lpm, _ = NewLPM(routes)
	// Shorter prefixes come first, so one step to the next shorter one
	// collects all of them.
	for q, i := range p.lpm.All() {
		from := uint32(0)
		if q.Bits() > 0 {
			if _, v, ok := p.lpm.rib.LookupPrefixLPM(netip.PrefixFrom(q.Addr(), q.Bits()-1).Masked()); ok {
				from = v
			}
		}
		for w := 0; w < words; w++ {
			p.set[int(i)*words+w] |= p.set[int(from)*words+w]
		}
	}
	return p
}

// tuples returns the bitmap for the address in the words hi and lo of a key
// whose word 7 is w7.
func (p *pruner) tuples(hi, lo, w7 uint64, words int) []uint64 {
	i := uint32(NoEntry)
	if w7&keyIPv4 != 0 {
		i = p.lpm.Lookup4(uint32(lo))
	} else if w7&keyIPv6 != 0 {
		i = p.lpm.Lookup6(hi, lo)
	}
	if i == NoEntry {
		i = 0
	}
	at := int(i) * words
	return p.set[at : at+words]
}
