package host

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

func framed(text string) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(text))), text...)
}

// clientOf is the client's end of a connection to a server.
func clientOf(t *testing.T, s *iperf, cookie string) net.Conn {
	t.Helper()
	a, b := net.Pipe()
	t.Cleanup(func() { a.Close() })
	go s.serve(b)
	if _, err := a.Write([]byte(cookie + strings.Repeat("\x00", cookieLen-len(cookie)))); err != nil {
		t.Fatal(err)
	}
	return a
}

func says(t *testing.T, c net.Conn, want ...byte) {
	t.Helper()
	got := make([]byte, len(want))
	if _, err := io.ReadFull(c, got); err != nil || !bytes.Equal(got, want) {
		t.Fatalf("it says %v, want %v: %v", got, want, err)
	}
}

// A test of iperf3 goes through its states, another client is asked to wait, and what is not
// there is refused.
func TestIperf3(t *testing.T) {
	s := &iperf{timeout: 30 * time.Second}
	c := clientOf(t, s, "one")
	says(t, c, iperfParams)
	says(t, clientOf(t, s, "two"), iperfDenied)
	go c.Write(framed(`{"tcp":true,"parallel":2,"len":100}`)) // what follows shows it
	says(t, c, iperfStreams)
	data := []net.Conn{clientOf(t, s, "one"), clientOf(t, s, "one")}
	says(t, c, iperfStart, iperfRunning)
	for i, d := range data {
		if _, err := d.Write(make([]byte, 100*(i+1))); err != nil {
			t.Fatal(err)
		}
	}
	go func() {
		_, _ = c.Write([]byte{iperfEnd}) // as well
		_, _ = c.Write(framed(`{"streams":[{"id":1,"retransmits":1.8e19}]}`))
	}()
	says(t, c, iperfResults)
	var head [4]byte
	if _, err := io.ReadFull(c, head[:]); err != nil {
		t.Fatal(err)
	}
	text := make([]byte, binary.BigEndian.Uint32(head[:]))
	if _, err := io.ReadFull(c, text); err != nil || !strings.Contains(string(text), `"id":1,`) || !strings.Contains(string(text), `"id":3,`) {
		t.Errorf("%v: %s", err, text)
	}
	says(t, c, iperfDisplay)
	if _, err := c.Write([]byte{iperfDone}); err != nil {
		t.Fatal(err)
	}
	if n, err := c.Read(head[:]); err == nil {
		t.Errorf("%d bytes behind the end", n)
	}
	for _, wrong := range []string{`{"udp":true,"parallel":1,"len":100}`, `{"parallel":1,"len":100,"bidirectional":true}`, `{"parallel":0,"len":100}`, `{"parallel":1000,"len":100}`, `{"parallel":1}`} {
		c := clientOf(t, &iperf{timeout: 30 * time.Second}, "x")
		says(t, c, iperfParams)
		go c.Write(framed(wrong)) // what follows shows it
		says(t, c, iperfError, 0, 0, 0, iperfUnimplemented)
	}
}

// said is a connection on which everything has been said.
type said struct {
	net.Conn
	io.Reader
}

func (c said) Read(b []byte) (int, error)  { return c.Reader.Read(b) }
func (c said) Write(b []byte) (int, error) { return len(b), nil }
func (c said) SetDeadline(time.Time) error { return nil }
func (c said) Close() error                { return nil }

// Whatever a client says, the server comes to an end, and is there for the next one.
func FuzzIperf3(f *testing.F) {
	cookie := string(make([]byte, cookieLen))
	f.Add([]byte(cookie))
	f.Add(append([]byte(cookie), framed(`{"parallel":1,"len":9}`)...))
	f.Add(append([]byte(cookie), 0xff, 0xff, 0xff, 0xff))
	f.Fuzz(func(t *testing.T, b []byte) {
		s := &iperf{timeout: time.Millisecond}
		s.serve(said{Reader: bytes.NewReader(b)})
		if s.test != nil {
			t.Error("a test is left")
		}
	})
}
