package load

import (
	"bytes"
	"context"
	"net"
	"os"
	"strings"
	"testing"
	"time"
)

func server(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() { done <- Serve(l, func(err error) { t.Log(err) }) }()
	t.Cleanup(func() {
		l.Close()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return l.Addr().String()
}

func TestStreamBytes(t *testing.T) {
	for _, n := range []uint64{1, 65521, 1 << 20, 3<<20 + 7} {
		r, err := Stream(t.Context(), StreamOptions{Address: server(t), Streams: 3, Bytes: n})
		if err != nil {
			t.Fatal(err)
		}
		if r.Bytes != 3*n || r.Streams[0] != n || r.BitsPerSecond <= 0 {
			t.Errorf("%d bytes: result %+v", n, r)
		}
	}
}

func TestStreamTime(t *testing.T) {
	r, err := Stream(t.Context(), StreamOptions{Address: server(t), Time: 50 * time.Millisecond})
	if err != nil || r.Bytes == 0 {
		t.Errorf("result %+v, error %v", r, err)
	}
}

// A path that changes a byte must not go unnoticed.
func TestStreamNoticesDamage(t *testing.T) {
	to := server(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		a, err := l.Accept()
		if err != nil {
			return
		}
		defer a.Close()
		b, err := net.Dial("tcp", to)
		if err != nil {
			return
		}
		defer b.Close()
		buf := make([]byte, 4096)
		for seen := 0; ; {
			n, err := a.Read(buf)
			if seen <= 5000 && seen+n > 5000 {
				buf[5000-seen] ^= 1
			}
			seen += n
			b.Write(buf[:n])
			if err != nil {
				break
			}
		}
		b.(*net.TCPConn).CloseWrite()
		n, _ := b.Read(buf)
		a.Write(buf[:n])
	}()
	_, err = Stream(t.Context(), StreamOptions{Address: l.Addr().String(), Bytes: 10000})
	if err == nil || !strings.Contains(err.Error(), "with checksum") {
		t.Errorf("error %v", err)
	}
}

func TestRequests(t *testing.T) {
	l, err := Requests(t.Context(), RequestOptions{Address: server(t), Time: 50 * time.Millisecond, Request: 100, Response: 9000})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Requests(t.Context(), RequestOptions{Address: server(t), Time: time.Millisecond, DSCP: 46}); err != nil {
		t.Error(err)
	}
	if _, err := Requests(t.Context(), RequestOptions{Address: server(t), Time: time.Millisecond, DSCP: 64}); err == nil {
		t.Error("DSCP 64 was taken")
	}
	if l.Count == 0 || l.Min > l.P50 || l.P50 > l.P99 || l.P99 > l.Max || l.Lost != 0 {
		t.Errorf("latency %+v", l)
	}
}

func TestCancel(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Requests(ctx, RequestOptions{Address: server(t), Time: time.Hour}); err == nil {
		t.Error("a cancelled test ended without error")
	}
	if _, err := Stream(ctx, StreamOptions{Address: server(t), Time: time.Hour}); err == nil {
		t.Error("a cancelled stream ended without error")
	}
}

func TestPercentiles(t *testing.T) {
	var v []time.Duration
	for i := range 1000 {
		v = append(v, time.Duration(1000-i)*time.Microsecond)
	}
	l := NewLatency("x", v, 2)
	if l.Min != 1 || l.P50 != 500 || l.P90 != 900 || l.P99 != 990 || l.P999 != 999 || l.Max != 1000 || l.Mean != 500.5 || l.Lost != 2 {
		t.Errorf("latency %+v", l)
	}
	if l := NewLatency("x", []time.Duration{7000}, 0); l.P50 != 7 || l.P999 != 7 {
		t.Errorf("latency of one sample %+v", l)
	}
	if l := NewLatency("x", nil, 3); l.Count != 0 || l.Max != 0 {
		t.Errorf("latency of no sample %+v", l)
	}
}

func TestPing(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("raw sockets need root")
	}
	l, err := Ping(t.Context(), PingOptions{Address: "127.0.0.1", Count: 3})
	if err != nil || l.Count != 3 || l.Lost != 0 {
		t.Errorf("latency %+v, error %v", l, err)
	}
	if _, err := Ping(t.Context(), PingOptions{Address: "nowhere"}); err == nil {
		t.Error("a name that nobody bears was found")
	}
}

func TestPingByName(t *testing.T) {
	a, err := resolve(t.Context(), "localhost", 0)
	if err != nil || !a.IsLoopback() {
		t.Errorf("localhost: %v, %v", a, err)
	}
	if _, err := resolve(t.Context(), "no such name", 0); err == nil || !strings.Contains(err.Error(), "neither an IP address nor a name") {
		t.Errorf("an unknown name: %v", err)
	}
}

// The error of a missing server says how to start one.
func TestRefused(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	if _, err := Stream(t.Context(), StreamOptions{Address: address, Bytes: 1}); err == nil || !strings.Contains(err.Error(), "is gfabric load serve running there?") {
		t.Errorf("stream: %v", err)
	}
	if _, err := Requests(t.Context(), RequestOptions{Address: address, Time: 1}); err == nil || !strings.Contains(err.Error(), "is gfabric load serve running there?") {
		t.Errorf("requests: %v", err)
	}
}

// An example of RFC 1071 section 3.
func TestChecksum(t *testing.T) {
	if got := checksum([]byte{0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7}); got != ^uint16(0xddf2) {
		t.Errorf("checksum %04x", got)
	}
}

func FuzzHeader(f *testing.F) {
	f.Add(header{kindStream, 0, 0}.encode())
	f.Add(header{kindRequest, 64, MaxMessage}.encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := decodeHeader(b)
		if err != nil {
			return
		}
		e := h.encode()
		copy(e[5:8], b[5:8])
		if !bytes.Equal(e, b) {
			t.Errorf("%x decodes to %+v, which encodes to %x", b, h, e)
		}
	})
}
