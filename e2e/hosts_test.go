package e2e

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"gswitch/wire"
)

// transfer sends random bytes over TCP from one host's kernel to another's and
// compares them by checksum.
func transfer(t testing.TB, from, to *host, address string, size int) {
	t.Helper()
	var l net.Listener
	in(t, to.ns, func() (err error) {
		l, err = net.Listen("tcp", net.JoinHostPort(address, "0"))
		return err
	})
	defer l.Close()
	type result struct {
		sum [32]byte
		n   int64
		err error
	}
	got := make(chan result, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			got <- result{err: err}
			return
		}
		defer c.Close()
		c.SetDeadline(time.Now().Add(patience))
		h := sha256.New()
		n, err := io.Copy(h, c)
		got <- result{[32]byte(h.Sum(nil)), n, err}
	}()
	var c net.Conn
	in(t, from.ns, func() (err error) {
		c, err = (&net.Dialer{Timeout: patience}).Dial("tcp", l.Addr().String())
		return err
	})
	defer c.Close()
	c.SetDeadline(time.Now().Add(patience))
	content := make([]byte, size)
	rand.NewChaCha8(sha256.Sum256([]byte(t.Name()))).Read(content)
	if _, err := io.Copy(c, bytes.NewReader(content)); err != nil {
		t.Fatalf("TCP from host %d to %s: %v", from.i, address, err)
	}
	c.Close()
	r := <-got
	if r.err != nil || r.n != int64(size) || r.sum != sha256.Sum256(content) {
		t.Fatalf("TCP from host %d to %s: %d of %d bytes arrived, the same: %v, %v", from.i, address, r.n, size, r.sum == sha256.Sum256(content), r.err)
	}
}

// reply is the sender of the answer to an echo request, and its ICMP type.
type reply struct {
	from netip.Addr
	typ  int
}

// Types of ICMP for IPv4 (RFC 792) and IPv6 (RFC 4443).
const (
	echoReply4, timeExceeded4 = 0, 11
	echoReply6, timeExceeded6 = 129, 3
)

// pinger sends echo requests from a host.
type pinger struct {
	h   *host
	c   *net.IPConn
	dst netip.Addr
	seq uint16
}

func (h *host) pinger(t testing.TB, address string) *pinger {
	t.Helper()
	p := &pinger{h: h, dst: netip.MustParseAddr(address)}
	network := "ip4:icmp"
	if p.dst.Is6() {
		network = "ip6:ipv6-icmp"
	}
	in(t, h.ns, func() error {
		c, err := net.ListenPacket(network, "")
		if err == nil {
			p.c = c.(*net.IPConn)
		}
		return err
	})
	t.Cleanup(func() { p.c.Close() })
	return p
}

// once sends a request with size bytes of payload and a time to live, and
// waits for what answers it.
func (p *pinger) once(ttl, size int, wait time.Duration) (reply, error) {
	p.seq++
	id := uint16(p.h.i + 1)
	b := make([]byte, 8+size)
	b[0] = 8
	if p.dst.Is6() {
		b[0] = 128
	}
	binary.BigEndian.PutUint16(b[4:], id)
	binary.BigEndian.PutUint16(b[6:], p.seq)
	if !p.dst.Is6() {
		// For IPv6 the kernel does it (RFC 3542 section 3.1).
		binary.BigEndian.PutUint16(b[2:], wire.Checksum(b))
	}
	sc, err := p.c.SyscallConn()
	if err != nil {
		return reply{}, err
	}
	var serr error
	err = sc.Control(func(fd uintptr) {
		if p.dst.Is6() {
			serr = syscall.SetsockoptInt(int(fd), unix.IPPROTO_IPV6, unix.IPV6_UNICAST_HOPS, ttl)
		} else {
			serr = errors.Join(syscall.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_TTL, ttl),
				syscall.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_DO))
		}
	})
	if err := errors.Join(err, serr); err != nil {
		return reply{}, err
	}
	if _, err := p.c.WriteTo(b, &net.IPAddr{IP: p.dst.AsSlice()}); err != nil {
		return reply{}, err
	}
	p.c.SetReadDeadline(time.Now().Add(wait))
	buf := make([]byte, 1<<16)
	for {
		n, from, err := p.c.ReadFrom(buf)
		if err != nil {
			return reply{}, err
		}
		m, quoted := buf[:n], []byte(nil)
		if n < 8 {
			continue
		}
		typ := int(m[0])
		switch {
		case typ == timeExceeded4 && !p.dst.Is6() && n >= 8+20+8:
			quoted = m[8+20:]
		case typ == timeExceeded6 && p.dst.Is6() && n >= 8+40+8:
			quoted = m[8+40:]
		case typ == echoReply4 && !p.dst.Is6() || typ == echoReply6 && p.dst.Is6():
			quoted = m
		default:
			continue
		}
		if binary.BigEndian.Uint16(quoted[4:]) != id || binary.BigEndian.Uint16(quoted[6:]) != p.seq {
			continue
		}
		a, _ := netip.AddrFromSlice(from.(*net.IPAddr).IP)
		return reply{a.Unmap(), typ}, nil
	}
}

// ping sends requests until one is answered, as the first may be lost to
// address resolution, and returns the answer.
func (h *host) ping(t testing.TB, address string, ttl, size int) reply {
	t.Helper()
	p := h.pinger(t, address)
	var r reply
	eventually(t, fmt.Sprintf("ping from host %d to %s", h.i, address), func() (err error) {
		r, err = p.once(ttl, size, time.Second)
		return err
	})
	return r
}

// pings sends a request that must come back.
func (h *host) pings(t testing.TB, address string, size int) {
	t.Helper()
	r := h.ping(t, address, 64, size)
	if (r.typ != echoReply4 && r.typ != echoReply6) || r.from != netip.MustParseAddr(address) {
		t.Fatalf("host %d asked %s; %v answered with ICMP type %d", h.i, address, r.from, r.typ)
	}
}

// neighbor returns the MAC address that the host's kernel has resolved.
func (h *host) neighbor(t testing.TB, address string) (mac wire.MAC) {
	t.Helper()
	link(t, h.ns, "eth0", func(l netlink.Link) error {
		list, err := netlink.NeighList(l.Attrs().Index, netlink.FAMILY_V4)
		if err != nil {
			return err
		}
		for _, n := range list {
			if n.IP.String() == address && len(n.HardwareAddr) == len(mac) {
				mac = wire.MAC(n.HardwareAddr)
				return nil
			}
		}
		return fmt.Errorf("%s is not resolved", address)
	})
	return mac
}
