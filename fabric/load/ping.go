package load

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"time"
)

// PingOptions describe a test by ICMP echo.
type PingOptions struct {
	Address  string // IPv4 or IPv6, or a name
	Version  int    // 4 or 6: which of a name's addresses; 0 = IPv4 where it has one
	Count    int    // 0 = until the context ends
	Interval time.Duration
	Timeout  time.Duration // for each answer; 0 = 1 s
}

// echo holds what differs between RFC 792 and RFC 4443.
type echo struct {
	network        string
	request, reply byte
}

// Ping sends ICMP echo requests one by one. It needs CAP_NET_RAW.
func Ping(ctx context.Context, o PingOptions) (*Latency, error) {
	addr, err := resolve(ctx, o.Address, o.Version)
	if err != nil {
		return nil, err
	}
	proto := echo{"ip4:icmp", 8, 0}
	if addr.Is6() {
		proto = echo{"ip6:ipv6-icmp", 128, 129}
	}
	if o.Timeout == 0 {
		o.Timeout = time.Second
	}
	c, err := net.ListenPacket(proto.network, "")
	if err != nil {
		return nil, fmt.Errorf("cannot open a raw socket: %w", err)
	}
	defer c.Close()
	id := uint16(os.Getpid())
	var samples []time.Duration
	lost := 0
	for seq := 0; o.Count == 0 || seq < o.Count; seq++ {
		if ctx.Err() != nil {
			return NewLatency(o.Address, samples, lost), ctx.Err()
		}
		took, err := proto.once(c, addr, id, uint16(seq), o.Timeout)
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			lost++
		case err != nil:
			return NewLatency(o.Address, samples, lost), err
		default:
			samples = append(samples, took)
		}
		if rest := o.Interval - took; rest > 0 && (o.Count == 0 || seq < o.Count-1) {
			select {
			case <-time.After(rest):
			case <-ctx.Done():
			}
		}
	}
	return NewLatency(o.Address, samples, lost), nil
}

// resolve returns the address of a name: its first of the version that is
// wanted, or, for version 0, its first of IPv4 where it has one.
func resolve(ctx context.Context, name string, version int) (netip.Addr, error) {
	fits := func(a netip.Addr) bool { return version == 0 || a.Is4() == (version == 4) }
	if a, err := netip.ParseAddr(name); err == nil {
		if !fits(a) {
			return netip.Addr{}, fmt.Errorf("%s is no IPv%d address", name, version)
		}
		return a, nil
	}
	network := "ip"
	if version != 0 {
		network += strconv.Itoa(version)
	}
	all, err := net.DefaultResolver.LookupNetIP(ctx, network, name)
	if err != nil {
		return netip.Addr{}, fmt.Errorf("%q is neither an IP address nor a name that is known here: %w", name, err)
	}
	for _, a := range all {
		if a = a.Unmap(); a.Is4() && fits(a) {
			return a, nil
		}
	}
	return all[0], nil
}

// once sends one request and waits for its answer.
func (p echo) once(c net.PacketConn, to netip.Addr, id, seq uint16, timeout time.Duration) (time.Duration, error) {
	m := make([]byte, 64)
	m[0] = p.request
	binary.BigEndian.PutUint16(m[4:], id)
	binary.BigEndian.PutUint16(m[6:], seq)
	for i := 8; i < len(m); i++ {
		m[i] = byte(i)
	}
	if to.Is4() { // the kernel fills in that of ICMPv6 (RFC 3542 3.1)
		binary.BigEndian.PutUint16(m[2:], checksum(m))
	}
	began := time.Now()
	if _, err := c.WriteTo(m, &net.IPAddr{IP: to.AsSlice()}); err != nil {
		return 0, err
	}
	c.SetReadDeadline(began.Add(timeout))
	in := make([]byte, 2048)
	for {
		n, from, err := c.ReadFrom(in)
		if err != nil {
			return time.Since(began), err
		}
		source, _ := netip.AddrFromSlice(from.(*net.IPAddr).IP)
		if source.Unmap() == to && answers(in[:n], p.reply, id, seq) {
			return time.Since(began), nil
		}
	}
}

// answers reports whether m is the echo reply with this identifier and
// sequence number.
func answers(m []byte, reply byte, id, seq uint16) bool {
	return len(m) >= 8 && m[0] == reply && binary.BigEndian.Uint16(m[4:]) == id && binary.BigEndian.Uint16(m[6:]) == seq
}

// checksum is the Internet checksum (RFC 1071) of an even number of bytes.
func checksum(b []byte) uint16 {
	var sum uint32
	for i := 0; i+1 < len(b); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	for sum>>16 != 0 {
		sum = sum&0xffff + sum>>16
	}
	return ^uint16(sum)
}
