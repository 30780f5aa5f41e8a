package wiretest

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"gswitch/wire"
)

// Read builds the frame that a line of words describes, as Words writes it:
// what makes a MAC control frame or an ARP packet, or stations, tag, IPv4
// addresses, UDP or RoCE, and bytes. names are stations besides hN and all.
func Read(line string, names map[string]wire.MAC) (b []byte, err error) {
	defer func() { // of the builder, for what it cannot make
		if why := recover(); why != nil {
			b, err = nil, fmt.Errorf("%q: %v", line, why)
		}
	}()
	r := reader{names: names}
	if kind, rest, ok := strings.Cut(line, ": "); ok && !strings.Contains(kind, " > ") {
		b = r.control(kind, strings.Split(rest, ", "))
	} else {
		b = r.frame(strings.Split(line, ", "))
	}
	if r.err != nil {
		return nil, fmt.Errorf("%q: %w", line, r.err)
	}
	return b, nil
}

type reader struct {
	names map[string]wire.MAC
	err   error
}

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format, args...)
	}
}

func (r *reader) number(s string, bits int) uint64 {
	n, err := strconv.ParseUint(s, 0, bits)
	if err != nil {
		r.fail("%q is no number of %d bits", s, bits)
	}
	return n
}

func (r *reader) mac(s string) wire.MAC {
	if n, ok := strings.CutPrefix(s, "h"); ok {
		return MAC(uint16(r.number(n, 16)))
	}
	if m, ok := r.names[s]; ok {
		return m
	}
	if s == "all" {
		return wire.BroadcastMAC
	}
	m, err := wire.ParseMAC(s)
	if err != nil {
		r.fail("%q is no station", s)
	}
	return m
}

// control reads what acts on a port.
func (r *reader) control(kind string, what []string) []byte {
	b := make([]byte, wire.MinFrame)
	switch kind {
	case "PFC":
		f := wire.PFCFields{Src: MAC(0xffff)}
		for _, w := range what {
			v := strings.Fields(w)
			if len(v) < 4 || v[0] != "class" {
				r.fail("%q is not: class N waits N quanta, or: class N goes on", w)
				continue
			}
			c := r.number(v[1], 3)
			f.Enable |= 1 << c
			if v[2] == "waits" {
				f.Quanta[c&7] = uint16(r.number(v[3], 16))
			}
		}
		f.Encode(b)
	case "token":
		f := wire.TokenFields{Src: MAC(0xffff), Hops: uint16(r.number(after(what, "hops "), 16)), Flow: r.flow(what)}
		f.Encode(b)
	default:
		r.fail("%q is no control frame that can be read", kind)
	}
	return b
}

// after returns what follows a word among others.
func after(what []string, word string) string {
	for _, w := range what {
		if s, ok := strings.CutPrefix(w, word); ok {
			return s
		}
	}
	return ""
}

func (r *reader) pair(s string) (a, b string) {
	a, b, ok := strings.Cut(s, " > ")
	if !ok {
		r.fail("%q is not: one > other", s)
	}
	return a, b
}

func (r *reader) flow(what []string) (f wire.FlowID) {
	if len(what) < 2 {
		r.fail("no flow")
		return f
	}
	a, b := r.pair(what[0])
	src, dst := Addr4(a), Addr4(b)
	for i := range 4 {
		f.Addrs |= uint64(src[i])<<(56-8*i) | uint64(dst[i])<<(24-8*i)
	}
	a, b = r.pair(strings.TrimPrefix(what[1], "UDP "))
	f.Ports, f.Proto = uint32(r.number(a, 16))<<16|uint32(r.number(b, 16)), wire.ProtoUDP
	return f
}

// frame reads what is forwarded.
func (r *reader) frame(what []string) []byte {
	src, dst := r.pair(what[0])
	layers := []Layer{Eth(r.mac(dst), r.mac(src))}
	var mark []byte
	bytes := 0
	for _, w := range what[1:] {
		v := strings.Fields(w)
		switch {
		case v[0] == "escaped" && len(v) == 4:
			mark = []byte{0x88, 0xb5, byte(r.number(v[2], 8)), 0}
		case v[0] == "class" && mark != nil:
			mark[3] = byte(r.number(v[1], 8))
		case v[0] == "vlan" && len(v) == 4:
			layers = append(layers, VLAN(uint16(r.number(v[1], 12)), uint8(r.number(v[3], 3))))
		case v[0] == "ARP:":
			layers = append(layers, ARP(r.arp(v, src)))
		case v[0] == "UDP" && len(v) == 4:
			port := uint64(wire.RoCEv2Port)
			if v[3] != "RoCE" {
				port = r.number(v[3], 16)
			}
			layers = append(layers, UDP(uint16(r.number(v[1], 16)), uint16(port)))
		case (v[0] == "SEND" || v[0] == "WRITE") && len(v) == 6:
			layers = append(layers, BTH(r.opcode(v[0]+" "+v[1]), uint32(r.number(v[3], 24)), uint32(r.number(v[5], 24))))
		case v[0] == "echo" && len(v) == 3:
			layers = append(layers, ICMP(wire.ICMPEcho, 0, uint32(r.number(v[2], 16))))
		case len(v) == 2 && v[1] == "bytes":
			bytes = int(r.number(v[0], 14))
		case len(v) >= 3 && v[1] == ">":
			layers = append(layers, IPv4(v[0], v[2], r.options(v[3:])...))
		default:
			r.fail("%q is not understood", w)
		}
	}
	if r.err != nil {
		return nil
	}
	if short := bytes - len(mark) - len(Packet(layers...)); short > 0 {
		layers = append(layers, Zeros(short))
	}
	b := Frame(layers...)
	return append(append(b[:12:12], mark...), b[12:]...)
}

func (r *reader) opcode(name string) uint8 {
	for op := range 256 {
		if n, ok := roceNames[uint8(op)]; ok && n == name {
			return uint8(op)
		}
	}
	r.fail("there is no operation %q", name)
	return 0
}

// arp reads "who has A? tell B" and "A is at STATION".
func (r *reader) arp(v []string, src string) wire.ARPFields {
	if len(v) == 6 && v[1] == "who" {
		return wire.ARPFields{Op: wire.ARPRequest, SenderMAC: r.mac(src), SenderIP: Addr4(v[5]), TargetIP: Addr4(strings.TrimSuffix(v[3], "?"))}
	}
	if len(v) != 5 {
		r.fail("%q is neither: who has A? tell B, nor: A is at STATION", strings.Join(v, " "))
		return wire.ARPFields{}
	}
	// The receiver is in the Ethernet header alone.
	return wire.ARPFields{Op: wire.ARPReply, SenderMAC: r.mac(v[4]), SenderIP: Addr4(v[1]), TargetIP: netip.AddrFrom4([4]byte{}).As4()}
}

func (r *reader) options(v []string) (o []IPOption) {
	tos := uint8(0)
	for ; len(v) > 0; v = v[1:] {
		switch {
		case v[0] == "ttl" && len(v) > 1:
			o, v = append(o, TTL(uint8(r.number(v[1], 8)))), v[1:]
		case v[0] == "dscp" && len(v) > 1:
			tos |= uint8(r.number(v[1], 6)) << 2
			v = v[1:]
		case v[0] == "ECT(0)":
			tos |= 2
		case v[0] == "CE":
			tos |= 3
		default:
			r.fail("%q is no part of an IP header", v[0])
		}
	}
	return append(o, TOS(tos))
}
