package load

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// StreamOptions describe a throughput test.
type StreamOptions struct {
	Address string        // host:port of a server
	Streams int           // parallel connections; 0 = 1
	Time    time.Duration // how long to send; 0 = until Bytes are sent
	Bytes   uint64        // how much each connection sends at most; 0 = no limit
	DSCP    int           // code point of what is sent, 0 to 63
}

// StreamResult is the outcome of a throughput test.
type StreamResult struct {
	Address       string   `json:"address"`
	Bytes         uint64   `json:"bytes"`   // received and checked by the server
	Seconds       float64  `json:"seconds"` // from the first byte to the server's report
	BitsPerSecond float64  `json:"bits_per_second"`
	Streams       []uint64 `json:"stream_bytes"`
}

// Stream sends over TCP and has the server check that every byte arrived.
func Stream(ctx context.Context, o StreamOptions) (*StreamResult, error) {
	if o.Time <= 0 && o.Bytes == 0 {
		return nil, errors.New("a stream needs a time or a number of bytes")
	}
	o.Streams = max(1, o.Streams)
	began := time.Now()
	r := &StreamResult{Address: o.Address, Streams: make([]uint64, o.Streams)}
	errs := make([]error, o.Streams)
	var wg sync.WaitGroup
	for i := range o.Streams {
		wg.Go(func() { r.Streams[i], errs[i] = stream(ctx, o, byte(i)) })
	}
	wg.Wait()
	r.Seconds = time.Since(began).Seconds()
	for _, n := range r.Streams {
		r.Bytes += n
	}
	r.BitsPerSecond = float64(r.Bytes) * 8 / r.Seconds
	return r, errors.Join(errs...)
}

// stream sends over one connection and compares the server's report.
func stream(ctx context.Context, o StreamOptions, seed byte) (uint64, error) {
	c, err := dial(ctx, o.Address, o.DSCP, header{kind: kindStream})
	if err != nil {
		return 0, err
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { c.SetDeadline(time.Unix(1, 0)) })()

	// A prime length, so that no two segments carry the same bytes.
	block := make([]byte, 65521)
	x := uint32(seed) + 1
	for i := range block {
		x = x*1664525 + 1013904223 // Numerical Recipes' LCG: any pattern will do
		block[i] = byte(x >> 24)
	}
	var sent uint64
	var sum uint32
	end := time.Now().Add(o.Time)
	for (o.Bytes == 0 || sent < o.Bytes) && (o.Time <= 0 || time.Now().Before(end)) {
		b := block
		if left := o.Bytes - sent; o.Bytes != 0 && left < uint64(len(b)) {
			b = b[:left]
		}
		c.SetWriteDeadline(time.Now().Add(idle))
		n, err := c.Write(b)
		sent += uint64(n)
		sum = crc32.Update(sum, castagnoli, b[:n])
		if err != nil {
			return 0, fmt.Errorf("%s: after %d bytes: %w", o.Address, sent, err)
		}
	}
	if err := c.CloseWrite(); err != nil {
		return 0, err
	}
	report := make([]byte, reportLen)
	c.SetReadDeadline(time.Now().Add(idle))
	if _, err := io.ReadFull(c, report); err != nil {
		return 0, fmt.Errorf("%s: no report after %d bytes: %w", o.Address, sent, err)
	}
	got, gotSum := binary.BigEndian.Uint64(report), binary.BigEndian.Uint32(report[8:])
	if got != sent || gotSum != sum {
		return got, fmt.Errorf("%s: sent %d bytes with checksum %08x, but %d with %08x arrived", o.Address, sent, sum, got, gotSum)
	}
	return got, nil
}

func dial(ctx context.Context, address string, dscp int, h header) (*net.TCPConn, error) {
	d := net.Dialer{Timeout: 5 * time.Second, Control: func(network, _ string, raw syscall.RawConn) error {
		return setDSCP(network, raw, dscp)
	}}
	c, err := d.DialContext(ctx, "tcp", address)
	if errors.Is(err, unix.ECONNREFUSED) {
		return nil, fmt.Errorf("%w; is gfabric load serve running there?", err)
	}
	if err != nil {
		return nil, err
	}
	c.SetDeadline(time.Now().Add(idle))
	if _, err := c.Write(h.encode()); err != nil {
		c.Close()
		return nil, err
	}
	return c.(*net.TCPConn), nil
}

// setDSCP sets the code point of everything that a socket sends: the upper
// six bits of the byte of RFC 2474; TCP keeps the ECN bits to itself.
func setDSCP(network string, raw syscall.RawConn, dscp int) error {
	if dscp == 0 {
		return nil
	}
	if dscp < 0 || dscp > 63 {
		return fmt.Errorf("DSCP %d is not from 0 to 63", dscp)
	}
	level, option := unix.IPPROTO_IP, unix.IP_TOS
	if network == "tcp6" {
		level, option = unix.IPPROTO_IPV6, unix.IPV6_TCLASS
	}
	var err error
	if ctl := raw.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), level, option, dscp<<2) }); ctl != nil {
		return ctl
	}
	return err
}
