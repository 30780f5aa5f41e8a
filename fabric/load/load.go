// Package load puts traffic on a network and measures it: TCP streams whose
// content is checked, request and response pairs with latency percentiles,
// and echo requests. It is for labs where no other tool is at hand.
//
// A client opens a TCP connection and sends a header of 16 bytes:
//
//	0   4 bytes  "gfl1"
//	4   1 byte   kind: 's' stream, 'r' requests
//	5   3 bytes  zero
//	8   4 bytes  request size, big endian (kind r)
//	12  4 bytes  response size, big endian (kind r)
//
// A stream follows until the client closes its side; the server answers with
// 8 bytes count and 4 bytes CRC-32C of what it got. Requests are answered one
// by one until the client closes.
package load

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"time"
)

// DefaultPort is where Serve listens and where clients connect.
const DefaultPort = "7400"

const (
	magic       = "gfl1"
	kindStream  = 's'
	kindRequest = 'r'
	headerLen   = 16
	reportLen   = 12

	// MaxMessage bounds a request and a response.
	MaxMessage = 1 << 20
)

// maxClients are served at once; more are closed at once.
const maxClients = 512

// idle is after how long without a message a peer counts as gone.
const idle = 30 * time.Second

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

type header struct {
	kind            byte
	request, answer uint32
}

func (h header) encode() []byte {
	b := make([]byte, headerLen)
	copy(b, magic)
	b[4] = h.kind
	binary.BigEndian.PutUint32(b[8:], h.request)
	binary.BigEndian.PutUint32(b[12:], h.answer)
	return b
}

func decodeHeader(b []byte) (header, error) {
	if len(b) != headerLen || string(b[:4]) != magic {
		return header{}, errors.New("the other side does not use this protocol")
	}
	h := header{b[4], binary.BigEndian.Uint32(b[8:]), binary.BigEndian.Uint32(b[12:])}
	switch {
	case h.kind != kindStream && h.kind != kindRequest:
		return header{}, fmt.Errorf("unknown kind of test %q", h.kind)
	case h.kind == kindRequest && (h.request == 0 || h.answer == 0 || h.request > MaxMessage || h.answer > MaxMessage):
		return header{}, fmt.Errorf("requests of %d and responses of %d bytes are not between 1 and %d", h.request, h.answer, MaxMessage)
	}
	return h, nil
}

// Serve answers clients of l until l is closed. complain is called with what went
// wrong with a client.
func Serve(l net.Listener, complain func(error)) error {
	places := make(chan struct{}, maxClients)
	for {
		c, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return err
		}
		select {
		case places <- struct{}{}:
		default:
			c.Close()
			continue
		}
		go func() {
			defer func() { c.Close(); <-places }()
			if err := serve(c); err != nil && complain != nil {
				complain(fmt.Errorf("%s: %w", c.RemoteAddr(), err))
			}
		}()
	}
}

func serve(c net.Conn) error {
	head := make([]byte, headerLen)
	c.SetDeadline(time.Now().Add(idle))
	if _, err := io.ReadFull(c, head); err != nil {
		return err
	}
	h, err := decodeHeader(head)
	if err != nil {
		return err
	}
	if h.kind == kindStream {
		return serveStream(c)
	}
	return serveRequests(c, h)
}

func serveStream(c net.Conn) error {
	buf := make([]byte, 256<<10)
	var n uint64
	var sum uint32
	for {
		c.SetReadDeadline(time.Now().Add(idle))
		k, err := c.Read(buf)
		n += uint64(k)
		sum = crc32.Update(sum, castagnoli, buf[:k])
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
	}
	report := make([]byte, reportLen)
	binary.BigEndian.PutUint64(report, n)
	binary.BigEndian.PutUint32(report[8:], sum)
	c.SetWriteDeadline(time.Now().Add(idle))
	_, err := c.Write(report)
	return err
}

func serveRequests(c net.Conn, h header) error {
	in, out := make([]byte, h.request), make([]byte, h.answer)
	for {
		c.SetDeadline(time.Now().Add(idle))
		if _, err := io.ReadFull(c, in); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		if _, err := c.Write(out); err != nil {
			return err
		}
	}
}
