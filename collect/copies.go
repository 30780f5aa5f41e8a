package collect

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"gswitch/mirror"
	"gswitch/telemetry"
	"gswitch/wire"
)

// Copies receives copies of packets over GRE (RFC 2784, RFC 2890) or GRE in UDP (RFC
// 8086). These are not acknowledged, so copies that do not reach the stream are counted.
type Copies struct {
	Store   *Store
	Network *Network
	From    []netip.Prefix // networks that may send; empty: any
	Name    string         // of this collector
	Metrics *Metrics
	Log     *slog.Logger

	queue   chan []byte
	waiting atomic.Int64  // bytes queued
	overrun atomic.Uint64 // dropped since the queue was full

	mu             sync.Mutex
	marked, others mirror.Meter // copies received, with and without the debug bit
	numbers        mirror.Numbers
}

// Load returns the rates at which copies with and without the debug bit arrive, as
// averages of the last seconds.
func (c *Copies) Load() (marked, others mirror.Rate) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := second()
	return c.marked.Mean(now), c.others.Mean(now)
}

var began = time.Now()

// second counts seconds independently of the machine's wall clock.
func second() int64 { return int64(time.Since(began)/time.Second) + 1 }

// count counts a copy including its outer headers.
func (c *Copies) count(now int64, frame []byte) {
	m, before := &c.others, c.numbers.Missing
	if x, ok := mirror.Unwrap(frame); ok {
		c.numbers.Add(&x)
		if _, h, ok := x.Hop(); ok && h.DSCP&mirror.DebugDSCP != 0 {
			m = &c.marked
		}
	}
	if n := c.numbers.Missing; n != before {
		c.Metrics.lost.Add(float64(n) - float64(before))
	}
	c.mu.Lock()
	m.Add(now, len(frame)-wire.EthernetLen)
	c.mu.Unlock()
}

const (
	// mostCopies is the number of copies that may wait for the stream.
	mostCopies = 16384
	// mostCopyBytes is the same limit in bytes.
	mostCopyBytes = 64 << 20
	// mostTogether is the largest number of them in a message, per lane.
	mostTogether = 512
	// longestCopy is the longest IP packet.
	longestCopy = 1 << 16
)

// ListenGRE opens a socket that receives GRE packets for an address. It needs
// CAP_NET_RAW.
func ListenGRE(addr string) (net.PacketConn, error) {
	c, err := net.ListenPacket("ip4:47", addr)
	if errors.Is(err, os.ErrPermission) {
		return nil, fmt.Errorf("copies over GRE: %w; they need CAP_NET_RAW, or take them over UDP", err)
	}
	return c, err
}

// Serve puts received copies into the stream until ctx ends and all earlier ones have
// been processed.
func (c *Copies) Serve(ctx context.Context, conn net.PacketConn) error {
	c.queue = make(chan []byte, mostCopies)
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	kept := make(chan struct{})
	go func() {
		defer close(kept)
		c.keep(context.WithoutCancel(ctx))
	}()
	err := c.read(conn)
	close(c.queue)
	<-kept
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// read queues copies with the time of arrival and an Ethernet header.
func (c *Copies) read(conn net.PacketConn) error {
	b := make([]byte, longestCopy)
	for {
		n, from, err := conn.ReadFrom(b)
		if err != nil {
			return err
		}
		if !allowed(c.From, from) {
			c.Metrics.refused.WithLabelValues("copies").Inc()
			continue
		}
		var src netip.Addr
		switch a := from.(type) {
		case *net.IPAddr:
			src, _ = netip.AddrFromSlice(a.IP)
		case *net.UDPAddr:
			src = a.AddrPort().Addr()
		}
		body := framed(src.Unmap(), b[:n])
		if body == nil {
			c.Metrics.copies.WithLabelValues("lost").Inc()
			continue
		}
		c.count(second(), body[8:])
		if c.waiting.Add(int64(len(body))) <= mostCopyBytes {
			select {
			case c.queue <- body:
				continue
			default:
			}
		}
		c.waiting.Add(-int64(len(body)))
		c.overrun.Add(1)
		c.Metrics.copies.WithLabelValues("overrun").Inc()
	}
}

// framed returns a copy in the form of a report, from a GRE packet and its source
// address, with the outer headers in front. The kernel has removed the IP header, of
// which only the source is needed. It returns nil if the copy is longer than a packet can
// be.
func framed(src netip.Addr, gre []byte) []byte {
	if !src.Is4() || wire.IPv4Len+len(gre) >= longestCopy {
		return nil
	}
	be := binary.BigEndian
	b := be.AppendUint64(make([]byte, 0, 8+wire.EthernetLen+wire.IPv4Len+len(gre)), uint64(time.Now().UnixNano()))
	b = append(b, make([]byte, wire.EthernetLen+wire.IPv4Len)...)
	eth := b[8:]
	be.PutUint16(eth[12:], wire.EtherTypeIPv4)
	ip := eth[wire.EthernetLen:]
	ip[0], ip[8], ip[9] = 0x45, 64, wire.ProtoGRE
	be.PutUint16(ip[2:], uint16(wire.IPv4Len+len(gre)))
	a := src.As4()
	copy(ip[12:], a[:])
	be.PutUint16(ip[10:], wire.Checksum(ip[:wire.IPv4Len]))
	return append(b, gre...)
}

// keep stores queued copies until the queue is closed.
func (c *Copies) keep(ctx context.Context) {
	h := telemetry.Hello{Version: telemetry.HelloVersion, Name: "copies-" + c.Name, Boot: uint64(time.Now().UnixNano())}
	k := newKeeper(c.Store, c.Network, h)
	next := uint64(1)
	logged := time.Time{}
	for first := range c.queue {
		v := []telemetry.Report{{Kind: Mirrored, Boot: h.Boot, Sequence: next, Body: first}}
		for len(v) < mostTogether && len(c.queue) > 0 {
			v = append(v, telemetry.Report{Kind: Mirrored, Boot: h.Boot, Sequence: next + uint64(len(v)), Body: <-c.queue})
		}
		next += uint64(len(v))
		for i := range v {
			c.waiting.Add(-int64(len(v[i].Body)))
		}
		if _, err := k.keep(ctx, v); err != nil {
			c.Metrics.copies.WithLabelValues("lost").Add(float64(len(v)))
			k = newKeeper(c.Store, c.Network, h) // it asks the stream what it has
			if time.Since(logged) > 10*time.Second {
				logged = time.Now()
				c.Log.Warn("copies are lost: the stream does not take them", "error", err)
			}
			continue
		}
		c.Metrics.copies.WithLabelValues("stored").Add(float64(len(v)))
	}
}
