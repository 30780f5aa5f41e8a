package pipeline

import (
	"encoding/binary"
	"fmt"
	"iter"
	"net/netip"

	"github.com/gaissmai/bart"
)

// LPM maps IPv4 and IPv6 prefixes to values, and finds the longest prefix of
// an address. It is an immutable snapshot that shares almost all memory with
// those it was derived from; a change of one long prefix copies a few
// kilobytes.
//
// Two structures hold the routes. The route table proper (package bart) knows
// the prefixes and answers Get, All and what covers what. Lookups of frames go
// to a forwarding trie beside it, see fib, which holds only answers.
type LPM struct {
	rib    *bart.Table[uint32]
	v4, v6 fib
}

// Route is a prefix with its value.
type Route struct {
	Prefix netip.Prefix
	Value  uint32 // at most MaxRouteValue
}

// MaxRouteValue is the largest value that a route may have.
const MaxRouteValue = fibBlock - 2

// NewLPM returns a table of routes; of equal prefixes the last one counts.
func NewLPM(routes []Route) (*LPM, error) {
	t := &LPM{rib: &bart.Table[uint32]{}, v4: newFIB(), v6: newFIB()}
	return t.Update(routes, nil)
}

// Update returns the table without the prefixes of del and then with the
// routes of set. On error nothing changes.
func (t *LPM) Update(set []Route, del []netip.Prefix) (*LPM, error) {
	set, del, err := canonical(set, del)
	if err != nil {
		return nil, err
	}
	if changes := len(set) + len(del); 4*changes > t.rib.Size()+changes && changes > 64 {
		return t.rebuild(set, del), nil
	}
	n := &LPM{rib: t.rib}
	e4, e6 := t.v4.edit(false), t.v6.edit(true)
	change := func(p netip.Prefix) {
		if p.Addr().Is4() {
			e4.change(n.rib, p)
		} else {
			e6.change(n.rib, p)
		}
	}
	for _, p := range del {
		if _, ok := n.rib.Get(p); ok {
			n.rib = n.rib.DeletePersist(p)
			change(p)
		}
	}
	for _, r := range set {
		n.rib = n.rib.InsertPersist(r.Prefix, r.Value)
		change(r.Prefix)
	}
	n.v4, n.v6 = e4.done(), e6.done()
	return n, nil
}

// rebuild is Update where so much changes that making all anew is cheaper.
func (t *LPM) rebuild(set []Route, del []netip.Prefix) *LPM {
	n := &LPM{rib: t.rib.Clone(), v4: newFIB(), v6: newFIB()}
	for _, p := range del {
		n.rib.Delete(p)
	}
	for _, r := range set {
		n.rib.Insert(r.Prefix, r.Value)
	}
	e4, e6 := n.v4.edit(false), n.v6.edit(true)
	e4.load(n.rib.AllSorted4())
	e6.load(n.rib.AllSorted6())
	n.v4, n.v6 = e4.done(), e6.done()
	return n
}

// With returns the table with one route more or changed.
func (t *LPM) With(p netip.Prefix, value uint32) (*LPM, error) {
	return t.Update([]Route{{p, value}}, nil)
}

// Without returns the table without one prefix.
func (t *LPM) Without(p netip.Prefix) (*LPM, error) {
	return t.Update(nil, []netip.Prefix{p})
}

// canonical checks prefixes and clears their host bits.
func canonical(set []Route, del []netip.Prefix) ([]Route, []netip.Prefix, error) {
	cs, cd := make([]Route, len(set)), make([]netip.Prefix, len(del))
	check := func(p netip.Prefix) error {
		if !p.IsValid() {
			return fmt.Errorf("route: invalid prefix")
		}
		if p.Addr().Is4In6() {
			return fmt.Errorf("route %v: write an IPv4 prefix as such, not mapped into IPv6", p)
		}
		return nil
	}
	for i, r := range set {
		if err := check(r.Prefix); err != nil {
			return nil, nil, err
		}
		if r.Value > MaxRouteValue {
			return nil, nil, fmt.Errorf("route %v: value %d is more than %d", r.Prefix, r.Value, uint32(MaxRouteValue))
		}
		cs[i] = Route{r.Prefix.Masked(), r.Value}
	}
	for i, p := range del {
		if err := check(p); err != nil {
			return nil, nil, err
		}
		cd[i] = p.Masked()
	}
	return cs, cd, nil
}

// Lookup4 returns the value of the longest prefix of the IPv4 address ip (its
// first octet uppermost), or NoEntry.
func (t *LPM) Lookup4(ip uint32) uint32 {
	e := t.v4.mid[ip>>24][ip>>16&0xff]
	if e >= fibBlock {
		if e = fibStep(t.v4.words, e, uint8(ip>>8)); e >= fibBlock {
			e = fibStep(t.v4.words, e, uint8(ip))
		}
	}
	if e == 0 {
		e = t.v4.all
	}
	return e - 1
}

// Lookup6 returns the value of the longest prefix of the IPv6 address whose
// halves are hi and lo, or NoEntry.
func (t *LPM) Lookup6(hi, lo uint64) uint32 {
	e := t.v6.mid[hi>>56][hi>>48&0xff]
	hi = hi<<16 | lo>>48
	lo <<= 16
	for e >= fibBlock {
		if e >= fibBlock|fibSingle {
			e = fibMatch(t.v6.words, e, hi)
			break
		}
		e = fibStep(t.v6.words, e, uint8(hi>>56))
		hi = hi<<8 | lo>>56
		lo <<= 8
	}
	if e == 0 {
		e = t.v6.all
	}
	return e - 1
}

// Lookup returns the value of the longest prefix of ip.
func (t *LPM) Lookup(ip netip.Addr) (value uint32, ok bool) {
	switch {
	case ip.Is4():
		a := ip.As4()
		value = t.Lookup4(binary.BigEndian.Uint32(a[:]))
	case ip.Is6():
		a := ip.As16()
		value = t.Lookup6(binary.BigEndian.Uint64(a[:8]), binary.BigEndian.Uint64(a[8:]))
	default:
		return 0, false
	}
	if value == NoEntry {
		return 0, false
	}
	return value, true
}

// Lookup4Vec writes the value for ips[i] to values[i], or NoEntry.
func (t *LPM) Lookup4Vec(ips, values []uint32) {
	values = values[:len(ips)]
	for i, ip := range ips {
		values[i] = t.Lookup4(ip)
	}
}

// Lookup6Vec writes the value for ips[i] (halves hi, lo) to values[i], or
// NoEntry.
func (t *LPM) Lookup6Vec(ips [][2]uint64, values []uint32) {
	values = values[:len(ips)]
	for i := range ips {
		values[i] = t.Lookup6(ips[i][0], ips[i][1])
	}
}

// Get returns the value of exactly this prefix.
func (t *LPM) Get(p netip.Prefix) (value uint32, ok bool) { return t.rib.Get(p) }

// All yields all routes, IPv4 before IPv6, by address and then by length.
func (t *LPM) All() iter.Seq2[netip.Prefix, uint32] { return t.rib.AllSorted() }

// Len4 returns the number of IPv4 prefixes.
func (t *LPM) Len4() int { return t.rib.Size4() }

// Len6 returns the number of IPv6 prefixes.
func (t *LPM) Len6() int { return t.rib.Size6() }

// Len returns the number of prefixes.
func (t *LPM) Len() int { return t.rib.Size() }
