package mirror

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"iter"
	"maps"
	"math"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"gswitch/frame"
	"gswitch/lexer"
	"gswitch/units"
	"gswitch/wire"
)

// Filter chooses traces by the headers of their packets and by what became of them
// (GetTrace in table 2 of the paper). Its grammar:
//
//	filter = all { ("||" | "or") all }
//	all    = one { ("&&" | "and") one }
//	one    = ("!" | "not") one | "(" filter ")" | field [ op value ]
//	op     = "==" | "!=" | "<" | "<=" | ">" | ">="
//
// A field that differs from hop to hop is asked of all of them: it compares if it
// does at one, and != holds if no hop has the value.
type Filter struct{ is func(*Trace) bool }

// Match reports whether a trace is chosen.
func (f *Filter) Match(t *Trace) bool { return f.is(t) }

// FilterError says where a filter is wrong.
type FilterError struct {
	Text, Why string
	Pos       int // byte in Text
}

func (e *FilterError) Error() string {
	return "filter: " + lexer.Mark(e.Text, e.Why, e.Pos)
}

// kind says which values a field is compared with.
type kind uint8

const (
	ofNumber kind = iota
	ofAddress
	ofStation
	ofSpan
	ofFlag // is not compared
)

// field is what a filter asks of a trace.
type field struct {
	kind   kind
	values func(*Trace) iter.Seq[uint64]
	names  map[string]uint64 // of numbers, and of no other kind
}

// single is a field that a packet has once, or, where ok is false, not at all.
func single(f func(t *Trace) (v uint64, ok bool)) func(*Trace) iter.Seq[uint64] {
	return func(t *Trace) iter.Seq[uint64] {
		return func(yield func(uint64) bool) {
			if v, ok := f(t); ok {
				yield(v)
			}
		}
	}
}

// perHop is a field that a packet has at every hop, and where it was dropped.
func perHop(f func(h *Hop) uint64) func(*Trace) iter.Seq[uint64] {
	return func(t *Trace) iter.Seq[uint64] {
		return func(yield func(uint64) bool) {
			for _, hops := range [][]Hop{t.Hops, t.Dropped} {
				for i := range hops {
					if !yield(f(&hops[i])) {
						return
					}
				}
			}
		}
	}
}

func ip4(a [4]byte) uint64 { return uint64(binary.BigEndian.Uint32(a[:])) }

// source and destination ports of a protocol.
func ports(proto uint8, src, dst bool) field {
	return field{values: func(t *Trace) iter.Seq[uint64] {
		return func(yield func(uint64) bool) {
			if t.Key.Proto != proto || src && !yield(uint64(t.Key.SrcPort)) {
				return
			}
			if dst {
				yield(uint64(t.Key.DstPort))
			}
		}
	}}
}

func proto(p uint8) field {
	return field{kind: ofFlag, values: single(func(t *Trace) (uint64, bool) { return 1, t.Key.Proto == p })}
}

func is(f func(t *Trace) bool) field {
	return field{kind: ofFlag, values: single(func(t *Trace) (uint64, bool) { return 1, f(t) })}
}

var filterFields = map[string]field{
	"ip.src":      {kind: ofAddress, values: single(func(t *Trace) (uint64, bool) { return ip4(t.Key.Src), true })},
	"ip.dst":      {kind: ofAddress, values: single(func(t *Trace) (uint64, bool) { return ip4(t.Key.Dst), true })},
	"ip.proto":    {values: single(func(t *Trace) (uint64, bool) { return uint64(t.Key.Proto), true }), names: map[string]uint64{"icmp": uint64(wire.ProtoICMP), "tcp": uint64(wire.ProtoTCP), "udp": uint64(wire.ProtoUDP)}},
	"ip.id":       {values: single(func(t *Trace) (uint64, bool) { return uint64(t.Key.ID), true })},
	"ip.ttl":      {values: perHop(func(h *Hop) uint64 { return uint64(h.TTL) })},
	"ip.dscp":     {values: perHop(func(h *Hop) uint64 { return uint64(h.DSCP) })},
	"ip.ecn":      {values: perHop(func(h *Hop) uint64 { return uint64(h.ECN) })},
	"tunnel.dst":  {kind: ofAddress, values: tunnels},
	"eth.src":     {kind: ofStation, values: perHop(func(h *Hop) uint64 { return h.From.Uint64() })},
	"icmp":        proto(wire.ProtoICMP),
	"tcp":         proto(wire.ProtoTCP),
	"udp":         proto(wire.ProtoUDP),
	"tcp.srcport": ports(wire.ProtoTCP, true, false),
	"tcp.dstport": ports(wire.ProtoTCP, false, true),
	"tcp.port":    ports(wire.ProtoTCP, true, true),
	"udp.srcport": ports(wire.ProtoUDP, true, false),
	"udp.dstport": ports(wire.ProtoUDP, false, true),
	"udp.port":    ports(wire.ProtoUDP, true, true),
	"switch":      {kind: ofAddress, values: perHop(func(h *Hop) uint64 { return ip4(h.Switch.As4()) })},
	"port":        {values: perHop(func(h *Hop) uint64 { return uint64(h.Port) })},
	"hops":        {values: single(func(t *Trace) (uint64, bool) { return uint64(len(t.Hops)), true })},
	"missing":     {values: single(func(t *Trace) (uint64, bool) { return uint64(t.Gaps), true })},
	"delay":       {kind: ofSpan, values: single(func(t *Trace) (uint64, bool) { return uint64(t.Delay()), true })},
	"reason":      {values: dropped, names: reasonNames()},
	"loop":        is(func(t *Trace) bool { return len(t.Loop) > 0 }),
	"lost":        is(func(t *Trace) bool { return t.Lost }),
	"drop":        is(func(t *Trace) bool { return len(t.Dropped) > 0 }),
	"debug":       is(func(t *Trace) bool { return t.Debug }),
	"probe":       {values: single(func(t *Trace) (uint64, bool) { return uint64(t.Probe), t.Probe != 0 })},
}

// FilterFields are the names of all fields.
func FilterFields() []string { return slices.Sorted(maps.Keys(filterFields)) }

// tunnels are where the packet was tunnelled to.
func tunnels(t *Trace) iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		for i := range t.Hops {
			if t.Hops[i].Depth > 0 && !yield(ip4(t.Hops[i].OuterDst)) {
				return
			}
		}
	}
}

func dropped(t *Trace) iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		for i := range t.Dropped {
			if !yield(uint64(t.Dropped[i].Reason)) {
				return
			}
		}
	}
}

func reasonNames() map[string]uint64 {
	m := map[string]uint64{}
	for r := frame.Keep + 1; r < frame.NumReasons; r++ {
		m[r.String()] = uint64(r)
	}
	return m
}

// Delay is the time from the first hop to the last, as far as stamps show.
func (t *Trace) Delay() (d frame.Time) {
	for i := range t.Hops {
		d = max(d, t.Hops[i].At-t.Hops[0].At)
	}
	return d
}

// ParseFilter reads a filter. names returns the addresses of a switch by its name,
// none of one that is not known.
func ParseFilter(text string, names func(string) []netip.Addr) (*Filter, error) {
	p := &filterParser{Lexer: language.New(text), names: names}
	is, err := p.any(0)
	if err == nil && p.Token != "" {
		err = p.fail("%q is not expected", p.Token)
	}
	if err != nil {
		return nil, err
	}
	return &Filter{is}, nil
}

// mostNested bounds how deep a filter is.
const mostNested = 64

type test = func(*Trace) bool

type filterParser struct {
	lexer.Lexer
	names func(string) []netip.Addr
}

func (p *filterParser) fail(format string, a ...any) error {
	return &FilterError{Text: p.Text, Why: fmt.Sprintf(format, a...), Pos: p.At}
}

// language has signs wherever there is no letter of a name, an address or a number.
var language = &lexer.Language{Word: isWord, Signs: []string{"&&", "||", "==", "!=", "<=", ">="}}

func isWord(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("._-:/", c) >= 0
}

func (p *filterParser) any(depth int) (test, error) {
	return p.chain("||", "or", func() (test, error) { return p.all(depth) }, func(a, b test) test {
		return func(t *Trace) bool { return a(t) || b(t) }
	})
}

func (p *filterParser) all(depth int) (test, error) {
	return p.chain("&&", "and", func() (test, error) { return p.one(depth) }, func(a, b test) test {
		return func(t *Trace) bool { return a(t) && b(t) }
	})
}

// chain reads operands with an operator between them.
func (p *filterParser) chain(sign, word string, operand func() (test, error), join func(a, b test) test) (test, error) {
	a, err := operand()
	for err == nil && (p.Token == sign || p.Token == word) {
		p.Next()
		var b test
		if b, err = operand(); err == nil {
			a = join(a, b)
		}
	}
	return a, err
}

func (p *filterParser) one(depth int) (test, error) {
	if depth > mostNested {
		return nil, p.fail("it is nested more than %d deep", mostNested)
	}
	switch p.Token {
	case "!", "not":
		p.Next()
		f, err := p.one(depth + 1)
		return func(t *Trace) bool { return !f(t) }, err
	case "(":
		p.Next()
		f, err := p.any(depth + 1)
		if err == nil && p.Token != ")" {
			err = p.fail("a ) is missing")
		}
		p.Next()
		return f, err
	}
	return p.comparison()
}

// comparison reads a field, and what it is compared with.
func (p *filterParser) comparison() (test, error) {
	f, ok := filterFields[p.Token]
	if !ok {
		return nil, p.fail("%s: the fields are %s", cmp.Or(p.Token, "something is missing"), strings.Join(FilterFields(), ", "))
	}
	name := p.Token
	p.Next()
	op := p.Token
	if f.kind == ofFlag {
		return func(t *Trace) bool { return some(f.values(t), func(uint64) bool { return true }) }, nil
	}
	if !slices.Contains([]string{"==", "!=", "<", "<=", ">", ">="}, op) {
		return nil, p.fail("%s is to be compared: ==, !=, <, <=, > or >= is missing", name)
	}
	if (f.kind == ofAddress || f.kind == ofStation) && op != "==" && op != "!=" {
		return nil, p.fail("%s is equal or not: == or !=", name)
	}
	p.Next()
	equal, v, err := p.value(name, &f)
	if err != nil {
		return nil, err
	}
	p.Next()
	switch op {
	case "==":
		return func(t *Trace) bool { return some(f.values(t), equal) }, nil
	case "!=":
		return func(t *Trace) bool { return !some(f.values(t), equal) }, nil
	}
	ordered := map[string]func(x uint64) bool{
		"<": func(x uint64) bool { return x < v }, "<=": func(x uint64) bool { return x <= v },
		">": func(x uint64) bool { return x > v }, ">=": func(x uint64) bool { return x >= v }}[op]
	return func(t *Trace) bool { return some(f.values(t), ordered) }, nil
}

func some(s iter.Seq[uint64], is func(uint64) bool) bool {
	for v := range s {
		if is(v) {
			return true
		}
	}
	return false
}

// value reads the token as a value of a field: what is equal to it, and, of a field
// with an order, the value.
func (p *filterParser) value(name string, f *field) (equal func(uint64) bool, v uint64, err error) {
	equal = func(x uint64) bool { return x == v }
	switch f.kind {
	case ofAddress:
		nets, err := p.addresses(name)
		return func(x uint64) bool {
			a := netip.AddrFrom4([4]byte(binary.BigEndian.AppendUint32(nil, uint32(x))))
			return slices.ContainsFunc(nets, func(n netip.Prefix) bool { return n.Contains(a) })
		}, 0, err
	case ofStation:
		m, err := wire.ParseMAC(p.Token)
		if err != nil {
			return nil, 0, p.fail("%s: %q is no station, such as 02:00:00:00:00:01", name, p.Token)
		}
		v = m.Uint64()
		return equal, v, nil
	case ofSpan:
		d, err := units.Span(p.Token)
		if err != nil || d < 0 {
			return nil, 0, p.fail("%s: %q is no time, such as 100us", name, p.Token)
		}
		v = uint64(d)
		return equal, v, nil
	}
	if v, ok := f.names[p.Token]; ok {
		return func(x uint64) bool { return x == v }, v, nil
	}
	if v, err = strconv.ParseUint(p.Token, 0, 64); err != nil || v > math.MaxUint32 {
		why := "no number"
		if f.names != nil {
			why += " nor one of " + strings.Join(slices.Sorted(maps.Keys(f.names)), ", ")
		}
		return nil, 0, p.fail("%s: %q is %s", name, p.Token, why)
	}
	return equal, v, nil
}

// addresses reads an address or a network, or the name of a switch.
func (p *filterParser) addresses(name string) (v []netip.Prefix, err error) {
	if n, err := netip.ParsePrefix(p.Token); err == nil && n.Addr().Is4() {
		return []netip.Prefix{n}, nil
	}
	if a, err := netip.ParseAddr(p.Token); err == nil && a.Is4() {
		return []netip.Prefix{netip.PrefixFrom(a, 32)}, nil
	}
	if name == "switch" && p.Token != "" {
		for _, a := range p.names(p.Token) {
			v = append(v, netip.PrefixFrom(a, a.BitLen()))
		}
		if v == nil {
			return nil, p.fail("there is no switch %q", p.Token)
		}
		return v, nil
	}
	return nil, p.fail("%s: %q is neither an address nor a network of IPv4, such as 10.0.1.0/24", name, p.Token)
}
