package capture

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"gswitch/lexer"
	"gswitch/wire"
)

// Bounds on an expression: on parentheses and "not" within each other, and on
// terms in all. Evaluation descends through them.
const (
	maxNesting = 64
	maxTerms   = 1024
)

// FilterError says where an expression is wrong.
type FilterError struct {
	Text string
	Pos  int // byte offset in Text
	Why  string
}

// Error shows the expression with a mark under the place.
func (e *FilterError) Error() string {
	return "capture filter: " + lexer.Mark(e.Text, e.Why, e.Pos)
}

// ParseFilter compiles an expression. An empty one is nil, which selects
// every frame. The error is a *FilterError.
func ParseFilter(text string) (*Filter, error) {
	p := parser{Lexer: language.New(text), out: &Filter{text: text}}
	if p.Token == "" {
		return nil, nil
	}
	p.expression(0)
	if p.Token != "" {
		p.fail("%q is not expected here; join expressions by \"and\" or \"or\"", p.Token)
	}
	if p.err != nil {
		return nil, p.err
	}
	return p.out, nil
}

// language has as a word whatever lies between parentheses, operator signs and blanks.
var language = &lexer.Language{Word: func(c byte) bool { return strings.IndexByte("()!&|", c) < 0 }, Signs: []string{"&&", "||"}}

// parser is a recursive-descent parser of one expression. After an error there is no token,
// so that every rule ends.
type parser struct {
	lexer.Lexer
	out *Filter
	err error
}

func (p *parser) fail(format string, args ...any) int {
	if p.err == nil {
		p.err = &FilterError{p.Text, p.At, fmt.Sprintf(format, args...)}
	}
	p.Stop()
	return 0
}

// accept moves on if the word is one of these.
func (p *parser) accept(words ...string) bool {
	for _, w := range words {
		if p.Token == w {
			p.Next()
			return true
		}
	}
	return false
}

// argument returns the word and moves on; what says what it should be.
func (p *parser) argument(what string) (word string, at int) {
	word, at = p.Token, p.At
	if word == "" || strings.ContainsAny(word, "()!&|") {
		p.fail("%s is missing", what)
		return "", at
	}
	p.Next()
	return word, at
}

func (p *parser) failAt(at int, format string, args ...any) int {
	p.At = at
	return p.fail(format, args...)
}

func (p *parser) emit(t term) int {
	if len(p.out.terms) >= maxTerms {
		return p.fail("the expression has more than %d terms", maxTerms)
	}
	p.out.terms = append(p.out.terms, t)
	return len(p.out.terms) - 1
}

// expression: operand { ("and" | "or") operand }
func (p *parser) expression(depth int) int {
	left := p.operand(depth)
	for {
		var op uint8
		switch {
		case p.accept("and", "&&"):
			op = opAnd
		case p.accept("or", "||"):
			op = opOr
		default:
			return left
		}
		right := p.operand(depth)
		left = p.emit(term{op: op, left: left, right: right})
	}
}

// operand: "not" operand | "(" expression ")" | primitive
func (p *parser) operand(depth int) int {
	if depth > maxNesting {
		return p.fail("more than %d levels within each other", maxNesting)
	}
	if p.accept("not", "!") {
		return p.emit(term{op: opNot, left: p.operand(depth + 1)})
	}
	open := p.At
	if p.accept("(") {
		inner := p.expression(depth + 1)
		if p.err == nil && p.Token != ")" {
			if p.Token == "" {
				return p.failAt(open, "this parenthesis is not closed")
			}
			return p.fail("%q is not expected here; join expressions by \"and\" or \"or\"", p.Token)
		}
		p.accept(")")
		return inner
	}
	return p.primitive()
}

// keywords are the primitives that need nothing but their name.
var keywords = map[string]term{
	"ip":        {op: opEtherType, lo: uint64(wire.EtherTypeIPv4), hi: uint64(wire.EtherTypeIPv4)},
	"ip6":       {op: opEtherType, lo: uint64(wire.EtherTypeIPv6), hi: uint64(wire.EtherTypeIPv6)},
	"arp":       {op: opEtherType, lo: uint64(wire.EtherTypeARP), hi: uint64(wire.EtherTypeARP)},
	"icmp":      {op: opProto, lo: uint64(wire.ProtoICMP), hi: uint64(wire.ProtoICMP)},
	"icmp6":     {op: opProto, lo: uint64(wire.ProtoICMPv6), hi: uint64(wire.ProtoICMPv6)},
	"roce":      {op: opRoCE},
	"pfc":       {op: opPFC},
	"broadcast": {op: opBroadcast},
	"multicast": {op: opMulticast},
}

func (p *parser) primitive() int {
	if t, ok := keywords[p.Token]; ok {
		p.Next()
		return p.emit(t)
	}
	start, word := p.At, p.Token
	switch {
	case p.accept("ether"):
		return p.ether()
	case p.accept("tcp"):
		return p.transport(wire.ProtoTCP)
	case p.accept("udp"):
		return p.transport(wire.ProtoUDP)
	case p.accept("proto"):
		lo, hi := p.number("an IP protocol number", 255)
		return p.emit(term{op: opProto, lo: lo, hi: hi})
	case p.accept("vlan"):
		if p.Token != "" && p.Token[0] >= '0' && p.Token[0] <= '9' {
			lo, hi := p.number("a VLAN ID", 4095)
			return p.emit(term{op: opVLAN, lo: lo, hi: hi})
		}
		return p.emit(term{op: opVLAN, hi: 4095})
	case p.accept("less"):
		_, n := p.number("a length", 1<<32-1)
		return p.emit(term{op: opLess, hi: n})
	case p.accept("greater"):
		n, _ := p.number("a length", 1<<32-1)
		return p.emit(term{op: opGreater, lo: n, hi: 1<<64 - 1})
	}
	sides, given := p.sides()
	switch {
	case p.accept("host"):
		return p.host(sides)
	case p.accept("net"):
		return p.net(sides)
	case p.Token == "port", p.Token == "portrange":
		return p.port(sides, 0)
	case given:
		return p.host(sides)
	case word == "":
		return p.fail("an expression is missing")
	}
	return p.failAt(start, "%q is not known; expressions begin with host, net, port, portrange, src, dst, ether, proto, vlan, ip, ip6, arp, tcp, udp, icmp, icmp6, roce, pfc, less, greater, broadcast, multicast, not or a parenthesis", word)
}

// sides reads "src" or "dst".
func (p *parser) sides() (sides uint8, given bool) {
	switch {
	case p.accept("src"):
		return srcSide, true
	case p.accept("dst"):
		return dstSide, true
	}
	return srcSide | dstSide, false
}

func (p *parser) host(sides uint8) int {
	word, at := p.argument("an IP address")
	if p.err != nil {
		return 0
	}
	a, err := netip.ParseAddr(word)
	if err != nil || a.Zone() != "" {
		return p.failAt(at, "%q is not an IP address (names are not resolved)", word)
	}
	return p.prefix(sides, netip.PrefixFrom(a, a.BitLen()))
}

func (p *parser) net(sides uint8) int {
	word, at := p.argument("a prefix")
	if p.err != nil {
		return 0
	}
	n, err := netip.ParsePrefix(word)
	if err != nil {
		return p.failAt(at, "%q is not a prefix such as 10.1.0.0/16", word)
	}
	if n != n.Masked() {
		return p.failAt(at, "%s has bits set beyond its length; write %s", word, n.Masked())
	}
	return p.prefix(sides, n)
}

func (p *parser) prefix(sides uint8, n netip.Prefix) int {
	t := term{op: opHost, sides: sides, v6: n.Addr().Is6()}
	if t.v6 {
		b := n.Addr().As16()
		t.addr = address{binary.BigEndian.Uint64(b[:]), binary.BigEndian.Uint64(b[8:])}
		// Shifts by 64 and more give zero.
		t.mask = address{^uint64(0) << (64 - min(64, n.Bits())), ^uint64(0) << (128 - max(64, n.Bits()))}
	} else {
		b := n.Addr().As4()
		t.addr.lo = uint64(binary.BigEndian.Uint32(b[:]))
		t.mask.lo = uint64(^uint32(0) << (32 - n.Bits()))
	}
	return p.emit(t)
}

// transport: after "tcp" or "udp", ports may follow.
func (p *parser) transport(proto uint8) int {
	if p.Token == "src" || p.Token == "dst" || p.Token == "port" || p.Token == "portrange" {
		sides, _ := p.sides()
		return p.port(sides, proto)
	}
	return p.emit(term{op: opProto, lo: uint64(proto), hi: uint64(proto)})
}

func (p *parser) port(sides, proto uint8) int {
	t := term{op: opPort, sides: sides, proto: proto}
	switch {
	case p.accept("port"):
		t.lo, t.hi = p.number("a port number", 65535)
	case p.accept("portrange"):
		word, at := p.argument("a range of ports")
		from, to, ok := strings.Cut(word, "-")
		lo, err1 := strconv.ParseUint(from, 0, 16)
		hi, err2 := strconv.ParseUint(to, 0, 16)
		if !ok || err1 != nil || err2 != nil || lo > hi {
			return p.failAt(at, "%q is not a range of ports such as 8000-8080", word)
		}
		t.lo, t.hi = lo, hi
	default:
		return p.fail("\"port\" or \"portrange\" is missing")
	}
	return p.emit(t)
}

// ether: after "ether".
func (p *parser) ether() int {
	switch {
	case p.accept("broadcast"):
		return p.emit(term{op: opBroadcast})
	case p.accept("multicast"):
		return p.emit(term{op: opMulticast})
	case p.accept("proto"):
		lo, hi := p.number("an EtherType", 65535)
		return p.emit(term{op: opEtherType, lo: lo, hi: hi})
	}
	sides, given := p.sides()
	if !p.accept("host") && !given {
		return p.fail("\"ether\" is followed by src, dst, host, proto, broadcast or multicast")
	}
	word, at := p.argument("a MAC address")
	if p.err != nil {
		return 0
	}
	m, err := net.ParseMAC(word)
	if err != nil || len(m) != 6 {
		return p.failAt(at, "%q is not a MAC address such as 02:00:00:00:00:01", word)
	}
	return p.emit(term{op: opMAC, sides: sides, addr: mac(m), mask: address{0, 1<<48 - 1}})
}

// number reads a number of at most most, as a range of one.
func (p *parser) number(what string, most uint64) (lo, hi uint64) {
	word, at := p.argument(what)
	if p.err != nil {
		return 0, 0
	}
	n, err := strconv.ParseUint(word, 0, 64)
	if err != nil || n > most {
		p.failAt(at, "%q is not %s from 0 to %d", word, what, most)
	}
	return n, n
}

func mac(b []byte) address {
	return address{lo: uint64(binary.BigEndian.Uint16(b))<<32 | uint64(binary.BigEndian.Uint32(b[2:]))}
}
